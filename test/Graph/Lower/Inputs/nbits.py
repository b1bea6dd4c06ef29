# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""com.microsoft.MatMulNBits of drawn sizes against NumPy, by its description:
element e of a row is in byte e * bits / 8 of it, from the lowest bits on; a
row of zero points likewise; without them they are the middle of the range.

usage: nbits.py FOLDER COUNT SEED [hidet-run's options...]
"""
import pathlib
import sys

import numpy

import drawn

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = numpy.random.default_rng(seed)


def packed(q, bits):
    """Rows of q as rows of bytes."""
    each = 8 // bits
    filled = numpy.zeros((q.shape[0], -(-q.shape[1] // each) * each), numpy.uint8)
    filled[:, :q.shape[1]] = q
    shifts = numpy.arange(each, dtype=numpy.uint8) * bits
    return (filled.reshape(q.shape[0], -1, each) << shifts).sum(-1).astype(numpy.uint8)


def case(number):
    bits, block = int(rng.choice([4, 4, 4, 8, 2])), int(rng.choice([16, 32, 64, 128]))
    n, k = int(rng.choice([8, 16, 33, 64])), int(rng.choice([32, 128, 200, 256, 300, 512]))
    kind = [numpy.float32, numpy.float16][int(rng.integers(2))]
    a_shape = [(k,), (1, k), (5, k), (2, 3, k)][int(rng.integers(1, 4))]
    blocks = -(-k // block)
    q = rng.integers(0, 1 << bits, (n, blocks * block))
    scale = (rng.uniform(-1, 1, (n, blocks)) / (1 << bits)).astype(kind)
    a, bias = rng.standard_normal(a_shape).astype(kind), rng.standard_normal(n).astype(kind)
    zero_kind, has_bias = int(rng.integers(3)), bool(rng.integers(2))
    zero = [numpy.full((n, blocks), 1 << bits - 1), rng.integers(0, 1 << bits, (n, blocks)),
            rng.uniform(0, 1 << bits, (n, blocks)).astype(kind)][zero_kind]
    w = ((q.reshape(n, blocks, block) - zero[..., None].astype(numpy.float64))
         * scale[..., None].astype(numpy.float64))
    w = w.astype(kind).reshape(n, -1)[:, :k].astype(numpy.float64)
    y = a.astype(numpy.float64) @ w.T + (bias if has_bias else 0)
    inputs = {"a": a, "b": packed(q, bits).reshape(n, blocks, -1),
              "s": scale.reshape(-1) if rng.integers(2) else scale}
    if zero_kind:
        inputs["z"] = packed(zero, bits).reshape(-1) if zero_kind == 1 else zero
    if has_bias:
        inputs["c"] = bias
    operands = ["a", "b", "s", "z" if zero_kind else "_"] + (["_", "c"] if has_bias else [])
    while operands[-1] == "_":
        operands.pop()
    text = """y = microsoft1.MatMulNBits(%s) { K = %d, N = %d, bits = %d, block_size = %d }""" % (", ".join(operands), k, n, bits, block)
    drawn.check(folder, text, inputs, y.astype(kind),
                1e-5 if kind == numpy.float32 else 5e-3, sys.argv[4:],
                "case %d of seed %d" % (number, seed))


for number in range(count):
    case(number)
print(count, "cases")
