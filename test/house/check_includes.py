# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Includes point one way, down the list of folders.

usage: check_includes.py ROOT

A file in lib/<Folder>/ includes "<Folder>/..." of its own folder or of one
before it in FOLDERS, and "hidet/...". Rooms within a folder are in an order of
their own, ROOMS. Only CodeGen includes LLVM. The public
headers and the tools include nothing but public headers.
"""

import pathlib
import re
import sys

FOLDERS = ["Support", "IR", "TaskMapping", "Graph", "Schedule", "Fusion",
           "CodeGen", "Sim", "Runtime", "Tune", "Tools"]

# Rooms of a folder, from the ground up; "" is the folder itself. Those of one
# level may include each other.
ROOMS = {
    "IR": [{"", "Graph"}, {"Verify"}, {"Text"}, {"Passes"}],
    "Graph": [{"", "Bind"}, {"Precision"}, {"Reference"}, {"Rewrite"},
              {"ONNX"}, {"Expand", "Expand/Lower"}],
    "Schedule": [{"Terms"}, {"Translate"}, {"Access"}, {"Rules"},
                 {"", "Template", "Product", "Grouped", "Attention", "Window",
                  "Rows"}],
    "Fusion": [{"", "Group"}, {"Compose", "Loops"}, {"Layout"}, {"Form"}, {"Join"},
               {"Plan"}, {"Trim"}, {"Bucket"}],
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SUFFIXES = {".c", ".h", ".def"}


def includes_of(path):
    """Yields (line number, '<' or '"', name) for each #include."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1], match[2]


def level(folder, room):
    """How far up in its folder a room is, or None."""
    for number, rooms in enumerate(ROOMS.get(folder, [])):
        if room in rooms:
            return number
    return None


def fault_between_rooms(folder, room, other):
    """Says what is wrong with an include of a room in another one, or None."""
    if folder not in ROOMS or room == other:
        return None
    for name in (room, other):
        if level(folder, name) is None:
            return "lib/%s/%s has no place in the order" % (folder, name)
    if level(folder, other) > level(folder, room):
        return "lib/%s is below lib/%s" % (
            "/".join([folder, room]).rstrip("/"), "/".join([folder, other]))
    return None


def fault_in_library(folder, room, quote, name):
    """Says what is wrong with an include in lib/<folder>/<room>/, or None."""
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
    if head == folder:
        return fault_between_rooms(folder, room, "/".join(name.split("/")[1:-1]))
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
                room = "/".join(where.parts[2:-1])
                fault = (fault_in_library(folder, room, quote, name)
                         if top == "lib" else fault_outside(quote, name))
                if fault:
                    yield "%s:%d: %s: %s" % (where, number, name, fault)


if __name__ == "__main__":
    found = list(faults(sys.argv[1]))
    print("\n".join(found) or "includes point one way")
    sys.exit(bool(found))
