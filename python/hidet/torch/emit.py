# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FX graphs of ATen operators as texts of the language."""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Mapping, Sequence

import torch
from torch import fx

from hidet.torch.operators.call import Call, type_of
from hidet.torch.sizes import Size
from hidet.torch.table import table
from hidet.torch.text import Text, Unsupported, Value

MOST_RANK = 8


def kind_of(
    fake: object, sizes: tuple[int, ...] | None = None
) -> tuple[str, tuple[int, ...]]:
    """Type and shape of a tensor; Unsupported where we have no such one. sizes:
    the same shape, where more is known of it."""
    if not isinstance(fake, torch.Tensor):
        raise Unsupported(f"a value of {type(fake).__name__}")
    if fake.layout != torch.strided or fake.is_quantized:
        raise Unsupported(f"a tensor of the layout {fake.layout}")
    if fake.is_conj() or fake.is_neg():
        raise Unsupported("a conjugate view")
    if not all(isinstance(size, int) for size in fake.shape):
        raise Unsupported("a symbolic size")
    if fake.dim() > MOST_RANK:
        raise Unsupported(f"a tensor of {fake.dim()} axes")
    return type_of(fake.dtype), sizes or tuple(fake.shape)


def used_results(node: fx.Node) -> set[int]:
    """Which of a node's results somebody asks for."""
    used = set()
    for user in node.users:
        if user.target is operator.getitem:
            used.add(user.args[1])
        else:
            used.add(0)
    return used


def arguments(node: fx.Node) -> list:
    """All of them, in the order of the operator's schema."""
    given = []
    for i, parameter in enumerate(node.target._schema.arguments):
        if not parameter.kwarg_only and i < len(node.args):
            given.append(node.args[i])
        elif parameter.name in node.kwargs:
            given.append(node.kwargs[parameter.name])
        elif parameter.has_default_value():
            given.append(parameter.default_value)
        else:
            raise Unsupported(f"the argument {parameter.name} is not given")
    return given


def emit_node(text: Text, node: fx.Node, value_of: Callable) -> object:
    """A call's nodes; what it gives, one value or a list of them."""
    if node.target is operator.getitem:
        source, index = node.args
        return value_of(source)[index]
    row = table().get(node.target)
    if row is None:
        raise Unsupported("it is not in the table")
    made = node.meta.get("val")
    several = isinstance(made, (list, tuple))
    used = used_results(node) if several else {0}
    sizes = node.meta.get("sizes")
    results = [
        kind_of(fake, sizes[i] if several and sizes else sizes)
        if not several or i in used
        else ("", ())
        for i, fake in enumerate(made if several else [made])
    ]
    given = fx.node.map_aggregate(
        arguments(node),
        lambda a: value_of(a) if isinstance(a, fx.Node) else a,
    )
    value = row(Call(text, results, used, first_layout(node)), *given)
    check(value if several else [value], results, used)
    return value


def first_layout(node: fx.Node) -> tuple[tuple[int, ...], int] | None:
    source = node.args[0] if node.args else None
    fake = source.meta.get("val") if isinstance(source, fx.Node) else None
    if not isinstance(fake, torch.Tensor):
        return None
    return fake.stride(), fake.storage_offset()


def check(values: object, results: list, used: set[int]) -> None:
    """A fault of the table is found here, not in what is computed."""
    for i, (kind, shape) in enumerate(results):
        if i not in used:
            continue
        made = values[i]
        if made is None:
            raise Unsupported(f"result {i}")
        if (made.type, made.shape) != (kind, shape):
            raise Unsupported(
                f"{made.type}{list(made.shape)} for {kind}{list(shape)}"
            )


def refusal(node: fx.Node) -> str | None:
    """Why a node is not for us; None where it is."""
    scratch = Text()
    made: dict[fx.Node, object] = {}

    def value_of(source: fx.Node) -> object:
        if source not in made:
            fake = source.meta.get("val")
            if isinstance(fake, (list, tuple)):
                made[source] = [
                    scratch.input(*kind_of(f)) if is_tensor(f) else None
                    for f in fake
                ]
            else:
                made[source] = scratch.input(*kind_of(fake))
        return made[source]

    try:
        if node.target is operator.getitem:
            kind_of(node.meta.get("val"))
            return refusal(node.args[0])
        device_of(node)
        emit_node(scratch, node, value_of)
    except Unsupported as reason:
        return str(reason)
    except Exception as fault:
        return f"a fault of the table: {fault!r}"
    return None


def is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def device_of(node: fx.Node) -> torch.device:
    """The device that a node's tensors are all on; numbers may be elsewhere."""
    made = node.meta.get("val")
    fakes = list(made) if isinstance(made, (list, tuple)) else [made]
    fakes = [f for f in fakes if is_tensor(f)]
    if not fakes:
        raise Unsupported("it gives no tensor")
    device = fakes[0].device
    for source in node.all_input_nodes:
        fake = source.meta.get("val")
        if is_tensor(fake) and fake.device != device:
            raise Unsupported(f"tensors on {fake.device} and on {device}")
    if device.type not in ("cpu", "cuda"):
        raise Unsupported(f"tensors on {device}")
    return device


def letters_of_inputs(
    graph: fx.Graph, constants: Container[fx.Node]
) -> frozenset[str]:
    """Those that are sizes of inputs, alone: the text's dimensions."""
    return frozenset(
        size.text
        for node in graph.nodes
        if node.op == "placeholder" and node not in constants
        for size in node.meta.get("sizes") or ()
        if isinstance(size, Size) and size.text in size.letters
    )


def emit_graph(
    graph: fx.Graph,
    constants: Container[fx.Node],
    letters: frozenset[str] = frozenset(),
    called: Mapping[fx.Node, str] = {},
    results: Sequence[str] = (),
    origins: dict[str, fx.Node] | None = None,
) -> tuple[str, dict[fx.Node, str]]:
    """A graph as text, and the names in it of the placeholders, of which those
    among `constants` are constants whose elements are given later. letters: the
    dimensions that sizes are said by. called, results: names for inputs and
    outputs. origins takes, by the name of what a node of the text gives, the
    node that it is for."""
    text, values, names = Text(letters), {}, {}
    origins = {} if origins is None else origins
    text.taken.update(called.values(), results)
    outputs: list[Value] = []
    for node in graph.nodes:
        if node.op == "placeholder":
            kind, shape = kind_of(node.meta["val"], node.meta.get("sizes"))
            if node in constants:
                values[node] = text.weight(kind, shape)
            else:
                values[node] = text.input(kind, shape, called.get(node))
            names[node] = values[node].name
        elif node.op == "call_function":
            first = text.names
            values[node] = emit_node(text, node, values.__getitem__)
            for i in range(first, text.names):
                origins[f"t{i + 1}"] = node
        elif node.op == "output":
            given = node.args[0]
            given = given if isinstance(given, (list, tuple)) else [given]
            outputs = [values[n] for n in given]
        else:
            raise Unsupported(f"a node {node.op}")
    return text.finish(outputs, results), names
