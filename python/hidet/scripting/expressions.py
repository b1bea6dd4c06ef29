# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expressions of a script, one method for each kind."""

from __future__ import annotations

import ast
import builtins
import math
import re

from hidet.lang.words import Launch, Mapping, ScalarType, TensorType, Word
from hidet.scripting.places import Source
from hidet.scripting.scopes import Names, spelled
from hidet.scripting.terms import (
    AND,
    BINARY,
    COMPARE,
    OR,
    TERNARY,
    UNARY,
    Term,
    convert,
    number,
    together,
    type_of_result,
)

# Functions of the library and intrinsics whose result has their operands' type.
SAME_TYPE = set(
    """abs acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf exp
    expm1 floor fma fmod gelu gelu_tanh log log1p pow round_even rsqrt sigmoid sin
    sinh sqrt tan tanh trunc max min shfl_xor shfl_up shfl_down shfl_idx ex2_approx
    lg2_approx rcp_approx rsqrt_approx sqrt_approx tanh_approx div_approx""".split()
)
# Intrinsics that write their first operand, of those that take global memory.
WRITES = re.compile(r"atomic_(?!load)\w+|bulk_store|store_cached")
BUILTIN = {
    min: "min",
    max: "max",
    abs: "abs",
    pow: "pow",
    math.sqrt: "sqrt",
    math.exp: "exp",
    math.log: "log",
    math.floor: "floor",
}
UNKNOWN = object()


class Expressions:
    """Terms of the nodes of Python's syntax. kinds: the types of local names
    that have one, tensors among them; written: tensors that are stored to;
    called: the scripts that are."""

    def __init__(
        self, source: Source, names: Names, environment: dict[str, object]
    ) -> None:
        self.source = source
        self.names = names
        self.environment = environment
        self.kinds: dict[str, object] = {}
        self.written: set[str] = set()
        self.called: list[object] = []

    def error(self, node: ast.AST, message: str) -> Exception:
        return self.source.error(node, message)

    def known(self, node: ast.expr) -> object:
        """What Python says of an expression without local names; UNKNOWN."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and self.names.is_local(inner.id):
                return UNKNOWN
            if isinstance(
                inner, (ast.Call, ast.Lambda, ast.Await, ast.NamedExpr)
            ):
                if not self.is_plain_call(inner):
                    return UNKNOWN
        try:
            code = compile(ast.Expression(node), self.source.file, "eval")
            return eval(
                code, {"__builtins__": builtins}, dict(self.environment)
            )
        except Exception as error:
            if isinstance(error, NameError):
                raise self.error(node, str(error)) from None
            return UNKNOWN

    def is_plain_call(self, node: ast.AST) -> bool:
        """Calls that are made when the script is read."""
        if not isinstance(node, ast.Call):
            return False
        root = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name):
            return False
        found = self.environment.get(root.id, getattr(builtins, root.id, None))
        return (
            not isinstance(found, (Word, ScalarType, Launch))
            and root.id != "printf"
        )

    def term(self, node: ast.expr) -> Term:
        value = self.known(node)
        if value is not UNKNOWN:
            return self.constant(node, value)
        method = getattr(self, "of_" + type(node).__name__, None)
        if method is None:
            kind = type(node).__name__
            raise self.error(node, f"a script has no {kind} among expressions")
        return method(node)

    def constant(self, node: ast.expr, value: object) -> Term:
        if isinstance(value, Launch):
            return Term(value.name, "i32")
        if hasattr(value, "item") and not isinstance(value, type):
            value = value.item()
        if isinstance(value, (int, float)):
            return number(value)
        raise self.error(node, f"{ast.unparse(node)} is {value!r}, no number")

    def of_Name(self, node: ast.Name) -> Term:
        kind = self.kinds.get(node.id)
        if kind is None:
            raise self.error(node, f"'{node.id}' has no value here")
        if isinstance(kind, TensorType):
            raise self.error(
                node, f"'{node.id}' is a tensor; its elements are numbers"
            )
        return Term(spelled(node.id), kind)

    def of_Attribute(self, node: ast.Attribute) -> Term:
        raise self.error(node, f"'{ast.unparse(node)}' is not known here")

    def of_BinOp(self, node: ast.BinOp) -> Term:
        left, right = self.term(node.left), self.term(node.right)
        if isinstance(node.op, ast.Pow):
            (a, b), kind = together(left, right)
            return Term(f"pow({a.text}, {b.text})", kind)
        if type(node.op) not in BINARY:
            raise self.error(node, "a script has no such operator")
        text, level = BINARY[type(node.op)]
        (a, b), kind = together(left, right)
        floats = kind is not None and kind != "?" and ScalarType(kind).is_float
        floats = floats or (kind is None and (a.is_float or b.is_float))
        if isinstance(node.op, ast.Div) and not floats and kind != "?":
            raise self.error(node, "/ of integers: write //, or f32(a) / b")
        made = Term(
            f"{a.at(level)} {text} {b.at(level + 1)}", kind, level, floats
        )
        if isinstance(node.op, ast.FloorDiv) and floats:
            return Term(f"floor({made.text})", kind)
        return made

    def of_UnaryOp(self, node: ast.UnaryOp) -> Term:
        x = self.term(node.operand)
        if isinstance(node.op, ast.Not):
            return Term(f"!{self.truth(x).at(UNARY)}", "bool", UNARY)
        sign = {ast.USub: "-", ast.Invert: "~", ast.UAdd: ""}[type(node.op)]
        return Term(f"{sign}{x.at(UNARY)}", x.type, UNARY, x.is_float)

    def of_BoolOp(self, node: ast.BoolOp) -> Term:
        text, level = (
            ("&&", AND) if isinstance(node.op, ast.And) else ("||", OR)
        )
        terms = [self.term(v) for v in node.values]
        # Of numbers Python gives one of them, and not whether.
        if any(t.type not in ("bool", "?") for t in terms):
            raise self.error(node, "and, or of numbers: write x != 0")
        parts = [t.at(level + 1) for t in terms]
        return Term(f" {text} ".join(parts), "bool", level)

    def of_Compare(self, node: ast.Compare) -> Term:
        # Those between two others stand twice in what is made.
        for inner in node.comparators[:-1]:
            if not self.is_repeatable(inner):
                raise self.error(
                    inner,
                    f"{ast.unparse(inner)} is called once, and compared twice: "
                    "give it a name first",
                )
        terms = [self.term(n) for n in (node.left, *node.comparators)]
        parts = []
        for a, op, b in zip(terms, node.ops, terms[1:]):
            if type(op) not in COMPARE:
                raise self.error(node, "a script has no such comparison")
            text, level = COMPARE[type(op)]
            (x, y), _ = together(a, b)
            parts.append(
                Term(
                    f"{x.at(level + 1)} {text} {y.at(level + 1)}", "bool", level
                )
            )
        if len(parts) == 1:
            return parts[0]
        return Term(" && ".join(p.at(AND + 1) for p in parts), "bool", AND)

    def of_IfExp(self, node: ast.IfExp) -> Term:
        test = self.known(node.test)
        if test is not UNKNOWN:
            return self.term(node.body if test else node.orelse)
        condition = self.truth(self.term(node.test))
        (a, b), kind = together(self.term(node.body), self.term(node.orelse))
        text = f"{condition.at(OR)} ? {a.at(OR)} : {b.at(TERNARY)}"
        return Term(text, kind, TERNARY, a.is_float or b.is_float)

    def is_repeatable(self, node: ast.expr) -> bool:
        """Whether nothing but its value tells how often it is evaluated."""
        for call in ast.walk(node):
            if not isinstance(call, ast.Call) or self.known(call) is not UNKNOWN:
                continue
            function = self.known(call.func)
            word = self.word(function)
            if word is None and (
                isinstance(function, ScalarType)
                or function in (int, float, bool)
            ):
                continue
            if word not in SAME_TYPE or word.startswith("shfl"):
                return False
        return True

    def truth(self, term: Term) -> Term:
        if term.type in ("bool", "?"):
            return term
        return Term(f"{term.at(5)} != 0", "bool", 3)

    def of_Subscript(self, node: ast.Subscript) -> Term:
        name, kind, text = self.element(node)
        return Term(text, kind.element.name)

    def element(self, node: ast.Subscript) -> tuple[str, TensorType, str]:
        """A place in a tensor: its name, its type, its text."""
        if not isinstance(node.value, ast.Name):
            raise self.error(node, "indices stand behind a tensor's name")
        name = node.value.id
        kind = self.kinds.get(name)
        if not isinstance(kind, TensorType):
            raise self.error(node, f"'{name}' is no tensor")
        given = (
            node.slice.elts
            if isinstance(node.slice, ast.Tuple)
            else [node.slice]
        )
        if len(given) != len(kind.shape):
            raise self.error(
                node,
                f"{len(given)} indices for '{name}', which has {len(kind.shape)} axes",
            )
        texts = []
        for index in given:
            if isinstance(index, ast.Slice):
                raise self.error(node, "a script has no slices")
            term = self.term(index)
            if (
                term.type not in (None, "?")
                and ScalarType(term.type).is_float
                or term.is_float
            ):
                raise self.error(node, f"an index of {type_of_result(term)}")
            texts.append(term.text)
        return name, kind, f"{spelled(name)}[{', '.join(texts)}]"

    def of_Call(self, node: ast.Call) -> Term:
        if node.keywords:
            raise self.error(node, "arguments have no names here")
        function = self.known(node.func)
        word = self.word(function)
        scripted = hasattr(function, "script_result")
        converts = isinstance(function, ScalarType) or function in (
            int,
            float,
            bool,
        )
        if not (word or scripted or converts):
            text = ast.unparse(node.func)
            raise self.error(
                node, f"'{text}' is nothing that a script can call"
            )
        passes = scripted or word not in SAME_TYPE
        given = [self.argument(a, passes) for a in node.args]
        if converts:
            kind = {int: "i32", float: "f32", bool: "bool"}.get(
                function
            ) or function.name
            if len(given) != 1:
                raise self.error(node, f"{kind}() takes one value")
            if kind == "bool":
                return self.truth(given[0])
            return Term(f"{kind}({given[0].text})", kind)
        if scripted:
            return self.script_call(node, function, given)
        name = word
        if WRITES.fullmatch(name) and node.args:
            self.written.add(root_of(node.args[0]))
        if name in SAME_TYPE:
            shuffle = name.startswith("shfl")
            (*same,), kind = together(*(given[:1] if shuffle else given))
            given = [*same, *given[len(same) :]]
            if kind is None:
                kind = "f32" if any(t.is_float for t in given) else "i32"
        else:
            kind = "?"
        return Term(f"{name}({', '.join(t.text for t in given)})", kind)

    def word(self, function: object) -> str | None:
        """What the language calls it."""
        if isinstance(function, Word):
            return function.name
        return next((n for f, n in BUILTIN.items() if f is function), None)

    def argument(self, node: ast.expr, passes: bool) -> Term:
        """Scripts and intrinsics, which `passes` says it is of, may take a
        tensor, and these a word (`release`)."""
        if isinstance(node, ast.Name) and passes:
            if isinstance(self.kinds.get(node.id), TensorType):
                return Term(spelled(node.id), "?")
            value = self.known(node)
            if isinstance(value, Word):
                return Term(value.name, "?")
        return self.term(node)

    def script_call(
        self, node: ast.Call, function: object, given: list[Term]
    ) -> Term:
        kinds = function.script_types
        if len(kinds) != len(given):
            raise self.error(
                node, f"{function.__name__}() takes {len(kinds)} values"
            )
        self.called.append(function)
        for place, parameter in zip(node.args, function.translated.parameters):
            if parameter.written:
                self.written.add(root_of(place))
        texts = [
            convert(t, k.name).text if isinstance(k, ScalarType) else t.text
            for t, k in zip(given, kinds)
        ]
        return Term(
            f"{spelled(function.__name__)}({', '.join(texts)})",
            function.script_result or "?",
        )

    def mapping(self, node: ast.expr) -> tuple[str, int, Term | None] | None:
        """The text, the axes and the worker of what a loop goes over, where it
        is a mapping."""
        worker = None
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "on"
        ):
            if len(node.args) != 1:
                raise self.error(node, "on() takes the worker")
            worker, node = self.term(node.args[0]), node.func.value
        found = self.known(node)
        if not isinstance(found, Mapping):
            return None
        if found.workers > 1 and worker is None:
            raise self.error(
                node, f"{found.text} has {found.workers} workers: .on(...)"
            )
        return found.text, len(found.shape), worker


def root_of(place: ast.expr) -> str | None:
    """The name of what is assigned to, or of the tensor that it is of."""
    if isinstance(place, ast.Subscript):
        place = place.value
    return place.id if isinstance(place, ast.Name) else None
