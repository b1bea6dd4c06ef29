# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expressions of Python as terms of the language, with their types.

The language converts nothing by itself; where operands have two types, the
narrower is converted here, as Python's reader expects. A bare number has no
type of its own (None), and takes its neighbour's.
"""

from __future__ import annotations

import ast
import dataclasses

from hidet.lang.words import TYPES, ScalarType

BINARY = {
    ast.Add: ("+", 9),
    ast.Sub: ("-", 9),
    ast.Mult: ("*", 10),
    ast.Div: ("/", 10),
    ast.FloorDiv: ("/", 10),
    ast.Mod: ("%", 10),
    ast.LShift: ("<<", 8),
    ast.RShift: (">>", 8),
    ast.BitAnd: ("&", 7),
    ast.BitXor: ("^", 6),
    ast.BitOr: ("|", 5),
}
COMPARE = {
    ast.Eq: ("==", 3),
    ast.NotEq: ("!=", 3),
    ast.Lt: ("<", 4),
    ast.LtE: ("<=", 4),
    ast.Gt: (">", 4),
    ast.GtE: (">=", 4),
}
TERNARY, OR, AND, UNARY, ATOM = 0, 1, 2, 11, 12


@dataclasses.dataclass(frozen=True)
class Term:
    """A term's text, how tightly it binds, and its type: None of a bare number,
    `is_float` then says of which kind; "?" where nobody here knows it."""

    text: str
    type: str | None
    level: int = ATOM
    is_float: bool = False

    def at(self, level: int) -> str:
        """In the place of an operand that binds so tightly."""
        return self.text if self.level >= level else f"({self.text})"


def number(value: object) -> Term:
    """A constant of Python."""
    if isinstance(value, bool):
        return Term("true" if value else "false", "bool")
    level = ATOM if value >= 0 else UNARY
    if isinstance(value, int):
        return Term(str(value), None, level)
    text = repr(value)
    if text in ("inf", "-inf", "nan"):
        return Term(text, None, level, True)
    return Term(text, None, ATOM if value >= 0 else UNARY, True)


def width(kind: str) -> tuple[bool, int, bool]:
    """What orders types: of two as wide, the one without a sign is the wider,
    as in C."""
    known = TYPES.get(kind)
    if not known:
        return True, 999, False
    return known.is_float, known.bits, kind.startswith("u")


def convert(term: Term, kind: str) -> Term:
    """As another type, where it is not of it."""
    if term.type in (kind, "?"):
        return term
    if term.type is None:
        if term.is_float and not width(kind)[0]:
            return Term(f"{kind}({term.text})", kind)
        return Term(term.text, kind, term.level, term.is_float)
    return Term(f"{kind}({term.text})", kind)


def common(terms: list[Term]) -> str | None:
    """The type that they come together in; None of bare numbers alone."""
    kinds = {t.type for t in terms if t.type not in (None, "?")}
    if not kinds:
        return None
    wide = max(sorted(kinds), key=width)
    if width(wide)[0] and any(k != wide and width(k) == width(wide) for k in kinds):
        return "f32"  # Neither of f16 and bf16 holds the other.
    if not width(wide)[0] and any(t.type is None and t.is_float for t in terms):
        return "f32"
    return wide


def together(*terms: Term) -> tuple[list[Term], str | None]:
    """Converted to their common type, and that."""
    kind = common(list(terms))
    if kind is None:
        unknown = any(t.type == "?" for t in terms)
        return list(terms), "?" if unknown else None
    return [convert(t, kind) for t in terms], kind


def fits(term: Term, kind: str) -> bool:
    """Whether it becomes one of that type without becoming a narrower one."""
    held = [Term("", kind), term]
    return common(held) in (kind, None) or term.type == "?"


def type_of_result(term: Term) -> str:
    """What a variable that begins with it has."""
    if term.type is None:
        return "f32" if term.is_float else "i32"
    return term.type


def scalar_name(value: object) -> str | None:
    return value.name if isinstance(value, ScalarType) else None
