# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors, and whether they are what they were: hundreds, at each call.

A tensor counts in-place changes (`_version`), and lies elsewhere when its `data`
is set; torch.utils.swap_tensors() refuses what somebody watches. To ask each
from Python takes 0.1 us. libhidet asks PyTorch's library itself: for the address
by the C interface that AOTInductor's models use, whose handles are addresses of
at::Tensor; for the version by TensorBase::_version(). The at::Tensor of a Python
tensor is the word of the object that has `_cdata`. Where that is not as it should
be, or not seen to work, Python asks.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import os
import weakref
from collections.abc import Callable

import torch

from hidet._library import Sources, library

VERSION = operator.attrgetter("_version")
ADDRESS = torch.Tensor.data_ptr
WORD = ctypes.sizeof(ctypes.c_void_p)
NAMES = "aoti_torch_get_data_ptr", "_ZNK2at10TensorBase8_versionEv"


def watch(
    tensors: tuple[torch.Tensor, ...], gone: Callable[[], None] | None = None
) -> Watched:
    """tensors: none that cannot count its changes. gone: called when the first
    of them is no more."""
    watched, found = Watched(tensors, gone), functions()
    if found:
        unchanged = watched.by_library(tensors, *found)
        watched.unchanged = unchanged or watched.by_python
    return watched


class Watched:
    """Keeps none of them. Keep it as long as `unchanged` may be called."""

    def __init__(
        self,
        tensors: tuple[torch.Tensor, ...],
        gone: Callable[[], None] | None = None,
    ) -> None:
        self.ids = tuple(map(id, tensors))
        self.versions = tuple(map(VERSION, tensors))
        self.addresses = tuple(map(ADDRESS, tensors))
        # Whether they are what they were.
        self.unchanged: Callable[[], object] = self.by_python
        self.objects: ctypes.Array | tuple = ()  # Their at::Tensor.
        self.gone = gone
        own = weakref.ref(self)

        def lose(_: object) -> None:
            watched = own()
            if watched is not None:
                watched.lose()

        self.refs = tuple(weakref.ref(tensor, lose) for tensor in tensors)

    def lose(self) -> None:
        """One is no more; its at::Tensor still is, until this returns."""
        for i in range(len(self.objects)):
            self.objects[i] = None
        gone, self.gone = self.gone, None
        if gone is not None:
            gone()

    @property
    def tensors(self) -> tuple[torch.Tensor, ...] | None:
        """None: one is no more."""
        found = [ref() for ref in self.refs]
        for tensor in found:
            if tensor is None:
                return None
            tensor._fix_weakref()
        return tuple(found)

    def are(self, tensors: tuple[torch.Tensor, ...]) -> bool:
        """Whether those are these; some that are others may have been given a
        place in memory that was another's, but not while these are."""
        return tuple(map(id, tensors)) == self.ids

    def by_python(self) -> bool:
        tensors = self.tensors
        return (
            tensors is not None
            and tuple(map(VERSION, tensors)) == self.versions
            and tuple(map(ADDRESS, tensors)) == self.addresses
        )

    def by_library(
        self, tensors: tuple[torch.Tensor, ...], address: int, version: int
    ) -> Callable | None:
        """What asks by these functions of PyTorch's; None: it cannot."""
        objects = [place_of(tensor) for tensor in tensors]
        if None in objects:
            return None
        count = len(objects)
        self.objects = (ctypes.c_void_p * count)(*objects)
        arrays = (
            self.objects,
            (ctypes.c_void_p * count)(*self.addresses),
            (ctypes.c_int64 * count)(*self.versions),
        )
        at = [ctypes.addressof(array) for array in arrays]
        sources = Sources(at[0], count, address, version, *at[1:])
        self.held = arrays, sources  # As long as somebody may ask.
        return functools.partial(asker(), ctypes.addressof(sources))


def place_of(tensor: torch.Tensor) -> int | None:
    """The address of its at::Tensor; None: it is not found."""
    size = type(tensor).__basicsize__
    words = (ctypes.c_size_t * (size // WORD)).from_address(id(tensor))
    at = [i for i, word in enumerate(words) if word == tensor._cdata]
    return id(tensor) + at[0] * WORD if len(at) == 1 else None


@functools.cache
def asker() -> Callable[[int], int]:
    """The library's function, called without letting other threads of Python
    run meanwhile, who might change the objects."""
    prototype = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
    return prototype(("hidet_sources_unchanged", library()))


@functools.cache
def functions() -> tuple[int, int] | None:
    """PyTorch's, for addresses and versions; None: they do not say what they
    should of a tensor that changes."""
    path = os.path.join(torch.__path__[0], "lib", "libtorch_cpu.so")
    try:
        loaded = ctypes.CDLL(path)
        address, version = (
            ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value or 0
            for name in NAMES
        )
    except (OSError, AttributeError):
        return None
    with torch.inference_mode(False), torch.no_grad():
        tensor = torch.zeros(1, device="cpu")
        for change in (
            lambda: tensor.add_(1),
            lambda: setattr(tensor, "data", torch.zeros(1, device="cpu")),
        ):
            watched = Watched((tensor,))
            unchanged = watched.by_library((tensor,), address, version)
            if unchanged is None or not unchanged():
                return None
            change()
            if unchanged():
                return None
    return address, version
