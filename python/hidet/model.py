# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models: numpy arrays in, numpy arrays out, on the simulator or a GPU."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping, Sequence

import numpy

from hidet.errors import UsageError
from hidet.runtime import Buffer, Device, Frozen, Module, Session, Signature

NUMPY = {
    "f64": numpy.float64,
    "f32": numpy.float32,
    "f16": numpy.float16,
    "i64": numpy.int64,
    "i32": numpy.int32,
    "i16": numpy.int16,
    "i8": numpy.int8,
    "u64": numpy.uint64,
    "u32": numpy.uint32,
    "u16": numpy.uint16,
    "u8": numpy.uint8,
    "bool": numpy.bool_,
}
TYPES = {numpy.dtype(dtype): name for name, dtype in NUMPY.items()}


def type_of(dtype: numpy.dtype) -> str:
    """The language's name of an element type, which may be one of ml_dtypes."""
    if dtype in TYPES:
        return TYPES[dtype]
    if dtype.name == "bfloat16":
        return "bf16"
    raise UsageError(f"no element type for numpy's {dtype}")


def dtype_of(name: str) -> numpy.dtype:
    if name in NUMPY:
        return numpy.dtype(NUMPY[name])
    if name == "bf16":
        import ml_dtypes

        return numpy.dtype(ml_dtypes.bfloat16)
    raise UsageError(f"numpy has no element type for {name}")


def as_buffer(array: numpy.ndarray) -> Buffer:
    """The array where it is, or a row-major copy of it."""
    whole = numpy.ascontiguousarray(array).reshape(array.shape)
    return Buffer(type_of(whole.dtype), whole.shape, whole.ctypes.data, whole)


def as_array(buffer: Buffer) -> numpy.ndarray:
    array = numpy.frombuffer(buffer.owner, dtype_of(buffer.type))
    return array.reshape(buffer.shape)


class Model:
    """A graph for a device. Called with arrays for its inputs, in order or by
    name, it gives its result, or a tuple of them. The first call with other
    shapes compiles. May be called by any thread; calls follow one another.

    buckets: for names of sizes the bounds up to which one compilation serves
    all values, () for powers of two. inouts: for names of inputs the outputs
    that they are one with, as the past and the present of a cache are: it stays
    on the device. Such an input may be left out, and is then what the last call
    left; such outputs are not among the results, and read() has them."""

    def __init__(
        self,
        module: Module,
        device: str = "auto",
        graph: str | None = None,
        trusted: bool = True,
        buckets: Mapping[str, Sequence[int]] | None = None,
        inouts: Mapping[str, str] | None = None,
    ):
        opened = None if device == "ref" else Device(module.context, device)
        self.module = module
        self.device = opened.kind if opened else "ref"
        self.opened = opened
        self.frozen = Frozen(module, graph)
        if not trusted:
            self.frozen.set_untrusted()
        for size, bounds in (buckets or {}).items():
            self.frozen.set_buckets(size, bounds)
        self.kept: dict[str, int] = {}  # Inputs to numbers of outputs.
        for taken, given in (inouts or {}).items():
            self.frozen.set_inout(taken, given)
            self.kept[taken] = self.number_of(given)
        self.left: dict[str, Buffer] = {}
        self.session = Session(self.frozen, opened)

    def save(self, path: str | os.PathLike) -> None:
        """Keeps the model, its weights and the code for the shapes that it was
        called with as one file, `.hidet`, for load()."""
        if not self.opened:
            raise UsageError("on ref nothing is compiled")
        self.frozen.save(self.opened, os.fspath(path))

    @property
    def num_compiled(self) -> int:
        """How often it was compiled so far."""
        return self.frozen.num_compiled(self.opened) if self.opened else 0

    @property
    def inputs(self) -> tuple[Signature, ...]:
        return self.frozen.inputs

    @property
    def outputs(self) -> tuple[Signature, ...]:
        return self.frozen.outputs

    def __call__(
        self, *arrays, **named
    ) -> numpy.ndarray | tuple[numpy.ndarray, ...]:
        buffers = [
            array if isinstance(array, Buffer) else as_buffer(array)
            for array in self.bind(arrays, named)
        ]
        results = self.session.run(buffers, [None] * len(self.outputs))
        self.left = {taken: results[i] for taken, i in self.kept.items()}
        made = tuple(
            as_array(result)
            for i, result in enumerate(results)
            if i not in self.kept.values()
        )
        return made[0] if len(made) == 1 else made

    def read(self, name: str) -> numpy.ndarray:
        """What the last call left of an output that is one with an input."""
        return as_array(self.session.read(self.number_of(name)))

    def number_of(self, name: str) -> int:
        """Of the first output of that name. UsageError: there is none."""
        names = [value.name for value in self.outputs]
        if name not in names:
            raise UsageError(f"no output '{name}'; there are {names}")
        return names.index(name)

    def bind(
        self, arrays: tuple, named: dict
    ) -> list[numpy.ndarray | Buffer]:
        """An array for each input; a Python number is one of the input's type.
        What the last call left is a buffer without an address."""
        names = [value.name for value in self.inputs]
        given = dict(zip(names, arrays))
        if len(arrays) > len(names):
            raise UsageError(f"{len(arrays)} arrays for {len(names)} inputs")
        for name, array in named.items():
            if name not in names:
                raise UsageError(
                    f"no input '{name}'; there are {', '.join(names)}"
                )
            if name in given:
                raise UsageError(f"input '{name}' is given twice")
            given[name] = array
        bound = []
        for value in self.inputs:
            if value.name not in given and value.name in self.left:
                bound.append(self.left[value.name])
                continue
            if value.name not in given:
                raise UsageError(f"input '{value.name}' is not given")
            array = given[value.name]
            if not isinstance(array, numpy.ndarray):
                array = numpy.asarray(
                    array, dtype_of(value.type) if value.type else None
                )
            bound.append(array)
        return bound

    def __repr__(self) -> str:
        def text(value: Signature) -> str:
            shape = value.shape
            sizes = (
                ".."
                if shape is None
                else ", ".join("?" if s is None else str(s) for s in shape)
            )
            return f"{value.name}: {value.type or '?'}[{sizes}]"

        inputs = ", ".join(map(text, self.inputs))
        outputs = ", ".join(map(text, self.outputs))
        return f"<hidet.Model ({inputs}) -> {outputs} on {self.device}>"


def from_onnx(
    path: str | os.PathLike,
    device: str = "auto",
    buckets: Mapping[str, Sequence[int]] | None = None,
    inouts: Mapping[str, str] | None = None,
) -> Model:
    """A model from an ONNX file, which stays mapped while the model lives.
    device: "auto" (a GPU where there is one, else the simulator), "cuda",
    "cuda:N", "sim", or "ref", the evaluator that compiles nothing. buckets,
    inouts: as Model has them."""
    module = Module.load_onnx(os.fspath(path))
    return Model(module, device, buckets=buckets, inouts=inouts)


def compile_text(
    text: str,
    device: str = "auto",
    graph: str | None = None,
    name: str = "<text>",
    buckets: Mapping[str, Sequence[int]] | None = None,
    inouts: Mapping[str, str] | None = None,
) -> Model:
    """A model from a graph of the language (docs/IR.md): the one of that name,
    or the last one. Files that constants name lie beneath the folder of `name`.
    device, buckets, inouts: as above."""
    module = Module.parse(text, name)
    return Model(module, device, graph, buckets=buckets, inouts=inouts)


def load(
    path: str | os.PathLike,
    device: str = "auto",
    trusted: bool = True,
    buckets: Mapping[str, Sequence[int]] | None = None,
    inouts: Mapping[str, str] | None = None,
) -> Model:
    """A model from a file: ONNX, `.hir`, or what Model.save() wrote, whose code
    is run as it is, unless it is not trusted: then it is made anew. What it has
    for buckets is found by the same buckets."""
    place = pathlib.Path(path)
    given = {"buckets": buckets, "inouts": inouts}
    if place.suffix == ".hir":
        text = place.read_text()
        return compile_text(text, device, name=str(place), **given)
    module = Module.load_onnx(os.fspath(place))
    return Model(module, device, trusted=trusted, **given)
