# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each source file carries its licence and names no machine's home folder; no
Python file hides a module of Python's own library from those beside it; C files
and schedule templates have a length that can be read. What a GPU takes in cycles,
microseconds or GB/s is a line of Machines.def, and no constant of C.

usage: check_sources.py ROOT
"""

import pathlib
import re
import sys

LICENCE = "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"
SUFFIXES = {".c", ".h", ".def", ".in", ".cmake", ".py", ".sh", ".hir",
            ".map", ".proto"}
NAMES = {"CMakeLists.txt", "run"}
# Not sources: what git ignores, and what tests read.
SKIPPED = re.compile(r"(^|/)(\.git|\.venv|build[^/]*|__pycache__)/"
                     r"|^fuzz/corpus/|^test/.*\.hir$")
MOST_LINES = 450
TEMPLATES = "lib/Schedule/templates"
MOST_TEMPLATE = 150  # Without comments and empty lines.
# A constant that is one of a machine's properties.
OF_A_MACHINE = re.compile(r"\b[A-Z0-9_]*(CYCLES|_US|_NS|_GBS|MHZ)\s*=\s*[\d.]+")
HOME = re.compile(r"(?<![\w.$}])/(root|home)/")


def sources(root):
    for path in sorted(root.rglob("*")):
        where = path.relative_to(root)
        if SKIPPED.search(str(where)) or not path.is_file():
            continue
        if path.suffix in SUFFIXES or path.name in NAMES:
            yield path, where


def faults(root):
    root = pathlib.Path(root)
    for path, where in sources(root):
        if path.suffix == ".py" and path.stem in sys.stdlib_module_names:
            yield "%s: a module of Python's library is called so" % where
        lines = path.read_text().splitlines()
        if not any(LICENCE in line for line in lines[:5]):
            yield "%s:1: no line '%s'" % (where, LICENCE)
        if path.suffix == ".c" and len(lines) > MOST_LINES:
            yield "%s: %d lines, more than %d: split it by what it does" % (
                where, len(lines), MOST_LINES)
        count = sum(not re.match(r"\s*(//|$)", line) for line in lines)
        if str(where.parent) == TEMPLATES and path.suffix == ".hir" and \
                count > MOST_TEMPLATE:
            yield "%s: %d lines without comments, more than %d: what templates " \
                "share is a function of lib/IR/library" % (
                    where, count, MOST_TEMPLATE)
        is_chosen = re.match("lib/(Schedule|Fusion|Graph)/.*[.][ch]$", str(where))
        for number, line in enumerate(lines, 1):
            if is_chosen and OF_A_MACHINE.search(line):
                yield "%s:%d: a property of a machine: " \
                    "lib/Schedule/Template/Machines.def has those" % (where, number)
            if HOME.search(line):
                yield "%s:%d: a home folder's path" % (where, number)


if __name__ == "__main__":
    found = list(faults(sys.argv[1]))
    print("\n".join(found) or "every source has its licence line")
    sys.exit(bool(found))
