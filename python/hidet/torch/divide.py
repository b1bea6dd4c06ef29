# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A graph of ATen operators divided: parts of ours, as large as they can be, and
what PyTorch runs between them."""

from __future__ import annotations

import dataclasses
import logging
import operator
from collections.abc import Callable, Sequence

import torch
from torch import fx
from torch.fx.passes.infra.partitioner import (
    CapabilityBasedPartitioner,
    Partition,
)
from torch.fx.passes.operator_support import OperatorSupportBase

from hidet.errors import HidetError
from hidet.torch.config import Options
from hidet.torch.emit import device_of, refusal
from hidet.torch.engine import Models
from hidet.torch.part import Later, Part

log = logging.getLogger("hidet.torch")
said: set[str] = set()
# While somebody asks what runs (explain.py): it is told of each graph's call.
watchers: list[Callable] = []


def say(text: str) -> None:
    """Once a process."""
    if text not in said:
        said.add(text)
        log.warning("%s", text)


class Support(OperatorSupportBase):
    """Asks of each node whether it is ours, and says of which operators none is."""

    def __init__(self) -> None:
        self.answers: dict[fx.Node, str | None] = {}

    def is_node_supported(self, _modules: object, node: fx.Node) -> bool:
        given = node.meta.get("is_given")
        if node.op != "call_function" or given:
            if isinstance(given, str):
                self.answers[node] = given
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


def is_number(value: object) -> bool:
    return isinstance(
        value,
        (int, float, torch.SymInt, torch.SymFloat, torch.SymBool),
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
    whole = whole_of(graph, support)
    fused = partitioner.fuse_partitions(
        [whole] if whole else partitioner.propose_partitions()
    )
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
        reduce_in_place(node, inner)
        stored = find_stored(node, inner, changes)
        parts.append(Part(inner, constants, options, models, stored))
        setattr(fused, node.target, parts[-1])
    fused.graph.lint()
    fused.recompile()
    return Version(one_part(fused) or fused, parts, left)


def divide_whole(
    later: Later, static: Sequence[int], options: Options, models: Models
) -> Version | None:
    """A graph that is one part from its inputs to its results: it is the part's,
    and no code is made. None where it is not."""
    graph = later.graph
    graph.eliminate_dead_code()
    nodes = list(graph.nodes)
    inputs = [n for n in nodes if n.op == "placeholder"]
    calls = [n for n in nodes if n.op == "call_function"]
    results = graph.output_node().args[0]
    if len(nodes) != len(inputs) + len(calls) + 1 or not calls:
        return None
    if not isinstance(results, (list, tuple)) or any(
        not isinstance(r, fx.Node) or r.op == "placeholder" for r in results
    ):
        return None
    support = Support()
    if not all(support.is_node_supported(None, n) for n in calls):
        return None
    if len({device_of(node) for node in calls if not is_item(node)}) > 1:
        return None
    fixed = {inputs[i] for i in static}
    given = [i for i, node in enumerate(inputs) if node.users]
    constants = [k for k, i in enumerate(given) if inputs[i] in fixed]
    made = {node: at for at, node in enumerate(dict.fromkeys(results))}
    for node in inputs:
        if not node.users:
            graph.erase_node(node)
    graph.output_node().args = (tuple(made),)
    part = Part(later, constants, options, models)
    at = [made[node] for node in results]
    call = Alone(part, given, at, [], len(inputs))
    return Version(call, [part], {})


def whole_of(graph: fx.GraphModule, support: Support) -> Partition | None:
    """All that is ours as one part, where nothing of it waits for what is not,
    as of most graphs: then nothing has to be searched for. None elsewhere."""
    calls = [n for n in graph.graph.nodes if n.op == "call_function"]
    ours = [n for n in calls if support.is_node_supported(None, n)]
    others = set(calls).difference(ours)
    if not ours or any(
        source in others for node in ours for source in node.all_input_nodes
    ):
        return None
    if len({device_of(node) for node in ours if not is_item(node)}) > 1:
        return None
    return Partition(id=0, nodes=ours)


def is_item(node: fx.Node) -> bool:
    return node.target is operator.getitem


def one_part(fused: fx.GraphModule) -> Alone | None:
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
    return Alone(
        fused.get_submodule(call.target),
        [inputs.index(n) for n in call.args],
        [n.args[1] for n in results],
        [(inputs.index(n.args[0]), n.args[1].args[1]) for n in changes],
        len(inputs),
    )


class Alone:
    """A graph that is one part, called with the arguments of the graph: some of
    them are the part's, some of the part's results are the graph's, and arguments
    become results, all by number."""

    def __init__(
        self,
        part: Part,
        given: list[int],
        at: list[int],
        changes: list[tuple[int, int]],
        inputs: int,
    ) -> None:
        self.part, self.given, self.at = part, given, at
        self.changes = changes
        self.takes_all = given == list(range(inputs))
        self.gives_all = at == list(range(len(part.results)))

    def __call__(self, *arguments: object) -> Sequence:
        passed = (
            arguments if self.takes_all else [arguments[i] for i in self.given]
        )
        made = self.part.forward(*passed)
        for i, k in self.changes:
            if made[k] is not arguments[i]:
                arguments[i].copy_(made[k])
        return made if self.gives_all else [made[i] for i in self.at]

    def quick(self, rest: Sequence[int]) -> Callable | None:
        """The same as a function of those arguments alone, where the others are
        what the part was built with: it gives None where it does not know what
        to do. None: there is no such function now."""
        part, built = self.part, self.part.built
        if built is None or self.changes or part.turned or built.foreign:
            return None
        if {self.given[i] for i in built.constants}.intersection(rest):
            return None
        at = {number: k for k, number in enumerate(rest)}
        places = [at.get(self.given[i]) for i in built.given]
        if None in places:
            return None
        engine, unchanged = built.engine, built.watched.unchanged
        results = None if self.gives_all else self.at

        def call(arguments: Sequence) -> list | None:
            if watchers or part.built is not built or not unchanged():
                return None
            try:
                made = engine([arguments[i] for i in places])
            except HidetError:
                return None  # Whoever asks again is told.
            return made if results is None else [made[i] for i in results]

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


def reduce_in_place(part: fx.Node, inner: fx.GraphModule) -> None:
    """A sum over processes of a result that nobody else reads is made where
    the result is, and PyTorch copies nothing first."""
    given = inner.graph.output_node().args[0]
    given = given if isinstance(given, (list, tuple)) else [given]
    for item in part.users:
        made = given[item.args[1]]
        readers = list(item.users)
        if (
            len(readers) == 1
            and str(readers[0].target) == "_c10d_functional.all_reduce.default"
            and made.op == "call_function"
            and not getattr(made.target, "is_view", False)
            and given.count(made) == 1
        ):
            readers[0].target = torch.ops._c10d_functional.all_reduce_.default


def only_result(fused: fx.GraphModule, node: fx.Node) -> None:
    """A part gives a tuple, also where it has one result."""
    inner = fused.get_submodule(node.target)
    results = inner.graph.output_node().args[0]
    if isinstance(results, (list, tuple)):
        return
    with fused.graph.inserting_after(node):
        only = fused.graph.call_function(operator.getitem, (node, 0))
    node.replace_all_uses_with(only, lambda user: user is not only)
