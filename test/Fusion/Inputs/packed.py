# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The inputs and results of packed.test: all are exact in every type on the way.

usage: packed.py FOLDER
"""

import pathlib
import sys

import numpy as np


def main(folder):
    random = np.random.default_rng(1)
    # One element in each row of x, so that no sum leaves i4.
    x = np.zeros((64, 48), np.float32)
    x[np.arange(64), random.integers(0, 48, 64)] = random.choice([-1, 1], 64)
    w = random.integers(-8, 8, (48, 41)).astype(np.int8)
    s = random.choice([0.25, 0.5], 41).astype(np.float32)
    c = x @ (w.astype(np.float32) * s)
    e = np.trunc(c)
    y = e * s
    q = np.trunc(np.abs(e) * 2).astype(np.uint8).T
    assert e.min() < -2 and e.max() > 2 and q.max() <= 15
    folder = pathlib.Path(folder)
    for name, value in dict(x=x, w=w, s=s, y=y, e=e.astype(np.int8),
                            q=np.ascontiguousarray(q)).items():
        np.save(folder / (name + ".npy"), value)


if __name__ == "__main__":
    main(sys.argv[1])
