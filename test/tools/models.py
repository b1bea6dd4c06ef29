# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs exported models and compares them with what PyTorch computed.

usage: models.py [--tools=DIR] [--device=ref|sim|cuda]... [--bound=1e-3]
                 [--limit=SECONDS] [--json=FILE] [--option=OPTION]...
                 [--way=NAME=OPTIONS]... [--fusion] FOLDER [NAME...]

FOLDER is what scripts/export_models.py wrote: NAME.onnx, and for each case the
inputs NAME[.CASE].in0.npy, ... and outputs NAME[.CASE].out0.npy, ... A NAME
picks a model or one of its cases.

Each case is run in every way: --way=plain= --way=f16=--precision=f16 are two,
their options separated by spaces. --fusion is short for the ways `fused` and
`unfused` (nor rewritten), and then says what fusion saves: launches, and bytes
of activations that they move.

A line each: the largest error over the output's largest value, the time to
import and to compile, of a run, of the whole process, its peak memory, the
number of kernels and of launches, the MB of activations and of constants that
launches move, and what the arena takes over its lower bound. Exits 1 if one
fails or is further off than the bound, or has more launches than it may have
(LAUNCHES: fused on a device that has launches).
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy

HEAD = ("model", "device", "way", "error", "import ms", "compile ms", "run ms",
        "whole s", "peak MiB", "kernels", "launches", "act. MB", "const. MB",
        "arena", "")
ROW = "%-24s %-6s %-8s %8s %9s %10s %9s %7s %8s %7s %8s %8s %9s %6s  %s"

# The most launches of an inference, fused: nine a layer of a transformer and a
# few, one for each convolution and a few of the others.
LAUNCHES = {"resnet50": 56, "mobilenet_v2": 54, "inception_v3": 105,
            "bert_base": 111, "gpt2": 111, "vit_b_16": 113}
# Bytes of activations that fusion leaves of the unfused plan's, at most.
MOVED = {"resnet50": 0.5, "bert_base": 0.5}
FUSION = ["fused=", "unfused=--no-fusion --no-rewrites"]


class Case:
    """A model with inputs and the outputs that belong to them."""

    def __init__(self, model, stem):
        self.model, self.name = model, stem.name
        self.inputs = self.arrays(stem, "in")
        self.outputs = self.arrays(stem, "out")
        self.largest = max(float(numpy.abs(numpy.load(path)).max())
                           for path in self.outputs)

    @staticmethod
    def arrays(stem, kind):
        paths = []
        while (path := stem.with_name(
                "%s.%s%d.npy" % (stem.name, kind, len(paths)))).exists():
            paths.append(path)
        if not paths:
            raise SystemExit("%s: no %s0.npy" % (stem, kind))
        return paths


def find_cases(options):
    for model in sorted(options.folder.glob("*.onnx")):
        for path in sorted(options.folder.glob(model.stem + "*.in0.npy")):
            stem = path.with_name(path.name[:-len(".in0.npy")])
            # A dot comes before a case, so that of a longer name is another's.
            if stem.name.split(".")[0] != model.stem:
                continue
            if not options.names or {stem.name, model.stem} & set(
                    options.names):
                yield Case(model, stem)


def run(case, device, way, options, folder):
    """hidet-run's exit code, what it said, its report and the seconds."""
    report = os.path.join(folder, "report.json")
    command = [os.path.join(options.tools, "hidet-run"), str(case.model),
               "--device=" + device, "-q", "--rtol=0",
               "--atol=%g" % (options.bound * case.largest),
               "--json=" + report, *options.option, *way]
    command += ["--input=@%s" % path for path in case.inputs]
    command += ["--expected=@%s" % path for path in case.outputs]
    start = time.monotonic()
    try:
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, errors="replace",
                              timeout=options.limit)
        code, said = done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        code, said = "timeout", "takes longer than %g s" % options.limit
    seconds = time.monotonic() - start
    data = {}
    if os.path.exists(report):
        data = json.loads(pathlib.Path(report).read_text())
        os.remove(report)
    return code, said, data, seconds


def error_of(case, data):
    errors = [o.get("max_abs_error") for o in data.get("outputs", [])]
    if not errors or None in errors:
        return None
    return max(errors) / case.largest


def show(value, form="%.1f"):
    return "" if value is None else form % value


def megabytes(value):
    return show(value and value / 1e6)


def print_row(case, device, way, code, said, data, seconds, error):
    arena, bound = data.get("arena_bytes"), data.get(
        "arena_lower_bound_bytes")
    peak = data.get("peak_host_bytes")
    lines = [line for line in said.splitlines() if "error" in line] or [
        line for line in said.splitlines() if line.strip()]
    verdict = "ok" if code == 0 else "exit %s: %s" % (
        code, lines[0] if lines else "says nothing")
    print(ROW % (
        case.name, device, way, show(error, "%.1e"), show(data.get("import_ms")),
        show(data.get("compile_ms")),
        show(data.get("median_ms", data.get("first_run_ms"))),
        show(seconds), show(peak and peak / 2**20, "%.0f"),
        show(data.get("kernels"), "%d"), show(data.get("launches"), "%d"),
        megabytes(data.get("moved_bytes")),
        megabytes(data.get("moved_constant_bytes")),
        show(arena / bound if arena and bound else None, "%.3f"), verdict),
        flush=True)


def too_much(case, ways):
    """What fusion leaves too much of, of a case that ran in both ways."""
    fused, unfused = ways["fused"], ways["unfused"]
    name = case.model.stem
    if "launches" not in fused or "launches" not in unfused:
        return
    part = fused["moved_bytes"] / unfused["moved_bytes"]
    print("%-24s %d launches of %d, moves %.3f of the activations" % (
        case.name, fused["launches"], unfused["launches"], part))
    if fused["launches"] > LAUNCHES.get(name, fused["launches"]):
        yield "%d launches, and %d are allowed" % (
            fused["launches"], LAUNCHES[name])
    if part > MOVED.get(name, part):
        yield "moves %.3f of the activations, and %.3f are allowed" % (
            part, MOVED[name])


def parse_way(text):
    name, _, options = text.partition("=")
    return name, options.split()


def run_case(case, device, options, folder, rows):
    """How many of its runs failed."""
    ways, failed = {}, 0
    for way, extra in options.ways:
        code, said, data, seconds = run(case, device, extra, options, folder)
        error = error_of(case, data)
        print_row(case, device, way, code, said, data, seconds, error)
        failed += code != 0
        ways[way] = data
        rows.append({"case": case.name, "device": device, "way": way,
                     "exit": code, "error": error,
                     "seconds": round(seconds, 2), "report": data})
    if options.fusion:
        for fault in too_much(case, ways):
            print("%-24s %s" % (case.name, fault), flush=True)
            failed += 1
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", default="")
    parser.add_argument("--device", action="append")
    parser.add_argument("--bound", type=float, default=1e-3)
    parser.add_argument("--limit", type=float, default=900)
    parser.add_argument("--json")
    parser.add_argument("--option", action="append", default=[],
                        help="given to hidet-run; repeatable")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--way", action="append", default=[])
    parser.add_argument("--fusion", action="store_true")
    options = parser.parse_args()
    options.ways = [parse_way(way) for way in
                    options.way + (FUSION if options.fusion else [])]
    options.ways = options.ways or [("", [])]
    cases = list(find_cases(options))
    if not cases:
        raise SystemExit("%s: no such model" % options.folder)
    print(ROW % HEAD)
    rows, failed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            for device in options.device or ["sim"]:
                failed += run_case(case, device, options, folder, rows)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    print("%d runs, %d failures" % (len(rows), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
