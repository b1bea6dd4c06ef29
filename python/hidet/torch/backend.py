# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.compile(model, backend="hidet").

Dynamo gives a graph; aot_autograd makes of it one of ATen's operators without
mutation; what of it the table has is taken, in parts as large as they can be,
and the rest stays PyTorch's. Graphs of training are PyTorch's as a whole.
"""

from __future__ import annotations

import dataclasses
import logging
import operator
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

import torch
from torch import fx
from torch._functorch.aot_autograd import aot_module_simplified
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from hidet.torch.attention import keep_attention
from hidet.torch.config import Options, settings
from hidet.torch.emit import refusal
from hidet.torch.engine import Models
from hidet.torch.part import Part
from hidet.torch.sizes import as_known, numbers_of, sizes_of_value
from hidet.torch.table import decompositions

log = logging.getLogger("hidet.torch")
said: set[str] = set()
# While somebody asks what runs (explain.py): it is told of each graph's call.
watchers: list[Callable] = []


def hidet_backend(
    module: fx.GraphModule,
    example_inputs: Sequence[torch.Tensor],
    mode: str | None = None,
    options: dict | None = None,
) -> Callable:
    """What torch.compile calls."""
    chosen = settings(mode, options)

    def inference(graph: fx.GraphModule, inputs: Sequence) -> Callable:
        return boxed(Compiled(graph, static_inputs(), chosen))

    def training(graph: fx.GraphModule, inputs: Sequence) -> Callable:
        say("a graph of training runs in PyTorch; use torch.no_grad()")
        return boxed(graph)

    keep_attention(module, list(example_inputs))
    return aot_module_simplified(
        module,
        example_inputs,
        fw_compiler=training,
        bw_compiler=training,
        inference_compiler=inference,
        decompositions=decompositions(),
        keep_inference_input_mutations=True,
    )


def boxed(function: Callable) -> Callable:
    """Takes the list of the arguments, and empties it."""

    def call(arguments: list) -> object:
        given = list(arguments)
        arguments.clear()
        return function(*given)

    call._boxed_call = True
    return call


def say(text: str) -> None:
    """Once a process."""
    if text not in said:
        said.add(text)
        log.warning("%s", text)


def static_inputs() -> list[int]:
    """Which inputs are parameters and buffers of the model."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context else None
    return list(metadata.static_input_indices) if metadata else []


class Support(OperatorSupportBase):
    """Asks of each node whether it is ours, and says of which operators none is."""

    def __init__(self) -> None:
        self.answers: dict[fx.Node, str | None] = {}

    def is_node_supported(self, _modules: object, node: fx.Node) -> bool:
        if node.op != "call_function" or node.meta.get("is_given"):
            return False
        if is_number(node.meta.get("val")):
            return False  # Python's arithmetic, between the parts.
        if is_change(node):
            return False  # Of an input, where parts do not store it there.
        if node not in self.answers:
            self.answers[node] = refusal(node)
        return self.answers[node] is None

    def reasons(self) -> dict[str, str]:
        """By operator: why PyTorch runs it."""
        return {
            str(node.target): reason
            for node, reason in self.answers.items()
            if reason is not None and node.target is not operator.getitem
        }


@dataclasses.dataclass(frozen=True)
class Version:
    """A graph made ready: what is called, its parts in their order, and why
    each operator that is left is PyTorch's."""

    call: Callable
    parts: list[Part]
    left: dict[str, str]


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
        self.graph = graph
        self.static = static
        self.options = options
        self.models = Models()
        inputs = [n for n in graph.graph.nodes if n.op == "placeholder"]
        self.symbolic = any(map(asks_sizes, graph.graph.nodes))
        self.number = len(inputs)
        self.only: Version | None = None  # Where no size is a symbol.
        self.versions: OrderedDict[object, Version] = OrderedDict()
        self.order = threading.Lock()  # Of the versions: the last one is last.
        self.lock = threading.Lock()  # Of the graph, which dividing changes.

    def __call__(self, *arguments: object) -> object:
        if not self.symbolic:
            version = self.only or self.make_only()
        else:
            key = sizes_of(arguments)
            version = self.find(key) or self.make_ready(key, arguments)
        for watch in watchers:
            watch(version)
        return version.call(*arguments)

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
                graph = with_sizes(self.graph, arguments)
                give_views(graph)
                version = divide(
                    graph, self.static, self.options, self.models
                )
                with self.order:
                    self.versions[key] = version
                    if self.are_many(arguments):
                        self.versions.popitem(last=False)
            return version

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


def is_number(value: object) -> bool:
    return isinstance(
        value,
        (int, float, torch.SymInt, torch.SymFloat, torch.SymBool),
    )


def has_symbols(value: object) -> bool:
    if isinstance(value, torch.Tensor):
        return not all(
            isinstance(n, int) for n in (*value.shape, *value.stride())
        )
    if isinstance(value, (list, tuple)):
        return any(map(has_symbols, value))
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


def sizes_of(arguments: Sequence) -> tuple:
    return tuple(
        (tuple(a.shape), a.stride()) if isinstance(a, torch.Tensor) else a
        for a in arguments
    )


class Sized(fx.Interpreter):
    """Runs a graph on fake tensors and puts what it does into another one,
    where sizes are numbers. Nothing that a thread beside it sees is changed,
    as PyTorch's tracers would."""

    def __init__(self, graph: fx.GraphModule, numbers: dict[str, int]) -> None:
        super().__init__(graph)
        self.made = fx.Graph()
        self.numbers = numbers
        self.copies: dict[fx.Node, object] = {}

    def run_node(self, node: fx.Node) -> object:
        value = super().run_node(node)
        number = isinstance(value, (int, float, bool))
        symbolic = node.meta.get("val")
        if isinstance(symbolic, torch.SymInt):
            value = as_known(symbolic, value, self.numbers)
        if number and node.op != "placeholder":
            self.copies[node] = value
            return value
        copy = self.made.node_copy(node, self.copies.__getitem__)
        copy.meta["val"] = value
        copy.meta["sizes"] = sizes_of_value(symbolic, value, self.numbers)
        self.copies[node] = value if number else copy
        return value


def with_sizes(graph: fx.GraphModule, arguments: Sequence) -> fx.GraphModule:
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
    return fx.GraphModule(graph, sized.made)


def give_views(graph: fx.GraphModule) -> None:
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
        with graph.graph.inserting_after(node):
            copy = graph.graph.node_copy(
                node, lambda n: base if n is node.args[0] else n
            )
        copy.meta["is_given"] = True
        copies[node] = copy
        return copy

    output = graph.graph.output_node()
    output.args = (
        fx.map_arg(output.args[0], lambda result: view(result) or result),
    )


def divide(
    graph: fx.GraphModule,
    static: Sequence[int],
    options: Options,
    models: Models,
) -> Version:
    """The graph with its parts in the place of their nodes."""
    graph.graph.eliminate_dead_code()
    keep_constants(graph)
    support = Support()
    partitioner = CapabilityBasedPartitioner(
        graph, support, allows_single_node_partition=True
    )
    fused = partitioner.fuse_partitions(partitioner.propose_partitions())
    left = support.reasons()
    for name, reason in left.items():
        say(f"{name} runs in PyTorch: {reason}")
    inputs = [n for n in fused.graph.nodes if n.op == "placeholder"]
    changes = [n for n in fused.graph.nodes if is_change(n)]
    fixed = {inputs[i] for i in static} - {n.args[0] for n in changes}
    calls = [n for n in fused.graph.nodes if n.op == "call_module"]
    parts = []
    for node in calls:
        constants = [
            i
            for i, a in enumerate(node.args)
            if a in fixed or a.op == "get_attr"
        ]
        inner = fused.get_submodule(node.target)
        only_result(fused, node)
        stored = find_stored(node, inner, changes)
        parts.append(Part(inner, constants, options, models, stored))
        setattr(fused, node.target, parts[-1])
    fused.graph.lint()
    fused.recompile()
    return Version(one_part(fused) or fused, parts, left)


def one_part(fused: fx.GraphModule) -> Callable | None:
    """Where a graph is one part: its call alone, which costs less. None where
    it is not, or where what goes in or comes out is more than tensors."""
    nodes = list(fused.graph.nodes)
    inputs = [n for n in nodes if n.op == "placeholder"]
    calls = [n for n in nodes if n.op == "call_module"]
    results = fused.graph.output_node().args[0]
    if len(calls) != 1 or not isinstance(results, (list, tuple)):
        return None
    (call,) = calls
    made = [n for n in nodes if n.target is operator.getitem]
    changes = [n for n in nodes if is_change(n)]
    if len(nodes) != len(inputs) + len(made) + len(changes) + 2 or call.kwargs:
        return None
    if any(n.args[0] is not call for n in made):
        return None
    if any(n not in inputs for n in call.args):
        return None
    if any(n not in made for n in (*results, *(c.args[1] for c in changes))):
        return None
    return reorder(
        fused.get_submodule(call.target).forward,
        [inputs.index(n) for n in call.args],
        [n.args[1] for n in results],
        [(inputs.index(n.args[0]), n.args[1].args[1]) for n in changes],
        len(inputs),
    )


def reorder(
    forward: Callable,
    given: list[int],
    at: list[int],
    changes: list[tuple[int, int]],
    inputs: int,
) -> Callable:
    """Calls with some of so many arguments, gives some of the results, and has
    arguments be the results that they become, all by number."""
    same = given == list(range(inputs))
    if same and at == list(range(len(at))) and not changes:
        return forward

    def call(*arguments: object) -> list:
        passed = arguments if same else [arguments[i] for i in given]
        made = forward(*passed)
        for i, k in changes:
            if made[k] is not arguments[i]:
                arguments[i].copy_(made[k])
        return [made[i] for i in at]

    return call


def keep_constants(graph: fx.GraphModule) -> None:
    """Attributes of the graph have values that are known."""
    for node in graph.graph.nodes:
        if node.op == "get_attr" and "val" not in node.meta:
            node.meta["val"] = getattr(graph, node.target)


def is_change(node: fx.Node) -> bool:
    """Whether it makes an input what was computed for it. Nothing reads an input
    after that."""
    return (
        node.target is torch.ops.aten.copy_.default
        and node.args[0].op == "placeholder"
    )


def find_stored(
    part: fx.Node, inner: fx.GraphModule, changes: list[fx.Node]
) -> dict[int, int]:
    """Results of a part that may be computed where one of its arguments is,
    whose new value they are: nobody else reads what was there, and who reads
    what is new has not given it away as a tensor of its own."""
    results: dict[int, list[fx.Node]] = {}
    for user in part.users:
        results.setdefault(user.args[1], []).append(user)
    given = inner.graph.output_node().args[0]
    given = given if isinstance(given, (list, tuple)) else [given]
    stored = {}
    for change in changes:
        place, value = change.args[:2]
        if value.target is not operator.getitem or value.args[0] is not part:
            continue
        at = value.args[1]
        same = place.meta["val"], given[at].meta["val"]
        apart = all(
            user is change or user.op == "call_module"
            for node in results[at]
            for user in node.users
        )
        if (
            apart
            and len(change.users) == 0
            and set(place.users) == {part, change}
            and len({(v.dtype, v.shape, v.device) for v in same}) == 1
        ):
            stored[at] = part.args.index(place)
    return stored


def only_result(fused: fx.GraphModule, node: fx.Node) -> None:
    """A part gives a tuple, also where it has one result."""
    inner = fused.get_submodule(node.target)
    results = inner.graph.output_node().args[0]
    if isinstance(results, (list, tuple)):
        return
    with fused.graph.inserting_after(node):
        only = fused.graph.call_function(operator.getitem, (node, 0))
    node.replace_all_uses_with(only, lambda user: user is not only)
