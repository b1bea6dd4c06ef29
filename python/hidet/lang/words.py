# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the words of `hidet.lang` are while Python runs: marks that the
translation of a script (`hidet.scripting`) looks for. Types are used in
annotations, mappings are values, the rest stands for a word of the language."""

from __future__ import annotations

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class TensorType:
    """`f32[m, 64]`: a tensor parameter. A size is a number, or a name, which is
    then a parameter of the kernel that follows from the tensor given."""

    element: ScalarType
    shape: tuple[int | str, ...]

    def __str__(self) -> str:
        return f"{self.element}[{', '.join(map(str, self.shape))}]"


@dataclasses.dataclass(frozen=True)
class ScalarType:
    """A type of the language. Called in a script it converts."""

    name: str

    def __getitem__(self, shape: object) -> TensorType:
        sizes = shape if isinstance(shape, tuple) else (shape,)
        for size in sizes:
            good = isinstance(size, int) and size >= 0
            if isinstance(size, bool) or not (
                good or isinstance(size, str) and size.isidentifier()
            ):
                raise TypeError(f"{self.name}[{size!r}]: no size of a tensor")
        return TensorType(self, sizes)

    def __call__(self, value: object) -> object:
        raise TypeError(f"{self.name}() converts in a script alone")

    def __str__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        return self.name.startswith(("f", "bf", "tf"))

    @property
    def bits(self) -> int:
        if self.name == "bool":
            return 1
        if self.name == "tf32":
            return 32
        return int("".join(c for c in self.name.split("e")[0] if c.isdigit()))


NAMES = (
    "f64 f32 tf32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u64 u32 u16 u8 bool"
).split()
TYPES = {name: ScalarType(name) for name in NAMES}
# The original's names.
OTHER_NAMES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint64": "u64",
    "uint32": "u32",
    "uint16": "u16",
    "uint8": "u8",
    "boolean": "bool",
}


@dataclasses.dataclass(frozen=True)
class Mapping:
    """A task mapping (docs/IR.md), by its text; composed by `*`."""

    text: str
    workers: int
    shape: tuple[int, ...]

    def __mul__(self, other: Mapping) -> Mapping:
        if len(self.shape) != len(other.shape):
            raise TypeError(f"{self.text} * {other.text}: not as many axes")
        return Mapping(
            f"{self.text} * {other.text}",
            self.workers * other.workers,
            tuple(a * b for a, b in zip(self.shape, other.shape)),
        )

    def on(self, worker: object) -> object:
        raise TypeError("on() stands in a loop of a script alone")

    def __str__(self) -> str:
        return self.text


def sizes(shape: tuple) -> tuple[int, ...]:
    for size in shape:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise TypeError(f"{size!r}: a mapping's sizes are numbers above 0")
    return shape


def spatial(*shape: int) -> Mapping:
    """As many workers as tasks, each with one."""
    text = f"spatial({', '.join(map(str, sizes(shape)))})"
    return Mapping(text, math.prod(shape), shape)


def repeat(*shape: int) -> Mapping:
    """One worker with all tasks."""
    text = f"repeat({', '.join(map(str, sizes(shape)))})"
    return Mapping(text, 1, shape)


@dataclasses.dataclass(frozen=True)
class Word:
    """A function of the language: mathematics, an intrinsic."""

    name: str

    def __call__(self, *_: object) -> object:
        raise TypeError(f"{self.name}() is called in a script alone")


@dataclasses.dataclass(frozen=True)
class Launch:
    """A value given by the launch, `threadIdx.x`."""

    name: str

    def __getattr__(self, axis: str) -> Launch:
        if axis in ("x", "y", "z") and "." not in self.name:
            return Launch(f"{self.name}.{axis}")
        raise AttributeError(axis)


class Attributes:
    """`attr.cuda_grid_dim = ...`, in a script."""

    def __setattr__(self, name: str, value: object) -> None:
        raise TypeError("attr is set in a script alone")


@dataclasses.dataclass(frozen=True)
class Storage:
    """shared_tensor(f32, [64, 8]), register_tensor(f32, [8])."""

    scope: str

    def __call__(self, *_: object, **__: object) -> object:
        raise TypeError(f"{self.scope}_tensor() is called in a script alone")
