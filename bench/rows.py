# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Softmax and norms by the templates that are chosen for them, or by each of
their candidates, beside PyTorch's best (eager or compiled) and the device's copy
of as many bytes.

usage: rows.py --tools=DIR [--json=FILE] [--seconds=N] [--candidates]
           [--no-torch] [CASE...]

One line a case: microseconds, share of the copy's bandwidth, PyTorch's time over
ours. --candidates pins every candidate in turn, and says the best and what the
chosen one is to it. CASE: a part of a case's name.
"""
import argparse
import itertools
import pathlib
import re
import tempfile
import time

import measure

NORM = "{ s = 1, epsilon = 1.0e-5, count = %d }"
# What each computes, of x[m, n], with g and b[n]; tensors read that are as
# large as x, vectors of n.
TASKS = {
    "softmax": ("softmax(%(x)s) { s = 1 }", 0),
    "layer_norm": ("layer_norm(%(x)s, %(g)s, %(b)s) " + NORM, 2),
    "rms_norm": ("rms_norm_scale(%(x)s, %(g)s) " + NORM, 1),
}
CASES = [
    ("softmax", "f16", 4096, 4096), ("softmax", "f32", 4096, 4096),
    ("softmax", "f16", 16384, 1024), ("softmax", "f16", 1024, 50257),
    ("softmax", "f32", 1024, 50257), ("softmax", "f16", 128, 128256),
    ("softmax", "f16", 262144, 2048), ("softmax", "f32", 2364, 197),
    ("softmax", "f16", 1536, 128), ("softmax", "f16", 1, 128256),
    ("layer_norm", "f16", 4096, 4096), ("layer_norm", "f32", 4096, 4096),
    ("layer_norm", "f16", 16384, 1024), ("layer_norm", "f16", 262144, 2048),
    ("layer_norm", "f16", 128, 768), ("layer_norm", "f32", 128, 768),
    ("layer_norm", "f16", 197, 768), ("rms_norm", "f16", 4096, 4096),
    ("rms_norm", "f16", 128, 2048), ("rms_norm", "f16", 16384, 1024),
]
CANDIDATES = (
    ["rows_registers(WORKERS = %d, ROWS = %d)" % c for c in itertools.product(
        (4, 8, 16, 32, 64, 128, 256, 512, 1024), (1, 2, 4, 8, 16, 32)) if c[0] * c[1] <= 1024]
    + ["rows_again(WORKERS = %d)" % w for w in (128, 256, 512, 1024)]
    + ["rows_shared(WORKERS = %d, BLOCKS = %d)" % c for c in itertools.product(
        (128, 256, 512, 1024), (1, 2, 4, 8))])


def size_of(task, kind, m, n):
    """Bytes read and written, each once."""
    return (2 * m * n + TASKS[task][1] * n) * (2 if kind == "f16" else 4)


def graph(task, kind, m, n, pin, copies):
    text, vectors = TASKS[task]
    given, body = [], []
    for i in range(copies):
        names = {name: name + str(i) for name in "xgb"}
        given.append("x%d: %s[%d, %d]" % (i, kind, m, n))
        given += ["%s%d: %s[%d]" % (v, i, kind, n) for v in "gb"[:vectors]]
        call = (text.replace("%d", str(n))) % names
        body.append("y%d: %s[%d, %d] = %s%s" % (i, kind, m, n, call,
                                                " with " + pin if pin else ""))
    return "graph main(%s) -> %s {\n  %s\n}\n" % (
        ", ".join(given), ", ".join("y%d" % i for i in range(copies)), "\n  ".join(body))


def peer(task, kind, m, n, compiled):
    import torch
    from torch.nn import functional
    dtype = torch.float16 if kind == "f16" else torch.float32

    def softmax(x, *_):
        return functional.softmax(x, -1)

    def layer_norm(x, g, b):
        return functional.layer_norm(x, (n,), g, b, 1e-5)

    def rms_norm(x, g):
        return functional.rms_norm(x, (n,), g, 1e-5)

    call = {"softmax": softmax, "layer_norm": layer_norm, "rms_norm": rms_norm}[task]
    if compiled:
        call = torch.compile(call)

    def operands():
        return ((torch.randn(m, n, device="cuda", dtype=dtype),)
                + tuple(torch.randn(n, device="cuda", dtype=dtype)
                        for _ in range(TASKS[task][1])))

    ms = measure.peer(operands, call)
    torch.cuda.empty_cache()
    return ms, None


def copy(size):
    """Milliseconds of a copy that reads and writes so many bytes."""
    import torch

    def operands():
        x = torch.empty(max(size // 2, 1), device="cuda", dtype=torch.uint8)
        return x, torch.empty_like(x)

    ms = measure.peer(operands, lambda x, y: y.copy_(x))
    torch.cuda.empty_cache()
    return ms, None


class Bench:
    def __init__(self, options):
        self.options, self.cases = options, []
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.until = time.monotonic() + options.seconds

    def ours(self, case, pin):
        copies = min(100, -(-120_000_000 // size_of(*case)))
        path = self.folder / "graph.hir"
        path.write_text(graph(*case, pin, copies))
        ms, report = measure.run(self.options.tools, path,
                                 ["--no-cache", "--no-early-launches"])
        return ms and ms / copies, report

    def candidates(self, case):
        found = []
        for pin in CANDIDATES:
            if time.monotonic() > self.until:
                break
            ms, report = self.ours(case, pin)
            if ms is not None:
                found.append((ms * 1000, pin))
            elif ": it requires " not in report:
                print("  FAILED %s: %s" % (pin, report.strip()[-300:]), flush=True)
        return sorted(found)

    def run(self, case):
        name = "%s %s %dx%d" % case
        measures = {"ours": lambda: self.ours(case, None)}
        if not self.options.no_torch:
            measures.update(copy=lambda: copy(size_of(*case)),
                            eager=lambda: peer(*case, False),
                            compiled=lambda: peer(*case, True))
        times, report = measure.in_turns(measures)
        if times is None:
            print("%-28s FAILED: %s" % (name, report.strip()[-300:]), flush=True)
            return
        us = {key: ms * 1000 for key, ms in times.items()}
        line = "%-28s %9.2f us" % (name, us["ours"])
        if "copy" in us:
            line += "  %.3f of the copy  PyTorch %9.2f  %.2f x" % (
                us["copy"] / us["ours"], min(us["eager"], us["compiled"]),
                min(us["eager"], us["compiled"]) / us["ours"])
        found = self.candidates(case) if self.options.candidates else []
        if found:
            line += "  best %.2f us %s, %.2f of the chosen" % (
                *found[0], found[0][0] / us["ours"])
        print(line, flush=True)
        for slow in found[:6]:
            print("    %9.2f us %s" % slow, flush=True)
        self.cases.append({"case": name, "bytes": size_of(*case), "us": us,
                           "candidates": found})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="build/bin")
    parser.add_argument("--json")
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--candidates", action="store_true")
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    bench = Bench(options)
    for case in CASES:
        name = "%s %s %dx%d" % case
        if not options.names or any(re.search(part, name) for part in options.names):
            if time.monotonic() < bench.until:
                bench.run(case)
    if options.json and not options.no_torch:
        measure.write(options.json, bench.cases)


if __name__ == "__main__":
    main()
