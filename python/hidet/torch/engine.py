# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A text with its weights, compiled for a device and called with tensors. All
that stands between PyTorch's tensors and libhidet is here."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence

import torch

from hidet.runtime import Buffer, Device, Module, Session
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


class Weights:
    """Constants of a text, as bytes in a file that is gone with the object."""

    def __init__(self) -> None:
        shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = tempfile.mkdtemp(prefix="hidet-", dir=shared)
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.size = 0

    def add(self, tensor: torch.Tensor) -> str:
        """Where it stands, as a constant says it."""
        whole = lie(tensor.cpu())
        at = self.size
        with open(os.path.join(self.folder, "weights"), "ab") as file:
            data = whole.reshape(-1).view(torch.uint8).numpy().tobytes()
            file.write(data)
            file.write(bytes(-len(data) % 64))
            self.size = file.tell()
        return f'file("weights", {at})'


class Engine:
    """Compiles at the first call."""

    def __init__(
        self, text: str, weights: Weights, device: torch.device
    ) -> None:
        name = os.path.join(weights.folder, "main.hir")
        self.text, self.weights, self.device = text, weights, device
        self.module = Module.parse(text, name)
        where = "sim" if device.type == "cpu" else f"cuda:{device.index or 0}"
        self.opened = Device(self.module.context, where)
        self.session = Session(self.module, self.opened)

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
