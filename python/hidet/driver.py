# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of scripts and of texts, called with tensors: numpy's and PyTorch's
of the CPU on the simulator, PyTorch's of a GPU there."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

import numpy

from hidet.errors import HidetError, UsageError
from hidet.lang.words import ScalarType, TensorType
from hidet.model import as_buffer
from hidet.runtime import Buffer, Device, Module, Program, item_size
from hidet.scripting.module import IRModule
from hidet.scripting.translate import Parameter, Translated


ALIGNMENT = 16


class CompiledFunction:
    """A kernel. Called with a tensor or a number for each parameter; compiled
    for each set of sizes and numbers at the first call with it. Tensors that it
    writes are row-major, of the parameter's type, and overlap no other one."""

    def __init__(self, ir_module: IRModule, kernel: Translated) -> None:
        self.ir_module = ir_module
        self.kernel = kernel
        self.name = kernel.name
        self.devices: dict[str, tuple[Module, Device]] = {}
        self.programs: dict[tuple, Program] = {}
        self.lock = threading.Lock()

    def __call__(self, *arguments: object) -> None:
        given = self.bind(arguments)
        where = place_of(arguments)
        values = [given[size] for size in self.kernel.sizes]
        values += [given[p.name] for p in self.kernel.parameters]
        key = (
            where,
            *(v.shape if isinstance(v, Buffer) else v for v in values),
        )
        finish(where)
        with self.lock:
            try:
                self.program(key, where, values).run(values)
            except HidetError as error:
                raise self.ir_module.place(error) from None

    def program(self, key: tuple, where: str, values: Sequence) -> Program:
        if key not in self.programs:
            if where not in self.devices:
                module = self.ir_module.parse()
                self.devices[where] = module, Device(module.context, where)
            module, device = self.devices[where]
            self.programs[key] = Program(module, device, self.name, values)
        return self.programs[key]

    def bind(self, arguments: Sequence) -> dict[str, object]:
        """Numbers and buffers by the names of the parameters, sizes too."""
        parameters = self.kernel.parameters
        if len(arguments) != len(parameters):
            names = ", ".join(p.name for p in parameters)
            raise UsageError(
                f"{self.name}({names}) is given {len(arguments)} arguments"
            )
        given: dict[str, object] = {}
        for parameter, value in zip(parameters, arguments):
            if isinstance(parameter.type, ScalarType):
                given[parameter.name] = scalar(parameter, value)
        for parameter, value in zip(parameters, arguments):
            if isinstance(parameter.type, TensorType):
                given[parameter.name] = buffer_of(parameter, value, given)
        refuse_overlap(parameters, given)
        return given

    def __repr__(self) -> str:
        return f"<hidet kernel {self.kernel.lines[0][0].rstrip(' {')}>"


def scalar(parameter: Parameter, value: object) -> object:
    if isinstance(value, (int, float, numpy.integer, numpy.floating)):
        if parameter.type.is_float:
            return float(value)
        # What has more bits is no argument; the library asks the rest.
        if value == value // 1 and -(2**63) <= value < 2**63:
            return int(value)
    raise UsageError(f"'{parameter.name}' is {parameter.type}, not {value!r}")


def buffer_of(parameter: Parameter, value: object, given: dict) -> Buffer:
    """The tensor's memory; of one that is only read, a row-major copy where it
    does not lie so."""
    name, kind = parameter.name, parameter.type
    buffer = raw_buffer(parameter, value)
    if buffer.type != kind.element.name:
        raise UsageError(f"'{name}' is {kind}, not of {buffer.type}")
    if len(buffer.shape) != len(kind.shape):
        raise UsageError(f"'{name}' is {kind}, not of {len(buffer.shape)} axes")
    for size, have in zip(kind.shape, buffer.shape):
        want = given.setdefault(size, have) if isinstance(size, str) else size
        if want != have:
            shape = list(buffer.shape)
            raise UsageError(
                f"'{name}' is {kind}, not {shape}; {size} is {want}"
            )
    return buffer


def raw_buffer(parameter: Parameter, value: object) -> Buffer:
    name = parameter.name
    if isinstance(value, numpy.ndarray):
        if parameter.written and not value.flags.writeable:
            raise UsageError(f"'{name}' is written, and the array is not to be")
        lies = value.flags.c_contiguous and not value.ctypes.data % ALIGNMENT
        if lies or not parameter.written:
            return as_buffer(value if lies else aligned(value))
    elif hasattr(value, "data_ptr"):
        from hidet.torch.engine import TYPES, as_buffer as tensor_buffer, lie

        if value.dtype not in TYPES:
            raise UsageError(f"'{name}': no element type for {value.dtype}")
        lying = lie(value.detach())
        if lying.data_ptr() == value.data_ptr() or not parameter.written:
            return tensor_buffer(lying)
    else:
        raise UsageError(f"'{name}' is a tensor, not {type(value).__name__}")
    raise UsageError(
        f"'{name}' is written, and is not row-major or does not begin at a "
        f"multiple of {ALIGNMENT} bytes"
    )


def aligned(value: numpy.ndarray) -> numpy.ndarray:
    """A row-major copy that begins at a multiple of what kernels count on."""
    room = numpy.empty(value.nbytes + ALIGNMENT, numpy.uint8)
    first = -room.ctypes.data % ALIGNMENT
    place = room[first : first + value.nbytes].view(value.dtype)
    place = place.reshape(value.shape)
    place[...] = value
    return place


def refuse_overlap(parameters: Sequence[Parameter], given: dict) -> None:
    """The language's rule: what is written overlaps nothing else."""
    spans = []
    for parameter in parameters:
        buffer = given[parameter.name]
        if isinstance(buffer, Buffer):
            size = item_size(buffer.type) * math.prod(buffer.shape)
            spans.append((parameter, buffer.address, buffer.address + size))
    for i, (a, first, last) in enumerate(spans):
        for b, start, end in spans[i + 1 :]:
            if (a.written or b.written) and first < end and start < last:
                raise UsageError(
                    f"'{a.name}' and '{b.name}' overlap, and one is written"
                )


def place_of(arguments: Sequence) -> str:
    """The device that all tensors are on."""
    places = set()
    for value in arguments:
        device = getattr(value, "device", None)
        if hasattr(device, "type"):
            places.add(
                "sim" if device.type == "cpu" else f"cuda:{device.index or 0}"
            )
        elif isinstance(value, numpy.ndarray):
            places.add("sim")
    if len(places) > 1:
        raise UsageError(f"tensors on {' and '.join(sorted(places))}")
    return places.pop() if places else "auto"


def finish(where: str) -> None:
    """Waits for what PyTorch still does on a GPU: a kernel runs on a stream of
    its own, and has ended when its call returns."""
    if where.startswith("cuda"):
        import torch

        torch.cuda.synchronize(where)


class CompiledModule:
    """The kernels of a module by their names; called, it is the last one."""

    def __init__(self, ir_module: IRModule) -> None:
        self.functions = {
            k.source.tree.name: CompiledFunction(ir_module, k)
            for k in ir_module.kernels
        }
        if not self.functions:
            raise UsageError("no kernel: attr.cuda_grid_dim says that one is")

    def __call__(self, *arguments: object) -> None:
        list(self.functions.values())[-1](*arguments)

    def __getitem__(self, name: str) -> CompiledFunction:
        return self.functions[name]

    def __getattr__(self, name: str) -> CompiledFunction:
        try:
            return self.__dict__["functions"][name]
        except KeyError:
            raise AttributeError(name) from None


def build_ir_module(ir_module: IRModule) -> CompiledModule:
    """The module's kernels, to be called. ScriptError where it is wrong."""
    ir_module.parse()
    return CompiledModule(ir_module)


__all__ = ["CompiledFunction", "CompiledModule", "build_ir_module"]
