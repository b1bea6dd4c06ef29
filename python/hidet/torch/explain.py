# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""hidet.explain(model, x): what runs when a compiled model is called.

    graph 1 of 1: 1 part, 0 operators in PyTorch
      part 1 on cpu: 3 operators, 1 input, 4 constants, 1 result
           2.40 us  matmul and 1 more  fc1  matmul_relu
           2.40 us  matmul             fc2  matmul
           4.80 us are expected of 2 of 2

A line is a node of the compiler's and how many are in one kernel with it, the
module that it comes from, and its kernels. What is expected are the templates'
prices (docs/TEMPLATES.md), for the GPU at hand or, on the simulator, the one
that it plans for; there those of rows (norms, softmax) are the host's.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sized

import torch
from torch import fx

from hidet.errors import HidetError
from hidet.torch import backend
from hidet.torch.part import Part

REMARK = re.compile(
    r"^<text>:(\d+):\d+: (?:remark: (plan|schedule)|(note)): (.*)$", re.M
)
PLANNED = re.compile(r"(\w+) '(\w+)'( and \d+ more)?: (.*)")
PRICED = re.compile(r"\w+: .* ([\d.]+) us (?:are|were) expected$")


@dataclasses.dataclass(frozen=True)
class Row:
    """A node of the text and those in one with it. us: None: no price."""

    kernels: str
    module: str
    operator: str
    us: float | None

    @property
    def price(self) -> str:
        return f"{self.us:8.2f} us" if self.us is not None else 11 * " "


def explain(function: Callable, *args: object, **kwargs: object) -> str:
    """Calls what torch.compile or hidet.compile() gave, and says what ran: the
    graphs in their order, the parts of each and what PyTorch ran between them,
    and the kernels of each part, which is compiled once more for it."""
    ran = versions_of(function, args, kwargs)
    if not ran:
        return "nothing of it ran by hidet: it is not compiled, or is training"
    lines = []
    for i, version in enumerate(ran):
        lines.append(
            f"graph {i + 1} of {len(ran)}: {number(version.parts, 'part')}, "
            f"{number(version.left, 'operator')} in PyTorch"
        )
        for name, reason in version.left.items():
            lines.append(f"  {name} runs in PyTorch: {reason}")
        for k, part in enumerate(version.parts):
            lines.append(f"  part {k + 1} {about(part)}")
            lines += ["    " + line for line in kernels_of(part)]
    return "\n".join(line.rstrip() for line in lines)


def versions_of(
    function: Callable, args: tuple, kwargs: dict
) -> list[backend.Version]:
    """Calls it: what ran of ours, in order."""
    ran: list[backend.Version] = []
    watch = ran.append
    backend.watchers.append(watch)
    try:
        with torch.no_grad():
            function(*args, **kwargs)
    finally:
        backend.watchers.remove(watch)
    return ran


def about(part: Part) -> str:
    nodes = [n for n in part.module.graph.nodes if n.op == "call_function"]
    built = part.built
    given = built.given if built else part.placeholders
    constants = built.constants if built else []
    return (
        f"on {part.device}: {number(nodes, 'operator')}, "
        f"{number(given, 'input')}, {number(constants, 'constant')}, "
        f"{number(part.results, 'result')}"
    )


def number(things: Sized, what: str) -> str:
    count = len(things)
    return f"{count} {what}{'s' * (count != 1)}"


def kernels_of(part: Part) -> list[str]:
    if part.refused:
        return [f"runs in PyTorch: {part.refused}"]
    try:
        remarks, nodes = part.explain()
    except HidetError as error:
        return [f"is not compiled alone: {error}"]
    rows = read_rows(remarks, nodes)
    if not rows:
        return ["no kernels: its results are known, or are inputs"]
    priced = [row.us for row in rows if row.us is not None]
    wide = [
        max((len(getattr(row, name)) for row in rows), default=0)
        for name in ("operator", "module")
    ]
    lines = [
        f"{row.price}  {row.operator:{wide[0]}}  {row.module:{wide[1]}}  "
        f"{row.kernels}"
        for row in rows
    ]
    for result in part.built.engine.stored:
        lines.append(f"result {result} is stored in the input that it is")
    lines.append(
        f"{sum(priced):8.2f} us are expected of {len(priced)} of {len(rows)}"
    )
    return lines


def read_rows(remarks: str, nodes: dict[str, fx.Node]) -> list[Row]:
    """A row for each `plan:`, with the price that was said at its node, or
    where a note says that its schedule was made."""
    prices: dict[str, float] = {}
    rows: list[Row] = []
    for line, kind, note, said in REMARK.findall(remarks):
        price = PRICED.match(said) if kind == "schedule" else None
        planned = PLANNED.match(said) if kind == "plan" else None
        if price:
            prices[line] = float(price[1])
        elif planned:
            operator, label, more, kernels = planned.groups()
            module = module_of(nodes.get(label.split("_")[0]))
            operator += more or ""
            rows.append(Row(kernels, module, operator, prices.get(line)))
        elif note and rows:
            rows[-1] = dataclasses.replace(rows[-1], us=prices.get(line))
    return rows


def module_of(node: fx.Node | None) -> str:
    """The module of the model that a node comes from, as "layers.0.mlp"."""
    stack = node.meta.get("nn_module_stack") if node else None
    if not stack:
        return ""
    path = list(stack.values())[-1][0]
    return re.sub(r"^[LG]\['\w+'\]\.?|_modules\.", "", path)
