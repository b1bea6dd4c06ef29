# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules of scripts."""

from __future__ import annotations

import inspect

from hidet.errors import HidetError
from hidet.runtime import Module
from hidet.scripting.places import ScriptError, translate_places
from hidet.scripting.translate import Translated, translate

open_modules: list[ScriptModule] = []
NAME = "<script>"


class ScriptFunction:
    """What `@hidet.script` makes: a kernel, or a function that others call. A
    kernel may be called with tensors (`hidet.driver`)."""

    def __init__(self, function: object) -> None:
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.function = function
        self.translated: Translated = translate(
            function, environment_of(function)
        )
        self.built = None

    @property
    def script_types(self) -> list:
        return [p.type for p in self.translated.parameters]

    @property
    def script_result(self) -> str | None:
        head = self.translated.lines[0][0]
        _, arrow, result = head.rpartition(" -> ")
        return result.split()[0] if arrow else None

    def needed(self) -> list[ScriptFunction]:
        """The scripts that it calls, and theirs, callees first."""
        found: list[ScriptFunction] = []
        for other in self.translated.called:
            found += [f for f in (*other.needed(), other) if f not in found]
        return found

    def ir_module(self) -> IRModule:
        return IRModule([*self.needed(), self])

    def __call__(self, *arguments: object) -> None:
        from hidet.driver import build_ir_module

        if self.built is None:
            self.built = build_ir_module(self.ir_module())
        self.built(*arguments)

    def __str__(self) -> str:
        return "\n".join(text for text, _ in self.translated.lines)


class IRModule:
    """Functions of the language, as text: print it."""

    def __init__(self, functions: list[ScriptFunction]) -> None:
        self.functions = functions
        self.lines: list[tuple[str, int] | None] = []
        texts: list[str] = []
        for function in functions:
            file = function.translated.source.file
            for text, line in function.translated.lines:
                texts.append(text)
                self.lines.append((file, line))
            texts.append("")
            self.lines.append(None)
        self.text = "\n".join(texts)

    @property
    def kernels(self) -> list[Translated]:
        return [f.translated for f in self.functions if f.translated.is_kernel]

    def parse(self) -> Module:
        """Parsed and verified; ScriptError names lines of Python."""
        try:
            return Module.parse(self.text, NAME)
        except HidetError as error:
            raise self.place(error) from None

    def place(self, error: HidetError) -> HidetError:
        text = translate_places(str(error), NAME, self.lines)
        kind = ScriptError if error.status == 3 else type(error)
        return kind(text)

    def __str__(self) -> str:
        return self.text


class ScriptModule:
    """`with hidet.script_module() as m:` has the scripts that are made in it."""

    def __init__(self) -> None:
        self.functions: list[ScriptFunction] = []

    def __enter__(self) -> ScriptModule:
        open_modules.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        open_modules.pop()

    def ir_module(self) -> IRModule:
        found: list[ScriptFunction] = []
        for function in self.functions:
            for one in (*function.needed(), function):
                if one not in found:
                    found.append(one)
        return IRModule(found)


def script_module() -> ScriptModule:
    return ScriptModule()


def script(function: object) -> ScriptFunction:
    """Translates a function at once. ScriptError says at which line it cannot
    be."""
    made = ScriptFunction(function)
    if open_modules:
        open_modules[-1].functions.append(made)
    return made


def environment_of(function: object) -> dict[str, object]:
    """What names of the function's surroundings stand for."""
    found = inspect.getclosurevars(function)
    return {**function.__globals__, **found.nonlocals}
