# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex numbers as pairs of real ones, along an axis behind all others, which
is how they lie in memory: rotary embeddings are said so in many models. What is
not known here stays as it is, of PyTorch's complex tensors."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import fx

from hidet.torch.overloads import ByOverload

aten = torch.ops.aten
WAYS = ByOverload()  # To the pairs of its result.
of = WAYS.of


def is_complex(value: object) -> bool:
    """Whether it is a node of complex elements."""
    value = value.meta.get("val") if isinstance(value, fx.Node) else None
    return isinstance(value, torch.Tensor) and value.is_complex()


def rank(node: fx.Node) -> int:
    """0: of a size, too."""
    value = node.meta["val"]
    return value.dim() if isinstance(value, torch.Tensor) else 0


class Pairs:
    """A graph of ATen operators, to which those of pairs are added."""

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        self.made: dict[fx.Node, fx.Node] = {}

    def call(self, function: Callable, *arguments: object) -> fx.Node:
        """A node, and what it gives for fake tensors."""
        fakes = fx.map_arg(arguments, lambda n: n.meta["val"])
        made = self.graph.call_function(function, arguments)
        mode = torch._guards.detect_fake_mode(fakes)
        with mode:
            made.meta["val"] = function(*fakes)
        return made

    def of(self, node: fx.Node) -> fx.Node:
        """The pairs of a complex tensor."""
        if node not in self.made:
            x = node
            if x.meta["val"].is_conj():  # Which is not done yet.
                with self.graph.inserting_after(x):
                    x = self.call(aten.resolve_conj.default, x)
            with self.graph.inserting_after(x):
                self.made[node] = self.call(aten.view_as_real.default, x)
        return self.made[node]

    def part(self, node: fx.Node, which: int) -> fx.Node:
        """Real (0) or imaginary (1) parts."""
        return self.call(aten.select.int, self.of(node), -1, which)

    def join(self, real: fx.Node, imaginary: fx.Node) -> fx.Node:
        both = [self.call(aten.unsqueeze.default, x, -1) for x in (real, imaginary)]
        return self.call(aten.cat.default, both, -1)


def use_pairs(module: fx.GraphModule) -> None:
    """Changes the graph; nothing where no element is complex."""
    graph = module.graph
    nodes = [n for n in graph.nodes if n.op == "call_function"]
    if not any(is_complex(a) for n in nodes for a in n.all_input_nodes):
        return
    pairs, own = Pairs(graph), set(nodes)
    for node in nodes:
        way = WAYS.get(node.target)
        given = node.all_input_nodes
        complexes = any(map(is_complex, (node, *given)))
        if way is None or not complexes or node.kwargs:
            continue
        if not all("val" in n.meta for n in given):
            continue
        with graph.inserting_before(node):
            made = way(pairs, node, *node.args)
        if made is not None and is_complex(node):
            pairs.made[node] = made
        elif made is not None:
            if made not in own:  # It lies as the result would have.
                made.meta["val"] = node.meta["val"]
            node.replace_all_uses_with(made)
    graph.eliminate_dead_code()
    module.recompile()


@of(aten.view_as_complex.default)
def from_pairs(_pairs: Pairs, _node: fx.Node, x: fx.Node) -> fx.Node:
    return x


@of(aten.view_as_real.default)
def to_pairs(pairs: Pairs, node: fx.Node, x: fx.Node) -> fx.Node | None:
    return pairs.made.get(x)


@of(aten.complex.default)
def join(pairs: Pairs, node: fx.Node, a: fx.Node, b: fx.Node) -> fx.Node:
    size = list(node.meta["val"].shape)
    both = [pairs.call(aten.expand.default, x, size) for x in (a, b)]
    return pairs.join(*both)


@of(aten.polar.default)
def polar(pairs: Pairs, node: fx.Node, far: fx.Node, angle: fx.Node) -> fx.Node:
    return pairs.join(*(
        pairs.call(aten.mul.Tensor, far, pairs.call(function, angle))
        for function in (aten.cos.default, aten.sin.default)
    ))  # fmt: skip


@of(aten._conj.default, aten.conj_physical.default)
def conjugate(pairs: Pairs, _node: fx.Node, x: fx.Node) -> fx.Node:
    turned = pairs.call(aten.neg.default, pairs.part(x, 1))
    return pairs.join(pairs.part(x, 0), turned)


@of(aten.abs.default)
def length(pairs: Pairs, _node: fx.Node, x: fx.Node) -> fx.Node:
    return pairs.call(aten.hypot.default, pairs.part(x, 0), pairs.part(x, 1))


@of(aten.add.Tensor, aten.sub.Tensor)
def add(pairs: Pairs, node: fx.Node, a: fx.Node, b: fx.Node) -> fx.Node | None:
    if not is_complex(a) or not is_complex(b):
        return None
    return pairs.call(node.target, pairs.of(a), pairs.of(b))


@of(aten.mul.Tensor)
def multiply(pairs: Pairs, _node: fx.Node, a: object, b: object) -> object:
    if not is_complex(a):
        a, b = b, a
    if not is_complex(a) or isinstance(b, complex):
        return None
    if a.meta["val"].dtype == torch.complex32:
        return None  # Of f16 each product would be rounded, and nearly cancel.
    if not is_complex(b):
        if isinstance(b, fx.Node) and rank(b):
            b = pairs.call(aten.unsqueeze.default, b, -1)
        return pairs.call(aten.mul.Tensor, pairs.of(a), b)
    (ar, ai), (br, bi) = ((pairs.part(x, 0), pairs.part(x, 1)) for x in (a, b))

    def times(x: fx.Node, y: fx.Node) -> fx.Node:
        return pairs.call(aten.mul.Tensor, x, y)

    return pairs.join(
        pairs.call(aten.sub.Tensor, times(ar, br), times(ai, bi)),
        pairs.call(aten.add.Tensor, times(ar, bi), times(ai, br)),
    )


@of(aten.view.default, aten._unsafe_view.default, aten.reshape.default)
def resize(pairs: Pairs, _node: fx.Node, x: fx.Node, size: list) -> fx.Node:
    """A view of complex numbers may be none of the pairs, which lie otherwise
    where they are computed."""
    return pairs.call(aten.reshape.default, pairs.of(x), [*size, 2])


@of(aten.expand.default)
def expand(pairs: Pairs, node: fx.Node, x: fx.Node, size: list) -> fx.Node:
    return pairs.call(node.target, pairs.of(x), [*size, 2])


@of(aten.permute.default)
def permute(pairs: Pairs, node: fx.Node, x: fx.Node, order: list) -> fx.Node:
    n = rank(x)
    return pairs.call(node.target, pairs.of(x), [*(i % n for i in order), n])


@of(aten.transpose.int)
def transpose(pairs: Pairs, node: fx.Node, x: fx.Node, *axes: int) -> fx.Node:
    return pairs.call(node.target, pairs.of(x), *(i % rank(x) for i in axes))


@of(aten.unsqueeze.default)
def unsqueeze(pairs: Pairs, node: fx.Node, x: fx.Node, axis: int) -> fx.Node:
    return pairs.call(node.target, pairs.of(x), axis % (rank(x) + 1))


@of(aten.select.int, aten.slice.Tensor)
def along(pairs: Pairs, node: fx.Node, x: fx.Node, *rest: object) -> object:
    axis, *rest = rest or (0,)
    return pairs.call(node.target, pairs.of(x), axis % rank(x), *rest)


@of(aten.index_select.default)
def gather(pairs: Pairs, node: fx.Node, x: fx.Node, axis: int, at) -> fx.Node:
    return pairs.call(node.target, pairs.of(x), axis % rank(x), at)


@of(aten.clone.default, aten.alias.default, aten.detach.default)
def same(pairs: Pairs, _node: fx.Node, x: fx.Node) -> fx.Node:
    return pairs.of(x)


@of(aten.cat.default)
def concatenate(pairs: Pairs, node: fx.Node, xs: list, axis: int = 0) -> object:
    # PyTorch leaves out what is of no elements and one axis.
    if not all(is_complex(x) and rank(x) == rank(node) for x in xs):
        return None
    return pairs.call(
        node.target, [pairs.of(x) for x in xs], axis % rank(node)
    )
