# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Statements of a script, one method for each kind."""

from __future__ import annotations

import ast

from hidet.lang.words import Attributes, ScalarType, Storage, TensorType
from hidet.scripting.expressions import UNKNOWN, Expressions, root_of
from hidet.scripting.scopes import spelled
from hidet.scripting.terms import Term, convert, fits, number, type_of_result

LAUNCH = ("cuda_grid_dim", "cuda_block_dim", "cuda_min_blocks")


class Statements(Expressions):
    """Lines of the language, each with the line of Python that it is of.
    declared: mutable variables, which stand before all others; launch: what
    `attr` was given; stated: variables whose type is written; held: how many
    values of tuples have a name."""

    def __init__(self, source, names, environment, parameters) -> None:
        super().__init__(source, names, environment)
        self.lines: list[tuple[str, int]] = []
        self.declared: list[tuple[str, int]] = []
        self.launch: dict[str, str] = {}
        self.stated: set[str] = set()
        self.held = 0
        self.result: str | None = None
        self.depth = 0
        for parameter in parameters:
            kind = parameter.type
            scalar = isinstance(kind, ScalarType)
            self.kinds[parameter.name] = kind.name if scalar else kind
            if not scalar:
                for size in kind.shape:
                    if isinstance(size, str):
                        self.kinds.setdefault(size, "i32")
                        self.names.parameters.add(size)

    def add(self, node: ast.AST, text: str) -> None:
        self.lines.append(("  " * self.depth + text, self.source.line(node)))

    def block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            method = getattr(self, "do_" + type(statement).__name__, None)
            if method is None:
                kind = type(statement).__name__
                raise self.error(statement, f"a script has no {kind}")
            method(statement)

    def inner(self, body: list[ast.stmt]) -> None:
        before = dict(self.kinds)
        self.depth += 1
        self.block(body)
        self.depth -= 1
        # What a block gives a name is not known behind it, but for variables.
        self.kinds = {
            name: kind
            for name, kind in self.kinds.items()
            if name in before or self.names.is_mutable(name)
        }

    def do_Pass(self, node: ast.Pass) -> None:
        pass

    def do_Break(self, node: ast.Break) -> None:
        self.add(node, "break")

    def do_Continue(self, node: ast.Continue) -> None:
        self.add(node, "continue")

    def do_Import(self, node: ast.stmt) -> None:
        raise self.error(node, "imports stand outside of a script")

    do_ImportFrom = do_Import

    def do_Expr(self, node: ast.Expr) -> None:
        value = node.value
        if isinstance(value, ast.Constant):
            return  # A docstring.
        if not isinstance(value, ast.Call):
            raise self.error(node, "an expression that nobody uses")
        if isinstance(value.func, ast.Name) and value.func.id in (
            "printf",
            "print",
        ):
            self.print(node, value)
            return
        self.add(node, self.of_Call(value).text)

    def print(self, node: ast.Expr, call: ast.Call) -> None:
        if (
            not call.args
            or not isinstance(call.args[0], ast.Constant)
            or not isinstance(call.args[0].value, str)
        ):
            raise self.error(node, "printf begins with its format")
        text = quoted(call.args[0].value)
        rest = [self.term(a).text for a in call.args[1:]]
        self.add(node, f"printf({', '.join([text, *rest])})")

    def do_Assert(self, node: ast.Assert) -> None:
        message = self.known(node.msg) if node.msg else "assertion"
        condition = self.truth(self.term(node.test))
        self.add(node, f"assert {condition.text}, {quoted(str(message))}")

    def do_Return(self, node: ast.Return) -> None:
        if node.value is None:
            self.add(node, "return")
            return
        term = self.term(node.value)
        declared = self.source.tree.returns
        if declared is not None:
            kind = self.known(declared)
            name = {int: "i32", float: "f32", bool: "bool"}.get(
                kind
            ) or getattr(kind, "name", None)
            if name is None:
                raise self.error(
                    node, "the result's type is none of hidet.lang's"
                )
            term = convert(term, name)
        self.result = type_of_result(term)
        if self.result == "?":
            raise self.error(
                node, "the result's type is not known: def f(...) -> f32"
            )
        self.add(node, f"return {term.text}")

    def do_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self.error(node, "a script assigns to one name at a time")
        target = node.targets[0]
        if isinstance(target, ast.Attribute):
            self.set_attribute(node, target)
        elif isinstance(target, ast.Tuple):
            self.assign_tuple(node, target)
        else:
            self.assign(node, target, node.value)

    def do_AnnAssign(self, node: ast.AnnAssign) -> None:
        kind = self.known(node.annotation)
        kind = {int: "i32", float: "f32", bool: "bool"}.get(kind) or getattr(
            kind, "name", None
        )
        if kind is None or node.value is None:
            raise self.error(
                node, "name: type = value, the type one of hidet.lang"
            )
        self.assign(node, node.target, node.value, kind)

    def assign_tuple(self, node: ast.Assign, target: ast.Tuple) -> None:
        if not isinstance(node.value, ast.Tuple) or len(node.value.elts) != len(
            target.elts
        ):
            raise self.error(node, "as many values as names")
        # All values come before the first assignment: those that read what is
        # assigned to, or do more than give a value, have a name first.
        given = {root_of(t) for t in target.elts}
        values = [
            self.hold(node, v)
            if given & names_of(v) or not self.is_repeatable(v)
            else v
            for v in node.value.elts
        ]
        for place, value in zip(target.elts, values):
            self.assign(node, place, value)

    def hold(self, node: ast.Assign, value: ast.expr) -> ast.expr:
        """A name for a value."""
        term = self.term(value)
        kind = type_of_result(term)
        name = f"held_{self.held}"
        while self.names.is_local(name) or name in self.environment:
            name += "_"
        self.held += 1
        self.names.parameters.add(name)
        self.kinds[name] = kind
        self.add(node, f"let {name} = {convert(term, kind).text}")
        return ast.copy_location(ast.Name(name, ast.Load()), value)

    def set_attribute(self, node: ast.Assign, target: ast.Attribute) -> None:
        if not isinstance(self.known(target.value), Attributes):
            raise self.error(node, "a script sets no attributes but attr's")
        if target.attr == "func_kind":
            return
        if target.attr not in LAUNCH:
            raise self.error(
                node, f"no attr.{target.attr}; there are {', '.join(LAUNCH)}"
            )
        given = (
            node.value.elts
            if isinstance(node.value, ast.Tuple)
            else [node.value]
        )
        value = self.known(node.value)
        if isinstance(value, (tuple, list)):
            self.launch[target.attr] = ", ".join(
                number(int(v)).text for v in value
            )
        else:
            self.launch[target.attr] = ", ".join(
                self.term(v).text for v in given
            )

    def assign(
        self, node, target: ast.expr, value: ast.expr, kind: str | None = None
    ) -> None:
        if isinstance(target, ast.Subscript):
            name, tensor, place = self.element(target)
            self.written.add(name)
            term = convert(self.term(value), tensor.element.name)
            self.add(node, f"{place} = {term.text}")
            return
        if not isinstance(target, ast.Name):
            raise self.error(node, "a script assigns to names and elements")
        name = target.id
        if name in self.names.parameters:
            raise self.error(
                node, f"'{name}' is a parameter, and is not assigned to"
            )
        if self.allocate(node, name, value):
            return
        term, stated = self.term(value), kind is not None
        before = self.kinds.get(name)
        if not self.names.is_mutable(name):
            kind = kind or type_of_result(term)
            self.kinds[name] = kind
            if kind != "?":
                term = convert(term, kind)
                if term.type is not None and self.is_bare(value):
                    term = Term(f"{kind}({term.text})", kind)
            self.add(node, f"let {spelled(name)} = {term.text}")
            return
        if before is None:
            kind = kind or type_of_result(term)
            if kind == "?":
                raise self.error(
                    node,
                    f"the type of '{name}' is not known: {name}: f32 = ...",
                )
            self.kinds[name] = before = kind
            if stated:
                self.stated.add(name)
            initial = "false" if kind == "bool" else "0"
            self.declared.append(
                (
                    f"register {spelled(name)}: {kind} = {initial}",
                    self.source.line(node),
                )
            )
        if name not in self.stated and not fits(term, before):
            raise self.error(
                node,
                f"'{name}' began as {before}, and {type_of_result(term)} does "
                f"not fit: {name}: {type_of_result(term)} = ... where it begins",
            )
        self.add(node, f"{spelled(name)} = {convert(term, before).text}")

    def is_bare(self, value: ast.expr) -> bool:
        found = self.known(value)
        return isinstance(found, (int, float)) and not isinstance(found, bool)

    def allocate(self, node, name: str, value: ast.expr) -> bool:
        """shared_tensor(f32, [64, 8]), register_tensor(f32, [8])."""
        if not isinstance(value, ast.Call):
            return False
        function = self.known(value.func)
        if not isinstance(function, Storage):
            return False
        given = list(value.args)
        named = {k.arg: k.value for k in value.keywords}
        kind = self.known(given.pop(0) if given else named.get("dtype"))
        shape = self.known(given.pop(0) if given else named.get("shape"))
        good = isinstance(shape, (list, tuple)) and all(
            isinstance(n, int) and n > 0 for n in shape
        )
        if not isinstance(kind, ScalarType) or not good:
            raise self.error(node, f"{function.scope}_tensor(type, [sizes])")
        self.kinds[name] = TensorType(kind, tuple(shape))
        sizes = ", ".join(map(str, shape))
        start = " = 0" if function.scope == "register" else ""
        self.add(
            node, f"{function.scope} {spelled(name)}: {kind}[{sizes}]{start}"
        )
        return True

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        # `a[i] += x` reads and writes the element.
        read = ast.copy_location(
            ast.BinOp(as_read(node.target), node.op, node.value), node
        )
        ast.fix_missing_locations(read)
        self.assign(node, node.target, read)

    def do_If(self, node: ast.If) -> None:
        test = self.known(node.test)
        if test is not UNKNOWN:
            self.block(node.body if test else node.orelse)
            return
        self.add(node, f"if {self.truth(self.term(node.test)).text} {{")
        self.inner(node.body)
        if node.orelse:
            self.add(node.orelse[0], "} else {")
            self.inner(node.orelse)
        self.add(node, "}")

    def do_While(self, node: ast.While) -> None:
        if node.orelse:
            raise self.error(node, "a script has no else behind a loop")
        self.add(node, f"while {self.truth(self.term(node.test)).text} {{")
        self.inner(node.body)
        self.add(node, "}")

    def do_For(self, node: ast.For) -> None:
        if node.orelse:
            raise self.error(node, "a script has no else behind a loop")
        places = (
            node.target.elts
            if isinstance(node.target, ast.Tuple)
            else [node.target]
        )
        if not all(isinstance(p, ast.Name) for p in places):
            raise self.error(node, "a loop's variables are names")
        names = [p.id for p in places]
        for name in names:
            if name in self.kinds or name in self.names.assigned:
                raise self.error(node, f"'{name}' is another variable already")
        mapping = self.mapping(node.iter)
        if mapping:
            text, axes, worker = mapping
            if axes != len(names):
                raise self.error(node, f"{len(names)} names for {axes} axes")
            on = f" on {worker.text}" if worker else ""
            head = f"for {', '.join(map(spelled, names))} in {text}{on} {{"
        else:
            head = self.range(node, names)
        before = dict(self.kinds)
        self.kinds.update({name: "i32" for name in names})
        self.add(node, head)
        self.inner(node.body)
        self.add(node, "}")
        for name in names:
            self.kinds.pop(name, None)
        self.kinds.update({k: v for k, v in before.items()})

    def range(self, node: ast.For, names: list[str]) -> str:
        call, unroll = node.iter, ""
        if (
            isinstance(call, ast.Call)
            and getattr(self.known(call.func), "name", "") == "unroll"
        ):
            call, unroll = call.args[0], " unroll"
        if (
            not isinstance(call, ast.Call)
            or self.known(call.func) is not range
            or call.keywords
            or not 1 <= len(call.args) <= 3
            or len(names) != 1
        ):
            raise self.error(
                node, "a loop goes over range(...) or a task mapping"
            )
        bounds = [self.term(a) for a in call.args]
        step = ""
        if len(bounds) == 3:
            size = self.known(call.args[2])
            if not isinstance(size, int) or size < 1:
                raise self.error(node, "a loop's step is a number above 0")
            step = f" step {size}"
        first, last = (number(0), bounds[0]) if len(bounds) == 1 else bounds[:2]
        return f"for {spelled(names[0])} in {first.at(9)}..{last.at(9)}{step}{unroll} {{"


def quoted(text: str) -> str:
    """As a string of the language."""
    for plain, escape in ("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t"):
        text = text.replace(plain, escape)
    return f'"{text}"'


def names_of(node: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def as_read(target: ast.expr) -> ast.expr:
    """The target of an assignment as an operand."""
    fields = {name: getattr(target, name) for name in target._fields}
    fields["ctx"] = ast.Load()
    return ast.copy_location(type(target)(**fields), target)
