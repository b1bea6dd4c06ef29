# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hidet from Python: models on numpy arrays, torch.compile's backend, kernels
written in Python. docs/PYTHON.md teaches it.

Importing this package neither loads the library nor imports PyTorch.
"""

from __future__ import annotations

import importlib

from hidet.errors import (
    DeviceError,
    HidetError,
    InternalError,
    InvalidError,
    ResourceError,
    UnsupportedError,
    UsageError,
)
from hidet.scripting import ScriptError, script, script_module
from hidet.model import Model, compile_text, from_onnx, load

__all__ = [
    "DeviceError",
    "HidetError",
    "InternalError",
    "InvalidError",
    "Model",
    "ResourceError",
    "ScriptError",
    "UnsupportedError",
    "UsageError",
    "compile",
    "compile_text",
    "explain",
    "from_onnx",
    "load",
    "report",
    "script",
    "script_module",
]


def compile(program, mode=None, options=None):
    """A program of torch.export, to be called and saved
    (hidet.torch.export.compile)."""
    from hidet.torch import export

    return export.compile(program, mode, options)


def explain(function, *args, **kwargs):
    """Calls a compiled model, and says what ran
    (hidet.torch.explain.explain)."""
    from hidet.torch.explain import explain as say

    return say(function, *args, **kwargs)


def report(model, path, *args, errors=True, **kwargs):
    """Calls a model, and writes one HTML file that says what it became
    (hidet.reports.report)."""
    from hidet.reports import report as write

    write(model, path, *args, errors=errors, **kwargs)


# Imported when they are first named.
LATER = ("driver", "lang", "torch", "utils")


def __getattr__(name: str) -> object:
    if name in LATER:
        return importlib.import_module(f"hidet.{name}")
    raise AttributeError(f"module 'hidet' has no attribute '{name}'")
