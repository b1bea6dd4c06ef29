# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that are numbers and know what they are of a graph's dimensions.

A graph is made ready for numbers, one set of sizes after the other; what is
written of a size is by dimensions where it still knows. Where that comes to the
same text for other sizes, one model serves both: the text was made for either.
Whoever computes with a size in a way that is not known here has a number, which
is as right, and a text of its own.
"""

from __future__ import annotations

import sympy
import torch

LONGEST = 80  # Characters of a size.


class Size(int):
    """An integer; `text` is worth it, where `letters` are what they are now."""

    text: str
    letters: frozenset[str]

    def __new__(cls, value: int, text: str, letters: frozenset[str]) -> int:
        if len(text) > LONGEST:
            return int(value)
        made = super().__new__(cls, value)
        made.text, made.letters = text, letters
        return made

    def __add__(self, other: object) -> int:
        return combine("+", self, other, int.__add__)

    def __radd__(self, other: object) -> int:
        return combine("+", other, self, int.__add__)

    def __sub__(self, other: object) -> int:
        return combine("-", self, other, int.__sub__)

    def __rsub__(self, other: object) -> int:
        return combine("-", other, self, int.__sub__)

    def __mul__(self, other: object) -> int:
        return combine("*", self, other, int.__mul__)

    def __rmul__(self, other: object) -> int:
        return combine("*", other, self, int.__mul__)

    def __floordiv__(self, other: object) -> int:
        return combine("/", self, other, int.__floordiv__)

    def __rfloordiv__(self, other: object) -> int:
        return combine("/", other, self, int.__floordiv__)

    def __mod__(self, other: object) -> int:
        return combine("%", self, other, int.__mod__)

    def __neg__(self) -> int:
        return 0 - self

    def __copy__(self) -> Size:
        return self

    def __deepcopy__(self, _memory: object) -> Size:
        return self

    def __reduce__(self) -> tuple:
        return Size, (int(self), self.text, self.letters)


def letters_of(value: int) -> frozenset[str]:
    return value.letters if isinstance(value, Size) else frozenset()


def size_text(value: int, known: frozenset[str]) -> str:
    """By dimensions where all of them are known, else a number."""
    if isinstance(value, Size) and value.letters <= known:
        return value.text
    return int.__repr__(value)


def combine(sign: str, a: object, b: object, compute) -> int:
    """The language divides towards zero, Python down: the same of what is not
    negative."""
    if not isinstance(a, int) or not isinstance(b, int):
        return NotImplemented
    value = compute(int(a), int(b))
    if sign in "/%" and (a < 0 or b <= 0):
        return value
    if sign == "%" and type(b) is int and b > a and b >= 1 << 63:
        return a  # As words of 64 bits have it.
    if sign in "*/" and type(b) is int and b == 1:
        return a
    if sign in "+-" and type(b) is int and b == 0:
        return a
    if sign in "*+" and type(a) is int and a == (sign == "*"):
        return b
    letters = letters_of(a) | letters_of(b)
    return Size(value, f"({operand(a)} {sign} {operand(b)})", letters)


def operand(value: int) -> str:
    if isinstance(value, Size):
        return value.text
    return int.__repr__(value) if value >= 0 else f"({int.__repr__(value)})"


def from_symbol(value: object, numbers: dict[str, int]) -> int | None:
    """A size of PyTorch's, where symbols are worth these; None where it is said
    in words that are not known here."""
    if isinstance(value, int):
        return value
    return evaluate(value.node.expr, numbers)


def evaluate(expression: object, numbers: dict[str, int]) -> int | None:
    from torch.utils._sympy.functions import FloorDiv

    if isinstance(expression, sympy.Integer):
        return int(expression)
    if isinstance(expression, sympy.Symbol):
        name = expression.name
        number = numbers.get(name)
        if number is None or isinstance(number, Size):
            return number
        return Size(number, name, frozenset([name]))
    if not isinstance(expression, (sympy.Add, sympy.Mul, FloorDiv)):
        return None
    terms = [evaluate(term, numbers) for term in expression.args]
    if None in terms:
        return None
    made = terms[0]
    for term in terms[1:]:
        if isinstance(expression, sympy.Add):
            made = made + term
        elif isinstance(expression, sympy.Mul):
            made = made * term
        else:
            made = made // term
    return made


def numbers_of(fakes: list, given: list) -> dict[str, int]:
    """What symbols are worth that are inputs, or their sizes, alone. Those that
    are worth the same, of one axis of tensors that are alike otherwise, have one
    name: the lengths of a cache's layers, of which PyTorch does not know that
    they are one."""
    numbers: dict[str, int] = {}
    alike: dict[tuple, Size] = {}
    found = [
        (size, value.shape[axis], (axis, value.dtype, value.shape))
        for fake, value in zip(fakes, given)
        if isinstance(fake, torch.Tensor)
        for axis, size in enumerate(fake.shape)
    ]
    found += [(fake, value, ()) for fake, value in zip(fakes, given)]
    for symbolic, number, kind in found:
        expression = getattr(getattr(symbolic, "node", None), "expr", None)
        if isinstance(expression, sympy.Symbol):
            name = expression.name
            size = Size(int(number), name, frozenset([name]))
            numbers.setdefault(
                name, alike.setdefault(kind, size) if kind else size
            )
    return numbers


def sizes_of_value(fake: object, value: object, numbers: dict) -> object:
    """The sizes of a node's tensors by symbols: a tuple, a list of tuples, or
    None. Each is the number that the value has."""
    if isinstance(fake, (list, tuple)):
        return [sizes_of_value(f, v, numbers) for f, v in zip(fake, value)]
    if not isinstance(fake, torch.Tensor):
        return None
    return tuple(
        as_known(symbolic, number, numbers)
        for symbolic, number in zip(fake.shape, value.shape)
    )


def as_known(symbolic: object, number: int, numbers: dict[str, int]) -> int:
    """The number, by symbols where that is worth it."""
    made = from_symbol(symbolic, numbers)
    return made if made is not None and made == number else int(number)


class Fakes:
    """Values of a graph's nodes where symbols are worth these numbers, found
    from what PyTorch has said of them by symbols. Those of one type, shape and
    place are one tensor, which nobody changes."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self.numbers = numbers
        self.sizes: dict[object, int | None] = {}
        self.made: dict[tuple, torch.Tensor] = {}

    def value(self, symbolic: object) -> object:
        """None where it is not known so: no tensor or size, or of symbols that
        are not worth a number."""
        if isinstance(symbolic, torch.Tensor):
            return self.tensor(symbolic)
        if isinstance(symbolic, torch.SymInt):
            return self.number(symbolic)
        if isinstance(symbolic, (list, tuple)):
            values = [self.value(each) for each in symbolic]
            return None if any(v is None for v in values) else values
        return None

    def number(self, size: object) -> int | None:
        if isinstance(size, int):
            return size
        expression = size.node.expr
        if expression not in self.sizes:
            self.sizes[expression] = self.find(expression)
        return self.sizes[expression]

    def find(self, expression: sympy.Expr) -> int | None:
        made = evaluate(expression, self.numbers)
        if made is not None:
            return int(made)
        names = {symbol.name for symbol in expression.free_symbols}
        if not names <= self.numbers.keys():
            return None
        made = expression.xreplace(
            {s: sympy.Integer(int(self.numbers[s.name])) for s in expression.free_symbols}
        )
        return int(made) if made.is_Integer else None

    def tensor(self, fake: torch.Tensor) -> torch.Tensor | None:
        if fake.layout != torch.strided or fake.is_conj() or fake.is_neg():
            return None
        shape = tuple(map(self.number, fake.shape))
        strides = tuple(map(self.number, fake.stride()))
        offset = self.number(fake.storage_offset())
        if None in shape or None in strides or offset is None:
            return None
        key = fake.dtype, fake.device, shape, strides, offset
        if key not in self.made:
            reach = sum((s - 1) * t for s, t in zip(shape, strides) if s)
            room = torch.empty(
                offset + reach + 1, dtype=fake.dtype, device=fake.device
            )
            self.made[key] = room.as_strided(shape, strides, offset)
        return self.made[key]
