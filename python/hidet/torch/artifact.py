# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An exported program as a file: the whole of it as one text of the language,
whose inputs are named as the program's."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Container, Sequence

import torch
from torch import fx

from hidet.errors import InvalidError, UnsupportedError
from hidet.runtime import Module
from hidet.torch.backend import with_sizes
from hidet.torch.emit import emit_graph, letters_of_inputs, refusal
from hidet.torch.engine import Engine, Models


@dataclasses.dataclass(frozen=True)
class Whole:
    """A program for one set of sizes. Inputs and results are fake tensors."""

    text: str
    weights: dict[str, torch.Tensor]
    inputs: list[torch.Tensor]
    results: list[torch.Tensor]
    letters: frozenset[str]


def write_file(
    model: object, shapes: Sequence[tuple], others: Sequence[tuple], path: str
) -> None:
    """With the code for inputs of the shapes. others: such as have the same
    text, or it is none for all sizes."""
    made = [whole_of(model, each) for each in shapes]
    first = made[0]
    for other in *made, *(whole_of(model, each) for each in others):
        if other.text != first.text:
            raise UnsupportedError(
                "the program is another one for other sizes, and a file is for "
                "all: export it with sizes that are numbers"
            )
    device = first.results[0].device
    built = Models().find(
        first.text, first.weights, device, model.options, first.letters
    )
    for each in made:
        Engine(built, device, each.inputs, each.results)
    built.frozen.save(built.opened, path)


def whole_of(model: object, shapes: tuple) -> Whole:
    """The program of an ExportedModel for inputs of these shapes."""
    given = [
        model.state[i] if i in model.state else of_shape(fake, shape)
        for i, (fake, shape) in enumerate(zip(model.fakes, shapes))
    ]
    graph = with_sizes(model.program.graph_module, given).graph
    sources = list(graph.find_nodes(op="placeholder"))
    # What has no elements has no address either.
    state = {
        sources[i]: model.state[i]
        for i in model.fixed
        if model.state[i].numel()
    }
    called: dict[fx.Node, str] = {}
    for node, own in zip(sources, model.placeholders):
        if node not in state and keep_input(graph, node, own.name):
            called[node] = allowed(own.name, called.values())
    names = names_of_results(model, called, sources)
    results = keep_tensors(graph, names)
    graph.eliminate_dead_code()
    refuse_others(graph)
    letters = letters_of_inputs(graph, state)
    text, found = emit_graph(graph, state, letters, called, list(names.values()))
    return Whole(
        text,
        {found[node]: tensor for node, tensor in state.items()},
        [node.meta["val"] for node in called],
        [node.meta["val"] for node in results],
        letters,
    )


def of_shape(fake: object, shape: tuple[int, ...]) -> object:
    if not isinstance(fake, torch.Tensor):
        return fake
    return torch.empty(shape, dtype=fake.dtype, device=fake.device)


def keep_input(graph: fx.Graph, node: fx.Node, name: str) -> bool:
    """Whether it is a tensor; what is a constant of the program goes."""
    if isinstance(node.meta["val"], torch.Tensor):
        return True
    if node.users:
        raise UnsupportedError(f"a file with an input '{name}' that is a number")
    graph.erase_node(node)
    return False


def names_of_results(
    model: object, called: dict[fx.Node, str], sources: list[fx.Node]
) -> dict[int, str]:
    """By number, of outputs that are tensors."""
    values = model.program.graph_module.graph.output_node().args[0]
    tensors = [i for i, v in enumerate(values) if isinstance(v, fx.Node)]
    plain = [i for i in tensors if model.changes[i] is None]
    names = {}
    for i in tensors:
        place = model.changes[i]
        if place is not None:
            name = f"{called[sources[place]]}_new"
        else:
            name = f"output_{plain.index(i)}" if len(plain) > 1 else "output"
        names[i] = allowed(name, [*called.values(), *names.values()])
    return names


def keep_tensors(graph: fx.Graph, names: dict[int, str]) -> list[fx.Node]:
    """Leaves these outputs, by number."""
    output = graph.output_node()
    results = [output.args[0][i] for i in names]
    for value in results:
        if not isinstance(getattr(value, "meta", {}).get("val"), torch.Tensor):
            raise UnsupportedError("a file with a result that is a number")
    output.args = (tuple(results),)
    return results


def refuse_others(graph: fx.Graph) -> None:
    """UnsupportedError: names the operators that are PyTorch's."""
    reasons = {}
    for node in graph.nodes:
        if node.op == "call_function" and node.target is not operator.getitem:
            reason = refusal(node)
            if reason:
                reasons[str(node.target)] = reason
    if reasons:
        said = "; ".join(f"{name}: {why}" for name, why in reasons.items())
        raise UnsupportedError(f"a file has no PyTorch for {said}")


def allowed(name: str, taken: Container[str]) -> str:
    """The name, or one like it that is no word of the language and not taken."""
    while name in taken or not is_name(name):
        name += "_"
    return name


def is_name(name: str) -> bool:
    try:
        Module.parse(
            f"graph main({name}: f32[1]) -> result {{ result = copy({name}) }}"
        )
    except InvalidError:
        return False
    return True
