# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes inputs and what NumPy makes of them in f64 for pairs.test.

usage: pairs.py FOLDER
"""
import pathlib
import sys

import numpy

folder = pathlib.Path(sys.argv[1])
rng = numpy.random.default_rng(7)
x = numpy.round(rng.standard_normal((40, 64)) * 8) / 8
w = numpy.round(rng.standard_normal((64, 48)) * 8) / 8
b = numpy.round(rng.standard_normal(24) * 8) / 8
t = x @ w
y = t[:, 0::2] - t[:, 1::2] * b
for name, value in {"x": x, "w": w, "b": b, "y": y, "z": numpy.maximum(y, 0).T}.items():
    numpy.save(folder / (name + ".npy"),
               numpy.ascontiguousarray(value.astype(numpy.float16)))
