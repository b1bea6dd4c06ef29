# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A text with its weights, compiled for a device and called with tensors. All
that stands between PyTorch's tensors and libhidet is here."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch

from hidet.runtime import Buffer, Device, Frozen, Module, Session
from hidet.torch.config import Options
from hidet.torch.operators.call import TYPES

ALIGNMENT = 16


def lie(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor where it is, or a row-major copy that is aligned."""
    tensor = tensor.detach().contiguous()
    if tensor.data_ptr() % ALIGNMENT:
        tensor = tensor.clone(memory_format=torch.contiguous_format)
    return tensor


def as_buffer(tensor: torch.Tensor) -> Buffer:
    kind = TYPES[tensor.dtype]
    return Buffer(kind, tuple(tensor.shape), tensor.data_ptr(), tensor)


class Engine:
    """Compiles at the first call. weights: for constants of the text, by name;
    those of the CPU are read where they are."""

    def __init__(
        self,
        text: str,
        weights: dict[str, torch.Tensor],
        device: torch.device,
        options: Options,
    ) -> None:
        module = Module.parse(text)
        model = Frozen(module)
        for name, tensor in weights.items():
            model.set_weight(name, as_buffer(lie(tensor.cpu())))
        if options.use_tensor_core:
            model.set_precision("tf32")
        if options.search_space:
            model.set_measured(measured())
        where = "sim" if device.type == "cpu" else f"cuda:{device.index or 0}"
        self.session = Session(model, Device(module.context, where))

    def __call__(
        self, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]
    ) -> None:
        """outputs: row-major tensors that take the results."""
        given = [lie(t.cpu()) for t in inputs]
        made = [
            t if t.device.type == "cpu" else torch.empty_like(t, device="cpu")
            for t in outputs
        ]
        self.session.run(
            [as_buffer(t) for t in given], [as_buffer(t) for t in made]
        )
        for place, result in zip(outputs, made):
            if place is not result:
                place.copy_(result)


def measured() -> str:
    """Where `hidet-run --tune` keeps what it measured."""
    folder = os.environ.get("HIDET_CACHE_DIR")
    if not folder:
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser(
            "~/.cache"
        )
        folder = os.path.join(cache, "hidet")
    return os.path.join(folder, "tune.db")
