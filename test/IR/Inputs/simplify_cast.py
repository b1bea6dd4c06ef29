# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What simplify-cast.hir's kernel `values` gives, by NumPy's rounding.

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
