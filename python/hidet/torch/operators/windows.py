# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pooling and interpolation."""

from __future__ import annotations

import math

import numpy

from hidet.torch.operators.call import NARROW, Call
from hidet.torch.operators.products import per_axis
from hidet.torch.text import Unsupported, Value


def batched(c: Call, x: Value, rank: int) -> tuple[Value, tuple[int, ...]]:
    """x with a batch axis, and the result's shape with one."""
    if not x.is_float:
        raise Unsupported(f"windows of {x.type}")
    if not x.size or not math.prod(c.shape):
        raise Unsupported("windows of nothing")
    if x.rank == rank + 1:
        return c.reshape(x, (1, *x.shape)), (1, *c.shape)
    return x, c.shape


def max_pool(rank: int):
    """max_poolNd_with_indices; the indices are not asked for."""

    def function(
        c: Call, x: Value, kernel, stride=(), padding=0, dilation=1, ceil=False
    ):
        if 1 in c.used:
            raise Unsupported("the indices of max_pool")
        return [pool(c, x, rank, kernel, stride, padding, ceil, dilation), None]

    return function


def max_pool_plain(rank: int):
    def function(
        c: Call, x: Value, kernel, stride=(), padding=0, dilation=1, ceil=False
    ):
        return pool(c, x, rank, kernel, stride, padding, ceil, dilation)

    return function


def inside(
    kernel: list[int], x: Value, pads: list[int], steps: list[int]
) -> list[int]:
    """Windows as far as there is something: PyTorch rounds sizes up to one of
    a window that is longer."""
    sizes = x.shape[-len(kernel) :]
    rows = list(zip(kernel, sizes, pads, steps))
    if any(s > 1 and (k - 1) * s >= n + 2 * p for k, n, p, s in rows):
        raise Unsupported("windows with holes, longer than what they are of")
    return [min(k, n + 2 * p) for k, n, p, _ in rows]


def pool(c, x, rank, kernel, stride, padding, ceil, dilation) -> Value:
    x, shape = batched(c, x, rank)
    kernel = per_axis(kernel, rank)
    pads = per_axis(padding, rank)
    steps = per_axis(dilation, rank)
    made = c.node(
        ".MaxPool",
        [x],
        shape=shape,
        kernel_shape=inside(kernel, x, pads, steps),
        strides=per_axis(stride, rank) if stride else kernel,
        pads=pads + pads,
        dilations=steps,
        ceil_mode=int(ceil),
    )
    return c.reshape(made, c.shape)


def average_pool(rank: int):
    def function(
        c,
        x,
        kernel,
        stride=(),
        padding=0,
        ceil=False,
        counted=True,
        divisor=None,
    ):
        if divisor is not None:
            raise Unsupported("avg_pool by a divisor of its own")
        x, shape = batched(c, x, rank)
        kernel = per_axis(kernel, rank)
        pads = per_axis(padding, rank)
        made = c.node(
            ".AveragePool",
            [x],
            shape=shape,
            kernel_shape=inside(kernel, x, pads, [1] * rank),
            strides=per_axis(stride, rank) if stride else kernel,
            pads=pads + pads,
            ceil_mode=int(ceil),
            count_include_pad=int(counted),
        )
        return c.reshape(made, c.shape)

    return function


def resample(
    c: Call, x: Value, axis: int, at: numpy.ndarray, weight: numpy.ndarray
) -> Value:
    """Along an axis, each element a sum of elements at places, by weight."""
    m, k = at.shape
    places = c.constant(at.reshape(-1).tolist(), "i64", (m, k))
    weights = c.constant(weight.reshape(-1).tolist(), x.type, (m, k))
    p, q = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    flat = c.reshape(x, (p, x.shape[axis], q))
    made = c.node("resample", [flat, places, weights], x.type, (p, m, q), s=1)
    return c.reshape(made, (*x.shape[:axis], m, *x.shape[axis + 1 :]))


def adaptive_average(rank: int):
    """Each element is the mean of what is its share of the axis."""

    def function(c: Call, x: Value, size: list[int]) -> Value:
        x, shape = batched(c, x, rank)
        kind = x.type
        if all(n == 1 for n in shape[-rank:]):
            flat = c.reshape(
                x, (math.prod(shape[:-rank]), math.prod(x.shape[-rank:]), 1)
            )
            made = c.node("reduce_mean", [flat], kind, (flat.shape[0], 1))
            return c.reshape(made, c.shape)
        if kind in NARROW:
            x = c.cast(x, "f32")
        for axis in range(x.rank - rank, x.rank):
            n, m = x.shape[axis], shape[axis]
            first = [i * n // m for i in range(m)]
            last = [-(-(i + 1) * n // m) for i in range(m)]
            k = max(b - a for a, b in zip(first, last))
            at = numpy.zeros((m, k), "i8")
            at = numpy.array(
                [[min(a + j, n - 1) for j in range(k)] for a in first]
            )
            weight = numpy.array(
                [
                    [(j < b - a) / (b - a) for j in range(k)]
                    for a, b in zip(first, last)
                ]
            )
            x = resample(c, x, axis, at, weight)
        return c.reshape(c.cast(x, kind), c.shape)

    return function


def ratios(c: Call, x: Value, rank: int, scales) -> list[float]:
    """How far a step along each axis of the result is in x."""
    scales = list(scales) if scales is not None else []
    made = []
    for i in range(rank):
        n, m = x.shape[i - rank], c.shape[i - rank]
        scale = scales[i] if i < len(scales) and scales[i] else 0
        made.append(1 / scale if scale else n / m)
    return made


def nearest(rank: int, exact: bool = False):
    """upsample_nearestNd: (x, size, *scales)."""

    def function(c: Call, x: Value, _size, *scales) -> Value:
        steps = ratios(c, x, rank, scales)
        for i, step in enumerate(steps):
            axis = x.rank - rank + i
            n, m = x.shape[axis], c.shape[axis]
            step = numpy.float32(step)
            offset = numpy.float32(0.5 if exact else 0)
            at = numpy.floor((numpy.arange(m, dtype="f4") + offset) * step)
            at = numpy.minimum(at.astype("i8"), n - 1)
            places = c.constant(at.tolist(), "i64", (m,))
            p, q = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
            flat = c.reshape(x, (p, n, q))
            made = c.node("gather", [flat, places], x.type, (p, m, q))
            x = c.reshape(made, (*x.shape[:axis], m, *x.shape[axis + 1 :]))
        return x

    return function


def nearest_vec(rank: int, exact: bool = False):
    """upsample_nearestNd.vec: (x, size, scales)."""
    plain = nearest(rank, exact)
    return lambda c, x, size, scales: plain(c, x, size, *(scales or ()))


def source(m: int, n: int, step: float, aligned: bool) -> numpy.ndarray:
    """Where elements of the result lie among n ones."""
    i = numpy.arange(m, dtype="f8")
    if aligned:
        return i * ((n - 1) / (m - 1) if m > 1 else 0)
    return (i + 0.5) * step - 0.5


def linear(rank: int):
    """upsample_linear1d, bilinear2d, trilinear3d: (x, size, aligned, *scales)."""

    def function(c: Call, x: Value, _size, aligned: bool, *scales) -> Value:
        kind = x.type
        if not x.is_float:
            raise Unsupported(f"interpolation of {kind}")
        steps = ratios(c, x, rank, scales)
        if kind in NARROW:
            x = c.cast(x, "f32")
        for i, step in enumerate(steps):
            axis = x.rank - rank + i
            n, m = x.shape[axis], c.shape[axis]
            place = numpy.maximum(source(m, n, step, aligned), 0)
            low = numpy.minimum(place.astype("i8"), n - 1)
            high = numpy.minimum(low + 1, n - 1)
            part = numpy.clip(place - low, 0, 1)
            x = resample(
                c,
                x,
                axis,
                numpy.stack([low, high], 1),
                numpy.stack([1 - part, part], 1),
            )
        return c.cast(x, kind)

    return function


def linear_vec(rank: int):
    plain = linear(rank)
    return lambda c, x, size, aligned, scales: plain(
        c, x, size, aligned, *(scales or ())
    )


def cubic(c: Call, x: Value, _size, aligned: bool, *scales) -> Value:
    kind = x.type
    if not x.is_float:
        raise Unsupported(f"interpolation of {kind}")
    steps = ratios(c, x, 2, scales)
    if kind in NARROW:
        x = c.cast(x, "f32")
    a = -0.75
    for i, step in enumerate(steps):
        axis = x.rank - 2 + i
        n, m = x.shape[axis], c.shape[axis]
        place = source(m, n, step, aligned)
        low = numpy.floor(place).astype("i8")
        t = place - low
        near = lambda d: ((a + 2) * d - (a + 3)) * d * d + 1
        far = lambda d: ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        weight = numpy.stack([far(t + 1), near(t), near(1 - t), far(2 - t)], 1)
        at = numpy.stack(
            [numpy.clip(low + d, 0, n - 1) for d in (-1, 0, 1, 2)], 1
        )
        x = resample(c, x, axis, at, weight)
    return c.cast(x, kind)


def cubic_vec(c: Call, x: Value, size, aligned, scales) -> Value:
    return cubic(c, x, size, aligned, *(scales or ()))


def grid_sample(
    c: Call, x: Value, grid: Value, mode: int, padding: int, aligned: bool
) -> Value:
    modes, paddings = (
        ("linear", "nearest", "cubic"),
        ("zeros", "border", "reflection"),
    )
    return c.node(
        ".GridSample",
        [x, grid],
        mode=f'"{modes[mode]}"',
        padding_mode=f'"{paddings[padding]}"',
        align_corners=int(aligned),
    )


def pixel_shuffle(c: Call, x: Value, r: int) -> Value:
    if not x.size:
        raise Unsupported("pixel_shuffle of nothing")
    *lead, d, h, w = x.shape
    k = len(lead)
    whole = c.reshape(x, (*lead, d // (r * r), r, r, h, w))
    order = [*range(k), k, k + 3, k + 1, k + 4, k + 2]
    return c.reshape(c.permute(whole, order), c.shape)
