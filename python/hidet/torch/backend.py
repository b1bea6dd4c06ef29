# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.compile(model, backend="hidet").

Dynamo gives a graph; aot_autograd makes of it one of ATen's operators without
mutation; what of it the table has is taken, in parts as large as they can be,
and the rest stays PyTorch's. Graphs of training are PyTorch's as a whole.
"""

from __future__ import annotations

import operator
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

import torch
from torch import fx
from torch._functorch._aot_autograd.schemas import OutputType
from torch._functorch.aot_autograd import aot_module_simplified
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
)

from hidet.torch.attention import keep_attention
from hidet.torch.config import Options, settings
from hidet.torch.divide import (
    Alone,
    Version,
    divide,
    divide_whole,
    is_number,
    said,
    say,
    watchers,
)
from hidet.torch.engine import Models
from hidet.torch.pairs import use_pairs
from hidet.torch.part import Later
from hidet.torch.sizes import Fakes, as_known, numbers_of, sizes_of_value
from hidet.torch.table import decompositions
from hidet.torch.weights import bind_weights

__all__ = ["Compiled", "divide", "hidet_backend", "said"]
DEPENDENT = (DataDependentOutputException, DynamicOutputShapeException)
ELEMENT = torch.ops.aten._local_scalar_dense.default


def hidet_backend(
    module: fx.GraphModule,
    example_inputs: Sequence[torch.Tensor],
    mode: str | None = None,
    options: dict | None = None,
) -> Callable:
    """What torch.compile calls."""
    chosen = settings(mode, options)
    made: list[Compiled] = []

    def inference(graph: fx.GraphModule, inputs: Sequence) -> Callable:
        made.append(Compiled(graph, static_inputs(), chosen))
        return boxed(made[-1])

    def training(graph: fx.GraphModule, inputs: Sequence) -> Callable:
        say("a graph of training runs in PyTorch; use torch.no_grad()")
        return boxed(graph)

    keep_attention(module, list(example_inputs))
    call = aot_module_simplified(
        module,
        example_inputs,
        fw_compiler=training,
        bw_compiler=training,
        inference_compiler=inference,
        decompositions=decompositions(),
        keep_inference_input_mutations=True,
    )
    return bind_weights(module, example_inputs, call, made[0]) if made else call


def boxed(function: Callable) -> Callable:
    """Takes the list of the arguments, and empties it."""

    def call(arguments: list) -> object:
        given = list(arguments)
        arguments.clear()
        return function(*given)

    call._boxed_call = True
    return call


def static_inputs() -> list[int]:
    """Which inputs are parameters and buffers of the model."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context else None
    return list(metadata.static_input_indices) if metadata else []


def gives_as_it_is() -> bool:
    """Whether the model's results are the graph's, of which aot_autograd has to
    make nothing, as views of an input."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context else None
    return (
        metadata is not None
        and all(
            result.output_type is OutputType.non_alias
            for result in metadata.output_info
        )
        and not any(
            given.mutates_data or given.mutates_metadata
            for given in metadata.input_info
        )
    )


class Compiled:
    """A graph of ATen operators, made ready for each set of sizes that comes,
    by one thread while others wait. Parts whose text is the same for several
    sets have a model together, with one copy of the weights. Of many sets those
    that came last are kept: so many, and as many as hold so much of weights in
    models of their own, but two in any case."""

    MOST_SIZES = 64
    MOST_BYTES = 8 << 30

    def __init__(
        self, graph: fx.GraphModule, static: list[int], options: Options
    ) -> None:
        use_pairs(graph)
        self.graph = graph
        self.static = static
        self.options = options
        self.models = Models()
        self.is_plain = gives_as_it_is()
        inputs = [n for n in graph.graph.nodes if n.op == "placeholder"]
        self.symbolic = any(map(asks_sizes, graph.graph.nodes))
        fakes = [n.meta.get("val") for n in inputs]
        self.sized = [
            i
            for i, fake in enumerate(fakes)
            if not isinstance(fake, torch.Tensor) or has_symbols(fake)
        ]
        self.only: Version | None = None  # Where no size is a symbol.
        self.versions: OrderedDict[object, Version] = OrderedDict()
        self.order = threading.Lock()  # Of the versions: the last one is last.
        self.lock = threading.Lock()  # Of the graph, which dividing changes.

    def __call__(self, *arguments: object) -> object:
        if not self.symbolic:
            version = self.only or self.make_only()
        else:
            key = self.sizes_of(arguments)
            version = self.find(key) or self.make_ready(key, arguments)
        for watch in watchers:
            watch(version)
        return version.call(*arguments)

    def quick(self, rest: Sequence[int]) -> Callable | None:
        """What Bound asks for."""
        alone = self.only.call if self.only else None
        if not self.is_plain or not isinstance(alone, Alone):
            return None
        return alone.quick(rest)

    def sizes_of(self, arguments: Sequence) -> tuple:
        """What is known by symbols of what a call is given."""
        return tuple(
            (a.shape, a.stride()) if isinstance(a, torch.Tensor) else a
            for a in map(arguments.__getitem__, self.sized)
        )

    def make_only(self) -> Version:
        with self.lock:
            if self.only is None:
                self.only = divide(
                    self.graph, self.static, self.options, self.models
                )
            return self.only

    def find(self, key: object) -> Version | None:
        with self.order:
            if key in self.versions:
                self.versions.move_to_end(key)
            return self.versions.get(key)

    def make_ready(self, key: object, arguments: Sequence) -> Version:
        with self.lock:
            version = self.find(key)
            if version is None:
                version = self.make(arguments)
                with self.order:
                    self.versions[key] = version
                    if self.are_many(arguments):
                        self.versions.popitem(last=False)
            return version

    def make(self, arguments: Sequence) -> Version:
        graph = with_sizes(self.graph, arguments)
        give_views(graph.graph)
        rest = self.static, self.options, self.models
        return divide_whole(graph, *rest) or divide(graph.module(), *rest)

    def are_many(self, arguments: Sequence) -> bool:
        weights = sum(arguments[i].nbytes for i in self.static)
        held = weights * len(self.models.made)
        return len(self.versions) > self.MOST_SIZES or (
            len(self.versions) > 2 and held > self.MOST_BYTES
        )


def asks_sizes(node: fx.Node) -> bool:
    """Whether what a node does depends on sizes that are symbols. Numbers that
    other numbers alone are made of (the tokens that a cache has seen) are as
    Python computes them, and nothing is made for each."""
    value = node.meta.get("val")
    if node.op == "output" or is_number(value):
        return False
    return has_symbols(value) or any(
        has_symbols(n.meta.get("val")) for n in node.all_input_nodes
    )


def has_symbols(value: object) -> bool:
    if isinstance(value, torch.Tensor):
        return not all(
            isinstance(n, int) for n in (*value.shape, *value.stride())
        )
    if isinstance(value, (list, tuple)):
        return any(map(has_symbols, value))
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


class Sized(fx.Interpreter):
    """Puts what a graph does into another one, where sizes are numbers: those
    that PyTorch has said by symbols, or else what the node gives for fake
    tensors. Numbers that are a tensor's elements, and what is computed of them,
    are known in a run alone, as are sizes that depend on data. Nothing that a
    thread beside it sees is changed, as PyTorch's tracers would."""

    def __init__(self, graph: fx.GraphModule, numbers: dict[str, int]) -> None:
        super().__init__(graph)
        self.made = fx.Graph()
        self.numbers = numbers
        self.fakes = Fakes(numbers)
        self.copies: dict[fx.Node, object] = {}
        self.unknown: set[fx.Node] = set()  # Numbers, or nothing.

    def run_node(self, node: fx.Node) -> object:
        symbolic = node.meta.get("val")
        asks = not self.unknown.isdisjoint(node.all_input_nodes)
        if (
            node.op == "call_function"
            and (asks or node.target is ELEMENT)
            and (symbolic is None or is_number(symbolic))
        ):
            self.copies[node] = self.copy_of(node, symbolic)
            self.unknown.add(node)
            return None
        value = None
        if node.op == "call_function":
            value = self.fakes.value(symbolic)
        if value is None:
            if asks and node.op == "call_function":
                return self.leave(node)
            try:
                value = super().run_node(node)
            except DEPENDENT:
                return self.leave(node)
        number = isinstance(value, (int, float, bool))
        if isinstance(symbolic, torch.SymInt):
            value = as_known(symbolic, value, self.numbers)
        if number and node.op != "placeholder":
            self.copies[node] = value
            return value
        copy = self.copy_of(node, value)
        copy.meta["sizes"] = sizes_of_value(symbolic, value, self.numbers)
        self.copies[node] = value if number else copy
        return value

    def leave(self, node: fx.Node) -> None:
        """Its results' sizes, and what reads them, are PyTorch's."""
        copy = self.copy_of(node, node.meta.get("val"))
        copy.meta["is_given"] = "its sizes depend on data"
        self.copies[node] = copy
        self.unknown.add(node)

    def copy_of(self, node: fx.Node, value: object) -> fx.Node:
        copy = self.made.node_copy(node, self.copies.__getitem__)
        copy.meta["val"] = value
        return copy


def with_sizes(graph: fx.GraphModule, arguments: Sequence) -> Later:
    """The graph for the sizes of these."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [
        mode.from_tensor(a, static_shapes=True)
        if isinstance(a, torch.Tensor)
        else a
        for a in arguments
    ]
    inputs = [n for n in graph.graph.nodes if n.op == "placeholder"]
    symbolic = [n.meta.get("val") for n in inputs]
    sized = Sized(graph, numbers_of(symbolic, arguments))
    with mode, torch._guards.tracing(None):
        sized.run(*fakes)
    return Later(graph, sized.made)


def give_views(graph: fx.Graph) -> None:
    """Results that are views of inputs are PyTorch's, in nodes of their own:
    aot_autograd asks of such a result where in the input it begins."""
    copies: dict[fx.Node, fx.Node] = {}

    def view(node: fx.Node) -> fx.Node | None:
        if node.op == "placeholder" or node in copies:
            return copies.get(node, node)
        is_item = node.target is operator.getitem
        if not is_item and not getattr(node.target, "is_view", False):
            return None
        base = view(node.args[0])
        if base is None:
            return None
        with graph.inserting_after(node):
            copy = graph.node_copy(
                node, lambda n: base if n is node.args[0] else n
            )
        copy.meta["is_given"] = True
        copies[node] = copy
        return copy

    output = graph.output_node()
    output.args = (
        fx.map_arg(output.args[0], lambda result: view(result) or result),
    )
