# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs points.hir on a device at odd sizes and compares with numpy.

usage: points.py [hidet-run's options...]
"""

import os
import subprocess
import sys
import tempfile

import numpy as np

SIZES = [(64, 64), (128, 72), (65, 66), (63, 129), (1, 8), (7, 1), (130, 40)]


def halves(rng, m, n):
    a = rng.standard_normal((m, n)).astype("f2")
    bias = rng.standard_normal(n).astype("f2")
    twice = (a.astype("f4") * 2).astype("f2")
    return {"a": a, "bias": bias}, {"c": twice + bias, "t": a.T.copy()}


def floats(rng, m, n):
    a = rng.standard_normal((m, n)).astype("f4")
    c = np.zeros((m, n))
    c[1:, 1:] = np.exp(a.astype("f8"))[:-1, :-1] + 1
    d = np.zeros((m, n))
    d[::2] = c[:(m + 1) // 2]
    return {"a": a}, {"c": c, "d": d}


def copies(rng, m, n):
    a = rng.standard_normal((m, n)).astype("f4")
    return {"a": a}, {"c": a}


def main():
    rng = np.random.default_rng(1)
    hir = os.path.join(os.path.dirname(os.path.abspath(__file__)), "points.hir")
    runs = 0
    for make in (halves, floats, copies):
        for m, n in SIZES:
            given, expected = make(rng, m, n)
            with tempfile.TemporaryDirectory() as folder:
                command = ["hidet-run", hir, "--entry=" + make.__name__,
                           "-q"] + sys.argv[1:]
                for name, value in given.items():
                    path = os.path.join(folder, name + ".npy")
                    np.save(path, value)
                    command.append("--input=%s=@%s" % (name, path))
                for name in expected:
                    path = os.path.join(folder, name + ".npy")
                    command.append("--output=%s=@%s" % (name, path))
                subprocess.run(command, check=True)
                for name, value in expected.items():
                    got = np.load(os.path.join(folder, name + ".npy"))
                    # d's odd rows are nobody's.
                    rows = slice(0, None, 2) if name == "d" else slice(None)
                    np.testing.assert_allclose(got[rows], value[rows],
                                               rtol=1e-6)
            runs += 1
    print("%d runs, as numpy says" % runs)


if __name__ == "__main__":
    main()
