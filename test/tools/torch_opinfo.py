# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's own samples of its operators (OpInfo), through the backend, on the
simulator, against what PyTorch computes.

usage: torch_opinfo.py [--most=N] [--types=f32,f16,bf16,i64] [--filter=REGEX]
                       [--part=K/N] [--json=FILE] [--list] [--verbose]

Each sample is traced to ATen's operators, as torch.compile does; one counts if
an operator of the table is among them, and passes if all results are PyTorch's
within torch.testing's tolerance for their type, or no further than those from
what PyTorch computes in f64 (`exact` counts these). most: so many samples of each
operator and type at the most, from all of them evenly. Says how many pass, how
many of these have nothing left in PyTorch, and of which operators of PyTorch's
list and rows of the table they are. Exits 1 if fewer than 97 % pass.

Needs PyTorch and expecttest, which PyTorch's list of operators imports.
"""

import argparse
import collections
import json
import logging
import re
import sys
import warnings

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.func import functionalize
from torch.utils import _pytree as pytree

import hidet.torch
from hidet.torch import backend, table
from hidet.torch.config import Options
from hidet.torch.engine import Models

TYPES = {
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
}
# What another run would not give again, or what is no computation.
SKIPPED = re.compile(
    r"rand|bernoulli|multinomial|dropout|normal|^empty|new_empty|uniform"
    r"|cauchy|exponential|geometric|^log_normal|_like$|resize|^to$|item"
    r"|as_strided"
)


class Count:
    def __init__(self):
        self.tried = self.passed = self.whole = self.exact = 0
        self.faults = []


def samples_of(info, dtype, most):
    try:
        found = list(info.sample_inputs("cpu", dtype, requires_grad=False))
    except Exception:
        return []
    if len(found) > most:
        found = [found[i * len(found) // most] for i in range(most)]
    return found


def trace(info, sample):
    """The sample's graph of ATen's operators, its tensors, and their results."""
    given = (sample.input, sample.args, sample.kwargs)
    leaves, tree = pytree.tree_flatten(given)
    at = [i for i, leaf in enumerate(leaves) if torch.is_tensor(leaf)]
    tensors = [leaves[i] for i in at]

    def call(*tensors):
        whole = list(leaves)
        for i, tensor in zip(at, tensors):
            whole[i] = tensor
        first, rest, named = pytree.tree_unflatten(whole, tree)
        made = info.op(first, *rest, **named)
        return tuple(t for t in pytree.tree_leaves(made) if torch.is_tensor(t))

    own = call(*[t.clone() for t in tensors])
    graph = make_fx(
        functionalize(call),
        decomposition_table=table.decompositions(),
        tracing_mode="fake",
    )(*tensors)
    return graph, tensors, own


def as_exact(info, sample, made, own):
    """Whether results are no further from those in f64 than PyTorch's."""
    if not all(t.is_floating_point() for t in own):
        return False
    wide = pytree.tree_map(
        lambda t: (
            t.double() if torch.is_tensor(t) and t.is_floating_point() else t
        ),
        (sample.input, sample.args, sample.kwargs),
    )
    try:
        exact = info.op(wide[0], *wide[1], **wide[2])
    except Exception:
        return False
    exact = [t for t in pytree.tree_leaves(exact) if torch.is_tensor(t)]
    if not len(made) == len(own) == len(exact):
        return False
    for a, b, c in zip(made, own, exact):
        if (a.shape, a.dtype) != (b.shape, b.dtype) or c.shape != b.shape:
            return False
        # NaN is further than anything.
        near = (a.double() - c).abs().max() <= (b.double() - c).abs().max()
        if not torch.isfinite(c).all() or not near:
            return False
    return True


def rows_in(graph):
    return {
        node.target
        for node in graph.graph.nodes
        if node.op == "call_function" and node.target in table.table()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--most", type=int, default=8)
    parser.add_argument("--types", default="f32,f16,bf16,i64")
    parser.add_argument("--filter", default="")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--json")
    parser.add_argument("--list", action="store_true", help="name the faults")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    from torch.testing._internal.common_methods_invocations import op_db

    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    first, step = map(int, options.part.split("/"))
    by_info = collections.defaultdict(Count)
    by_row = collections.defaultdict(Count)
    for info in op_db[first::step]:
        name = info.name + ("." + info.variant_test_name).rstrip(".")
        if SKIPPED.search(info.name) or not re.search(options.filter, name):
            continue
        for short in options.types.split(","):
            dtype = TYPES[short]
            if dtype not in info.supported_dtypes("cpu"):
                continue
            for i, sample in enumerate(samples_of(info, dtype, options.most)):
                if options.verbose:
                    print(name, short, i, file=sys.stderr, flush=True)
                run(by_info[name], by_row, info, sample, f"{name} {short} {i}")
        if options.list:
            for fault in by_info[name].faults:
                print(fault, flush=True)
    return report(options, by_info, by_row)


def run(count, by_row, info, sample, name):
    torch.manual_seed(0)
    try:
        graph, tensors, own = trace(info, sample)
    except Exception:
        return  # PyTorch cannot trace it, or refuses the sample.
    rows = rows_in(graph)
    if not own or not rows:
        return
    counts = [count, *(by_row[str(row)] for row in rows)]
    for c in counts:
        c.tried += 1
    try:
        with torch.no_grad(), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            ready = backend.divide(graph, [], Options(), Models())
            if not ready.parts:
                for c in counts:  # All of it is refused, and said.
                    c.tried -= 1
                return
            made = ready.call(*[t.clone() for t in tensors])
            whole = not ready.left and not any(
                "hidet" in str(w.message) for w in said
            )
        try:
            torch.testing.assert_close(tuple(made), own, equal_nan=True)
        except AssertionError:
            if not as_exact(info, sample, made, own):
                raise
            count.exact += 1
    except Exception as fault:
        count.faults.append(f"{name}: {str(fault)[:300]}".replace("\n", " "))
        return
    for c in counts:
        c.passed += 1
        c.whole += whole


def report(options, by_info, by_row):
    tried = sum(c.tried for c in by_info.values())
    passed = sum(c.passed for c in by_info.values())
    whole = sum(c.whole for c in by_info.values())
    exact = sum(c.exact for c in by_info.values())
    infos = sum(1 for c in by_info.values() if c.passed)
    rows = sum(1 for c in by_row.values() if c.passed)
    print(
        f"{passed} of {tried} samples pass ({100 * passed / max(tried, 1):.2f} %), "
        f"{exact} of them by f64, "
        f"{whole} with nothing left in PyTorch; of {infos} operators of "
        f"PyTorch's list; {rows} rows of the table"
    )
    if options.json:
        table = {
            "tried": tried,
            "passed": passed,
            "whole": whole,
            "exact": exact,
            "operators": {
                n: [c.tried, c.passed, c.whole]
                for n, c in sorted(by_info.items())
                if c.tried
            },
            "rows": {
                n: [c.tried, c.passed, c.whole]
                for n, c in sorted(by_row.items())
            },
            "faults": [f for c in by_info.values() for f in c.faults],
        }
        with open(options.json, "w") as file:
            json.dump(table, file, indent=1)
    return 1 if passed < 0.97 * tried else 0


if __name__ == "__main__":
    sys.exit(main())
