# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of torch.export: hidet.compile(program) is called as the program is,
and saved as one file, from which hidet.load() starts without PyTorch.

    program = torch.export.export(model.eval(), (x,))
    model = hidet.compile(program)
    y = model(x)
    model.save("m.hidet")

A call computes as torch.compile's does: what the table has not runs in PyTorch
between our parts. A file has no PyTorch, so all of the program has to be ours.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence

import torch
from torch import fx
from torch.export._tree_utils import reorder_kwargs
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as trees

from hidet.errors import UnsupportedError, UsageError
from hidet.torch.artifact import write_file
from hidet.torch.attention import keep_attention
from hidet.torch.backend import Compiled
from hidet.torch.config import Options, settings
from hidet.torch.sizes import from_symbol, numbers_of
from hidet.torch.table import decompositions

MUTATIONS = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)
# Says of types and devices what is looked at when a program is called.
METADATA = torch.ops.aten._assert_tensor_metadata.default
ATTENTION = torch.ops.aten.scaled_dot_product_attention.default


def compile(
    program: torch.export.ExportedProgram,
    mode: str | None = None,
    options: dict | None = None,
) -> ExportedModel:
    """The program, compiled for the device that its tensors are on, for each
    set of sizes that comes. mode, options: as torch.compile's. UnsupportedError:
    it takes or gives what is no tensor and no constant."""
    if not isinstance(program, torch.export.ExportedProgram):
        raise UsageError(
            f"a program of torch.export.export(), not {type(program).__name__}"
        )
    table = {op: w for op, w in decompositions().items() if op is not ATTENTION}
    with torch.no_grad():
        program = program.run_decompositions(table)
        keep_attention(program.graph_module, [])
    return ExportedModel(program, settings(mode, options))


class ExportedModel:
    """Called with what the program was exported for, in any of its sizes."""

    def __init__(
        self, program: torch.export.ExportedProgram, options: Options
    ) -> None:
        self.program = program
        self.options = options
        self.sources = program.graph_signature.input_specs
        graph = program.graph_module.graph
        for node in graph.find_nodes(op="call_function", target=METADATA):
            graph.erase_node(node)
        self.placeholders = list(graph.find_nodes(op="placeholder"))
        self.fakes = [node.meta.get("val") for node in self.placeholders]
        self.state = {
            i: state_of(program, spec)
            for i, spec in enumerate(self.sources)
            if spec.kind is not InputKind.USER_INPUT
        }
        self.asked = [i for i in range(len(self.fakes)) if i not in self.state]
        # For each output the input that it is the new value of, by number;
        # None: it is a result.
        self.changes = [
            self.place_of(spec) for spec in program.graph_signature.output_specs
        ]
        self.fixed = [i for i in self.state if i not in self.changes]
        # Which changes the graph, and the program's is asked again.
        module = fx.GraphModule(program.graph_module, copy.deepcopy(graph))
        self.compiled = Compiled(module, self.fixed, options)
        self.seen: dict[tuple, None] = {}  # Shapes that came, in order.

    def place_of(self, spec: object) -> int | None:
        if spec.kind is OutputKind.USER_OUTPUT:
            return None
        for i, source in enumerate(self.sources):
            if spec.kind in MUTATIONS and spec.target in (
                source.target,
                source.arg.name,
            ):
                return i
        raise UnsupportedError(f"an output of the kind {spec.kind.name}")

    def __call__(self, *args: object, **kwargs: object) -> object:
        given = self.bind(args, kwargs)
        results = []
        with torch.no_grad():
            for place, value in zip(self.changes, self.compiled(*given)):
                if place is None:
                    results.append(value)
                else:
                    given[place].copy_(value)
        self.seen.setdefault(shapes_of(given))
        return trees.tree_unflatten(results, self.program.call_spec.out_spec)

    def bind(self, args: tuple, kwargs: dict) -> list:
        """A value for each placeholder. UsageError: the program is not for
        such."""
        form = self.program.call_spec.in_spec
        try:
            kwargs = reorder_kwargs(kwargs, form)
        except ValueError as error:
            raise UsageError(str(error)) from None
        flat, found = trees.tree_flatten((args, kwargs))
        if found != form:
            raise UsageError(f"arguments are {found}, and not {form}")
        values = iter(flat)
        given = [
            self.state[i] if i in self.state else next(values)
            for i in range(len(self.sources))
        ]
        rows = [
            (self.placeholders[i], self.fakes[i], given[i]) for i in self.asked
        ]
        for node, fake, value in rows:
            check_value(node.name, fake, value)
        numbers = numbers_of(
            [fake for _, fake, _ in rows], [value for _, _, value in rows]
        )
        for node, fake, value in rows:
            check_sizes(node.name, fake, value, numbers)
        for name, number in numbers.items():
            bounds = self.range_of(name)
            if bounds is not None and number not in bounds:
                raise UsageError(
                    f"a size {number}, which the program has from "
                    f"{bounds.lower} to {bounds.upper}"
                )
        return given

    def range_of(self, name: str) -> object | None:
        for symbol, bounds in self.program.range_constraints.items():
            if str(symbol) == name:
                return bounds
        return None

    def save(self, path: str | os.PathLike) -> None:
        """Keeps the program, its weights and the code for the sizes that it was
        called with (or that it was exported with) as one file, `.hidet`. Inputs
        and outputs that are no tensors are not in it; what changes in place is
        an input, and its new value an output. UnsupportedError: an operator is
        not ours, or the program is another one for other sizes."""
        shapes = list(self.seen)
        if not shapes:
            if self.program.example_inputs is None:
                raise UsageError("a program without example inputs is called")
            given = self.bind(*self.program.example_inputs)
            shapes = [shapes_of(given)]
        others = self.other_shapes(shapes[0])
        write_file(self, shapes, others, os.fspath(path))

    def other_shapes(self, shapes: tuple) -> list[tuple]:
        """Some that the program is for, too, with no size as it is there."""
        rows = [list(zip(sizes_of(f), s)) for f, s in zip(self.fakes, shapes)]
        numbers = {
            str(size): number
            for row in rows
            for size, number in row
            if isinstance(size, torch.SymInt) and str(size).isidentifier()
        }
        found = []
        for change in (lambda n: n + 1), (lambda n: 2 * n + 3):
            other = {}
            for name, number in numbers.items():
                bounds, changed = self.range_of(name), change(number)
                fits = bounds is None or changed in bounds
                other[name] = changed if fits else number
            sizes = [[from_symbol(s, other) for s, _ in row] for row in rows]
            if other != numbers and not any(None in s for s in sizes):
                found.append(tuple(map(tuple, sizes)))
        return found


def state_of(program: object, spec: object) -> torch.Tensor:
    """A parameter, a buffer or a constant, where the program has it."""
    for held in program.state_dict, program.constants:
        value = held.get(spec.target)
        if isinstance(value, torch.Tensor):
            return value
    raise UnsupportedError(f"an input of the kind {spec.kind.name}")


def sizes_of(value: object) -> tuple:
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()


def shapes_of(given: Sequence) -> tuple:
    return tuple(map(sizes_of, given))


def check_value(name: str, fake: object, value: object) -> None:
    """All but sizes."""
    if not isinstance(fake, torch.Tensor):
        if not isinstance(fake, torch.SymInt) and fake != value:
            raise UsageError(f"'{name}' is {fake!r}, not {value!r}")
        return
    if not isinstance(value, torch.Tensor):
        raise UsageError(f"'{name}' is a tensor, not {type(value).__name__}")
    for what in "dtype", "device", "ndim":
        want, have = getattr(fake, what), getattr(value, what)
        if want != have:
            raise UsageError(f"'{name}': its {what} is {want}, not {have}")


def check_sizes(name: str, fake: object, value: object, numbers: dict) -> None:
    for axis, (size, have) in enumerate(zip(sizes_of(fake), sizes_of(value))):
        want = from_symbol(size, numbers)
        if want is not None and int(want) != have:
            raise UsageError(
                f"'{name}': axis {axis} has {int(want)} elements, not {have}"
            )
