# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions and scans along axes. The library's tasks know the middle axis of
[p, n, q]; other axes are brought together first."""

from __future__ import annotations

import math

from hidet.torch.operators.call import NARROW, Call, axes_of, axis_of
from hidet.torch.text import Unsupported, Value


def middle(c: Call, x: Value, axes: list[int]) -> Value:
    """x as [p, n, q], the axes being n."""
    if axes and axes == list(range(axes[0], axes[-1] + 1)):
        p = math.prod(x.shape[: axes[0]])
        q = math.prod(x.shape[axes[-1] + 1 :])
        return c.reshape(x, (p, math.prod(x.shape[i] for i in axes), q))
    kept = [i for i in range(x.rank) if i not in axes]
    turned = c.permute(x, kept + axes)
    p = math.prod(x.shape[i] for i in kept)
    return c.reshape(turned, (p, math.prod(x.shape[i] for i in axes), 1))


def reduce_to(
    c: Call, task: str, x: Value, axes, kind=None, **attributes
) -> Value:
    """A task of reduce.hir along axes, which become 1."""
    axes = axes_of(axes, x.rank)
    flat = middle(c, x, axes)
    p, _, q = flat.shape
    made = c.node(task, [flat], kind or x.type, (p, q), **attributes)
    kept = [1 if i in axes else n for i, n in enumerate(x.shape)]
    return c.reshape(made, kept)


def reduction(task: str, *, floats_only: bool = False):
    """sum, mean, prod: (x, axes, keepdim, *, dtype)."""

    def function(
        c: Call, x: Value, axes=None, keepdim=False, dtype=None
    ) -> Value:
        x = c.cast(x, c.type)
        if floats_only and not x.is_float:
            raise Unsupported(f"{task} of {x.type}")
        if c.type == "bool":
            raise Unsupported(f"{task} of bool")
        return c.reshape(reduce_to(c, task, x, axes), c.shape)

    return function


def reduction_all(task: str, **options: bool):
    """(x, *, dtype): along all axes."""
    whole = reduction(task, **options)
    return lambda c, x, dtype=None: whole(c, x)


def extreme(which: str):
    """amax, amin: (x, axes, keepdim)."""

    def function(c: Call, x: Value, axes=None, keepdim=False) -> Value:
        return c.reshape(extreme_along(c, which, x, axes), c.shape)

    return function


def extreme_along(c: Call, which: str, x: Value, axes) -> Value:
    ends = {"bool": "_bool"}.get(x.type, "" if x.is_float else "_integer")
    return reduce_to(c, f"reduce_{which}{ends}", x, axes)


def extreme_all(which: str):
    return lambda c, x: c.reshape(extreme_along(c, which, x, None), c.shape)


def extreme_dim(which: str):
    """max.dim, min.dim: the values and where they are."""

    def function(
        c: Call, x: Value, dim: int, keepdim=False
    ) -> list[Value | None]:
        values = places = None
        if 0 in c.used:
            made = extreme_along(c, which, x, dim)
            values = c.reshape(made, c.results[0][1])
        if 1 in c.used:
            at = place_along(c, which, x, dim)
            places = c.reshape(at, c.results[1][1])
        return [values, places]

    return function


def place_along(c: Call, which: str, x: Value, axes) -> Value:
    if x.type == "bool":
        x = c.cast(x, "u8")
    return reduce_to(c, f"arg_{which}", x, axes, "i64")


def place(which: str):
    """argmax, argmin: (x, dim, keepdim); along all axes where dim is left out."""

    def function(c: Call, x: Value, dim=None, keepdim=False) -> Value:
        return c.reshape(place_along(c, which, x, dim), c.shape)

    return function


def truth(task: str):
    """any, all."""

    def function(c: Call, x: Value, axes=None, keepdim=False) -> Value:
        made = reduce_to(c, f"reduce_{task}_bool", c.cast(x, "bool"), axes)
        return c.cast(c.reshape(made, c.shape), c.type)

    return function


def deviations(c: Call, x: Value, axes, correction) -> tuple[Value, int]:
    """The variance, in the type that sums have; axes become 1."""
    wide = "f32" if x.type in NARROW else x.type
    axes = axes_of(axes, x.rank)
    n = math.prod(x.shape[i] for i in axes)
    total = reduce_to(c, "reduce_square_deviation", x, axes, wide)
    count = max(n - (1 if correction is None else correction), 0)
    return c.binary("div", total, c.constant(float(count), wide))


def variance(root: bool):
    """var.correction, std.correction"""

    def function(
        c: Call, x: Value, axes=None, correction=None, keepdim=False
    ) -> Value:
        made = deviations(c, x, axes, correction)
        if root:
            made = c.unary("sqrt", made)
        return c.cast(c.reshape(made, c.shape), c.type)

    return function


def variance_mean(
    c: Call, x: Value, axes=None, correction=None, keepdim=False
) -> list[Value]:
    made = deviations(c, x, axes, correction)
    mean = reduce_to(c, "reduce_mean", x, axes)
    return [c.reshape(c.cast(made, c.type), c.shape), c.reshape(mean, c.shape)]


def vector_norm(
    c: Call, x: Value, ord=2, axes=None, keepdim=False, dtype=None
) -> Value:
    kind = c.type
    wide = "f32" if kind in NARROW else kind
    x = c.cast(x, kind)
    if ord == 2:
        made = reduce_to(c, "reduce_l2", x, axes)
    elif ord == 1:
        made = reduce_to(c, "reduce_l1", x, axes)
    elif ord in (math.inf, -math.inf):
        which = "max" if ord > 0 else "min"
        made = extreme_along(c, which, c.unary("abs", x), axes)
    elif ord == 0:
        made = c.cast(reduce_to(c, "reduce_count", x, axes, "i64"), kind)
    else:
        made = reduce_to(c, "reduce_power_sum", x, axes, wide, power=float(ord))
        made = c.cast(c.unary("pow_number", made, number=1 / ord), kind)
    return c.reshape(made, c.shape)


def logsumexp(c: Call, x: Value, axes, keepdim=False) -> Value:
    x = c.cast(x, c.type)
    return c.reshape(reduce_to(c, "reduce_log_sum_exp", x, axes), c.shape)


def count_nonzero(c: Call, x: Value, axes=None) -> Value:
    if x.type == "bool":
        x = c.cast(x, "u8")
    return c.reshape(reduce_to(c, "reduce_count", x, axes, "i64"), c.shape)


def scan(task: str):
    """cumsum, cumprod: (x, dim, *, dtype)."""

    def function(c: Call, x: Value, dim: int, dtype=None) -> Value:
        x = c.cast(x, c.type)
        if not x.rank:
            return x
        if c.type == "bool":
            raise Unsupported(f"{task} of bool")
        flat = middle(c, x, [axis_of(dim, x.rank)])
        return c.reshape(c.unary(task, flat), x.shape)

    return function
