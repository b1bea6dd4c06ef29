# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libhidet's C interface as ctypes sees it: where the library is, its structs,
and a table of the functions that are used. Nothing else of the package touches
ctypes; what a function promises stands in include/hidet/*.h.
"""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint, c_void_p

MAX_RANK = 16
NAMES = ("libhidet.so.0", "libhidet.so")


class Array(ctypes.Structure):
    """hidet_array_t"""

    _fields_ = [
        ("type", c_char_p),
        ("rank", c_uint),
        ("shape", c_int64 * MAX_RANK),
        ("data", c_void_p),
    ]


class Value(ctypes.Structure):
    """hidet_value_t"""

    _fields_ = [
        ("name", c_char_p),
        ("type", c_char_p),
        ("rank", c_int),
        ("shape", c_int64 * MAX_RANK),
    ]


class Argument(ctypes.Structure):
    """hidet_argument_t"""

    _fields_ = [
        ("tensor", c_void_p),
        ("integer", c_int64),
        ("real", ctypes.c_double),
    ]


class Sources(ctypes.Structure):
    """hidet_sources_t"""

    _fields_ = [
        ("objects", c_void_p),
        ("num_objects", c_size_t),
        ("address", c_void_p),
        ("version", c_void_p),
        ("addresses", c_void_p),
        ("versions", c_void_p),
    ]


# name: (result, arguments...). Texts that the caller frees are c_void_p.
FUNCTIONS = {
    "hidet_version": (c_char_p,),
    "hidet_context_create": (c_void_p,),
    "hidet_context_destroy": (None, c_void_p),
    "hidet_messages": (c_char_p,),
    "hidet_text_free": (None, c_void_p),
    "hidet_module_parse": (
        c_int,
        c_void_p,
        c_char_p,
        c_char_p,
        c_size_t,
        c_void_p,
    ),
    "hidet_module_import": (c_int, c_void_p, c_char_p, c_void_p),
    "hidet_module_destroy": (None, c_void_p),
    "hidet_module_run_pass": (c_int, c_void_p, c_char_p, c_char_p),
    "hidet_module_print": (c_int, c_void_p, c_void_p),
    "hidet_module_emit": (
        c_int,
        c_void_p,
        c_char_p,
        c_char_p,
        c_char_p,
        c_void_p,
    ),
    "hidet_device_open": (c_int, c_void_p, c_char_p, c_void_p),
    "hidet_device_close": (None, c_void_p),
    "hidet_device_kind": (c_char_p, c_void_p),
    "hidet_device_set_cache": (c_int, c_void_p, c_char_p, c_int64),
    "hidet_tensor_create": (
        c_int,
        c_void_p,
        c_char_p,
        c_void_p,
        c_uint,
        c_void_p,
    ),
    "hidet_tensor_destroy": (None, c_void_p),
    "hidet_tensor_write": (c_int, c_void_p, c_void_p),
    "hidet_tensor_read": (c_int, c_void_p, c_void_p),
    "hidet_tensor_wrap": (
        c_int,
        c_void_p,
        c_char_p,
        c_void_p,
        c_uint,
        c_void_p,
        c_void_p,
    ),
    "hidet_program_create": (
        c_int,
        c_void_p,
        c_void_p,
        c_char_p,
        POINTER(Argument),
        c_size_t,
        c_void_p,
    ),
    "hidet_program_destroy": (None, c_void_p),
    "hidet_program_run": (c_int, c_void_p, POINTER(Argument), c_size_t),
    "hidet_model_create": (c_int, c_void_p, c_char_p, c_void_p),
    "hidet_model_destroy": (None, c_void_p),
    "hidet_model_set_weight": (c_int, c_void_p, c_char_p, c_void_p, c_size_t),
    "hidet_model_set_precision": (c_int, c_void_p, c_char_p),
    "hidet_model_set_measured": (c_int, c_void_p, c_char_p),
    "hidet_model_set_buckets": (
        c_int,
        c_void_p,
        c_char_p,
        POINTER(c_int64),
        c_size_t,
    ),
    "hidet_model_set_untrusted": (c_int, c_void_p),
    "hidet_model_set_inout": (c_int, c_void_p, c_char_p, c_char_p),
    "hidet_model_set_explained": (c_int, c_void_p),
    "hidet_model_save": (c_int, c_void_p, c_void_p, c_char_p),
    "hidet_model_num_compiled": (c_size_t, c_void_p, c_void_p),
    "hidet_model_num_inputs": (c_size_t, c_void_p),
    "hidet_model_num_outputs": (c_size_t, c_void_p),
    "hidet_model_input": (None, c_void_p, c_size_t, POINTER(Value)),
    "hidet_model_output": (None, c_void_p, c_size_t, POINTER(Value)),
    "hidet_session_create": (c_int, c_void_p, c_void_p, c_void_p),
    "hidet_session_destroy": (None, c_void_p),
    "hidet_session_run": (
        c_int,
        c_void_p,
        POINTER(Array),
        c_size_t,
        POINTER(Array),
        c_size_t,
    ),
    "hidet_session_prepare": (
        c_int,
        c_void_p,
        POINTER(Array),
        c_size_t,
        POINTER(Array),
        c_size_t,
    ),
    "hidet_session_enqueue": (
        c_int,
        c_void_p,
        POINTER(Array),
        c_size_t,
        POINTER(Array),
        c_size_t,
        c_void_p,
    ),
    "hidet_session_wait": (c_int, c_void_p),
    "hidet_sources_unchanged": (c_int, POINTER(Sources)),
    "hidet_session_read": (c_int, c_void_p, c_size_t, POINTER(Array)),
}


def candidates() -> list[pathlib.Path]:
    """Where the library may be, the first that is there counts: what
    HIDET_LIBRARY names, beside this package, what a checkout has built, what
    stands beside the folder python/ of an unpacked archive."""
    given = os.environ.get("HIDET_LIBRARY")
    if given:
        return [pathlib.Path(given)]
    package = pathlib.Path(__file__).resolve().parent
    root = package.parent.parent
    folders = [
        package / "lib",
        root / "build" / "lib",
        root / "build-static" / "lib",
        root / "lib",
    ]
    return [folder / name for folder in folders for name in NAMES]


@functools.cache
def library() -> ctypes.CDLL:
    """The library, loaded and declared. OSError says where it was looked for."""
    for path in candidates():
        if path.is_file():
            loaded = ctypes.CDLL(str(path))
            break
    else:
        try:
            if "HIDET_LIBRARY" in os.environ:
                raise OSError("HIDET_LIBRARY names no file")
            loaded = ctypes.CDLL(NAMES[0])
        except OSError as error:
            places = ", ".join(str(path) for path in candidates())
            raise OSError(f"no libhidet: {error}; looked at {places}") from None
    for name, (result, *arguments) in FUNCTIONS.items():
        function = getattr(loaded, name, None)
        if function is None:
            raise OSError(f"{loaded._name} is of another version: no {name}()")
        function.restype = result
        function.argtypes = arguments
    return loaded
