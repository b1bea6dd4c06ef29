# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The words of scripts: types (`f32`), `attr`, task mappings, tensors in shared
memory and registers, and by its name each function of the language's library
and each intrinsic (docs/MATH.md, docs/INTRINSICS.md)."""

from __future__ import annotations

from hidet.lang.words import (
    OTHER_NAMES,
    TYPES,
    Attributes,
    Launch,
    Mapping,
    Storage,
    Word,
    repeat,
    spatial,
)

attr = Attributes()
shared_tensor = Storage("shared")
register_tensor = Storage("register")
thread = Launch("thread")
lane = Launch("lane")
warp = Launch("warp")
warpgroup = Launch("warpgroup")

__all__ = [
    *TYPES,
    "Mapping",
    "attr",
    "register_tensor",
    "repeat",
    "shared_tensor",
    "spatial",
    "thread",
]


def __getattr__(name: str) -> object:
    if name in TYPES:
        return TYPES[name]
    if name in OTHER_NAMES:
        return TYPES[OTHER_NAMES[name]]
    if name.startswith("_"):
        raise AttributeError(f"module 'hidet.lang' has no attribute '{name}'")
    # Whether there is such a function the compiler says, at its line.
    return Word(name)
