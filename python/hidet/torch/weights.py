# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The weights of a model, which Dynamo would look up and hand over at each call.

Dynamo gives a graph whose inputs are all of a model's parameters and buffers,
hundreds, and makes code that finds each through its modules, call after call.
Here they are no inputs of the graph any more, under a guard that each is still
the same tensor, as Dynamo itself does with tensors whose addresses are promised
(wrap_tensor() in torch/_dynamo/variables/builder.py): it looks for what to hand
over in the graph when the backend has returned. A guard of identity is of nearly
no cost, because a module's dictionary of tensors has a version.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import fx
from torch._dynamo.guards import GuardBuilder, install_guard
from torch._dynamo.source import is_from_unspecialized_nn_module_source
from torch._guards import Source

# Code whose modules or their tensors are others again and again is compiled so
# often for tensors that are the same; after that they are inputs like any.
MOST_BOUND = 2


class Callee(Protocol):
    """What all inputs are given to in the end."""

    def quick(self, rest: Sequence[int]) -> Callable | None:
        """A function of the inputs of these numbers alone, which gives None
        where it does not know what to do; None: there is none now."""

    def release(self) -> None:
        """Nobody may ask for a long time: weights are to be kept by others."""


def bind_weights(
    module: fx.GraphModule, inputs: Sequence, call: Callable, callee: Callee
) -> Callable:
    """What Dynamo is to call where `call` takes all inputs of its graph."""
    nodes = [n for n in module.graph.nodes if n.op == "placeholder"]
    weights = {i: inputs[i] for i, node in enumerate(nodes) if is_weight(node)}
    places = {nodes[i].meta["grapharg"].source: weights[i] for i in weights}
    code, times = compiled_before()
    for bound in tuple(known.get(code, ())):
        bound.release_unless(places)
    types = {type(weight) for weight in weights.values()}
    if (
        not weights
        or times >= MOST_BOUND
        or not types <= {torch.Tensor, torch.nn.Parameter}
    ):
        return call
    for source in places:
        install_guard(source.make_guard(GuardBuilder.ID_MATCH))
    for i, weight in weights.items():
        keep_out(module.graph, nodes[i], weakref.ref(weight))
    bound = Bound(call, weights, places, len(inputs), callee)
    known.setdefault(code, weakref.WeakSet()).add(bound)
    return bound


def is_weight(node: fx.Node) -> bool:
    """Whether Dynamo found it as a tensor of an ordinary module."""
    argument = node.meta.get("grapharg")
    return (
        argument is not None
        and argument.source is not None
        and is_from_unspecialized_nn_module_source(argument.source)
    )


def compiled_before() -> tuple[int, int]:
    """A number for the code that Dynamo compiles, and how often it has before."""
    found = torch._guards.CompileContext.current_compile_id()
    if found is None or found.frame_compile_id is None:
        return -1, MOST_BOUND
    return found.frame_id, found.frame_compile_id


def keep_out(graph: fx.Graph, node: fx.Node, weight: weakref.ref) -> None:
    """Has the graph take a weight from where it is."""

    def held() -> torch.Tensor | None:
        return weight()

    with graph.inserting_before(node):
        node.replace_all_uses_with(graph.call_function(held))
    graph.erase_node(node)


class Bound:
    """A function of a graph's inputs, with the weights among them. It keeps these
    until the same code is compiled for others at the same places, as where a model
    has got others; who has these then is who owns them."""

    # Dynamo copies the attributes of what it calls.
    __slots__ = (
        "__weakref__",
        "call",
        "callee",
        "count",
        "quick",
        "refs",
        "rest",
        "weights",
    )

    def __init__(
        self,
        call: Callable,
        weights: dict[int, torch.Tensor],
        places: dict[Source, torch.Tensor],
        count: int,
        callee: Callee,
    ) -> None:
        self.call, self.callee = call, callee
        self.refs = {i: weakref.ref(weight) for i, weight in weights.items()}
        self.weights: dict[Source, torch.Tensor] | None = places
        self.rest = [i for i in range(count) if i not in weights]
        self.count = count
        self.quick: Callable | None = None

    def __call__(self, *arguments: object) -> object:
        if len(arguments) == self.count:  # By one who has the graph as it was.
            return self.call(*arguments)
        if self.quick is not None:
            made = self.quick(arguments)
            if made is not None:
                return made
        given: list[object] = [None] * self.count
        for i, argument in zip(self.rest, arguments):
            given[i] = argument
        for i, weight in self.refs.items():
            given[i] = weight()
            if given[i] is None:
                raise RuntimeError("weights of a compiled model are no more")
        made = self.call(*given)
        self.quick = self.callee.quick(self.rest)
        return made

    def release_unless(self, places: dict[Source, torch.Tensor]) -> None:
        """Unless where it found weights nothing else is now."""
        held = self.weights or {}
        if any(held[at] is not places[at] for at in held.keys() & places):
            self.weights = self.quick = None
            self.callee.release()


known: dict[int, weakref.WeakSet[Bound]] = {}  # By the code's number.
