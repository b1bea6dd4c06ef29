# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each source file carries its licence and names no machine's home folder; no
Python file hides a module of Python's own library from those beside it; C files
and schedule templates have a length that can be read. What a GPU takes in cycles,
microseconds or GB/s is a line of Machines.def, and no constant of C or of a
template. What a template's head requires is what its kernel can do: how many
multiprocessors there are, how fast they multiply and how much shared memory they
have is for its price. What prices were fitted by is a line of Fits.def, and names
results that there are.

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
HEAD = re.compile(r"^template \w+.*?^}", re.M | re.S)
DEMANDS = re.compile(r"\brequires\b(.*?)\btile\b", re.S)
WORTH = re.compile(r"\b(sms|fma|mma|wgmma)\b")
ROOM = 100000  # A number from which on it is bytes of shared memory.
RATE = re.compile(r"\brate\((?!.*\b(fma|mma|wgmma)\b)")
PRICE = re.compile(r"lib/.*Price[.]c$|lib/Fusion/Form/Cost[.]c$")
FITTED = re.compile(r"^static const double .*=")
FIT = re.compile(r'^HD_FIT\(\w+, +[\d.]+, +"([^"]+)"')
HOME = re.compile(r"(?<![\w.$}])/(root|home)/")


def sources(root):
    for path in sorted(root.rglob("*")):
        where = path.relative_to(root)
        if SKIPPED.search(str(where)) or not path.is_file():
            continue
        if path.suffix in SUFFIXES or path.name in NAMES:
            yield path, where


def faults_of_heads(where, text):
    """What heads of templates have of a machine."""
    for head in HEAD.finditer(text):
        first = text.count("\n", 0, head.start()) + 1
        demands = DEMANDS.search(head[0])
        asked = demands[1] if demands else ""
        # What attention's heads say of the multiprocessors is no price's yet.
        if WORTH.search(asked) and " implements attention(" not in head[0]:
            yield "%s:%d: requires '%s': what is worth doing is the price's" % (
                where, first, WORTH.search(asked)[0])
        if any(int(n) >= ROOM for n in re.findall(r"\d+", asked)):
            yield "%s:%d: requires room: that is what shared() is for" % (where, first)
        for number, line in enumerate(head[0].splitlines(), first):
            if RATE.search(line):
                yield "%s:%d: a rate that is no share of the machine's" % (
                    where, number)


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
        if str(where.parent) == TEMPLATES:
            yield from faults_of_heads(where, "\n".join(lines))
        is_chosen = re.match("lib/(Schedule|Fusion|Graph)/.*[.]([ch]|hir)$", str(where))
        for number, line in enumerate(lines, 1):
            if is_chosen and OF_A_MACHINE.search(line):
                yield "%s:%d: a property of a machine: " \
                    "lib/Schedule/Template/Machines.def has those" % (where, number)
            if PRICE.match(str(where)) and FITTED.match(line):
                yield "%s:%d: what a price was fitted by: " \
                    "lib/Schedule/Template/Fits.def has those" % (where, number)
            fit = where.name == "Fits.def" and FIT.match(line)
            if fit and not (root / "bench/results/h200" / fit[1]).is_file():
                yield "%s:%d: no such results: %s" % (where, number, fit[1])
            if HOME.search(line):
                yield "%s:%d: a home folder's path" % (where, number)


if __name__ == "__main__":
    found = list(faults(sys.argv[1]))
    print("\n".join(found) or "every source has its licence line")
    sys.exit(bool(found))
