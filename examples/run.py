# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the example kernels and compares them with numpy.

usage: run.py [--tools=DIR] [--device=sim|cuda]... [--sizes=first|odd|all]
              [--sanitize=SEEDS] [--run-only] [name...]

Prints a table: for each kernel and device the largest error and the time of a
run. Exits 1 if a result differs from numpy's by more than its tolerance.
Without --device: the simulator, and the GPU where there is a driver. With
--sanitize each runs on the simulator under its checks, with as many orders of
threads, asynchronous effects at the latest and at the earliest moment. With
--run-only nothing is compared: what is tested is that each compiles and starts.
"""

import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from examples import EXAMPLES

# Which of a row's sizes.
SIZES = {"first": slice(0, 1), "odd": slice(1, 2), "all": slice(None)}
FOLDER = pathlib.Path(__file__).resolve().parent


def save(folder, name, value):
    """An argument of hidet-run: numbers as they are, arrays as files."""
    if np.ndim(value) == 0 and not isinstance(value, np.ndarray):
        return "%s=%s" % (name, value)
    path = os.path.join(folder, name + ".npy")
    np.save(path, value)
    return "%s=@%s" % (name, path)


def command_line(tool, name, sizes, device, folder, compare=True):
    """hidet-run's arguments; what it reads is written to `folder`."""
    row = EXAMPLES[name]
    arguments, expected = row.make(sizes)
    command = [tool, str(FOLDER / (name + ".hir")), "--device=" + device,
               "--rtol=%g" % row.rtol, "--atol=%g" % row.atol]
    if row.entry:
        command.append("--entry=" + row.entry_of(sizes))
    os.mkdir(os.path.join(folder, "expected"))
    for key, value in arguments.items():
        command.append("--input=" + save(folder, key, value))
    for key, value in expected.items() if compare else ():
        command.append("--expected=" + save(
            os.path.join(folder, "expected"), key, value))
    return command


def run(tool, name, sizes, device, options, compare=True):
    """Returns hidet-run's exit code, its report, and what it said."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        command = command_line(tool, name, sizes, device, folder, compare)
        result = subprocess.run(command + ["--json=" + report] + options,
                                text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)
        if not os.path.exists(report):
            return result.returncode, {}, result.stdout
        with open(report) as file:
            return result.returncode, json.load(file), result.stdout


def devices():
    try:
        ctypes.CDLL("libcuda.so.1")
        return ["sim", "cuda"]
    except OSError:
        return ["sim"]


def duration(ms):
    if ms is None:
        return "-"
    return "%.0f us" % (1e3 * ms) if ms < 1 else "%.1f ms" % ms


def allowed(row):
    """The tolerance: absolute, and relative to what is expected."""
    if row.rtol == 0 and row.atol == 0:
        return "exact"
    return "%.0e + %.0e |y|" % (row.atol, row.rtol)


def other_gpu(row, code, report):
    """Whether it did not run because this GPU is not the one it is for."""
    return row.target and code == 4 and report.get("target") != row.target


COLUMNS = "%-16s  %-13s  %13s  %15s  %10s  %10s  %s"


def line(name, sizes, code, report):
    errors = [output["max_abs_error"] for output in report.get("outputs", [])
              if "max_abs_error" in output]
    return COLUMNS % (
        name, "x".join(map(str, sizes)),
        "%.1e" % max(errors) if errors and max(errors) else
        "0" if errors else "-",
        allowed(EXAMPLES[name]),
        duration(report.get("compile_ms")),
        duration(report.get("median_ms", report.get("first_run_ms"))),
        "ok" if code == 0 else
        "-" if other_gpu(EXAMPLES[name], code, report) else "FAILED")


def title(device, report):
    where = {"sim": "the simulator"}.get(device, report.get("device_name"))
    columns = COLUMNS % ("kernel", "sizes", "largest error", "allowed",
                         "compile", "run", "")
    return "\nOn %s, against numpy:\n\n%s" % (where or device, columns)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default=None, help="folder of hidet-run")
    parser.add_argument("--device", action="append")
    parser.add_argument("--sizes", choices=list(SIZES), default="first")
    parser.add_argument("--sanitize", type=int, metavar="SEEDS")
    parser.add_argument("--run-only", action="store_true")
    parser.add_argument("--option", action="append", default=[],
                        help="given to hidet-run as it is")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    tool = os.path.join(options.tools or "", "hidet-run")
    ways = [options.option]
    if options.sanitize:
        options.device = ["sim"]
        ways = [options.option + ["--sanitize", "--seed=%d" % (seed + 1),
                                  "--async=" + moment]
                for seed in range(options.sanitize)
                for moment in ("latest", "earliest")]

    runs = failures = 0
    for device in options.device or devices():
        titled = False
        for name in options.names or list(EXAMPLES):
            row = EXAMPLES[name]
            for sizes in row.sizes[SIZES[options.sizes]]:
                for way in ways:
                    code, report, said = run(tool, name, sizes, device, way,
                                             not options.run_only)
                    if not titled:
                        print(title(device, report))
                        titled = True
                    print(line(name, sizes, code, report).rstrip(), flush=True)
                    runs += 1
                    if other_gpu(row, code, report):
                        print("  needs " + row.target)
                    elif code != 0:
                        failures += 1
                        print(" ".join(way), said, sep="\n", end="")
    print("\n%d runs, %d %s" % (runs, runs - failures,
                                "that ended well" if options.run_only
                                else "as numpy says"))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
