# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the example kernels and compares them with numpy.

usage: run.py [--tools=DIR] [--device=sim|cuda]... [name...]

Prints a table: for each kernel and device the largest error and the time of a
run. Exits 1 if a result differs from numpy's by more than its tolerance.
Without --device: the simulator, and the GPU where there is a driver.
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

FOLDER = pathlib.Path(__file__).resolve().parent


def save(folder, name, value):
    """An argument of hidet-run: numbers as they are, arrays as files."""
    if np.ndim(value) == 0 and not isinstance(value, np.ndarray):
        return "%s=%s" % (name, value)
    path = os.path.join(folder, name + ".npy")
    np.save(path, value)
    return "%s=@%s" % (name, path)


def run(tool, name, device, options):
    """Returns hidet-run's exit code, its report, and what it said."""
    function, rtol, atol, entry = EXAMPLES[name]
    arguments, expected = function(np.random.default_rng(0))
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        command = [tool, str(FOLDER / (name + ".hir")), "--device=" + device,
                   "--json=" + report, "--rtol=%g" % rtol, "--atol=%g" % atol]
        if entry:
            command.append("--entry=" + entry)
        for key, value in arguments.items():
            command.append("--input=" + save(folder, key, value))
        os.mkdir(os.path.join(folder, "expected"))
        for key, value in expected.items():
            command.append("--expected=" + save(
                os.path.join(folder, "expected"), key, value))
        result = subprocess.run(command + options, text=True,
                                stdout=subprocess.PIPE,
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


def milliseconds(value):
    return "-" if value is None else "%.*f ms" % (1 if value >= 1 else 4, value)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default=None, help="folder of hidet-run")
    parser.add_argument("--device", action="append")
    parser.add_argument("--option", action="append", default=[],
                        help="given to hidet-run as it is")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    tool = os.path.join(options.tools or "", "hidet-run")
    names = options.names or list(EXAMPLES)
    width = max(map(len, names), default=0)

    failures = 0
    print("%-*s  %-6s  %13s  %13s  %12s  %12s" % (
        width, "kernel", "device", "largest error", "tolerance", "compile",
        "run"))
    for device in options.device or devices():
        for name in names:
            code, report, said = run(tool, name, device, options.option)
            errors = [output["max_abs_error"]
                      for output in report.get("outputs", [])
                      if "max_abs_error" in output]
            _, rtol, atol, _ = EXAMPLES[name]
            print("%-*s  %-6s  %13s  %13s  %12s  %12s%s" % (
                width, name, device,
                "%.2e" % max(errors) if errors else "-",
                "%g, %g" % (rtol, atol),
                milliseconds(report.get("compile_ms")),
                milliseconds(report.get("median_ms",
                                        report.get("first_run_ms"))),
                "" if code == 0 else "  FAILED"), flush=True)
            if code != 0:
                failures += 1
                print(said, end="")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
