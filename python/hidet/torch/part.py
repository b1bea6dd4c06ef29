# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A part of a model that is ours: a graph of operators of the table, called
with tensors in PyTorch's stead."""

from __future__ import annotations

import dataclasses
import logging
import operator
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

import torch
from torch import fx

from hidet.errors import (
    HidetError,
    InvalidError,
    ResourceError,
    UnsupportedError,
    UsageError,
)
from hidet.torch.config import Options
from hidet.torch.emit import emit_graph, letters_of_inputs
from hidet.torch.engine import (
    Engine,
    Model,
    Models,
    empty,
    is_capturing,
)
from hidet.torch.watched import Watched, watch

log = logging.getLogger("hidet.torch")


@dataclasses.dataclass(frozen=True)
class Built:
    """What a part was compiled to. Of its placeholders some are constants, by
    number, whose tensors are watched; the rest are the engine's inputs."""

    engine: Engine
    given: list[int]
    foreign: list[int]  # Those of the engine's inputs on another device.
    constants: list[int]
    watched: Watched
    take: Callable[[Sequence], tuple]  # The constants of what a call is given.

    def holds(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether constants are the tensors that they were, unchanged."""
        same = self.watched.are(self.take(tensors))
        return same and bool(self.watched.unchanged())


def taker(places: list[int]) -> Callable[[Sequence], tuple]:
    """Gives the elements at those places as a tuple."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    return lambda given: tuple(given[i] for i in places)


class Later:
    """A graph whose code is made when PyTorch is to run it, if ever."""

    def __init__(self, root: fx.GraphModule, graph: fx.Graph) -> None:
        self.root, self.graph = root, graph
        self.made: fx.GraphModule | None = None

    def module(self) -> fx.GraphModule:
        if self.made is None:
            self.made = fx.GraphModule(self.root, self.graph)
        return self.made

    def __call__(self, *tensors: torch.Tensor) -> object:
        return self.module()(*tensors)


class Part(torch.nn.Module):
    """Called with the tensors for the graph's placeholders, gives the tuple of
    its results. constants: numbers of the placeholders whose tensors are the
    same from call to call; where one is another one after all, or has changed
    in place, what was compiled with it is thrown away, and where nobody else has
    it any more: none is kept. Any thread may call it: one compiles, while others
    who want that wait.

    stored: results that become, and are, a placeholder's tensor, which nobody
    else reads, both by number: they are computed there where that can be, and
    are then the tensor itself.

    What the compiler does not take after all runs in PyTorch, and that is said
    once."""

    MOST_CHANGES = 2  # Then constants are inputs like any.

    def __init__(
        self,
        module: fx.GraphModule | Later,
        constants: Sequence[int],
        options: Options,
        models: Models,
        stored: Mapping[int, int] = types.MappingProxyType({}),
    ) -> None:
        super().__init__()
        self.module = module
        self.options = options
        self.models = models
        self.placeholders = [
            n for n in module.graph.nodes if n.op == "placeholder"
        ]
        # What has no elements has no address either.
        self.constants = [
            i
            for i in constants
            if options.freeze and self.placeholders[i].meta["val"].numel()
        ]
        results = module.graph.output_node().args[0]
        self.results = [
            n.meta["val"]
            for n in (
                results if isinstance(results, (list, tuple)) else [results]
            )
        ]
        self.device = self.results[0].device
        # Results that do not lie row-major, by number.
        self.turned = [
            i
            for i, fake in enumerate(self.results)
            if fake.stride() != empty(fake, "meta").stride()
        ]
        # A report asks for what was there before.
        self.stored = {} if options.correctness_report else dict(stored)
        self.lock = threading.Lock()  # Of what follows but `reported`.
        self.built: Built | None = None
        self.text = ""
        self.changes = 0
        self.refused = ""  # Why.
        self.reported = False

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if self.refused:
            return self.in_pytorch(tensors)
        built = self.built
        if built is None or not built.holds(tensors):
            built = self.rebuild(tensors)
            if built is None:
                return self.in_pytorch(tensors)
        inputs = [tensors[i] for i in built.given]
        for i in built.foreign:
            inputs[i] = inputs[i].to(self.device)
        try:
            outputs = built.engine(inputs)
        except (UnsupportedError, ResourceError) as error:
            if is_capturing(self.device):
                raise UsageError(str(error)) from error
            if built.engine.stored:
                self.store_nothing()
                return self.forward(*tensors)
            self.refuse(error)
            return self.in_pytorch(tensors)
        except InvalidError as error:
            self.fail(tensors, error)
        if self.options.correctness_report and not self.reported:
            self.report(tensors, outputs)
        for i in self.turned:
            outputs[i] = arrange(outputs[i], self.results[i])
        return tuple(outputs)

    def fail(self, tensors: Sequence, error: InvalidError) -> NoReturn:
        """A run has failed: an index is outside of a tensor. What PyTorch says
        of that is raised; on a GPU, where it would end the process, the error
        with the operators' names."""
        if self.device.type != "cuda":
            self.in_pytorch(tensors)
        names = ", ".join(self.operators())
        raise type(error)(f"{error}\nin a part of {names}") from error

    def operators(self) -> list[str]:
        return sorted(
            {
                str(n.target)
                for n in self.module.graph.nodes
                if n.op == "call_function" and n.target is not operator.getitem
            }
        )

    def report(self, tensors: Sequence, outputs: Sequence) -> None:
        """How far results are from PyTorch's, over the largest of each."""
        self.reported = True
        for i, (made, own) in enumerate(zip(outputs, self.in_pytorch(tensors))):
            if not own.is_floating_point():
                text = f"{int((made != own).sum())} of {own.numel()} differ"
            else:
                most = float(own.abs().max()) if own.numel() else 0.0
                off = float((made - own).abs().max()) if own.numel() else 0.0
                text = f"largest error {off:.3g}, largest value {most:.3g}"
            print(f"hidet: result {i}: {text}")

    def in_pytorch(self, tensors: Sequence[torch.Tensor]) -> tuple:
        made = self.module(*tensors)
        return (
            made
            if isinstance(made, tuple)
            else tuple(made)
            if isinstance(made, list)
            else (made,)
        )

    def rebuild(self, tensors: Sequence[torch.Tensor]) -> Built | None:
        """What another thread has built meanwhile, or anew; None: refused."""
        with self.lock:
            if self.refused:
                return None
            if self.built is None or not self.built.holds(tensors):
                if is_capturing(self.device):
                    raise UsageError(
                        "nothing is compiled while a CUDA graph is captured: "
                        "call the model once before, with tensors of the same "
                        "sizes"
                    )
                if self.built is not None:
                    self.changes += 1
                self.built = self.build(tensors)
            return self.built

    def forgetter(self) -> Callable[[], None]:
        """For when a constant is no more."""
        own = weakref.ref(self)

        def forget() -> None:
            part = own()
            if part is not None and part.built is not None:
                part.built = None
                part.changes += 1

        return forget

    def store_nothing(self) -> None:
        """Results are tensors of their own from now on."""
        with self.lock:
            self.stored, self.built = {}, None

    def build(self, tensors: Sequence[torch.Tensor]) -> Built | None:
        # What changes again and again, or cannot say whether it has.
        self.constants = [
            i
            for i in self.constants
            if self.changes < self.MOST_CHANGES
            and not tensors[i].is_inference()
        ]
        take = taker(self.constants)
        # Before anything is read.
        watched = watch(take(tensors), self.forgetter())
        fixed = {self.placeholders[i]: tensors[i] for i in self.constants}
        given = [
            i for i, node in enumerate(self.placeholders) if node not in fixed
        ]
        try:
            engine = self.compile(fixed, given)
        except (UnsupportedError, ResourceError) as error:
            self.refuse(error)
            return None
        fakes = [self.placeholders[i].meta["val"] for i in given]
        foreign = [i for i, f in enumerate(fakes) if f.device != self.device]
        return Built(
            engine,
            given,
            foreign,
            self.constants,
            watched,
            take,
        )

    def compile(self, fixed: dict, given: list[int]) -> Engine:
        """By dimensions where the graph has some, for sizes that come later
        too; where that is refused, which is said, for these numbers."""
        letters = letters_of_inputs(self.module.graph, fixed)
        try:
            return self.make_engine(fixed, given, letters)
        except InvalidError as error:
            if not letters:
                raise
            log.warning("a part is compiled for its sizes alone: %s", error)
            return self.make_engine(fixed, given, frozenset())

    def make_engine(
        self, fixed: dict, given: list[int], letters: frozenset[str]
    ) -> Engine:
        self.text, names = emit_graph(self.module.graph, fixed, letters)
        weights = {names[node]: tensor for node, tensor in fixed.items()}
        self.options.dump(self.text)
        stored = self.stored_of(given, letters)
        model = self.models.find(
            self.text,
            weights,
            self.device,
            self.options,
            letters,
            self.inouts_of(names, stored),
        )
        inputs = [self.placeholders[i].meta["val"] for i in given]
        engine = Engine(model, self.device, inputs, self.results, stored)
        if stored and not engine.in_place:
            self.stored = {}
            return self.make_engine(fixed, given, letters)
        return engine

    def stored_of(
        self, given: list[int], letters: frozenset[str]
    ) -> dict[int, int]:
        """Of results the number of the engine's input that they are one with;
        an executable of bounds has memory of its own."""
        if self.options.buckets and letters:
            return {}
        return {
            result: given.index(i)
            for result, i in self.stored.items()
            if i in given
        }

    def inouts_of(
        self, names: dict[fx.Node, str], stored: dict[int, int]
    ) -> dict[str, int]:
        return {
            names[self.placeholders[self.stored[result]]]: result
            for result in stored
        }

    def explain(self) -> tuple[str, dict[str, fx.Node]]:
        """What the compiler says of what was built, which is compiled anew for
        it, and which node each of its nodes is for, by name."""
        with self.lock:
            built = self.built
        tensors = built.watched.tensors if built else None
        if tensors is None:
            raise UsageError("weights of the model are no more")
        fixed = {
            self.placeholders[i]: tensor
            for i, tensor in zip(built.constants, tensors)
        }
        letters = built.engine.model.letters
        nodes: dict[str, fx.Node] = {}
        text, names = emit_graph(
            self.module.graph, fixed, letters, origins=nodes
        )
        weights = {names[node]: tensor for node, tensor in fixed.items()}
        model = Model(
            text,
            weights,
            self.device,
            self.options,
            letters,
            self.inouts_of(names, built.engine.stored),
            explained=True,
        )
        given = [self.placeholders[i].meta["val"] for i in built.given]
        engine = Engine(
            model, self.device, given, self.results, built.engine.stored
        )
        return engine.told, nodes

    def refuse(self, error: HidetError) -> None:
        self.refused = str(error)
        warnings.warn(
            f"hidet: a part of {', '.join(self.operators())} runs in PyTorch: {error}",
            stacklevel=2,
        )


def arrange(made: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
    """With the strides that PyTorch's own result would have had, unless its
    elements lie above each other in another way than an axis that is expanded."""
    strides = fake.stride()
    if made.stride() == strides or not made.numel():
        return made
    kept = made
    for axis, (size, stride) in enumerate(zip(fake.shape, strides)):
        if size > 1 and stride == 0:
            kept = kept.narrow(axis, 0, 1)
    reach = 1
    for stride, size in sorted(zip(strides, kept.shape)):
        if size > 1:
            if stride < reach:
                return made
            reach = stride * (size - 1) + reach
    place = torch.empty_strided(
        kept.shape, strides, dtype=fake.dtype, device=fake.device
    )
    return place.copy_(kept).as_strided(fake.shape, strides)
