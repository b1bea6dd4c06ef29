# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs of rows-mine.test and what NumPy says.

usage: rows_mine.py FOLDER
"""
import sys

import numpy

rng = numpy.random.default_rng(7)
x, r = (rng.standard_normal((61, 200)).astype(numpy.float16) for _ in range(2))
s = (x + r).astype(numpy.float64)
e = numpy.exp(s - s.max(1, keepdims=True))
y = numpy.sqrt(e / e.sum(1, keepdims=True)).T
for name, value in {"x": x, "r": r, "y": y.astype(numpy.float16),
                    "wide": x.astype(numpy.float32)}.items():
    numpy.save("%s/%s.npy" % (sys.argv[1], name), value)
