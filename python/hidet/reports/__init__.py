# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""hidet.report(model, path, x): one HTML file that says what a model became.

The model is called once; then the two tools are asked about each part of it
(collect.py), and what they say becomes a page (page.py) that asks nothing of
any network and runs no scripts.
"""

from __future__ import annotations

import os
import pathlib
import tempfile
from collections.abc import Callable

from hidet.reports.collect import Section, collect
from hidet.reports.page import render

__all__ = ["report"]


def report(
    model: Callable,
    path: str | os.PathLike,
    *args: object,
    errors: bool = True,
    **kwargs: object,
) -> None:
    """Calls a hidet.Model, or what torch.compile or hidet.compile() gave, with
    the arguments, and writes what ran. errors: how far each node is from f32,
    too, for which each is computed twice. UsageError: nothing of it ran."""
    from hidet.model import Model

    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        if isinstance(model, Model):
            model(*args, **kwargs)
            sections = [of_model(model, args, kwargs, place, errors)]
            left: list[tuple[str, str]] = []
        else:
            from hidet.reports.compiled import sections_of

            sections, left = sections_of(model, args, kwargs, place, errors)
    title = type(model).__name__
    inner = getattr(model, "_orig_mod", None)
    if inner is not None:
        title = type(inner).__name__
    pathlib.Path(path).write_text(render(title, sections, left))


def of_model(
    model: object, args: tuple, kwargs: dict, place: pathlib.Path, errors: bool
) -> Section:
    """Of a model that was called with these."""
    from hidet.model import as_buffer
    from hidet.runtime import Buffer

    file = place / "model.hidet"
    model.save(file)
    given = [
        a if isinstance(a, Buffer) else as_buffer(a)
        for a in model.bind(args, kwargs)
    ]
    shapes = [buffer.shape for buffer in given]
    return collect("", file, model.opened, shapes, errors, {})
