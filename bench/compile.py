# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile times of two builds, in turns.

For each file: instructions (valgrind's, of 21 compilations, which a busy machine
does not change) and the median time of a compilation, the least of --turns runs
of both builds, one after the other. A file is looked for in each build's own
FOLDER/examples, since the language may have changed in between.

usage: compile.py OLD OLD_SOURCES NEW NEW_SOURCES [name...]

OLD and NEW are bench_compile (`ninja bench_compile`).
"""

import argparse
import json
import pathlib
import re
import subprocess
import tempfile


def instructions(bench, path):
    result = subprocess.run(
        ["valgrind", "--tool=cachegrind", "--cache-sim=no",
         "--cachegrind-out-file=/dev/null", bench, path], text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
    return int(re.search(r"I +refs: +([0-9,]+)",
                         result.stderr)[1].replace(",", ""))


def median_ms(bench, path):
    with tempfile.NamedTemporaryFile() as report:
        subprocess.run([bench, "--json", report.name, path], check=True,
                       stdout=subprocess.DEVNULL)
        return json.loads(pathlib.Path(report.name).read_text())[0]["median_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("old", "old_sources", "new", "new_sources"):
        parser.add_argument(name)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("names", nargs="*", help="default: all examples")
    args = parser.parse_args()
    builds = ((args.old, pathlib.Path(args.old_sources, "examples")),
              (args.new, pathlib.Path(args.new_sources, "examples")))
    names = args.names or sorted(
        path.stem for path in builds[0][1].glob("*.hir"))
    print("%-18s%26s%24s" % ("", "million instructions", "ms"))
    for name in names:
        counts, times = [], ([], [])
        files = [str(folder / (name + ".hir")) for _, folder in builds]
        for (bench, _), file in zip(builds, files):
            counts.append(instructions(bench, file) / 1e6)
        for _ in range(args.turns):
            for (bench, _), file, best in zip(builds, files, times):
                best.append(median_ms(bench, file))
        a, b = map(min, times)
        print("%-18s%9.1f%9.1f %+6.2f %% %8.2f%8.2f %+6.1f %%" % (
            name, *counts, 100 * (counts[1] / counts[0] - 1), a, b,
            100 * (b / a - 1)), flush=True)


if __name__ == "__main__":
    main()
