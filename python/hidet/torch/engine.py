# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A text with its weights, compiled for a device and called with tensors. All
that stands between PyTorch's tensors and libhidet is here."""

from __future__ import annotations

import ctypes
import os
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch._C._dynamo import guards
from torch.utils.weak import WeakIdRef

from hidet._library import Array
from hidet.errors import InternalError, UnsupportedError, UsageError
from hidet.runtime import Buffer, Device, Frozen, Module, Session, as_array
from hidet.torch.config import Options
from hidet.torch.operators.call import TYPES

ALIGNMENT = 16


def lie(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor where it is, or a row-major copy that is aligned."""
    if not tensor.is_contiguous():
        tensor = tensor.contiguous()
    if tensor.data_ptr() % ALIGNMENT:
        tensor = tensor.clone(memory_format=torch.contiguous_format)
    return tensor


def as_buffer(tensor: torch.Tensor) -> Buffer:
    kind = TYPES[tensor.dtype]
    return Buffer(kind, tuple(tensor.shape), tensor.data_ptr(), tensor)


def arrays(tensors: Sequence[torch.Tensor]) -> ctypes.Array:
    """Types and shapes of tensors, which may be fake; no addresses."""
    found = [Buffer(TYPES[t.dtype], tuple(t.shape), 0) for t in tensors]
    return (Array * len(found))(*map(as_array, found))


class Model:
    """A text with its weights, on a device once for all sizes that it is for.
    letters: the text's dimensions. inouts: by the name of an input the number
    of the output that it is one with.
    weights: for constants of the text, by name; those of the CPU are read where
    they are."""

    def __init__(
        self,
        text: str,
        weights: dict[str, torch.Tensor],
        device: torch.device,
        options: Options,
        letters: Iterable[str] = (),
        inouts: Mapping[str, int] = types.MappingProxyType({}),
        explained: bool = False,
    ) -> None:
        module = Module.parse(text)
        model = Frozen(module)
        if explained:
            model.set_explained()
        for name, tensor in weights.items():
            model.set_weight(name, as_buffer(lie(tensor.detach().cpu())))
        if options.use_tensor_core:
            model.set_precision("tf32")
        if options.search_space:
            model.set_measured(measured())
        for name, output in inouts.items():
            model.set_inout(name, model.outputs[output].name)
        if options.buckets:
            for size in sorted(letters):
                model.set_buckets(size)
        self.letters = frozenset(letters)
        self.on_gpu = device.type == "cuda"
        where = f"cuda:{device.index or 0}" if self.on_gpu else "sim"
        self.frozen, self.opened = model, Device(module.context, where)
        self.session = Session(model, self.opened)

    @property
    def num_compiled(self) -> int:
        """For how many sets of sizes, or buckets of them."""
        return self.frozen.num_compiled(self.opened)


# Models in whose memory graphs run that PyTorch has captured, and may replay
# at any time: they are kept to the end.
captured: set[Model] = set()


class Models:
    """Those that engines have, found again by what they were made of: for other
    sizes the same text may come."""

    def __init__(self) -> None:
        self.made: weakref.WeakValueDictionary[object, Model] = (
            weakref.WeakValueDictionary()
        )
        self.lock = threading.Lock()

    def find(
        self,
        text: str,
        weights: dict[str, torch.Tensor],
        device: torch.device,
        options: Options,
        letters: Iterable[str] = (),
        inouts: Mapping[str, int] = types.MappingProxyType({}),
    ) -> Model:
        tensors = tuple(map(identity, weights.values()))
        key = text, device, tensors, tuple(inouts.items())
        with self.lock:
            model = self.made.get(key)
            if model is None:
                model = Model(
                    text, weights, device, options, letters, inouts
                )
                self.made[key] = model
            return model


def identity(tensor: torch.Tensor) -> tuple[WeakIdRef, int, int]:
    version = 0 if tensor.is_inference() else tensor._version
    return WeakIdRef(tensor), version, tensor.data_ptr()


class Engine:
    """A model compiled for tensors of some types and shapes, when it is made.
    inputs, results: of these types and shapes; they may be fake. stored: results
    that are one with an input of the model, both by number: a run is on the
    input's memory, and gives the input.

    On a GPU a run is one CUDA graph, whose launches are given the addresses of
    inputs and results where these are others than the last run's."""

    def __init__(
        self,
        model: Model,
        device: torch.device,
        inputs: Sequence[torch.Tensor],
        results: Sequence[torch.Tensor],
        stored: Mapping[int, int] = types.MappingProxyType({}),
    ) -> None:
        self.model = model
        self.device, self.results, self.stored = device, results, stored
        self.on_gpu = model.on_gpu
        self.session, self.lock = model.session, model.session.lock
        self.given, self.made = arrays(inputs), arrays(results)
        self.told = ""  # By the compiler.
        self.in_place = self.prepare()
        self.enqueue = self.session.enqueuer(self.given, self.made)
        # The elements of the arrays, which are read from them otherwise.
        self.given_at, self.made_at = list(self.given), list(self.made)
        self.empty = allocator(device)
        self.shapes = [
            (tuple(r.shape), empty(r, "meta").stride(), r.dtype, stored.get(i))
            for i, r in enumerate(results)
        ]

    def prepare(self) -> bool:
        """Compiles; whether it can run on tensors where they are."""
        expected = arrays(self.results)
        try:
            self.told = self.session.prepare(self.given, self.made)
        except UnsupportedError:
            # Nothing is left to run, or the compiler refuses it: a run says.
            return False
        for want, have in zip(expected, self.made):
            if (want.type, want.rank, list(want.shape[: want.rank])) != (
                have.type,
                have.rank,
                list(have.shape[: have.rank]),
            ):
                raise InternalError(f"a result of {have.type} for {want.type}")
        self.made = expected
        return True

    def __call__(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The results, row-major tensors of their own."""
        if not self.in_place:
            return self.through_host(inputs)
        stream = current_stream(self.device) if self.on_gpu else None
        if is_capturing(self.device):
            captured.add(self.model)
        kept = []  # Until what reads them is enqueued.
        for tensor in inputs:
            if tensor.data_ptr() % ALIGNMENT or not tensor.is_contiguous():
                tensor = lie(tensor)
            kept.append(tensor)
        made = [
            self.empty(shape, strides, dtype) if place is None else kept[place]
            for shape, strides, dtype, place in self.shapes
        ]
        with self.lock:
            for array, tensor in zip(self.given_at, kept):
                array.data = tensor.data_ptr()
            for array, tensor in zip(self.made_at, made):
                array.data = tensor.data_ptr()
            self.enqueue(stream)
        return made

    def through_host(
        self, inputs: Sequence[torch.Tensor]
    ) -> list[torch.Tensor]:
        if is_capturing(self.device):
            raise UsageError(
                "what runs through the host's memory is not captured in a "
                "CUDA graph"
            )
        given = [lie(t.cpu()) for t in inputs]
        made = [empty(r, "cpu") for r in self.results]
        self.session.run(
            [as_buffer(t) for t in given], [as_buffer(t) for t in made]
        )
        return [t.to(self.device) for t in made] if self.on_gpu else made


# What torch.cuda.current_stream() asks, without making an object of it; PyTorch
# for the CPU has it not.
RAW_STREAM = getattr(torch._C, "_cuda_getCurrentRawStream", None)


def is_capturing(device: torch.device) -> bool:
    """Whether PyTorch's stream is being captured into a CUDA graph."""
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()


def current_stream(device: torch.device) -> int:
    """PyTorch's."""
    if RAW_STREAM is not None and device.index is not None:
        return RAW_STREAM(device.index)
    return torch.cuda.current_stream(device).cuda_stream


def allocator(device: torch.device) -> Callable:
    """Makes a tensor of a shape, strides and a type: what Inductor's code calls
    takes a third of torch.empty()'s time, but knows the current GPU alone."""
    quick = getattr(guards, f"_empty_strided_{device.type}", None)
    if quick and (device.type == "cpu" or torch.cuda.device_count() == 1):
        return quick

    def anywhere(
        shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype
    ) -> torch.Tensor:
        return torch.empty_strided(shape, strides, dtype=dtype, device=device)

    return anywhere


def empty(like: torch.Tensor, device: object = None) -> torch.Tensor:
    """A row-major tensor of its type and shape."""
    return torch.empty(
        like.shape, dtype=like.dtype, device=device or like.device
    )


def measured() -> str:
    """Where `hidet-run --tune` keeps what it measured."""
    folder = os.environ.get("HIDET_CACHE_DIR")
    if not folder:
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser(
            "~/.cache"
        )
        folder = os.path.join(cache, "hidet")
    return os.path.join(folder, "tune.db")
