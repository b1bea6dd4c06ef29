# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What simplify-cast.hir's kernels `values`, `twice` and `moved` give, by NumPy's rounding.

usage: simplify_cast.py FOLDER
"""
import pathlib
import sys

import numpy

folder = pathlib.Path(sys.argv[1])
t = (numpy.arange(1024, dtype="f4") - 512) * numpy.float32(0.75)
near = numpy.rint(t)
numpy.save(folder / "y.npy", numpy.clip(near, -128, 127).astype("i1"))
numpy.save(folder / "u.npy", numpy.clip(near + 100, 0, 255).astype("u1"))
numpy.save(folder / "w.npy", numpy.clip(numpy.rint(t * 100) + 7, -30000, 30001).astype("i2"))
numpy.save(folder / "v.npy", numpy.clip(near + 100, 3, 255).astype("f4"))

x = numpy.concatenate([numpy.arange(-14, 15) * 10.5, [numpy.nan, numpy.inf, -numpy.inf]]).astype("f4")


def clamped(*bounds):
    """max, min and so on by turns; both drop NaN."""
    y = x
    for i, bound in enumerate(bounds):
        y = (numpy.fmin if i % 2 else numpy.fmax)(y, numpy.float32(bound))
    return y


near = numpy.fmin(numpy.fmax(numpy.rint(x), numpy.float32(-128)), numpy.float32(127))
numpy.save(folder / "moved.npy", numpy.stack([
    near + 8, near - 3, near + 0.5, clamped(-128, 127) + 8, near + 1e6]).astype("f4"))
numpy.save(folder / "x.npy", x)
numpy.save(folder / "twice.npy", numpy.stack([
    clamped(-128, 127, 0, 89.5), clamped(-3, 4, 5), clamped(-3, 4, -5), clamped(4, -3, 5), clamped(-3, 4, x[31]),
    clamped(-3, 4, -0.0)]))
