# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Includes point one way, down the list of folders.

usage: check_includes.py ROOT

A file in lib/<Folder>/ includes "<Folder>/..." of its own folder or of one
before it in FOLDERS, and "hidet/...". Only CodeGen includes LLVM. The public
headers and the tools include nothing but public headers.
"""

import pathlib
import re
import sys

FOLDERS = ["Support", "IR", "TaskMapping", "Graph", "Schedule", "Fusion",
           "CodeGen", "Runtime", "Tools"]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SUFFIXES = {".c", ".h", ".def"}


def includes_of(path):
    """Yields (line number, '<' or '"', name) for each #include."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1], match[2]


def fault_in_library(folder, quote, name):
    """Says what is wrong with an include in lib/<folder>/, or None."""
    if re.match(r"llvm(-c)?/", name) and folder != "CodeGen":
        return "only lib/CodeGen may include LLVM"
    if quote == "<":
        return None
    head, slash, _ = name.partition("/")
    if not slash:
        return "name the folder, as in \"%s/%s\"" % (folder, name)
    if head == "hidet":
        return None
    if head not in FOLDERS:
        return "there is no lib/%s" % head
    if FOLDERS.index(head) > FOLDERS.index(folder):
        return "lib/%s is below lib/%s" % (folder, head)
    return None


def fault_outside(quote, name):
    """The same for include/ and tools/, which see public headers only."""
    if name.startswith("hidet/") or (quote == "<" and "/" not in name):
        return None
    return "only public headers (hidet/...) and the C library"


def faults(root):
    root = pathlib.Path(root)
    for top in ("lib", "include", "tools"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            where = path.relative_to(root)
            folder = where.parts[1]
            if top == "lib" and folder not in FOLDERS:
                yield "%s: lib/%s has no place in the order" % (where, folder)
                continue
            for number, quote, name in includes_of(path):
                fault = (fault_in_library(folder, quote, name)
                         if top == "lib" else fault_outside(quote, name))
                if fault:
                    yield "%s:%d: %s: %s" % (where, number, name, fault)


if __name__ == "__main__":
    found = list(faults(sys.argv[1]))
    print("\n".join(found) or "includes point one way")
    sys.exit(bool(found))
