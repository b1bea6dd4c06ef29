# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""compute-sanitizer's four tools over every example, at small sizes with
partial tiles.

usage: sanitizer.py [--tools=DIR] [name...]

A line for each example and tool. Exits 1 where a tool found something, and
where compute-sanitizer is missing.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))

import run  # noqa: E402
from examples import EXAMPLES  # noqa: E402

TOOLS = ["memcheck", "racecheck", "initcheck", "synccheck"]


def find():
    places = [os.environ.get("COMPUTE_SANITIZER"),
              shutil.which("compute-sanitizer"),
              "/usr/local/cuda/bin/compute-sanitizer"]
    for place in places:
        if place and os.path.exists(place):
            return place
    return None


def check(sanitizer, tool, hidet_run, name):
    sizes = EXAMPLES[name].sizes[1]
    with tempfile.TemporaryDirectory() as folder:
        command = run.command_line(hidet_run, name, sizes, "cuda", folder)
        return subprocess.run(
            [sanitizer, "--tool=" + tool, "--error-exitcode=99"] + command,
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    sanitizer = find()
    if not sanitizer:
        print("compute-sanitizer: not found (COMPUTE_SANITIZER names it)")
        return 1
    findings = 0
    for name in options.names or list(EXAMPLES):
        for tool in TOOLS:
            result = check(sanitizer, tool,
                           os.path.join(options.tools, "hidet-run"), name)
            clean = result.returncode == 0
            findings += not clean
            print("%-14s %-9s %s" % (name, tool, "clean" if clean else
                                     "FINDINGS (exit %d)" % result.returncode),
                  flush=True)
            if not clean:
                print(result.stdout, flush=True)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
