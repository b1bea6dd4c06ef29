# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of the language, written node by node.

    g = Text()
    x = g.input("f32", (2, 3))
    y = g.node("mul", [x, g.constant(2.0, "f32")], "f32", (2, 3))
    g.finish([y])      # the text of a graph `main`, and of the tasks it needs

Every value carries its type and shape, which are written, so that the compiler
holds them against what the operators give.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import pathlib
import re
from collections.abc import Iterable, Sequence

from hidet.torch.sizes import Size, size_text

ONNX = "onnx23"  # The version of ONNX's operators that nodes are written in.
MOST_CONSTANT = 1 << 16  # Elements of a constant that is written out.


class Unsupported(Exception):
    """What the table cannot say; PyTorch runs it then."""


@dataclasses.dataclass(frozen=True)
class Value:
    """A tensor of the graph."""

    name: str
    type: str
    shape: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_float(self) -> bool:
        return is_float(self.type)


def is_float(kind: str) -> bool:
    return kind.startswith(("f", "bf"))


def type_text(
    kind: str, shape: Iterable[int], letters: frozenset[str] = frozenset()
) -> str:
    sizes = (size_text(size, letters) for size in shape)
    return f"{kind}[{', '.join(sizes)}]"


def element_text(value: object, kind: str) -> str:
    """A number as a constant of a type has it."""
    if kind == "bool":
        return "true" if value else "false"
    if not is_float(kind):
        if wrapped(int(value), kind) != value:
            raise Unsupported(f"{value} as {kind}")
        return str(int(value))
    value = float(value)
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(value)


def wrapped(value: int, kind: str) -> int:
    """The low bits of an integer, as a type of integers has them."""
    bits = int(kind[1:])
    value %= 1 << bits
    signed = kind[0] == "i" and value >> (bits - 1)
    return value - (1 << bits) if signed else value


def attribute_text(value: object, letters: frozenset[str]) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return element_text(value, "f64")
    if isinstance(value, str):
        # A type stands by its name; there are no other texts among attributes.
        return value
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(attribute_text(v, letters) for v in value)}]"
    return size_text(value, letters)


class Text:
    """A graph in the making. letters: the dimensions that are sizes of its
    inputs, by which others are said."""

    def __init__(self, letters: frozenset[str] = frozenset()) -> None:
        self.letters = letters
        self.inputs: list[Value] = []
        self.lines: list[str] = []
        self.tasks: set[str] = set()
        self.known: dict[tuple, Value] = {}
        self.said: dict[tuple, list[Value | None]] = {}
        self.names = 0
        self.taken: set[str] = set()  # By names that were asked for.

    def type_text(self, value: Value) -> str:
        return type_text(value.type, value.shape, self.letters)

    def name(self, prefix: str) -> str:
        while True:
            self.names += 1
            name = f"{prefix}{self.names}"
            if name not in self.taken:
                return name

    def input(
        self, kind: str, shape: Sequence[int], name: str | None = None
    ) -> Value:
        value = Value(name or self.name("x"), kind, tuple(shape))
        self.inputs.append(value)
        return value

    def weight(self, kind: str, shape: Sequence[int]) -> Value:
        """A constant whose elements are given to the model by its name."""
        value = Value(self.name("w"), kind, tuple(shape))
        self.lines.append(
            f'const {value.name}: {type_text(kind, shape)} = file("given", 0)'
        )
        return value

    def constant(
        self, value: object, kind: str, shape: Sequence[int] = ()
    ) -> Value:
        """Numbers: one for all of the elements, or a list in row-major order."""
        if isinstance(value, Size) and kind == "i64" and not shape:
            if value.letters <= self.letters:
                return self.node("size", [], kind, (), value=value)
        listed = isinstance(value, (list, tuple))
        if not listed and any(isinstance(size, Size) for size in shape):
            one = self.constant(value, kind, (1,) * len(shape))
            return self.node("expand", [one], kind, shape, sizes=list(shape))
        if listed and len(value) > MOST_CONSTANT:
            raise Unsupported(f"a constant of {len(value)} elements")
        elements = [
            element_text(v, kind) for v in (value if listed else [value])
        ]
        key = (tuple(elements), kind, tuple(shape), listed)
        if key not in self.known:
            made = Value(self.name("c"), kind, tuple(shape))
            text = (
                f"[{', '.join(elements)}]" if listed and shape else elements[0]
            )
            self.lines.append(
                f"const {made.name}: {type_text(kind, shape)} = {text}"
            )
            self.known[key] = made
        return self.known[key]

    def node(
        self,
        operator: str,
        operands: Sequence[Value | None],
        kind: str,
        shape: Sequence[int],
        **attributes: object,
    ) -> Value:
        """A node of one result. `operator`: a task, or `.Name` of ONNX."""
        return self.nodes(operator, operands, [(kind, shape)], **attributes)[0]

    def nodes(
        self,
        operator: str,
        operands: Sequence[Value | None],
        results: Sequence[tuple[str, Sequence[int]] | None],
        **attributes: object,
    ) -> list[Value | None]:
        """One of several; None among the results: nobody asks for it. What has
        been said is not said again: nodes do nothing but compute."""
        kinds = tuple((r[0], tuple(r[1])) if r else None for r in results)
        key = operator, tuple(operands), kinds, repr(attributes)
        if key not in self.said:
            self.said[key] = self.write(operator, operands, kinds, attributes)
        return list(self.said[key])

    def write(
        self,
        operator: str,
        operands: Sequence[Value | None],
        results: Sequence[tuple[str, Sequence[int]] | None],
        attributes: dict,
        name: str | None = None,
    ) -> list[Value | None]:
        made = [
            Value(name or self.name("t"), *r) if r else None for r in results
        ]
        left = ", ".join(
            f"{v.name}: {self.type_text(v)}" if v else "_"
            for v in made
        )
        if operator.startswith("."):
            operator = ONNX + operator
        elif operator in own_tasks():
            self.tasks.add(operator)
        given = ", ".join(v.name if v else "_" for v in operands)
        line = f"{left} = {operator}({given})"
        if attributes:
            pairs = ", ".join(
                f"{k} = {attribute_text(v, self.letters)}"
                for k, v in attributes.items()
            )
            line += f" {{ {pairs} }}"
        self.lines.append(line)
        return made

    def finish(self, outputs: Sequence[Value], names: Sequence[str] = ()) -> str:
        """The module. An output may be anything, also given more than once.
        names: of the outputs, among `taken`; none: any."""
        given = []
        for value, name in zip(outputs, names or [None] * len(outputs)):
            # An output is what one node gives, and nothing else is.
            kind = value.type, value.shape
            made = self.write("copy", [value], [kind], {}, name)
            given.append(made[0].name)
        inputs = ", ".join(
            f"{v.name}: {self.type_text(v)}" for v in self.inputs
        )
        body = "\n".join("  " + line for line in self.lines)
        tasks = [own_tasks()[name] for name in sorted(self.tasks)]
        head = f"graph main({inputs}) -> {', '.join(given)} {{"
        return "\n\n".join([*tasks, f"{head}\n{body}\n}}\n"])


@functools.cache
def own_tasks() -> dict[str, str]:
    """The tasks beside the library's, by name, as tasks.hir has them."""
    text = (pathlib.Path(__file__).parent / "tasks.hir").read_text()
    found = re.findall(r"^(task (\w+)\(.*?^\})$", text, re.DOTALL | re.M)
    return {name: task for task, name in found}
