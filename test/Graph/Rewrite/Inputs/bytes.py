# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The first graph of bytes.hir, all bytes, and what it makes of them: f32 rounded
after each operation, erf in f64.

usage: bytes.py TEST GRAPH X Y
"""
import math
import sys

import numpy

test, graph, x_file, y_file = sys.argv[1:5]
with open(test) as file, open(graph, "w") as out:
    out.write(file.read().split("// -----")[0])
f4 = numpy.float32
x = numpy.arange(256, dtype="u1").view("i1").reshape(16, 16)


def narrowed(value, scale, zero):
    return numpy.clip(numpy.rint(value / f4(scale)) + f4(zero), -128, 127).astype("i1")


def widened(value, scale, zero):
    return (value.astype("f4") - f4(zero)) * f4(scale)


a = widened(x, 0.03, 0)
c = numpy.vectorize(math.erf)(a / f4(1.4142135)).astype("f4")
f = widened(narrowed(c, 0.0078125, 0), 0.0078125, 0) + f4(1)
i = widened(narrowed(f, 0.016, -100), 0.016, -100) * f4(0.5)
numpy.save(x_file, x)
numpy.save(y_file, narrowed(a * i, 0.025, 0))
