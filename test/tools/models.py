# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs exported models and compares them with what PyTorch computed.

usage: models.py [--tools=DIR] [--device=ref|sim|cuda]... [--bound=1e-3]
                 [--limit=SECONDS] [--json=FILE] [--option=OPTION]...
                 FOLDER [NAME...]

FOLDER is what scripts/export_models.py wrote: NAME.onnx, and for each case the
inputs NAME[.CASE].in0.npy, ... and outputs NAME[.CASE].out0.npy, ... A NAME
picks a model or one of its cases.

A line each: the largest error over the output's largest value, the time to
import and to compile, of a run, of the whole process, its peak memory, the
number of kernels, and what the arena takes over its lower bound. Exits 1 if
one fails or is further off than the bound.
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

HEAD = ("model", "device", "error", "import ms", "compile ms", "run ms",
        "whole s", "peak MiB", "kernels", "arena", "")
ROW = "%-24s %-6s %9s %9s %10s %10s %8s %8s %7s %6s  %s"


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


def run(case, device, options, folder):
    """hidet-run's exit code, what it said, its report and the seconds."""
    report = os.path.join(folder, "report.json")
    command = [os.path.join(options.tools, "hidet-run"), str(case.model),
               "--device=" + device, "-q", "--rtol=0",
               "--atol=%g" % (options.bound * case.largest),
               "--json=" + report, *options.option]
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


def print_row(case, device, code, said, data, seconds, error):
    arena, bound = data.get("arena_bytes"), data.get(
        "arena_lower_bound_bytes")
    peak = data.get("peak_host_bytes")
    lines = [line for line in said.splitlines() if "error" in line] or [
        line for line in said.splitlines() if line.strip()]
    verdict = "ok" if code == 0 else "exit %s: %s" % (
        code, lines[0] if lines else "says nothing")
    print(ROW % (
        case.name, device, show(error, "%.1e"), show(data.get("import_ms")),
        show(data.get("compile_ms")),
        show(data.get("median_ms", data.get("first_run_ms"))),
        show(seconds), show(peak and peak / 2**20, "%.0f"),
        show(data.get("kernels"), "%d"),
        show(arena / bound if arena and bound else None, "%.3f"), verdict),
        flush=True)


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
    options = parser.parse_args()
    cases = list(find_cases(options))
    if not cases:
        raise SystemExit("%s: no such model" % options.folder)
    print(ROW % HEAD)
    rows, failed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            for device in options.device or ["sim"]:
                code, said, data, seconds = run(case, device, options, folder)
                error = error_of(case, data)
                print_row(case, device, code, said, data, seconds, error)
                failed += code != 0
                rows.append({"case": case.name, "device": device, "exit": code,
                             "error": error, "seconds": round(seconds, 2),
                             "report": data})
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    print("%d passed, %d failed" % (len(rows) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
