# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels written in Python: `@hidet.script` reads a function's text and makes
one of the language of it (docs/IR.md); it is never run as Python."""

from hidet.scripting.module import (
    IRModule,
    ScriptFunction,
    script,
    script_module,
)
from hidet.scripting.places import ScriptError

__all__ = [
    "IRModule",
    "ScriptError",
    "ScriptFunction",
    "script",
    "script_module",
]
