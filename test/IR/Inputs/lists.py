# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tasks with lists of operands come to, by NumPy.

usage: lists.py FILE FOLDER HIDET_RUN
"""
import pathlib
import subprocess
import sys

import numpy as np

file, folder, tool = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
folder.mkdir(exist_ok=True)
random = np.random.default_rng(1)


def check(entry, inputs, expected):
    """Runs a graph on both devices and compares."""
    options = ["--entry=" + entry]
    for kind, tensors in (("input", inputs), ("expected", expected)):
        for name, tensor in tensors.items():
            path = folder / ("%s.%s.npy" % (entry, name))
            np.save(path, tensor)
            options.append("--%s=%s=@%s" % (kind, name, path))
    for device in ("ref", "sim"):
        subprocess.run([tool, file, "--device=" + device] + options, check=True)


def draw(*shape):
    return random.standard_normal(shape).astype(np.float32)


x, y0, z = draw(2, 2, 3), draw(2, 1, 3), draw(2, 2, 3)
s, t, u, v = draw(), draw(4), draw(4), draw(4)
check("main",
      {"x": x, "y0": y0, "z": z, "s": s, "t": t, "u": u, "v": v},
      {"one": x, "y": np.concatenate([x, y0, x, z], axis=1),
       "d": u - (v - t), "m": np.maximum(-u, np.maximum(-v, -t)) + s,
       "c": np.full(4, 9, np.float32), "e": u})
a = np.array([[[7]]], np.int32)
b = np.array([[[-3], [5]]], np.int32)
check("many", {"a": a, "b": b},
      {"y": np.concatenate([a, b] * 32, axis=1)})
