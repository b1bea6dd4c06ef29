#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Puts the least and the greatest numbers into every place of every module.

usage: extremes.py TARGET FOLDER [VALUE...]

TARGET is a fuzz target, built with sanitizers. For each literal of the modules
of the examples, the tests and the library, and each VALUE, it reads the module
with that literal replaced. What crashes it or takes over a second lies in
FOLDER afterwards, one input for each place of the code; the exit code says
whether there is any.
"""

import pathlib
import re
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
VALUES = ["0", "2147483647", "4611686018427387904", "9223372036854775807"]
MOST = 16384  # Characters of a module; the longest are generated.
BATCH = 200  # Inputs a process; a crash ends it.


def modules():
    for folder in ("examples", "test", "lib"):
        for file in sorted((ROOT / folder).rglob("*.hir")):
            for text in re.split(r"(?m)^// -----.*\n", file.read_text()):
                if len(text) <= MOST:
                    yield file.name, text


def variants(values):
    for name, text in modules():
        for match in re.finditer(r"(?<![\w.])\d+(?![\w.])", text):
            line = text.rfind("\n", 0, match.start()) + 1
            if "//" in text[line : match.start()]:
                continue
            for value in values:
                yield name, text[: match.start()] + value + text[match.end() :]


def is_slow(target, file):
    """Whether it takes a second of the processor alone, startup included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([target, file], capture_output=True, check=False)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before >= 1


def run(target, files, found):
    """Runs the files; how many were read, and what stopped at the last one."""
    command = [target, f"-artifact_prefix={found}/", "-timeout=20", *files]
    ran = subprocess.run(command, capture_output=True, text=True, errors="replace")
    slow = re.findall(r"Executed (\S+) in (\d+) ms", ran.stderr)
    slow = [file for file, ms in slow if int(ms) >= 1000 and is_slow(target, file)]
    if ran.returncode == 0:
        return len(files), None, slow
    why = re.search(r"SUMMARY: (.*)|(ERROR: .*)|(.*Assertion.*)", ran.stderr)
    read = len(re.findall(r"^Running: ", ran.stderr, re.M))
    return max(read, 1), why.group(0).strip() if why else "?", slow


def main():
    target, found = sys.argv[1], pathlib.Path(sys.argv[2])
    found.mkdir(parents=True, exist_ok=True)
    cases = list(variants(sys.argv[3:] or VALUES))
    seen = {}
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for i, (_, text) in enumerate(cases):
            files.append(f"{folder}/{i}.hir")
            pathlib.Path(files[-1]).write_text(text)
        at = 0
        while at < len(files):
            count, why, slow = run(target, files[at : at + BATCH], found)
            at += count
            findings = [(file, f"slow: {file}") for file in slow]
            if why:
                findings.append((files[at - 1], why))
            for file, what in findings:
                if what not in seen:
                    name, text = cases[int(pathlib.Path(file).stem)]
                    (found / f"extreme-{len(seen)}.hir").write_text(text)
                    print(f"{found}/extreme-{len(seen)}.hir: {name}: {what}")
                seen[what] = seen.get(what, 0) + 1
    for artifact in found.glob("crash-*"):
        artifact.unlink()  # The same inputs.
    print(f"{len(cases)} modules, {sum(seen.values())} findings")
    return 1 if seen else 0


if __name__ == "__main__":
    sys.exit(main())
