# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads and writes at places that the data says; orders."""

from __future__ import annotations

import math

import torch

from hidet.torch.operators.call import Call, axis_of
from hidet.torch.operators.reductions import middle
from hidet.torch.text import Unsupported, Value


def integers(c: Call, index: Value) -> Value:
    if index.is_float or index.type == "bool":
        raise Unsupported(f"indices of {index.type}")
    return index if index.type in ("i64", "i32") else c.cast(index, "i64")


def axis_size(x: Value, dim: int) -> int:
    return x.shape[axis_of(dim, x.rank)] if x.rank else 1


def from_front(c: Call, index: Value, n: int) -> Value:
    """Places along an axis of n that PyTorch does not count from its end."""
    at = c.cast(integers(c, index), "i64")
    return c.binary("place_from_front", at, c.constant(n, "i64"))


def index_select(c: Call, x: Value, dim: int, index: Value) -> Value:
    index = c.reshape(integers(c, index), (index.size,))
    if not x.rank:
        return c.expand(x, c.shape)
    flat = middle(c, x, [axis_of(dim, x.rank)])
    p, n, q = flat.shape
    index = from_front(c, index, n)
    made = c.node("gather", [flat, index], x.type, (p, index.size, q))
    return c.reshape(made, c.shape)


def embedding(c: Call, weight: Value, index: Value, *_: object) -> Value:
    return index_select(c, weight, 0, index)


def gather(
    c: Call, x: Value, dim: int, index: Value, sparse: bool = False
) -> Value:
    if not index.size:
        return c.full(0, c.type, c.shape)
    index = from_front(c, index, axis_size(x, dim))
    if not x.rank or not index.rank:
        whole = c.reshape(index, (index.size,))
        flat = c.reshape(x, (1, x.size, 1))
        made = c.node("gather", [flat, whole], x.type, (1, index.size, 1))
        return c.reshape(made, c.shape)
    axis = axis_of(dim, x.rank)
    for other in range(x.rank):
        if other != axis:
            x = c.slice(x, other, 0, index.shape[other])
    at = middle(c, index, [axis])
    flat = middle(c, x, [axis])
    made = c.node("gather_elements", [flat, at], x.type, at.shape)
    return c.reshape(made, c.shape)


SCATTERS = {
    None: "",
    "add": "_add",
    "sum": "_add",
    "multiply": "_mul",
    "prod": "_mul",
    "amax": "_max",
    "amin": "_min",
}


def scatter_along(
    c: Call, x: Value, dim: int, index: Value, u: Value, how
) -> Value:
    """u to the places of x that index says along an axis."""
    if how not in SCATTERS or (x.type == "bool" and how):
        raise Unsupported(f"scatter by {how} of {x.type}")
    if not index.size:
        return x
    task, shape = f"scatter_elements{SCATTERS[how]}", x.shape
    x = c.reshape(x, x.shape or (1,))
    index = c.reshape(index, index.shape or (1,))
    u = c.reshape(u, u.shape or (1,))
    axis = axis_of(dim, x.rank)
    index = from_front(c, index, x.shape[axis])
    for other in range(x.rank):
        u = c.slice(u, other, 0, index.shape[other])
    if any(index.shape[i] != x.shape[i] for i in range(x.rank) if i != axis):
        index, x, u = all_places(c, x, axis, index), flat(c, x), flat(c, u)
        axis = 0
    operands = [middle(c, v, [axis]) for v in (x, index, u)]
    made = c.node(task, operands, x.type, operands[0].shape)
    return c.reshape(made, shape)


def flat(c: Call, x: Value) -> Value:
    return c.reshape(x, (x.size,))


def all_places(c: Call, x: Value, axis: int, index: Value) -> Value:
    """The place along an axis as one among all elements of x."""
    total = None
    for i in range(x.rank):
        stride = math.prod(x.shape[i + 1 :])
        if i == axis:
            part = index
        else:
            n = index.shape[i]
            operands = [c.constant(0, "i64"), c.constant(1, "i64")]
            count = c.node("range", operands, "i64", (n,), n=n)
            ones = [1] * x.rank
            ones[i] = n
            part = c.reshape(count, ones)
        if stride != 1:
            part = c.binary("mul", part, c.constant(stride, "i64"))
        total = part if total is None else c.binary("add", total, part)
    return flat(c, c.expand(total, index.shape))


def scatter(how: str | None = None):
    """scatter.src, scatter_add: (x, dim, index, src)."""

    def function(
        c: Call, x: Value, dim: int, index: Value, u: object, reduce=how
    ) -> Value:
        if not isinstance(u, Value):
            u = c.full(u, x.type, index.shape)
        return scatter_along(c, x, dim, index, u, reduce)

    return function


def scatter_reduce(
    c: Call, x, dim, index, u, reduce, include_self=True
) -> Value:
    if not include_self or reduce == "mean":
        raise Unsupported("scatter_reduce by mean or without what is there")
    return scatter_along(c, x, dim, index, u, reduce)


def index_add(
    c: Call, x: Value, dim: int, index: Value, u: Value, alpha=1
) -> Value:
    if alpha != 1:
        u = c.binary("mul", u, c.constant(alpha, u.type))
    index = from_front(c, index, axis_size(x, dim))
    return rows_to(c, x, dim, index, u, "scatter_rows_add")


def index_copy(c: Call, x: Value, dim: int, index: Value, u: Value) -> Value:
    index = from_front(c, index, axis_size(x, dim))
    return rows_to(c, x, dim, index, u, "scatter_rows")


def index_fill(
    c: Call, x: Value, dim: int, index: Value, value: object
) -> Value:
    if not x.rank:
        return c.expand(c.operand(value, x.type), ())
    axis = axis_of(dim, x.rank)
    shape = (*x.shape[:axis], index.size, *x.shape[axis + 1 :])
    u = c.expand(c.operand(value, x.type), shape)
    return rows_to(c, x, dim, index, u, "scatter_rows")


def rows_to(
    c: Call, x: Value, dim: int, index: Value, u: Value, task: str
) -> Value:
    if x.type == "bool" and task != "scatter_rows":
        raise Unsupported(f"{task} of bool")
    if not index.size or not x.size:
        return x
    shape = x.shape
    x, u = c.reshape(x, shape or (1,)), c.reshape(u, u.shape or (1,))
    axis = axis_of(dim, x.rank)
    place = c.cast(flat(c, integers(c, index)), "i64")
    place = c.binary("place_along", place, c.constant(x.shape[axis], "i64"))
    a, b = middle(c, x, [axis]), middle(c, u, [axis])
    at = c.expand(c.reshape(place, (1, place.size)), (a.shape[0], place.size))
    return c.reshape(c.node(task, [a, at, b], x.type, a.shape), shape)


def tuples(c: Call, x: Value, indices: list[Value | None]) -> tuple:
    """x with the indexed axes first and as one, the place along it for each
    tuple of indices, their common shape, and the order of x's axes."""
    axes = [i for i, v in enumerate(indices) if v is not None]
    given = [indices[i] for i in axes]
    if any(v.type in ("bool", "u8") for v in given):
        raise Unsupported("indices by a mask")
    common = tuple(torch.broadcast_shapes(*(v.shape for v in given)))
    order = axes + [i for i in range(x.rank) if i not in axes]
    total = None
    for k, (axis, index) in enumerate(zip(axes, given)):
        at = c.cast(integers(c, index), "i64")
        if not x.shape[axis]:
            raise Unsupported("indices along an empty axis")
        at = c.binary("place_along", at, c.constant(x.shape[axis], "i64"))
        stride = math.prod(x.shape[i] for i in axes[k + 1 :])
        if stride != 1:
            at = c.binary("mul", at, c.constant(stride, "i64"))
        total = at if total is None else c.binary("add", total, at)
    place = flat(c, c.expand(total, common))
    n = math.prod(x.shape[i] for i in axes)
    q = math.prod(x.shape[i] for i in range(x.rank) if i not in axes)
    rows = c.reshape(c.permute(x, order), (1, n, q))
    return rows, place, common, order, axes


def index_tensor(c: Call, x: Value, indices: list[Value | None]) -> Value:
    rows, place, common, order, axes = tuples(c, x, indices)
    _, _, q = rows.shape
    made = c.node("gather", [rows, place], x.type, (1, place.size, q))
    rest = [x.shape[i] for i in order[len(axes) :]]
    made = c.reshape(made, (*common, *rest))
    if axes == list(range(axes[0], axes[-1] + 1)):
        # What stands together stays where it was.
        first, k = axes[0], len(common)
        turn = list(range(k, k + first)) + list(range(k))
        made = c.permute(made, turn + list(range(k + first, made.rank)))
    return c.reshape(made, c.shape)


def index_put(c: Call, x: Value, indices, u: Value, accumulate=False) -> Value:
    if x.type == "bool" and accumulate:
        raise Unsupported("index_put that adds bools")
    rows, place, common, order, axes = tuples(c, x, indices)
    rest = [x.shape[i] for i in order[len(axes) :]]
    together = axes == list(range(axes[0], axes[-1] + 1))
    first, k = (axes[0] if together else 0), len(common)
    target = (*rest[:first], *common, *rest[first:])
    u = c.expand(c.cast(u, x.type), target)
    turn = list(range(first, first + k)) + list(range(first))
    u = c.permute(u, turn + list(range(first + k, len(target))))
    _, n, q = rows.shape
    u = c.reshape(u, (1, place.size, q))
    at = c.reshape(place, (1, place.size))
    task = "scatter_rows_add" if accumulate else "scatter_rows"
    made = c.node(task, [rows, at, u], x.type, (1, n, q))
    made = c.reshape(made, [x.shape[i] for i in order])
    back = sorted(range(x.rank), key=lambda i: order[i])
    return c.permute(made, back)


def ordered(c: Call, x: Value, dim: int, largest: bool, m: int) -> list[Value]:
    """The first m elements of an order along an axis, and where they were."""
    if not x.rank:
        return [x, c.full(0, "i64", ())]
    if x.type == "bool":
        y, at = ordered(c, c.cast(x, "u8"), dim, largest, m)
        return [c.cast(y, "bool"), at]
    axis = axis_of(dim, x.rank)
    whole = middle(c, x, [axis])
    p, _, q = whole.shape
    made = c.text.nodes(
        "sort_descending" if largest else "sort_ascending",
        [whole],
        [(x.type, (p, m, q)), ("i64", (p, m, q))],
        m=m,
    )
    shape = (*x.shape[:axis], m, *x.shape[axis + 1 :])
    return [c.reshape(v, shape) for v in made]


def topk(
    c: Call, x: Value, k: int, dim=-1, largest=True, sorted=True
) -> list[Value]:
    return ordered(c, x, dim, largest, k)


def sort(c: Call, x: Value, dim=-1, descending=False) -> list[Value]:
    size = x.shape[axis_of(dim, x.rank)] if x.rank else 1
    return ordered(c, x, dim, descending, size)


def sort_stable(
    c: Call, x: Value, stable=None, dim=-1, descending=False
) -> list[Value]:
    return sort(c, x, dim, descending)


def argsort(c: Call, x: Value, dim=-1, descending=False) -> Value:
    return sort(c, x, dim, descending)[1]
