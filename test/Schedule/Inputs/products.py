# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes inputs and what NumPy makes of them for templates.test.

usage: products.py FOLDER
"""
import pathlib
import sys

import numpy

folder = pathlib.Path(sys.argv[1])
rng = numpy.random.default_rng(7)
x = rng.standard_normal((128, 768)).astype(numpy.float16)
w = (rng.standard_normal((768, 256)) / 28).astype(numpy.float16)
b = rng.standard_normal(256).astype(numpy.float16)
y = (x.astype(numpy.float64) @ w.astype(numpy.float64)).astype(numpy.float16)
y = numpy.maximum(y + b, 0).reshape(128, 4, 64).transpose(1, 0, 2)
for name, value in {"x": x, "w": w, "b": b, "y": y}.items():
    numpy.save(folder / (name + ".npy"), numpy.ascontiguousarray(value))
