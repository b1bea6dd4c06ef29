# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A function of Python as a kernel or a `fn` of the language.

Names of Python's own scope stand for what they are when the script is read:
numbers become constants, and `if` on numbers alone is decided here. A variable
that is assigned once, and used below that alone, becomes `let`; others become
`register` variables, declared where the function begins.
"""

from __future__ import annotations

import ast
import dataclasses

from hidet.lang.words import ScalarType, TensorType
from hidet.scripting.places import Source
from hidet.scripting.statements import Statements
from hidet.scripting.scopes import Names, spelled


@dataclasses.dataclass
class Parameter:
    """One of a script. `written`: of a tensor, whether it is stored to."""

    name: str
    type: ScalarType | TensorType
    written: bool = False

    def text(self) -> str:
        if isinstance(self.type, ScalarType):
            return f"{spelled(self.name)}: {self.type}"
        way = "inout" if self.written else "in"
        return f"{way} {spelled(self.name)}: {self.type}"


@dataclasses.dataclass
class Translated:
    """lines: the function's text, each with the line of Python that it is of;
    called: the scripts (ScriptFunction) that it calls."""

    name: str
    is_kernel: bool
    sizes: list[str]
    parameters: list[Parameter]
    lines: list[tuple[str, int]]
    source: Source
    called: list[object]


def translate(function: object, environment: dict[str, object]) -> Translated:
    source = Source.of(function)
    tree = source.tree
    parameters = parameters_of(source, function)
    names = Names(source, [p.name for p in parameters])
    check_letters(source, names)
    body = Statements(source, names, environment, parameters)
    body.block(tree.body)
    launch = body.launch
    is_kernel = "cuda_grid_dim" in launch or "cuda_block_dim" in launch
    for p in parameters:
        p.written = p.name in body.written
    sizes = []
    for p in parameters:
        if isinstance(p.type, TensorType):
            taken = {q.name for q in parameters}
            sizes += [
                n
                for n in p.type.shape
                if isinstance(n, str) and n not in sizes and n not in taken
            ]
    line = source.line(tree)
    head = heading(source, body, tree, is_kernel, sizes, parameters)
    lines = [(head, line)]
    lines += [("  " + text, at) for text, at in body.declared]
    lines += [("  " + text, at) for text, at in body.lines]
    lines.append(("}", line))
    return Translated(
        spelled(tree.name),
        is_kernel,
        sizes,
        parameters,
        lines,
        source,
        body.called,
    )


def check_letters(source: Source, names: Names) -> None:
    """The language has names of ASCII's letters alone."""
    for node in ast.walk(source.tree):
        name = getattr(node, "id", getattr(node, "arg", None))
        if isinstance(name, str) and names.is_local(name):
            if not name.isascii():
                raise source.error(node, f"'{name}' is not of ASCII's letters")


def heading(source, body, tree, is_kernel, sizes, parameters) -> str:
    given = [p.text() for p in parameters]
    if is_kernel:
        if tree.returns is not None and body.result:
            raise source.error(tree, "a kernel returns nothing")
        given = [f"{n}: i32" for n in sizes] + given
        grid = body.launch.get("cuda_grid_dim", "1")
        block = body.launch.get("cuda_block_dim", "1")
        text = f"kernel {spelled(tree.name)}({', '.join(given)}) grid({grid}) block({block})"
        least = body.launch.get("cuda_min_blocks")
        return f"{text} min_blocks({least}) {{" if least else f"{text} {{"
    result = f" -> {body.result}" if body.result else ""
    return f"fn {spelled(tree.name)}({', '.join(given)}){result} {{"


def parameters_of(source: Source, function: object) -> list[Parameter]:
    tree, made = source.tree, []
    arguments = tree.args
    if (
        arguments.vararg
        or arguments.kwarg
        or arguments.kwonlyargs
        or arguments.defaults
    ):
        raise source.error(
            tree, "a script's parameters have names and types alone"
        )
    for argument in (*arguments.posonlyargs, *arguments.args):
        kind = function.__annotations__.get(argument.arg)
        if isinstance(kind, str):
            raise source.error(
                argument,
                "types are values here: no `from __future__ import annotations`",
            )
        kind = {
            int: ScalarType("i32"),
            float: ScalarType("f32"),
            bool: ScalarType("bool"),
        }.get(kind, kind)
        if not isinstance(kind, (ScalarType, TensorType)):
            raise source.error(
                argument,
                f"parameter '{argument.arg}' has no type of hidet.lang",
            )
        made.append(Parameter(argument.arg, kind))
    return made
