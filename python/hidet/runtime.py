# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Contexts, modules, devices, sessions and programs of libhidet as objects.

What belongs to another object keeps it alive, and each is ended when nobody
needs it any more. Any thread may call anything: the library locks what is
shared, a session is locked here, and other threads of Python run while one is
in the library.
"""

from __future__ import annotations

import ctypes
import dataclasses
import math
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import NoReturn

from hidet._library import MAX_RANK, Argument, Array, Value, library
from hidet.errors import KINDS, HidetError, UsageError


@dataclasses.dataclass(frozen=True)
class Buffer:
    """A row-major array in somebody's memory. `owner` keeps it there. `type` is
    the language's: "f32", "bool"."""

    type: str
    shape: tuple[int, ...]
    address: int
    owner: object = None


@dataclasses.dataclass(frozen=True)
class Signature:
    """What is known of an input or an output. None: not known."""

    name: str
    type: str | None
    shape: tuple[int | None, ...] | None


class Context:
    """What a piece of work shares."""

    def __init__(self) -> None:
        self.pointer = library().hidet_context_create()
        if not self.pointer:
            raise MemoryError("no memory for a context")
        weakref.finalize(self, library().hidet_context_destroy, self.pointer)

    def call(self, function: str, *arguments: object) -> None:
        """Calls a function that returns a status; raises what it is not OK."""
        status = getattr(library(), function)(*arguments)
        if status:
            self.fail(status, function)

    def fail(self, status: int, function: str) -> NoReturn:
        """Raises what the call of this thread, just now, did not succeed by."""
        text = library().hidet_messages()
        kind = KINDS.get(status, HidetError)
        raise kind(text.decode(errors="replace").strip() or function)

    def make(self, function: str, *arguments: object) -> int:
        """Calls one whose last argument takes the new object; returns it."""
        pointer = ctypes.c_void_p()
        self.call(function, *arguments, ctypes.byref(pointer))
        return pointer.value or 0

    def text(self, function: str, *arguments: object) -> str:
        """Likewise of a text that the caller frees."""
        pointer = ctypes.c_void_p()
        self.call(function, *arguments, ctypes.byref(pointer))
        text = ctypes.string_at(pointer.value or b"").decode()
        library().hidet_text_free(pointer)
        return text


class Owned:
    """What belongs to a context, and to `parents`, which outlive it."""

    def __init__(
        self, context: Context, pointer: int, destroy: str, *parents: object
    ):
        self.context = context
        self.pointer = pointer
        self.finalize = weakref.finalize(
            self, Owned.end, context, pointer, destroy, parents
        )

    @staticmethod
    def end(
        context: Context, pointer: int, destroy: str, _parents: object
    ) -> None:
        del context  # Which is there as long.
        getattr(library(), destroy)(pointer)


class Module(Owned):
    """A program in the language of docs/IR.md."""

    def __init__(self, context: Context, pointer: int) -> None:
        super().__init__(context, pointer, "hidet_module_destroy")

    @classmethod
    def parse(cls, text: str, name: str = "<text>") -> Module:
        """`name` is for messages, and says beneath which folder files lie."""
        context = Context()
        data = text.encode()
        return cls(
            context,
            context.make(
                "hidet_module_parse",
                context.pointer,
                name.encode(),
                data,
                len(data),
            ),
        )

    @classmethod
    def load_onnx(cls, path: str) -> Module:
        context = Context()
        return cls(
            context,
            context.make("hidet_module_import", context.pointer, path.encode()),
        )

    def run_pass(self, name: str, options: str | None = None) -> Module:
        """Runs a pass (docs/PASSES.md); after an error the module is gone."""
        self.context.call(
            "hidet_module_run_pass",
            self.pointer,
            name.encode(),
            options.encode() if options is not None else None,
        )
        return self

    def emit(self, format: str, target: str, kernel: str | None = None) -> str:
        """ "ptx" or "llvm" of a kernel, or of all, for a target."""
        return self.context.text(
            "hidet_module_emit",
            self.pointer,
            format.encode(),
            target.encode(),
            kernel.encode() if kernel else None,
        )

    def __str__(self) -> str:
        return self.context.text("hidet_module_print", self.pointer)


class Device(Owned):
    """ "sim", "cuda", "cuda:N", or "auto": a GPU where there is one.

    What is made for a GPU is kept in the folder that `hidet-run` has for it
    ($HIDET_CACHE_DIR, ~/.cache/hidet), so that another process need not make it
    again; for the simulator, whose code is soon made and large, only where
    HIDET_CACHE_DIR names a folder. HIDET_CACHE_SIZE bounds it (4G); with 0
    nothing is kept."""

    def __init__(self, context: Context, name: str) -> None:
        pointer = context.make(
            "hidet_device_open", context.pointer, name.encode()
        )
        super().__init__(context, pointer, "hidet_device_close")
        self.name = name
        self.kind = library().hidet_device_kind(pointer).decode()
        if self.kind == "cuda" or os.environ.get("HIDET_CACHE_DIR"):
            context.call("hidet_device_set_cache", pointer, None, 0)


class Frozen(Owned):
    """A graph of a module, which changes no more, for sessions."""

    def __init__(self, module: Module, graph: str | None = None):
        context = module.context
        pointer = context.make(
            "hidet_model_create",
            module.pointer,
            graph.encode() if graph else None,
        )
        super().__init__(context, pointer, "hidet_model_destroy", module)
        self.weights: list[Buffer] = []
        self.inputs = self.signatures("input")
        self.outputs = self.signatures("output")

    def signatures(self, which: str) -> tuple[Signature, ...]:
        count = getattr(library(), f"hidet_model_num_{which}s")(self.pointer)
        found = []
        for i in range(count):
            value = Value()
            getattr(library(), f"hidet_model_{which}")(self.pointer, i, value)
            shape = None
            if value.rank >= 0:
                shape = tuple(
                    s if s >= 0 else None for s in value.shape[: value.rank]
                )
            kind = value.type.decode() if value.type else None
            found.append(Signature(value.name.decode(), kind, shape))
        return tuple(found)

    def set_weight(self, name: str, buffer: Buffer) -> None:
        """A constant's elements are these, which stay where they are."""
        size = item_size(buffer.type) * math.prod(buffer.shape)
        self.context.call(
            "hidet_model_set_weight",
            self.pointer,
            name.encode(),
            buffer.address,
            size,
        )
        self.weights.append(buffer)

    def set_precision(self, name: str) -> None:
        self.context.call(
            "hidet_model_set_precision", self.pointer, name.encode()
        )

    def set_buckets(self, size: str, bounds: Sequence[int] = ()) -> None:
        """One executable for all values up to each bound, or to each power of
        two where there are none."""
        self.context.call(
            "hidet_model_set_buckets",
            self.pointer,
            size.encode(),
            (ctypes.c_int64 * len(bounds))(*bounds),
            len(bounds),
        )

    def set_inout(self, input: str, output: str) -> None:
        """The two are one tensor, which sessions have from run to run."""
        self.context.call(
            "hidet_model_set_inout",
            self.pointer,
            input.encode(),
            output.encode(),
        )

    def set_untrusted(self) -> None:
        self.context.call("hidet_model_set_untrusted", self.pointer)

    def set_explained(self) -> None:
        self.context.call("hidet_model_set_explained", self.pointer)

    def save(self, device: Device, path: str) -> None:
        self.context.call(
            "hidet_model_save", self.pointer, device.pointer, path.encode()
        )

    def num_compiled(self, device: Device) -> int:
        return library().hidet_model_num_compiled(self.pointer, device.pointer)

    def set_measured(self, path: str) -> None:
        self.context.call(
            "hidet_model_set_measured", self.pointer, path.encode()
        )


class Session(Owned):
    """A graph that runs on arrays, one run after the other: those of several
    sessions of a model are side by side."""

    def __init__(self, model: Frozen, device: Device | None) -> None:
        context = model.context
        pointer = context.make(
            "hidet_session_create",
            model.pointer,
            device.pointer if device else None,
        )
        super().__init__(
            context, pointer, "hidet_session_destroy", model, device
        )
        self.lock = threading.Lock()

    def run(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer | None]
    ) -> list[Buffer]:
        """Runs it. A result goes into the buffer given for it, which must have
        its type and size, or (None) into memory of its own. The results come
        back as buffers."""
        given = (Array * len(inputs))(*map(as_array, inputs))
        made = (Array * len(outputs))()
        with self.lock:
            self.context.call(
                "hidet_session_run",
                self.pointer,
                given,
                len(given),
                made,
                len(made),
            )
            return [
                deliver(array, place) for array, place in zip(made, outputs)
            ]

    def read(self, output: int) -> Buffer:
        """What the last run left of an output that is one with an input."""
        array = Array()
        with self.lock:
            self.context.call(
                "hidet_session_read", self.pointer, output, array
            )
            return deliver(array, None)

    def prepare(self, inputs: ctypes.Array, outputs: ctypes.Array) -> str:
        """Compiles for these types and shapes; outputs take those of the
        results. Returns what it was told."""
        with self.lock:
            self.context.call(
                "hidet_session_prepare",
                self.pointer,
                inputs,
                len(inputs),
                outputs,
                len(outputs),
            )
            return library().hidet_messages().decode(errors="replace")

    def enqueuer(
        self, inputs: ctypes.Array, outputs: ctypes.Array
    ) -> Callable[[int | None], None]:
        """What enqueues a run on arrays in the device's memory, on a stream of
        CUDA's: as little of Python as that takes. It is called with the
        session's lock, under which the arrays' addresses may be changed, too."""
        function = library().hidet_session_enqueue
        numbers = len(inputs), len(outputs)
        arguments = self.pointer, inputs, numbers[0], outputs, numbers[1]

        def enqueue(stream: int | None) -> None:
            status = function(*arguments, stream)
            if status:
                self.context.fail(status, "hidet_session_enqueue")

        return enqueue


def as_array(buffer: Buffer) -> Array:
    if len(buffer.shape) > MAX_RANK:
        raise UsageError(f"{len(buffer.shape)} axes, more than {MAX_RANK}")
    shape = (ctypes.c_int64 * MAX_RANK)(*buffer.shape)
    return Array(buffer.type.encode(), len(buffer.shape), shape, buffer.address)


def deliver(array: Array, place: Buffer | None) -> Buffer:
    """Copies what belongs to the session to its place."""
    kind, shape = array.type.decode(), tuple(array.shape[: array.rank])
    size = item_size(kind)
    for extent in shape:
        size *= extent
    if place is None and size and not array.data:
        return Buffer(kind, shape, 0)  # The session has it.
    if place is None:
        memory = ctypes.create_string_buffer(size)
        place = Buffer(kind, shape, ctypes.addressof(memory), memory)
    elif (place.type, place.shape) != (kind, shape):
        raise UsageError(
            f"the result is {kind}{list(shape)}, its place {place.type}{list(place.shape)}"
        )
    if size:
        ctypes.memmove(place.address, array.data, size)
    return place


def item_size(kind: str) -> int:
    """Bytes of an element; one below a byte takes one."""
    digits = "".join(c for c in kind.split("e")[0] if c.isdigit())
    bits = {"bool": 8, "tf32": 32}.get(kind) or int(digits)
    return max(bits // 8, 1)


class Tensor(Owned):
    """A buffer of the device's memory as a tensor; on "sim" of the host's."""

    def __init__(self, device: Device, buffer: Buffer) -> None:
        context = device.context
        shape = (ctypes.c_int64 * MAX_RANK)(*buffer.shape)
        pointer = context.make(
            "hidet_tensor_wrap",
            device.pointer,
            buffer.type.encode(),
            shape,
            len(buffer.shape),
            buffer.address,
        )
        super().__init__(context, pointer, "hidet_tensor_destroy", device)
        self.buffer = buffer


class Program(Owned):
    """A kernel or a plan, compiled for the sizes of its first arguments, which
    are buffers in the device's memory and numbers."""

    def __init__(
        self,
        module: Module,
        device: Device,
        entry: str | None,
        arguments: Sequence,
    ):
        context = module.context
        given, kept = pack_arguments(device, arguments)
        pointer = context.make(
            "hidet_program_create",
            device.pointer,
            module.pointer,
            entry.encode() if entry else None,
            given,
            len(given),
        )
        super().__init__(
            context, pointer, "hidet_program_destroy", module, device
        )
        self.device = device
        del kept

    def run(self, arguments: Sequence) -> None:
        """Runs it, and returns when that is done."""
        given, kept = pack_arguments(self.device, arguments)
        self.context.call("hidet_program_run", self.pointer, given, len(given))
        del kept


def pack_arguments(
    device: Device, arguments: Sequence
) -> tuple[ctypes.Array, list]:
    tensors = [
        Tensor(device, a) if isinstance(a, Buffer) else None for a in arguments
    ]
    packed = (Argument * len(arguments))()
    for slot, tensor, value in zip(packed, tensors, arguments):
        if tensor:
            slot.tensor = tensor.pointer
        else:
            slot.integer = value if isinstance(value, int) else 0
            slot.real = value
    return packed, tensors
