# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""com.microsoft.GroupQueryAttention of drawn shapes against NumPy, by its
description: rows of a batch have lengths of their own, new keys go behind what
the cache holds of the row, and a query sees what is before it, or a window of
that; heads may be turned, and have a score that is for no value. A window of 0
sees nothing, and gives 0, as in onnxruntime.

usage: group_query.py FOLDER COUNT SEED [hidet-run's options...]
"""
import pathlib
import sys

import numpy

import drawn

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = numpy.random.default_rng(seed)


def some(*choices):
    return choices[int(rng.integers(len(choices)))]


def turned(x, angles, at, interleaved):
    """x [n, heads, d] at places [n]; angles [all places, r]."""
    r = angles.shape[1]
    c, s = numpy.cos(angles[at])[:, None], numpy.sin(angles[at])[:, None]
    first, second = ((slice(0, 2 * r, 2), slice(1, 2 * r, 2)) if interleaved
                     else (slice(0, r), slice(r, 2 * r)))
    y = x.copy()
    y[..., first] = x[..., first] * c - x[..., second] * s
    y[..., second] = x[..., second] * c + x[..., first] * s
    return y


def attend(q, k, v, bias, scale, cap, window, sink):
    """One row of a batch: q [m, heads, d], all keys up to its last query's."""
    m, n, each = len(q), len(k), q.shape[1] // k.shape[1]
    k, v = numpy.repeat(k, each, 1), numpy.repeat(v, each, 1)
    scores = numpy.einsum("mhd,nhd->hmn", q, k) * scale
    scores = cap * numpy.tanh(scores / cap) if cap else scores
    if bias is not None:
        scores = scores + bias[..., :n]
    at = numpy.arange(n) - numpy.arange(m)[:, None] - (n - m)
    hidden = (at > 0) | ((at <= -window) & (window >= 0))
    weights = numpy.exp(numpy.where(hidden, -numpy.inf, scores))
    total = weights.sum(-1, keepdims=True)
    if sink is not None:
        total = total + numpy.exp(sink)[:, None, None]
    return numpy.einsum("hmn,nhd->mhd", weights / numpy.where(total == 0, 1, total), v)


def case(number):
    kind, g = some("float32", "float32", "float16"), some(1, 2)
    h, d, b, m = g * some(1, 2, 4), some(16, 32), some(1, 1, 3), some(1, 1, 4, 9)
    first = bool(rng.integers(2))
    length = numpy.full(b, m) if first else m + rng.integers(1, 12, b)
    total = int(length.max())
    held = some(total, total + 5) if some(0, 1) else (0 if first else total - m)
    x = {n: rng.standard_normal((b, m, heads * d)).astype(kind)
         for n, heads in (("q", h), ("k", g), ("v", g))}
    inputs = {"pk": rng.standard_normal((b, g, held, d)).astype(kind),
              "pv": rng.standard_normal((b, g, held, d)).astype(kind),
              "length": (length - 1).astype("int32")}
    wide = {n: a.astype("float64").reshape(b, m, -1, d) for n, a in x.items()}
    packed = some(0, 0, 1)
    inputs.update({"q": numpy.concatenate(list(x.values()), 2)} if packed else x)
    operands = ["q", "_", "_"] if packed else ["q", "k", "v"]
    operands += ["pk", "pv", "length", "total"] + ["_"] * 5
    rotary, interleaved, window = some(0, 1), some(0, 1), some(-1, 0, 1, 3, 200)
    angles = rng.uniform(0, 6, (total + 2, some(d // 2, d // 4)))
    if rotary:
        inputs.update(cosine=numpy.cos(angles).astype(kind), sine=numpy.sin(angles).astype(kind))
        operands[7:9] = ["cosine", "sine"]
    bias = sink = None
    if some(0, 0, 1):
        inputs["bias"] = rng.standard_normal((some(1, b), some(1, h), m, total)).astype(kind)
        bias = numpy.broadcast_to(inputs["bias"], (b, h, m, total)).astype("float64")
        operands[10] = "bias"
    smooth = some(0, 0, 1)
    if some(0, 0, 1):
        sink = inputs["sink"] = rng.standard_normal(h).astype(kind)
        operands[11] = "sink"
    elif smooth:
        sink = numpy.zeros(h)
    scale, cap = some(0, 0.25), some(0, 0, 4.0)
    y = numpy.zeros((b, m, h, d))
    room = max(held, total)
    keys, values = (numpy.zeros((b, g, room, d)) for _ in range(2))
    keys[:, :, :held], values[:, :, :held] = inputs["pk"], inputs["pv"]
    for i, n in enumerate(length):
        at = numpy.arange(n - m, n)
        q, k = wide["q"][i], wide["k"][i]
        if rotary:
            q, k = (turned(z, angles, at, interleaved) for z in (q, k))
        keys[i, :, at], values[i, :, at] = k, wide["v"][i]
        y[i] = attend(q, keys[i, :, :n].swapaxes(0, 1), values[i, :, :n].swapaxes(0, 1),
                      None if bias is None else bias[i], scale or d ** -0.5, cap, window, sink)
    results = [y.reshape(b, m, h * d), keys, values]
    names, asked = ["o0", "o1", "o2"], int(rng.integers(3)) if number % 2 else 0
    names[asked] = "y"
    while operands[-1] == "_":
        operands.pop()
    text = ("const total: i32[1] = %d\n  %s = microsoft1.GroupQueryAttention(%s) { num_heads = %d, "
            "kv_num_heads = %d, do_rotary = %d, rotary_interleaved = %d, local_window_size = %d, "
            "scale = %.3f, softcap = %.3f, smooth_softmax = %d }" % (
                total, ", ".join(names), ", ".join(operands), h, g, rotary, interleaved, window,
                scale, cap, smooth))
    drawn.check(folder, text, inputs, results[asked].astype(kind),
                1e-5 if kind == "float32" else 8e-3, sys.argv[4:],
                "case %d of seed %d" % (number, seed))


for number in range(count):
    case(number)
print(count, "cases")
