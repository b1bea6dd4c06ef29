# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The weights of a model, which Dynamo would look up and hand over at each call.

Dynamo gives a graph whose inputs are all of a model's parameters and buffers,
hundreds, and makes code that finds each through its modules, call after call.
Here they are no inputs of the graph any more, under a guard that each is still
the same tensor, as Dynamo itself does with tensors whose addresses are promised
(wrap_tensor() in torch/_dynamo/variables/builder.py): it looks for what to hand
over in the graph when the backend has returned. A guard of identity is of nearly
no cost, because a module's dictionary of tensors has a version. Weights are kept
by the model alone: where one is no more, Dynamo drops what it compiled for it.
"""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import fx
from torch._C._dynamo.eval_frame import _debug_get_cache_entry_list
from torch._dynamo.guards import GuardBuilder, install_guard
from torch._dynamo.source import is_from_unspecialized_nn_module_source
from torch._dynamo.symbolic_convert import InstructionTranslator
from torch._guards import ChainedSource, Source

# So many models with the same code are bound at once, and a model whose tensors
# are others again and again so often; after that they are inputs like any.
MOST_BOUND = 2
# And as long as code was compiled so often at most: Dynamo gives it up where that
# is twice as many, also if nearly all of those models are no more.
MOST_COMPILED = 4

# Of guards that watch dictionaries, for ever: where one did not hold for a second
# model, they are not taken from PyTorch's list of who is to be told of a change
# when they end, as they do with a weight.
told_of_changes: set[object] = set()


class Callee(Protocol):
    """What all inputs are given to in the end."""

    def quick(self, rest: Sequence[int]) -> Callable | None:
        """A function of the inputs of these numbers alone, which gives None
        where it does not know what to do; None: there is none now."""


def bind_weights(
    module: fx.GraphModule, inputs: Sequence, call: Callable, callee: Callee
) -> Callable:
    """What Dynamo is to call where `call` takes all inputs of its graph."""
    nodes = [n for n in module.graph.nodes if n.op == "placeholder"]
    weights = {i: inputs[i] for i, node in enumerate(nodes) if is_weight(node)}
    sources = [nodes[i].meta["grapharg"].source for i in weights]
    kinds = {type(weight) for weight in weights.values()}
    if not weights or not kinds <= {torch.Tensor, torch.nn.Parameter}:
        return call
    beside, compiled = bound_now()
    owner = owner_of(sources[0])
    times = owners.get(owner, 0) if owner is not None else compiled
    bound_before = min(max(times, len(beside)), compiled)
    if bound_before >= MOST_BOUND or compiled >= MOST_COMPILED:
        return call
    for source in sources:
        install_guard(source.make_guard(GuardBuilder.ID_MATCH))
    for i, weight in weights.items():
        keep_out(module.graph, nodes[i], weakref.ref(weight))
    bound = Bound(call, weights, len(inputs), callee)
    if guards_watch():
        bound.code = InstructionTranslator.current_tx().f_code
    beside.add(bound)
    if owner is not None:
        owners[owner] = times + 1
    return bound


def is_weight(node: fx.Node) -> bool:
    """Whether Dynamo found it as a tensor of an ordinary module."""
    argument = node.meta.get("grapharg")
    return (
        argument is not None
        and argument.source is not None
        and is_from_unspecialized_nn_module_source(argument.source)
    )


def bound_now() -> tuple[weakref.WeakSet[Bound], int]:
    """What is bound of the code that Dynamo compiles, and how often it was
    compiled before since Dynamo was reset, which may leave some of those."""
    for number in [n for n, those in bound_of.items() if not those]:
        del bound_of[number]
    found = torch._guards.CompileContext.current_compile_id()
    if found is None or found.frame_compile_id is None:
        return weakref.WeakSet(), MOST_COMPILED
    return (
        bound_of.setdefault(found.frame_id, weakref.WeakSet()),
        found.frame_compile_id,
    )


def owner_of(source: Source) -> object | None:
    """The module that Dynamo's code has in a variable, by which it finds a
    weight; None: another way leads there."""
    while isinstance(source, ChainedSource):
        source = source.base
    found = InstructionTranslator.current_tx().f_locals
    owner = found.get(getattr(source, "local_name", None))
    return owner if isinstance(owner, torch.nn.Module) else None


def guards_watch() -> bool:
    """Whether guards watch the dictionaries of modules."""
    config = torch._dynamo.config
    asked = getattr(config, "use_recursive_dict_tags_for_guards", False)
    return asked and sys.version_info >= (3, 12)


def keep_guards(code: types.CodeType) -> None:
    """Those of what was compiled of the code."""
    for entry in _debug_get_cache_entry_list(code):
        guards = entry.guard_manager
        told_of_changes.update((guards.root, guards.diff_guard_root))


def keep_out(graph: fx.Graph, node: fx.Node, weight: weakref.ref) -> None:
    """Has the graph take a weight from where it is."""

    def held() -> torch.Tensor | None:
        return weight()

    with graph.inserting_before(node):
        node.replace_all_uses_with(graph.call_function(held))
    graph.erase_node(node)


class Bound:
    """A function of a graph's inputs, with the weights among them."""

    # Dynamo copies the attributes of what it calls.
    __slots__ = (
        "__weakref__",
        "call",
        "callee",
        "code",
        "count",
        "quick",
        "refs",
        "rest",
    )

    def __init__(
        self,
        call: Callable,
        weights: dict[int, torch.Tensor],
        count: int,
        callee: Callee,
    ) -> None:
        self.call, self.callee = call, callee
        self.refs = {i: weakref.ref(weight) for i, weight in weights.items()}
        self.rest = [i for i in range(count) if i not in weights]
        self.count = count
        self.quick: Callable | None = None
        self.code: types.CodeType | None = None  # Whose guards are to be kept.

    def __call__(self, *arguments: object) -> object:
        if len(arguments) == self.count:  # By one who has the graph as it was.
            return self.call(*arguments)
        if self.quick is not None:
            made = self.quick(arguments)
            if made is not None:
                return made
        if self.code is not None:
            keep_guards(self.code)
            self.code = None
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


bound_of: dict[int, weakref.WeakSet[Bound]] = {}  # By the code's number.
# How often each was bound.
owners: weakref.WeakKeyDictionary[torch.nn.Module, int] = (
    weakref.WeakKeyDictionary()
)
