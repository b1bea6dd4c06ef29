# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Normalization and softmax."""

from __future__ import annotations

import math

from hidet.torch.operators.call import Call, axis_of
from hidet.torch.operators.reductions import reduce_to
from hidet.torch.text import Unsupported, Value


def softmax(task: str, safe: bool = False):
    """_softmax, _log_softmax: (x, dim, half_to_float); _safe_softmax: 0 where
    all is -inf."""

    def function(c: Call, x: Value, dim: int, wide=False) -> Value:
        x = c.cast(x, c.type)
        if not x.is_float:
            raise Unsupported(f"softmax of {x.type}")
        axis = axis_of(dim, x.rank)
        if not x.rank:
            return c.full(0.0 if task == "log_softmax" else 1.0, c.type, ())
        made = c.unary(task, x, s=axis)
        if not safe:
            return made
        lowest = c.constant(-math.inf, x.type)
        out = c.binary("equal", x, lowest, "bool")
        none = reduce_to(c, "reduce_min_bool", out, [axis])
        return c.node(
            "where", [none, c.constant(0, x.type), made], x.type, x.shape
        )

    return function


def scale_and_shift(c: Call, weight, bias, shape) -> tuple[Value, Value, str]:
    kind = next((v.type for v in (weight, bias) if v), c.type)
    scale = c.cast(weight, kind) if weight else c.full(1, kind, shape)
    shift = c.cast(bias, kind) if bias else c.full(0, kind, shape)
    return scale, shift, kind


def layer_norm(
    c: Call, x: Value, normalized, weight, bias, epsilon: float
) -> list:
    if 1 in c.used or 2 in c.used:
        raise Unsupported("the statistics of layer_norm")
    shape = tuple(normalized)
    count = math.prod(shape)
    if not x.size or not x.is_float:
        raise Unsupported("layer_norm of nothing, or of integers")
    scale, shift, _ = scale_and_shift(c, weight, bias, shape)
    made = c.node(
        "layer_norm",
        [x, scale, shift],
        x.type,
        x.shape,
        epsilon=float(epsilon),
        count=count,
    )
    return [made, None, None]


EPSILON = {
    "f64": 2.220446049250313e-16,
    "f32": 1.1920928955078125e-07,
    "f16": 0.0009765625,
    "bf16": 0.0078125,
}


def rms_norm(c: Call, x: Value, normalized, weight=None, epsilon=None) -> list:
    if 1 in c.used:
        raise Unsupported("the statistics of rms_norm")
    if not x.size or not x.is_float:
        raise Unsupported("rms_norm of nothing, or of integers")
    shape = tuple(normalized)
    scale = c.cast(weight, c.type) if weight else c.full(1, c.type, shape)
    made = c.node(
        "rms_norm_scale",
        [x, scale],
        c.type,
        x.shape,
        epsilon=float(EPSILON[x.type] if epsilon is None else epsilon),
        count=math.prod(shape),
    )
    return [made, None] if len(c.results) > 1 else made


def group_norm(
    c: Call, x, weight, bias, n, channels, _size, groups, epsilon
) -> list:
    if 1 in c.used or 2 in c.used:
        raise Unsupported("the statistics of group_norm")
    if not x.size:
        raise Unsupported("group_norm of nothing")
    d = channels // groups
    rest = x.size // (n * channels)
    whole = c.reshape(x, (n, groups, d, rest))
    scale, shift, kind = scale_and_shift(c, weight, bias, (channels,))
    made = c.node(
        "group_norm",
        [
            whole,
            c.reshape(c.cast(scale, x.type), (groups, d)),
            c.reshape(c.cast(shift, x.type), (groups, d)),
        ],
        x.type,
        whole.shape,
        epsilon=float(epsilon),
        count=d * rest,
    )
    return [c.reshape(made, x.shape), None, None]


def batch_norm(
    c: Call, x, weight, bias, mean, variance, _momentum, epsilon
) -> list:
    """With the statistics that are kept."""
    if not x.size:
        raise Unsupported("batch_norm of nothing")
    channels = (x.shape[1],)
    scale, shift, _ = scale_and_shift(c, weight, bias, channels)
    if mean is None or variance is None:
        raise Unsupported("batch_norm without statistics")
    made = c.node(
        "batch_norm",
        [x, scale, shift, mean, c.cast(variance, mean.type)],
        x.type,
        x.shape,
        epsilon=float(epsilon),
    )
    return [made] + [
        c.full(0, t, s) if i + 1 in c.used else None
        for i, (t, s) in enumerate(c.results[1:])
    ]


def batch_norm_no_stats(
    c: Call, x, weight, bias, training, _momentum, epsilon
) -> list:
    """By the statistics of x: instance_norm, where the batch is in the channels."""
    if 1 in c.used or 2 in c.used or x.shape[0] != 1 or not x.size:
        raise Unsupported("batch_norm in training")
    channels = x.shape[1]
    made = group_norm(c, x, weight, bias, 1, channels, None, channels, epsilon)
    return made
