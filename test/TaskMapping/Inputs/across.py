# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs of across.hir and what NumPy makes of them.

usage: across.py FOLDER M N
"""
import pathlib
import sys

import numpy

folder, m, n = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:])
rng = numpy.random.default_rng(m)
given = {"a": rng.standard_normal((m, n)).astype("f2"),
         "d": rng.integers(-128, 128, (m, n)).astype("i1"),
         "f": rng.standard_normal((m, n)).astype("f4")}
for (name, x), result in zip(given.items(), "ceg"):
    numpy.save(folder / (name + ".npy"), x)
    numpy.save(folder / (result + ".npy"), x.T.copy())
x = rng.integers(-128, 128, (256, 192)).astype("f2")
heads = x.reshape(2, 128, 3, 64).transpose(0, 2, 3, 1).copy()
numpy.save(folder / "x.npy", x)
numpy.save(folder / "y.npy", heads)
numpy.save(folder / "u.npy", heads.astype("i1"))
