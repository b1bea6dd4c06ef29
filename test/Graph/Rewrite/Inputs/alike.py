# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The graphs mask and sign of alike.hir, run on drawn x, which have zeros of both
signs and -inf, against NumPy in f64, signs of zeros too.

usage: alike.py TEST BASE
"""
import subprocess
import sys

import numpy

test, base = sys.argv[1:3]
rng = numpy.random.default_rng(1)


def softmax(x):
    e = numpy.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


GRAPHS = {"mask": ((3, 4, 5), softmax), "sign": ((4, 5), lambda x: x + 0.0)}
with open(test) as file:
    texts = file.read().split("// -----")
for name, (shape, compute) in GRAPHS.items():
    text, = (text for text in texts if "graph %s(" % name in text)
    with open(base + ".hir", "w") as out:
        out.write(text)
    x = rng.choice(numpy.array([-0.0, 0.0, 1.5, -2.0, -numpy.inf], "f4"), shape)
    x[..., 0] = -0.0
    numpy.save(base + ".npy", x)
    for options in ([], ["--no-rewrites"]):
        subprocess.run(["hidet-run", base + ".hir", "-q", "--device=sim", "--sanitize", *options,
                        "--input=@" + base + ".npy", "--output=@" + base + ".y.npy"], check=True)
        y, expected = numpy.load(base + ".y.npy"), compute(x.astype("f8"))
        assert numpy.allclose(y, expected, rtol=1e-5, atol=0), name
        assert (numpy.signbit(y) == numpy.signbit(expected)).all(), name
