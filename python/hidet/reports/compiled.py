# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of what torch.compile or hidet.compile() gave, for a report."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import torch

from hidet.errors import HidetError, UsageError
from hidet.reports.collect import Section, collect
from hidet.torch.explain import about, module_of, versions_of
from hidet.torch.part import Part


def sections_of(
    model: Callable,
    args: tuple,
    kwargs: dict,
    place: pathlib.Path,
    errors: bool,
) -> tuple[list[Section], list[tuple[str, str]]]:
    """A section for each part that runs when the model is called, and of what
    PyTorch ran between them the operators' names and why."""
    ran = versions_of(model, args, kwargs)
    if not ran:
        raise UsageError(
            "nothing of it ran by hidet: it is not compiled, or is training"
        )
    sections, left = [], []
    for i, version in enumerate(ran):
        left += version.left.items()
        for k, part in enumerate(version.parts):
            title = f"Graph {i + 1}, part {k + 1}"
            file = place / f"part_{i}_{k}.hidet"
            if part.refused:
                left.append((", ".join(part.operators()), part.refused))
            else:
                sections.append(section_of(title, part, file, errors))
    return sections, left


def section_of(
    title: str, part: Part, file: pathlib.Path, errors: bool
) -> Section:
    title = f"{title} {about(part)}"
    built = part.built
    model = built.engine.model
    shapes = [part.placeholders[i].meta["val"].shape for i in built.given]
    try:
        model.frozen.save(model.opened, str(file))
        _, nodes = part.explain()
        modules = {name: module_of(node) for name, node in nodes.items()}
        return collect(title, file, model.opened, shapes, errors, modules)
    except HidetError as error:
        kind = "cuda" if model.on_gpu else "sim"
        return Section(
            title, kind, False, [], 0, [], [], [], [], [str(error)]
        )
