# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements brought to other places, and tensors made from numbers."""

from __future__ import annotations

import math

import numpy

from hidet.torch.operators.call import Call, axis_of
from hidet.torch.text import MOST_CONSTANT, Unsupported, Value


def view(c: Call, x: Value, *_: object) -> Value:
    return c.reshape(x, c.shape)


def permute(c: Call, x: Value, order: list[int]) -> Value:
    return c.permute(x, [axis_of(axis, x.rank) for axis in order])


def transpose(c: Call, x: Value, a: int, b: int) -> Value:
    order = list(range(x.rank))
    if order:
        a, b = axis_of(a, x.rank), axis_of(b, x.rank)
        order[a], order[b] = order[b], order[a]
    return c.permute(x, order)


def turn(c: Call, x: Value) -> Value:
    return transpose(c, x, 0, 1) if x.rank == 2 else x


def expand(c: Call, x: Value, *_: object) -> Value:
    return c.expand(x, c.shape)


def ends_of(start: int | None, stop: int | None, size: int) -> tuple:
    """As slice(start, stop).indices(size), which forgets what a Size knows."""

    def place(at: int) -> int:
        at = at + size if at < 0 else at
        return 0 if at < 0 else size if at >= size else at

    return (
        0 if start is None else place(start),
        size if stop is None else place(stop),
    )


def slice_(c: Call, x: Value, dim=0, start=None, end=None, step=1) -> Value:
    axis = axis_of(dim, x.rank)
    start, stop = ends_of(start, end, x.shape[axis])
    return c.slice(x, axis, start, max(stop, start), step)


def select(c: Call, x: Value, dim: int, index: int) -> Value:
    axis = axis_of(dim, x.rank)
    index = index % x.shape[axis] if x.shape[axis] else 0
    return c.reshape(c.slice(x, axis, index, index + 1), c.shape)


def cat(c: Call, parts: list[Value], dim: int = 0) -> Value:
    rank = len(c.shape)
    # What is empty and has one axis takes part in any concatenation.
    parts = [p for p in parts if p.rank == rank] or parts[:1]
    axis = axis_of(dim, rank)
    return c.reshape(
        c.concat([c.cast(p, c.type) for p in parts], axis), c.shape
    )


def stack(c: Call, parts: list[Value], dim: int = 0) -> Value:
    axis = dim % len(c.shape)
    whole = [
        c.reshape(c.cast(p, c.type), (*p.shape[:axis], 1, *p.shape[axis:]))
        for p in parts
    ]
    return c.concat(whole, axis)


def split(c: Call, x: Value, _sizes: object, dim: int = 0) -> list[Value]:
    axis, at, made = axis_of(dim, x.rank), 0, []
    for i, (_, shape) in enumerate(c.results):
        size = shape[axis]
        made.append(c.slice(x, axis, at, at + size) if i in c.used else None)
        at += size
    return made


def unbind(c: Call, x: Value, dim: int = 0) -> list[Value]:
    axis = axis_of(dim, x.rank)
    return [
        c.reshape(c.slice(x, axis, i, i + 1), shape) if i in c.used else None
        for i, (_, shape) in enumerate(c.results)
    ]


def repeat(c: Call, x: Value, repeats: list[int]) -> Value:
    whole = c.reshape(x, (1,) * (len(repeats) - x.rank) + x.shape)
    if math.prod(c.shape) == 0:
        raise Unsupported("repeat to nothing")
    return c.node("tile", [whole], repeats=list(repeats))


def flip(c: Call, x: Value, dims: list[int]) -> Value:
    if not x.size or not x.rank:
        return x
    start, stride = [0] * x.rank, [1] * x.rank
    for axis in dims:
        axis = axis_of(axis, x.rank)
        start[axis], stride[axis] = x.shape[axis] - 1, -1
    return c.node("slice", [x], start=start, stride=stride, size=list(x.shape))


def roll(c: Call, x: Value, shifts: list[int], dims: list[int] = ()) -> Value:
    if not x.size or not x.rank:
        return x
    shape = x.shape
    if not dims:
        x, dims = c.reshape(x, (x.size,)), [0]
    for shift, axis in zip(shifts, dims):
        axis = axis_of(axis, x.rank)
        size = x.shape[axis]
        at = (size - shift) % size
        parts = [c.slice(x, axis, at, size), c.slice(x, axis, 0, at)]
        x = c.concat(parts, axis)
    return c.reshape(x, shape)


def pad(mode: str):
    """Numbers from the last axis on: so many before, so many after. What is
    negative is taken away."""

    def function(c: Call, x: Value, pads: list[int], value: float = 0) -> Value:
        before, after = [0] * x.rank, [0] * x.rank
        for i in range(len(pads) // 2):
            before[-1 - i], after[-1 - i] = pads[2 * i], pads[2 * i + 1]
        for axis in range(x.rank):
            low, high = -min(before[axis], 0), -min(after[axis], 0)
            x = c.slice(x, axis, low, x.shape[axis] - high)
        first = [max(n, 0) for n in before]
        if x.shape == c.shape:
            return x
        if mode == "constant":
            operands = [x, c.constant(value, c.type)]
        elif not x.size:
            raise Unsupported("padding of nothing")
        else:
            operands = [x]
        return c.node(f"pad_{mode}", operands, before=first, size=list(c.shape))

    return function


def slice_scatter(
    c: Call, x: Value, source: Value, dim=0, start=None, end=None, step=1
) -> Value:
    axis = axis_of(dim, x.rank)
    size = x.shape[axis]
    start, stop = ends_of(start, end, size)
    if step != 1:
        raise Unsupported("slice_scatter in steps")
    source = c.cast(
        c.expand(
            source,
            (*x.shape[:axis], max(stop - start, 0), *x.shape[axis + 1 :]),
        ),
        x.type,
    )
    if stop <= start:
        return x
    parts = [c.slice(x, axis, 0, start), source, c.slice(x, axis, stop, size)]
    return c.concat(parts, axis)


def select_scatter(
    c: Call, x: Value, source: Value, dim: int, index: int
) -> Value:
    axis = axis_of(dim, x.rank)
    index %= x.shape[axis]
    whole = c.reshape(source, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    return slice_scatter(c, x, whole, axis, index, index + 1)


def triangle(upper: int):
    def function(c: Call, x: Value, diagonal: int = 0) -> Value:
        n, m = x.shape[-2:]
        p = math.prod(x.shape[:-2])
        flat = c.reshape(x, (p, n, m))
        k = max(-n, min(diagonal, m))
        made = c.node("trilu", [flat], x.type, flat.shape, k=k, upper=upper)
        return c.reshape(made, x.shape)

    return function


def gather_flat(c: Call, x: Value, at: numpy.ndarray) -> Value:
    """Elements by their places in row-major order, which are known."""
    if at.size > MOST_CONSTANT:
        raise Unsupported(f"{at.size} places of elements")
    flat = c.reshape(x, (x.size,))
    if not at.size:
        return c.full(0, x.type, at.shape)
    places = c.constant(at.reshape(-1).tolist(), "i64", (at.size,))
    made = c.node("gather_flat", [flat, places], x.type, (at.size,))
    return c.reshape(made, at.shape)


def diagonal(
    c: Call, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Value:
    at = numpy.arange(x.size).reshape(x.shape)
    return gather_flat(c, x, at.diagonal(offset, dim1, dim2))


def as_strided(
    c: Call, x: Value, size: list[int], strides: list[int], offset=None
) -> Value:
    """Of a tensor that is all of its storage: the places of its elements there,
    and so what is at the places that are asked for."""
    own, start = c.first
    if start or offset or not x.size:
        raise Unsupported("as_strided of a part of a tensor")
    at = numpy.arange(x.size).reshape(x.shape)
    where = sum(
        (
            numpy.arange(n).reshape([-1] + [1] * (x.rank - 1 - i)) * stride
            for i, (n, stride) in enumerate(zip(x.shape, own))
        ),
        start=numpy.zeros(x.shape, "i8"),
    )
    if where.max() != x.size - 1 or len(numpy.unique(where)) != x.size:
        raise Unsupported("as_strided of a tensor with gaps")
    stored = numpy.empty(x.size, "i8")
    stored[where] = at
    asked = sum(
        (
            numpy.arange(n).reshape([-1] + [1] * (len(size) - 1 - i)) * stride
            for i, (n, stride) in enumerate(zip(size, strides))
        ),
        start=numpy.zeros(size, "i8"),
    )
    if asked.size and asked.max() >= x.size:
        raise Unsupported("as_strided beyond a tensor's end")
    places = stored[asked]
    if numpy.array_equal(places.reshape(-1), numpy.arange(x.size)):
        return c.reshape(x, size)
    return gather_flat(c, x, places)


def unfold(c: Call, x: Value, dim: int, size: int, step: int) -> Value:
    if not x.rank:
        return c.reshape(x, c.shape)
    axis = axis_of(dim, x.rank)
    at = numpy.arange(x.size).reshape(x.shape)
    windows = numpy.lib.stride_tricks.sliding_window_view(at, size, axis)
    steps = [slice(None)] * x.rank
    steps[axis] = slice(None, None, step)
    return gather_flat(c, x, windows[tuple(steps)])


def full(c: Call, _size: object, value: object, *_: object) -> Value:
    if not isinstance(value, (int, float, bool)):
        raise Unsupported("full of what is no number")
    return c.full(value, c.type, c.shape)


def full_like(c: Call, _x: object, value: object, *_: object) -> Value:
    return full(c, None, value)


def filled(value: int):
    def function(c: Call, *_: object) -> Value:
        return c.full(value, c.type, c.shape)

    return function


def scalar_tensor(c: Call, value: object, *_: object) -> Value:
    return full(c, None, value)


def fill(c: Call, _x: Value, value: object) -> Value:
    if isinstance(value, Value):
        return c.expand(c.cast(value, c.type), c.shape)
    return full(c, None, value)


def arange(
    c: Call, start: float, _end: float, step: float = 1, *_: object
) -> Value:
    n = c.shape[0]
    wide = c.type if c.type in ("f64", "i64", "i32", "f32") else "f32"
    if not n:
        return c.full(0, c.type, (0,))
    operands = [c.constant(start, wide), c.constant(step, wide)]
    return c.cast(c.node("range", operands, wide, (n,), n=n), c.type)


def arange_end(c: Call, end: float, *_: object) -> Value:
    return arange(c, 0, end, 1)


def arange_start(c: Call, start: float, end: float, *_: object) -> Value:
    return arange(c, start, end, 1)


def eye(c: Call, *_: object) -> Value:
    n, m = c.shape
    return c.node("eye", [], n=n, m=m, k=0)
