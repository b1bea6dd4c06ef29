# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of matrices, convolutions, attention."""

from __future__ import annotations

import math

import torch

from hidet.torch.operators.call import NARROW, Call
from hidet.torch.operators.reductions import reduce_to
from hidet.torch.text import Unsupported, Value


def product(c: Call, a: Value, b: Value, kind: str | None = None) -> Value:
    """a times b, whose last two axes are matrices."""
    if a.type == "bool" or not a.shape[-1]:
        raise Unsupported("a product of bools, or over nothing")
    shape = (*a.shape[:-1], b.shape[-1])
    return c.node("matmul", [a, b], kind or a.type, shape)


def matmul(c: Call, a: Value, b: Value, *_: object) -> Value:
    return product(c, a, b)


def vector_product(c: Call, a: Value, b: Value) -> Value:
    """mv and dot: what has one axis is a matrix of one column or one row."""
    x = a if a.rank == 2 else c.reshape(a, (1, a.size))
    y = c.reshape(b, (b.size, 1))
    return c.reshape(product(c, x, y), c.shape)


def outer(c: Call, a: Value, b: Value) -> Value:
    return c.binary(
        "mul", c.reshape(c.cast(a, c.type), (a.size, 1)), c.cast(b, c.type)
    )


def grouped(
    c: Call, x: Value, weight: Value, ends=None, bias=None, _dtype=None
) -> Value:
    """Rows of x by a matrix each: those before the first of `ends` by the first,
    those from there to the second by the second. Behind the last are zeros."""
    if x.rank != 2 or weight.rank != 3 or ends is None or bias is not None:
        raise Unsupported("a grouped product but of rows by matrices")
    (m, k), (z, _, n) = x.shape, weight.shape
    if not m or not k or not z:
        raise Unsupported("a grouped product of nothing")
    zero, one = c.constant(0, "i64"), c.constant(1, "i64")
    row = c.node("range", [zero, one], "i64", (m,), n=m)
    row = c.reshape(row, (m, 1))
    behind = c.binary("less_equal", c.cast(ends, "i64"), row, "bool")
    at = reduce_to(c, "reduce_sum", c.cast(behind, "i64"), [1])
    chosen = c.binary("minimum", at, c.constant(z - 1, "i64"))
    flat = c.reshape(c.permute(weight, [0, 2, 1]), (1, z, n * k))
    matrices = c.node(
        "gather_rows",
        [flat, c.reshape(chosen, (1, m))],
        weight.type,
        (1, m, n * k),
    )
    matrices = c.reshape(matrices, (m, n, k))
    made = product(c, matrices, c.reshape(x, (m, k, 1)))
    inside = c.binary("less", at, c.constant(z, "i64"), "bool")
    made = c.cast(c.reshape(made, (m, n)), c.type)
    return c.node("where", [inside, made, c.constant(0, c.type)], c.type, (m, n))


def linear(
    c: Call, x: Value, weight: Value, bias: Value | None = None
) -> Value:
    turned = c.permute(weight, list(range(weight.rank))[::-1])
    if weight.rank == 1:
        made = product(
            c,
            c.reshape(x, (x.size // weight.size, weight.size)),
            c.reshape(weight, (weight.size, 1)),
        )
        made = c.reshape(made, c.shape)
    else:
        flat = c.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))
        made = c.reshape(product(c, flat, turned), c.shape)
    return c.binary("add", made, bias) if bias else made


def add_product(
    c: Call, bias: Value, a: Value, b: Value, beta=1, alpha=1
) -> Value:
    """addmm, baddbmm, addmv: beta bias + alpha a b."""
    kind = c.type
    if not a.is_float and (
        float(beta) != int(beta) or float(alpha) != int(alpha)
    ):
        raise Unsupported("fractions of integers")
    plain = alpha == 1 and beta == 1
    wide = "f32" if kind in NARROW and not plain else kind
    if b.rank == 1:
        b = c.reshape(b, (b.size, 1))
        made = c.reshape(product(c, a, b, wide), c.shape)
    else:
        made = product(c, a, b, wide)
    if alpha != 1:
        made = c.binary("mul", made, c.constant(alpha, wide))
    if beta == 0:
        return c.cast(made, kind)
    bias = c.cast(bias, wide)
    if beta != 1:
        bias = c.binary("mul", bias, c.constant(beta, wide))
    return c.cast(c.expand(c.binary("add", made, bias), c.shape), kind)


def per_axis(value, rank: int) -> list[int]:
    value = list(value) if isinstance(value, (list, tuple)) else [value]
    return value * rank if len(value) == 1 else value


def convolution(
    c: Call,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride,
    padding,
    dilation,
    transposed: bool = False,
    output_padding=(0,),
    groups: int = 1,
    *_: object,
) -> Value:
    if not x.is_float:
        raise Unsupported(f"a convolution of {x.type}")
    rank = weight.rank - 2
    shape = c.shape
    single = x.rank == rank + 1
    if single:
        x, shape = c.reshape(x, (1, *x.shape)), (1, *shape)
    if not x.size or not math.prod(shape):
        raise Unsupported("a convolution of nothing")
    pads = per_axis(padding, rank)
    attributes = {
        "strides": per_axis(stride, rank),
        "pads": pads + pads,
        "dilations": per_axis(dilation, rank),
        "group": groups,
    }
    if transposed:
        attributes["output_padding"] = per_axis(output_padding, rank)
    made = c.node(
        ".ConvTranspose" if transposed else ".Conv",
        [x, weight, bias] if bias else [x, weight],
        shape=shape,
        **attributes,
    )
    return c.reshape(made, c.shape)


def attention(
    c: Call,
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None,
    causal: bool,
    scale: float | None,
) -> list[Value | None]:
    """Of 4 axes: batch, heads, of which queries may have a multiple, rows,
    features. Scores and weights are as wide as sums, as in PyTorch's kernels;
    a query that sees no key has 0."""
    if any(i in c.used for i in range(1, len(c.results))):
        raise Unsupported("what attention keeps beside its result")
    q, k, v = (c.cast(x, c.type) for x in (q, k, v))
    if not q.is_float or q.rank != 4 or not q.size or not k.size or not v.size:
        raise Unsupported(f"attention of {q.rank} axes, or of nothing")
    heads, groups = q.shape[1], k.shape[1]
    if not q.shape[0] == k.shape[0] == v.shape[0] or heads % groups:
        raise Unsupported("queries for other batches or heads than keys have")
    if groups != v.shape[1] or k.shape[2] != v.shape[2]:
        raise Unsupported("keys without values")
    if scale is None:
        scale = 1 / math.sqrt(q.shape[3])
    wide = "f32" if c.type in NARROW else c.type
    scores = head_product(c, q, k, wide, tb=True)
    scores = c.binary("mul", scores, c.constant(scale, wide))
    scores = mask_scores(c, scores, mask, causal)
    weights = c.unary("softmax", scores, s=3)
    made = head_product(c, c.cast(weights, c.type), v, c.type)
    if mask is not None:
        made = zero_unseeing(c, made, mask)
    return [made] + [None] * (len(c.results) - 1)


def head_product(c: Call, a: Value, b: Value, kind: str, **given) -> Value:
    """Of each head with the head of keys or values that it belongs to."""
    (z, heads, m, k), groups = a.shape, b.shape[1]
    n = b.shape[2] if "tb" in given else b.shape[3]
    if heads == groups:
        return c.node("matmul", [a, b], kind, (z, heads, m, n), **given)
    a = c.reshape(a, (z, groups, heads // groups, m, k))
    b = c.reshape(b, (z, groups, 1, *b.shape[2:]))
    made = c.node(
        "matmul", [a, b], kind, (z, groups, heads // groups, m, n), **given
    )
    return c.reshape(made, (z, heads, m, n))


def mask_scores(
    c: Call, scores: Value, mask: Value | None, causal: bool
) -> Value:
    """A bool says which keys a query sees, another number is added."""
    if causal:
        scores = c.unary("mask_causal", scores, past=0)
    if mask is None:
        return scores
    if mask.rank > 4 or torch.broadcast_shapes(mask.shape, scores.shape) != (
        scores.shape
    ):
        raise Unsupported(f"a mask {list(mask.shape)}")
    if mask.type != "bool":
        return c.binary("add", scores, c.cast(mask, scores.type))
    hidden = c.constant(-math.inf, scores.type)
    return c.node("where", [mask, scores, hidden], scores.type, scores.shape)


def zero_unseeing(c: Call, made: Value, mask: Value) -> Value:
    """Rows of attention's result whose query sees no key: 0 in PyTorch, where
    softmax is 0 / 0."""
    if mask.type == "bool":
        hidden = c.unary("not", mask)
    else:
        lowest = c.constant(-math.inf, mask.type)
        hidden = c.binary("equal", mask, lowest, "bool")
    none = reduce_to(c, "reduce_min_bool", hidden, [mask.rank - 1])
    zero = c.constant(0, made.type)
    return c.node("where", [none, zero, made], made.type, made.shape)


def attention_whole(c, q, k, v, mask, causal, scale, grouped):
    """Our own operator (attention.py): 3 axes are one head, and one head of
    keys and values is for all."""
    shared = q.rank == 4 and k.shape[1] == v.shape[1] == 1
    if q.shape[:-2] != k.shape[:-2] and not (grouped or shared):
        raise Unsupported("attention that is broadcast")
    if q.rank == 3:
        q, k, v = (c.reshape(x, (1, *x.shape)) for x in (q, k, v))
    made = attention(c, q, k, v, mask, causal, scale)[0]
    return c.reshape(made, c.shape)


def attention_flash_cpu(
    c, q, k, v, dropout=0.0, causal=False, attn_mask=None, scale=None
):
    refuse_dropout(dropout)
    return attention(c, q, k, v, attn_mask, causal, scale)


def attention_flash(
    c, q, k, v, dropout=0.0, causal=False, debug=False, scale=None
):
    refuse_dropout(dropout)
    return attention(c, q, k, v, None, causal, scale)


def attention_efficient(
    c, q, k, v, bias, _lse, dropout=0.0, causal=False, scale=None
):
    refuse_dropout(dropout)
    return attention(c, q, k, v, bias, causal, scale)


def attention_cudnn(
    c, q, k, v, bias, _lse, dropout=0.0, causal=False, debug=False, scale=None
):
    refuse_dropout(dropout)
    return attention(c, q, k, v, bias, causal, scale)


def attention_any(
    c, q, k, v, bias=None, dropout=0.0, causal=False, debug=False, scale=None
):
    refuse_dropout(dropout)
    return attention(c, q, k, v, bias, causal, scale)


def refuse_dropout(p: float) -> None:
    if p:
        raise Unsupported("dropout, which draws numbers")
