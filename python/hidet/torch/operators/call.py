# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A call of an ATen operator, and the words that what it is is said in."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from hidet.torch.text import Text, Unsupported, Value, is_float, wrapped

TYPES = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "bool",
}
DTYPES = {name: dtype for dtype, name in TYPES.items()}
NARROW = ("f16", "bf16")

Number = (int, float, bool)


def type_of(dtype: torch.dtype) -> str:
    if dtype not in TYPES:
        raise Unsupported(f"elements of {dtype}")
    return TYPES[dtype]


def holds(kind: str, number: float) -> bool:
    """Whether a type has this very number."""
    if not is_float(kind):
        return float(number).is_integer()
    if not math.isfinite(number):
        return True
    try:
        kept = torch.tensor(float(number), dtype=torch.float64)
        return float(kept.to(DTYPES[kind])) == float(number)
    except (RuntimeError, OverflowError):
        return False


class Call:
    """One call: where its nodes go, and what it has to give. results: the type
    and shape of each, as PyTorch says; used: those that somebody asks for;
    first: the strides and the offset that its first operand has in PyTorch, or
    None."""

    def __init__(
        self,
        text: Text,
        results: Sequence[tuple[str, tuple[int, ...]]],
        used: set[int],
        first: tuple[tuple[int, ...], int] | None = None,
    ) -> None:
        self.text = text
        self.first = first
        self.results = results
        self.used = used

    @property
    def type(self) -> str:
        return self.results[0][0]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.results[0][1]

    def node(self, operator, operands, kind=None, shape=None, **attributes):
        """A node, of the call's own type and shape where they are not given."""
        return self.text.node(
            operator,
            operands,
            kind or self.type,
            self.shape if shape is None else shape,
            **attributes,
        )

    def constant(self, value, kind=None, shape=()) -> Value:
        return self.text.constant(value, kind or self.type, shape)

    def full(self, value, kind: str, shape: Sequence[int]) -> Value:
        return self.text.constant(value, kind, shape)

    def cast(self, x: Value, kind: str) -> Value:
        """As PyTorch converts."""
        if x.type == kind:
            return x
        if kind == "bool":
            return self.node("cast_bool", [x], "bool", x.shape)
        if x.is_float and kind in ("i8", "u8", "i16", "i32"):
            return self.node("cast_wrap", [x], kind, x.shape)
        return self.node("cast", [x], kind, x.shape)

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        if x.shape == tuple(shape):
            return x
        return self.node("reshape", [x], x.type, shape)

    def permute(self, x: Value, order: Sequence[int]) -> Value:
        if list(order) == list(range(x.rank)):
            return x
        shape = [x.shape[axis] for axis in order]
        return self.node("transpose", [x], x.type, shape, order=list(order))

    def expand(self, x: Value, shape: Sequence[int]) -> Value:
        """Broadcast to a shape of as many axes or more."""
        shape = tuple(shape)
        if x.shape == shape:
            return x
        whole = self.reshape(x, (1,) * (len(shape) - x.rank) + x.shape)
        if whole.shape == shape:
            return whole
        return self.node("expand", [whole], x.type, shape, sizes=list(shape))

    def slice(
        self, x: Value, axis: int, start: int, stop: int, step: int = 1
    ) -> Value:
        size = max((stop - start + step - (1 if step > 0 else -1)) // step, 0)
        if (start, step, size) == (0, 1, x.shape[axis]):
            return x
        starts, strides, sizes = [0] * x.rank, [1] * x.rank, list(x.shape)
        starts[axis], strides[axis], sizes[axis] = start, step, size
        return self.node(
            "slice",
            [x],
            x.type,
            sizes,
            start=starts,
            stride=strides,
            size=sizes,
        )

    def concat(self, parts: Sequence[Value], axis: int) -> Value:
        """Operands behind each other, up to 64 at once."""
        parts = [p for p in parts if p.shape[axis]] or list(parts[:1])
        while len(parts) > 1:
            parts = [
                self.concat_some(parts[i : i + 64], axis)
                for i in range(0, len(parts), 64)
            ]
        return parts[0]

    def concat_some(self, parts: Sequence[Value], axis: int) -> Value:
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        before, after = first.shape[:axis], first.shape[axis + 1 :]
        p, q = math.prod(before), math.prod(after)
        flat = [self.reshape(x, (p, x.shape[axis], q)) for x in parts]
        n = sum(x.shape[axis] for x in parts)
        made = self.node("concat", flat, first.type, (p, n, q))
        return self.reshape(made, (*before, n, *after))

    def binary(self, task: str, a: Value, b: Value, kind=None) -> Value:
        """A task of two tensors, which are broadcast to each other."""
        shape = torch.broadcast_shapes(a.shape, b.shape)
        return self.node(task, [a, b], kind or a.type, tuple(shape))

    def unary(self, task: str, x: Value, kind=None, **attributes) -> Value:
        return self.node(task, [x], kind or x.type, x.shape, **attributes)

    def promote(self, *operands: object) -> str:
        """The type that PyTorch computes in with these."""
        given = []
        for operand in operands:
            if isinstance(operand, Value):
                size = (1,) * min(operand.rank, 1)
                operand = torch.empty(
                    size, dtype=DTYPES[operand.type], device="meta"
                )
            given.append(operand)
        if len(given) == 1:
            given.append(given[0])
        return type_of(torch.result_type(*given))

    def operand(self, value: object, kind: str) -> Value:
        """A tensor or a number as a tensor of a type."""
        if isinstance(value, Value):
            return self.cast(value, kind)
        if not isinstance(value, Number):
            raise Unsupported(f"an operand of {type(value).__name__}")
        if isinstance(value, int) and kind[0] in "iu":
            value = wrapped(value, kind)
        return self.constant(value, kind)


def axis_of(axis: int, rank: int) -> int:
    """From the front; PyTorch lets a tensor without axes have one."""
    rank = max(rank, 1)
    if not -rank <= axis < rank:
        raise Unsupported(f"axis {axis} of {rank}")
    return axis % rank


def axes_of(axes: object, rank: int) -> list[int]:
    """Of a list; none or nothing: all of them. In ascending order."""
    if axes is None or (isinstance(axes, (list, tuple)) and not axes):
        return list(range(rank))
    if isinstance(axes, int):
        axes = [axes]
    return sorted({axis_of(a, rank) for a in axes}) if rank else []
