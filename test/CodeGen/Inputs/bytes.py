# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What bytes.hir's kernels give: NumPy's rounding to even, and NaN the least.

usage: bytes.py FOLDER
"""
import pathlib
import sys

import numpy

folder = pathlib.Path(sys.argv[1])
x = numpy.arange(-256, 256, dtype="f4") / numpy.float32(1.5)
x[:64] = numpy.arange(-32, 32) + 0.5
far = [numpy.nan, numpy.inf, -numpy.inf, 3e9, -3e9, 1e30, -1e30, 127.5, -128.5, 254.5, 255.5, 4194304.5, -4194303.5,
       12582912, -12582912, 1e-30, -0.0]
x[64:64 + len(far)] = far


def narrowed(zero, least, most, kind):
    y = numpy.fmin(numpy.fmax(numpy.rint(x) + numpy.float32(zero), least), most)
    return y.astype(kind)


numpy.save(folder / "x.npy", x)
numpy.save(folder / "signed.npy", narrowed(0, -128, 127, "i1"))
numpy.save(folder / "unsigned.npy", narrowed(113, 0, 255, "u1"))
numpy.save(folder / "narrow.npy", narrowed(0, 0, 93, "i1"))
