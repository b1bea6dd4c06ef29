# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the two tools say of a compiled model's file: its launches with what
they read and write, what they are expected to take or were measured to, its
text after each pass, and how far its nodes are from f32.

Each launch is a line of the plan, whose tensors say how many bytes it moves at
least; the products of the graph say how many operations it has.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

import hidet
from hidet.errors import InternalError
from hidet.runtime import Device, Module

# The passes that a session runs, in its order (lib/Runtime/Model.c).
PASSES = (
    "rewrite",
    "scan-loops",
    "fold-norms",
    "fold-weights",
    "choose-layouts",
    "pair-products",
    "prepare",
    "fuse",
    "schedule",
    "early-launches",
)
HEADER = re.compile(r"^// ----- IR after ([\w-]+) -----\n", re.M)
ITEM = re.compile(r"^(graph|plan|kernel) (\w+)\(.*?^\}", re.M | re.S)
TENSOR = re.compile(r"(\w+): (\w+)\[([^\]]*)\]")
NUMBERS = re.compile(r"\[[^\[\]=]{400,}\]")  # A constant, written out.
LAUNCH = re.compile(r"^  launch (\w+)\(([^)]*)\)", re.M)
VIEW = re.compile(r"^  view (\w+): .*= (\w+)", re.M)
NODE = re.compile(
    r"^ +(?:anchor )?(\w+): (\w+)\[([\d, ]*)\].*? = ([\w.]+)\(([\w, ]*)\)"
)
PLANNED = re.compile(r"plan: (\S+) '(\w+)'(?: and \d+ more)?: (.*)")
PRICED = re.compile(
    r"schedule: \S+: (\w+\[.*?\]), .*?([\d.]+) us (?:are|were) expected"
)

# Of a node's kernels the template and the price are said at the first.
ABOVE = "with the one above"


# Of a multiprocessor of each architecture, as its vendor says: operations a
# cycle in each type, sums in f32.
OPERATIONS = {
    75: {"f16": 1024, "f32": 128},
    80: {"f16": 2048, "bf16": 2048, "tf32": 1024, "f32": 128},
    86: {"f16": 512, "bf16": 512, "tf32": 256, "f32": 256},
    89: {"f16": 512, "bf16": 512, "tf32": 256, "f32": 256},
    90: {"f16": 4096, "bf16": 4096, "tf32": 2048, "f32": 256},
}


@dataclasses.dataclass(frozen=True)
class Machine:
    """What a plan was made for. bandwidth: of its memory, in bytes a second.
    peaks: operations a second, by type."""

    name: str
    bandwidth: float
    peaks: dict[str, float]


def machine_of(said: dict) -> Machine:
    """By what hidet-opt says (lib/Schedule/Template/Machines.def)."""
    count, hertz = said["multiprocessors"], said["mhz"] * 1e6
    return Machine(
        f"an sm_{said['sm']} of {count} multiprocessors",
        said["gbs"] * 1e9,
        {
            kind: operations * count * hertz
            for kind, operations in OPERATIONS[said["sm"]].items()
        },
    )


@dataclasses.dataclass
class Launch:
    """us: what it took, or is expected to; None: not known. flop: 0: it has no
    product. blocks, threads: 0: the device decides."""

    kernel: str
    reads: list[str]
    writes: list[str]
    bytes: int
    blocks: int
    threads: int
    nodes: list[str] = dataclasses.field(default_factory=list)
    module: str = ""
    template: str = ""
    flop: int = 0
    us: float | None = None


@dataclasses.dataclass
class Section:
    """A part of a model. passes, kernels: names and texts. errors: of each node
    what `hidet-run --compare=f32` says."""

    title: str
    device: str
    machine: Machine
    measured: bool  # Whether times were.
    launches: list[Launch]
    prepared: int  # Launches that run once, of constants alone.
    passes: list[tuple[str, str]]
    kernels: list[tuple[str, str]]
    choices: list[str]
    errors: list[dict]
    messages: list[str]  # What went wrong on the way.


def collect(
    title: str,
    file: pathlib.Path,
    device: Device,
    shapes: Sequence[tuple[int, ...]],
    errors: bool,
    modules: Mapping[str, str],
) -> Section:
    """Of what Model.save() wrote, for inputs of these shapes. modules: for
    names of values, where in somebody's model they come from."""
    sizes = sizes_of(str(Module.load_onnx(str(file))), shapes)
    bound = ",".join(f"{name}={size}" for name, size in sizes.items())
    where = [f"--device={device.name}", "--quiet", str(file)]
    where += [f"--shape={name}={size}" for name, size in sizes.items()]
    profile: dict = {}
    if device.kind == "cuda":
        profile, _ = run_tool(["run", "--profile", *where])
    made = file.with_suffix(".hir")
    said, told = run_tool(
        ["opt", str(file), f"--output={made}", "--explain"]
        + [f"--target={profile.get('target', 'sm_90a')}"]
        + ["--print-ir-after-change", f"--expand={bound}".rstrip("=")]
        + [f"--{name}" for name in PASSES]
    )
    pieces = HEADER.split(told)[1:]
    passes = list(zip(pieces[::2], map(without_kernels, pieces[1::2])))
    remarks = said.get("diagnostics", [])
    items = items_of(made.read_text() if made.exists() else "")
    plans = {n: text for kind, n, text in items if kind == "plan"}
    launches = launches_of(plans.get("main", ""), said.get("entries", []))
    name_launches(launches, remarks, dict(passes).get("fuse", ""), modules)
    measured = take_times(launches, profile.get("profile", []))
    ran = run_tool(["run", "--compare=f32", *where])[0] if errors else {}
    return Section(
        title,
        device.kind,
        machine_of(said["machine"]),
        measured,
        launches,
        sum(len(LAUNCH.findall(t)) for n, t in plans.items() if n != "main"),
        passes,
        [(name, text) for kind, name, text in items if kind == "kernel"],
        [d["message"] for d in remarks if d["severity"] == "remark"],
        ran.get("compare", []),
        [fault for each in (profile, said, ran) for fault in faults_of(each)],
    )


def run_tool(arguments: list[str]) -> tuple[dict, str]:
    """What one of the tools writes as JSON, and what it prints on stderr."""
    package = pathlib.Path(hidet.__file__).parent.parent
    paths = [str(package), os.environ.get("PYTHONPATH", "")]
    with tempfile.NamedTemporaryFile() as file:
        ran = subprocess.run(
            [sys.executable, "-m", "hidet", *arguments, f"--json={file.name}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            },
        )
        try:
            return json.loads(pathlib.Path(file.name).read_text()), ran.stderr
        except ValueError:
            raise InternalError(
                f"hidet-{arguments[0]} ends with {ran.returncode}: "
                f"{ran.stderr[-1000:]}"
            ) from None


def faults_of(said: dict) -> list[str]:
    return [
        d["message"]
        for d in said.get("diagnostics", [])
        if d["severity"] in ("error", "warning")
    ]


def without_kernels(text: str) -> str:
    """The graphs and plans of what is printed of a module."""
    shown = [t for kind, _, t in items_of(text) if kind != "kernel"]
    return NUMBERS.sub("[...]", "\n\n".join(shown))


def items_of(text: str) -> list[tuple[str, str, str]]:
    return [(m[1], m[2], m[0]) for m in ITEM.finditer(text)]


def sizes_of(text: str, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """What the graph's dimensions are for inputs of these shapes."""
    header = re.findall(r"^graph \w+\((.*)\)", text, re.M)[-1]
    sizes = {}
    for (_, _, axes), shape in zip(TENSOR.findall(header), shapes):
        for axis, size in zip(axes.split(", "), shape):
            if axis.isidentifier():
                sizes[axis] = size
    return sizes


def bytes_of(kind: str, axes: str) -> int:
    digits = re.sub(r"\D", "", kind.split("e")[0])
    bits = {"bool": 8, "tf32": 32}.get(kind) or int(digits)
    return count_of(axes) * bits // 8


def count_of(axes: str) -> int:
    return math.prod(int(axis) for axis in axes.split(",") if axis.strip())


def launches_of(plan: str, entries: list[dict]) -> list[Launch]:
    kernels = {entry["name"]: entry for entry in entries}
    tensors = {n: bytes_of(k, axes) for n, k, axes in TENSOR.findall(plan)}
    whole = dict(VIEW.findall(plan))
    launches = []
    for name, given in LAUNCH.findall(plan):
        names = [a.strip() for a in given.split(",")]
        kernel = kernels[name]
        ways = [p.get("direction", "") for p in kernel["parameters"]]
        parts = {n: tensors[n] for n in names if n in tensors}
        reads = [n for n, way in zip(names, ways) if way in ("in", "inout")]
        writes = [n for n, way in zip(names, ways) if way in ("out", "inout")]
        launches.append(
            Launch(
                name,
                [whole.get(n, n) for n in reads],
                [whole.get(n, n) for n in writes],
                sum(parts.values()),
                volume_of(kernel["grid"]),
                volume_of(kernel["block"]),
            )
        )
    return launches


def volume_of(dims: list) -> int:
    """0 where one is a text, which asks for the device."""
    return math.prod(d if isinstance(d, int) else 0 for d in dims)


def name_launches(
    launches: list[Launch],
    remarks: list[dict],
    fused: str,
    modules: Mapping[str, str],
) -> None:
    """Says of each launch which nodes it is, by the remarks of the plan, which
    are in the order of the launches; those of what is prepared come before or
    after them."""
    said = planned_of(remarks)
    names = [launch.kernel for launch in launches]
    for first in (0, len(said) - len(names)):
        if [row[0] for row in said[first : first + len(names)]] == names:
            break
    else:
        return
    groups = groups_of(fused)
    for launch, row in zip(launches, said[first:]):
        _, label, operator, launch.template, launch.us = row
        nodes = groups.get(label, [(label, operator, 0)])
        launch.nodes = [f"{op} {name}" for name, op, _ in nodes]
        if launch.template != ABOVE:
            launch.flop = sum(flop for _, _, flop in nodes)
        launch.module = next(
            (modules[n] for n, _, _ in nodes if modules.get(n)), ""
        )


def planned_of(remarks: list[dict]) -> list[tuple]:
    """Of each kernel of a plan its name, node and operator, the template that
    it is of and what that is expected to take, which is for all kernels of a
    node together."""
    prices: dict[str, tuple[str, float]] = {}
    rows: list[tuple] = []
    last = 0
    for remark in remarks:
        text, at = remark["message"], remark.get("location", "")
        priced, planned = PRICED.match(text), PLANNED.match(text)
        if priced and at:
            prices[at] = priced[1], float(priced[2])
        elif planned:
            operator, label, kernels = planned.groups()
            last = len(rows)
            template, us = prices.get(at, ("", None))
            for kernel in kernels.split(", "):
                rows.append((kernel, label, operator, template, us))
                template, us = ABOVE, None
        elif remark["severity"] == "note" and "schedule was made" in text:
            if last < len(rows) and at in prices:
                rows[last] = (*rows[last][:3], *prices[at])
    return rows


def groups_of(fused: str) -> dict[str, list[tuple[str, str, int]]]:
    """By each node's name the nodes that are in one kernel with it: names,
    operators and how many operations their products have."""
    graph = next((t for k, _, t in items_of(fused) if k == "graph"), "")
    shapes = {
        name: [int(size) for size in axes.split(",") if size]
        for name, _, axes in TENSOR.findall(graph)
        if re.fullmatch(r"[\d, ]*", axes)
    }
    groups: dict[str, list[tuple[str, str, int]]] = {}
    inside: list | None = None
    for line in graph.splitlines():
        node = NODE.match(line)
        if line.strip() == "group {":
            inside = []
        elif line.strip() == "}":
            inside = None
        elif node:
            name, _, axes, operator, given = node.groups()
            operands = [shapes.get(n, []) for n in given.split(", ")]
            flop = flop_of(operator, count_of(axes), operands)
            group = inside if inside is not None else []
            group.append((name, operator, flop))
            groups[name] = group
    return groups


def flop_of(operator: str, results: int, operands: list[list[int]]) -> int:
    """Multiplications and additions of a product with so many results."""
    if operator.startswith("matmul") and operands[0]:
        return 2 * results * operands[0][-1]
    if operator.startswith("conv") and len(operands) > 1 and operands[1]:
        return 2 * results * math.prod(operands[1][1:])
    return 0


def take_times(launches: list[Launch], profile: list[dict]) -> bool:
    """Whether the profile is of these launches."""
    if not profile or len(profile) != len(launches):
        return False
    for launch, row in zip(launches, profile):
        launch.us, launch.bytes = row["us"], row["bytes"]
        launch.blocks, launch.threads = row["blocks"], row["threads"]
    return True
