# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a script's text comes from, and errors that stand there."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap

from hidet.errors import InvalidError


class ScriptError(InvalidError):
    """A script that cannot be translated, or that the compiler refuses. The
    text begins with the place in the Python file."""


@dataclasses.dataclass(frozen=True)
class Source:
    """The function's syntax, its file, and the lines before it there."""

    tree: ast.FunctionDef
    file: str
    lines_before: int
    lines: list[str]

    @classmethod
    def of(cls, function: object) -> Source:
        try:
            lines, first = inspect.getsourcelines(function)
            file = inspect.getsourcefile(function) or "<python>"
        except (OSError, TypeError) as error:
            raise ScriptError(
                f"{function.__name__}: no source: {error}"
            ) from None
        text = textwrap.dedent("".join(lines))
        tree = ast.parse(text).body[0]
        if not isinstance(tree, ast.FunctionDef):
            raise ScriptError(f"{file}:{first}: a script is a function")
        return cls(tree, file, first - 1, text.splitlines())

    def line(self, node: ast.AST) -> int:
        return self.lines_before + node.lineno

    def error(self, node: ast.AST, message: str) -> ScriptError:
        """With the line that it is about."""
        shown = self.lines[node.lineno - 1].strip()
        return ScriptError(
            f"{self.file}:{self.line(node)}: {message}\n  {shown}"
        )


def translate_places(
    text: str, name: str, lines: list[tuple[str, int] | None]
) -> str:
    """The compiler's messages with places in Python files: `name` is that of
    the text, `lines` says of each of its lines where it comes from."""

    def place(match: re.Match) -> str:
        at = int(match[1]) - 1
        found = lines[at] if at < len(lines) else None
        return f"{found[0]}:{found[1]}:" if found else match[0]

    return re.sub(re.escape(name) + r":(\d+):(?:\d+:)?", place, text)
