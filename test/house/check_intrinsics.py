# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No code knows an intrinsic by its name: what is to be known of one stands in
its row of lib/IR/Intrinsics.def.

usage: check_intrinsics.py ROOT

MAKERS make calls of intrinsics and say of which row; no other file of the
library names an enumerator of a row. None compares a call's row with one, and
none has the name of an intrinsic, or how several begin, as a string: KNOWN are
words that are so by chance. None asks what a row's instruction is called.
"""

import pathlib
import re
import sys

TABLE = "lib/IR/Intrinsics.def"
MAKERS = {
    "lib/Fusion/Plan/EarlyLaunches.c",
    "lib/Runtime/SavedPlan.c",
    "lib/Schedule/Access/AccessYield.c",
    "lib/Schedule/Translate/Build.c",
    "lib/Schedule/Rules/Contract.c",
    "lib/Schedule/Rows/RowsCombine.c",
    "lib/Schedule/Rules/Scatter.c",
    "lib/Schedule/Translate/Translate.c",
    "lib/TaskMapping/LowerLoad.c",
    "lib/TaskMapping/LowerPoints.c",
    "lib/TaskMapping/LowerYield.c",
    "lib/TaskMapping/PointMatrix.c",
    "lib/TaskMapping/Staging.c",
}
# Of ONNX's operators the library knows the names, which are others.
FOLDERS = ["IR", "TaskMapping", "Schedule", "Fusion", "CodeGen", "Sim", "Runtime"]
KNOWN = {"atomic", "bulk", "cluster", "copy", "fence", "global", "grid", "load",
         "prefetch", "store", "warp"}
ROW = re.compile(r'^HD_INTRINSIC\((\w+), "(\w+)"', re.MULTILINE)
COMPARED = re.compile(r"u\.intrinsic\s*(==|!=)|\bcase HD_INTRINSIC_(?!%s)"
                      % "PURE|THREAD|WARP|BLOCK")
SNIFFED = re.compile(r"\bstrn?cmp\([^;]*->(ptx|sim)\b")
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


def is_name(text, names):
    """Whether a string is an intrinsic's name, or how one begins."""
    return (len(text) > 3 and text not in KNOWN
            and any(name.startswith(text) for name in names))


def faults_in(where, text, rows):
    """Yields what is wrong with a file."""
    enumerators = {"HD_INTRINSIC_" + row for row, _ in rows}
    names = {name for _, name in rows}
    for number, line in enumerate(text.splitlines(), 1):
        place = "%s:%d" % (where, number)
        if line.lstrip().startswith(("//", "#include")):
            continue
        for word in re.findall(r"\bHD_INTRINSIC_\w+", line):
            if word in enumerators and str(where) not in MAKERS:
                yield "%s: knows %s, and makes no calls" % (place, word)
        if COMPARED.search(line):
            yield "%s: a call is told by its row" % place
        if SNIFFED.search(line):
            yield "%s: asks what the instruction is called" % place
        for string in STRING.findall(line):
            if is_name(string, names):
                yield '%s: knows "%s" by its name' % (place, string)


def faults(root):
    root = pathlib.Path(root)
    rows = ROW.findall((root / TABLE).read_text())
    for folder in FOLDERS:
        for path in sorted((root / "lib" / folder).rglob("*.[ch]")):
            yield from faults_in(path.relative_to(root), path.read_text(), rows)
    for maker in sorted(MAKERS):
        if not (root / maker).exists():
            yield "%s: is a maker no more" % maker


if __name__ == "__main__":
    found = list(faults(sys.argv[1]))
    print("\n".join(found) or "no code knows an intrinsic by its name")
    sys.exit(bool(found))
