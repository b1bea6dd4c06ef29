# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which keys a query of ONNX's Attention sees, of drawn masks, windows and
lengths, against NumPy: a query i stands at the key i + offset, where offset is
what was before, or with lengths and no past what is behind the queries' own
keys; of all that say which keys it sees the narrowest holds; one that sees none
is 0, and one of whose scores is NaN is not, whatever the others are. And com.microsoft's, where what is
added to keys that do not count is finite: where none does, all do.

usage: attention.py FOLDER COUNT SEED [hidet-run's options...]
"""
import pathlib
import sys

import numpy

import drawn

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = numpy.random.default_rng(seed)


def some(*choices):
    return choices[int(rng.integers(len(choices)))]


def attend(q, k, v, bias, hidden, scale):
    scores = numpy.where(hidden, -numpy.inf, q @ k.swapaxes(-1, -2) * scale + bias)
    top = scores.max(-1, keepdims=True)
    weights = numpy.exp(scores - numpy.where(top == -numpy.inf, 0, top))
    total = weights.sum(-1, keepdims=True)
    return weights / numpy.where(top == -numpy.inf, 1, total) @ v


def run(number, text, inputs, expected, tolerance):
    drawn.check(folder, text, inputs, expected, tolerance, sys.argv[4:],
                "case %d of seed %d" % (number, seed))


def standard(number):
    kind, (h, g) = some("float32", "float16"), some((2, 2), (4, 2))
    b, m, n, d, past = 2, some(1, 3, 5, 17), some(1, 6, 33), some(4, 16), some(0, 0, 2)
    total = n + past
    q = rng.standard_normal((b, h, m, d)).astype(kind)
    k = rng.standard_normal((b, g, total, d)).astype(kind)
    v = rng.standard_normal((b, g, total, d)).astype(kind)
    inputs = {"q": q, "k": k[:, :, past:], "v": v[:, :, past:]}
    operands = ["q", "k", "v", "_", "_", "_", "_"]
    bias, unseen = numpy.zeros((b, h, m, total)), False
    has_mask, has_length = some(0, 1, 2), not past and bool(rng.integers(2))
    if has_mask:
        sees = rng.random((b, 1, m, total)) < 0.6
        sees[0, :, 0] = False
        if has_mask == 1:
            unseen, inputs["mask"] = ~sees, sees
        else:
            bias = numpy.where(sees, bias, -numpy.inf)
            bias[1, :, m - 1, ::2] = some(0, 0, numpy.nan)
            inputs["mask"] = bias[:, :1].astype(kind)
        operands[3] = "mask"
    if past:
        inputs.update(pk=k[:, :, :past], pv=v[:, :, :past])
        operands[4:6] = ["pk", "pv"]
    if has_length:
        inputs["length"] = rng.integers(0, total + 1, b)
        operands[6] = "length"
    offset = (inputs["length"] - m if has_length else numpy.full(b, past))[:, None, None]
    at = numpy.arange(total) - numpy.arange(m)[:, None] - offset
    version, causal = some(24, 25), int(rng.integers(2))
    left, right = some(-1, 0, 2), -1 if causal else some(-1, 0, 2)
    if version == 24:
        left = right = -1
    hidden = ((at > 0) & bool(causal)) | ((at > right) & (right >= 0)) | ((-at > left) & (left >= 0))
    if has_length:
        hidden |= (numpy.arange(total) >= inputs["length"][:, None])[:, None]
    hidden = hidden[:, None] | unseen
    if some(0, 0, 1):
        q[some(0, 1), 0, 0, 0] = numpy.nan  # No mask makes a number of it.
    wide = [x.astype("float64") for x in (q, k, v)]
    wide[1:] = [numpy.repeat(x, h // g, 1) for x in wide[1:]]
    y = attend(*wide, bias, hidden, 1 / numpy.sqrt(d)).astype(kind)
    while operands[-1] == "_":
        operands.pop()
    windows = ", left_window_size = %d, right_window_size = %d" % (left, right)
    run(number, "y, pk1, pv1 = onnx%d.Attention(%s) { is_causal = %d%s }" % (
        version, ", ".join(operands), causal, windows if version == 25 else ""),
        inputs, y, 1e-5 if kind == "float32" else 5e-3)


def microsoft(number):
    b, m, h, d = 2, some(1, 4), 2, 8
    x = {n: rng.standard_normal((b, m, h * d)).astype("float32") for n in "qkv"}
    length, causal = rng.integers(-1, m + 1, b).astype("int32"), int(rng.integers(2))
    counts = numpy.where(length < 1, m, length)[:, None, None, None]
    hidden = numpy.arange(m) >= counts
    if causal:
        hidden = hidden | (numpy.arange(m) > numpy.arange(m)[:, None])
    q, k, v = (x[n].astype("float64").reshape(b, m, h, d).swapaxes(1, 2) for n in "qkv")
    y = attend(q, k, v, 0, hidden, 1 / numpy.sqrt(d))
    run(number, "y = microsoft1.MultiHeadAttention(q, k, v, _, length) { num_heads = 2, "
        "unidirectional = %d }" % causal, {**x, "length": length},
        y.swapaxes(1, 2).reshape(b, m, h * d).astype("float32"), 1e-5)


def packed(number):
    """com.microsoft.Attention: the mask says how many keys there are, or from
    where to where, or which of them, for all queries or for each; keys may come
    before those of the input, and are given with these."""
    b, m, h, d, width, past = 2, some(1, 4), 2, 8, 12, some(0, 0, 3)
    n = m + past
    x = rng.standard_normal((b, m, width)).astype("float32")
    w = rng.standard_normal((width, 3 * h * d)).astype("float32") * numpy.float32(0.3)
    before = rng.standard_normal((2, b, h, past, d)).astype("float32")
    end, at, how, causal = rng.integers(1, n + 1, b), numpy.arange(n), number // 4 % 4, int(rng.integers(2))
    start = rng.integers(0, end)
    sees, mask = at < end[:, None, None], end
    if how == 1:
        sees = sees & (at >= start[:, None, None])
        mask = numpy.concatenate([end, start])
    elif how == 2:
        sees = rng.random((b, 1, n)) < 0.6
        sees[:, 0, 0] = True
        mask = sees[:, 0]
    elif how == 3:
        mask = sees = (rng.random((b, m, n)) < 0.6) | numpy.eye(m, n, past, dtype=bool)
    hidden = ~numpy.broadcast_to(sees, (b, m, n))
    if causal:
        hidden = hidden | (at > numpy.arange(m)[:, None] + past)
    if hidden.all(-1).any():
        return
    q, k, v = (x.astype("float64") @ w).reshape(b, m, 3, h, d).transpose(2, 0, 3, 1, 4)
    k, v = (numpy.concatenate(pair, 2) for pair in zip(before, (k, v)))
    y = attend(q, k, v, 0, hidden[:, None], 1 / numpy.sqrt(d)).swapaxes(1, 2).reshape(b, m, h * d)
    given = bool(rng.integers(2))
    run(number, "%s = microsoft1.Attention(x, w, _, mask%s) { num_heads = 2, unidirectional = %d }" % (
        "o, y" if given else "y", ", before" if past else "", causal),
        {"x": x, "w": w, "mask": mask.astype("int32"), **({"before": before} if past else {})},
        (numpy.stack([k, v]) if given else y).astype("float32"), 1e-5)


for number in range(count):
    [standard, standard, packed, microsoft][number % 4](number)
print(count, "cases")
