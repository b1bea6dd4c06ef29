# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The weights of a model, which Dynamo would look up and hand over at each call.

Dynamo gives a graph whose inputs are all of a model's parameters and buffers,
hundreds, and makes code that finds each through its modules, call after call.
Here they become the graph's attributes instead, under a guard that each is still
the same tensor, as Dynamo itself does with tensors whose addresses are promised
(wrap_tensor() in torch/_dynamo/variables/builder.py): it looks for what to hand
over in the graph when the backend has returned. A guard of identity is of nearly
no cost, because a module's dictionary of tensors has a version.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import fx
from torch._dynamo.guards import GuardBuilder, install_guard
from torch._dynamo.source import is_from_unspecialized_nn_module_source

# Code whose modules or their tensors are others again and again is compiled so
# often for tensors that are the same; after that they are inputs like any.
MOST_BOUND = 2


def bind_weights(
    module: fx.GraphModule,
    inputs: Sequence,
    call: Callable,
    quick: Callable[[Sequence[int]], Callable | None],
) -> Callable:
    """What Dynamo is to call where `call` takes all inputs of its graph.
    quick: of the numbers of the inputs that are left, a function of these that
    gives None where `call` has to be asked; or None, as long as there is none."""
    at = [i for i, node in enumerate(inputs_of(module)) if is_weight(node)]
    if not at or compiled_before() >= MOST_BOUND:
        return call
    if not all(
        type(inputs[i]) in (torch.Tensor, torch.nn.Parameter) for i in at
    ):
        return call
    for node, tensor in [(inputs_of(module)[i], inputs[i]) for i in at]:
        install_guard(
            node.meta["grapharg"].source.make_guard(GuardBuilder.ID_MATCH)
        )
        make_attribute(module, node, tensor)
    return Bound(call, {i: inputs[i] for i in at}, len(inputs), quick)


def inputs_of(module: fx.GraphModule) -> list[fx.Node]:
    return [n for n in module.graph.nodes if n.op == "placeholder"]


def is_weight(node: fx.Node) -> bool:
    """Whether Dynamo found it as a tensor of an ordinary module."""
    argument = node.meta.get("grapharg")
    return (
        argument is not None
        and argument.source is not None
        and is_from_unspecialized_nn_module_source(argument.source)
    )


def compiled_before() -> int:
    """How often Dynamo has compiled this code before."""
    known = torch._guards.CompileContext.current_compile_id()
    return known.frame_compile_id if known else MOST_BOUND


def make_attribute(
    module: fx.GraphModule, node: fx.Node, tensor: torch.Tensor
) -> None:
    name = f"hidet_{node.name}"
    if isinstance(tensor, torch.nn.Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)
    with module.graph.inserting_before(node):
        node.replace_all_uses_with(module.graph.get_attr(name))
    module.graph.erase_node(node)


class Bound:
    """A function of a graph's inputs, with the weights among them."""

    def __init__(
        self,
        call: Callable,
        weights: dict[int, torch.Tensor],
        count: int,
        quick: Callable[[Sequence[int]], Callable | None],
    ) -> None:
        self.call = call
        self.all = [weights.get(i) for i in range(count)]
        self.rest = [i for i in range(count) if i not in weights]
        self.count = count
        self.find = quick
        self.quick: Callable | None = None

    def __call__(self, *arguments: object) -> object:
        if len(arguments) == self.count:  # By one who has the graph as it was.
            return self.call(*arguments)
        if self.quick is not None:
            made = self.quick(arguments)
            if made is not None:
                return made
        given = self.all.copy()
        for i, argument in zip(self.rest, arguments):
            given[i] = argument
        made = self.call(*given)
        self.quick = self.find(self.rest)
        return made
