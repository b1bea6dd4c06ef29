# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Links in the documents lead somewhere, what README.md shows of an example is
what the example says, and the README.md of each room of lib/ names the files
that are there.

A file belongs to the nearest README.md above it, which names it in backquotes
by its path from there, `Name.c`, or by a pattern, `operators/*.hir`. A header
beside a source of its name need not be named.

usage: check_documents.py ROOT
"""

import fnmatch
import pathlib
import re
import sys

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
KERNEL = re.compile(r"`(examples/[\w.]+)`[^`]*```\n(.*?)```", re.DOTALL)

NAMED = re.compile(r"`([\w.*/-]+\.(?:c|h|def|hir|proto)|[\w/]+/)`")
SOURCES = (".c", ".h", ".def", ".hir", ".proto")


def rooms(root):
    """Each folder of lib/ with a README.md, and the files that belong to it."""
    found = {path.parent: [] for path in (root / "lib").rglob("README.md")}
    for path in sorted((root / "lib").rglob("*")):
        if path.suffix in SOURCES:
            room = path.parent
            while room not in found and room != root:
                room = room.parent
            found.setdefault(room, []).append(path)
    return found


def room_faults(root):
    for room, files in sorted(rooms(root).items()):
        where = (room / "README.md").relative_to(root)
        if not (room / "README.md").exists():
            yield "%s: there is none, for %s" % (where, files[0].name)
            continue
        names = NAMED.findall((room / "README.md").read_text())
        there = [path.relative_to(room).as_posix() for path in files]
        for name in names:
            if not (fnmatch.filter(there, name) or (room / name).exists() or
                    any((above / name).exists()
                        for above in (root, root / "lib"))):
                yield "%s: no such file: %s" % (where, name)
        for path in there:
            source = path[:-2] + ".c" if path.endswith(".h") else None
            if not (any(fnmatch.fnmatch(path, name) for name in names) or
                    source in there):
                yield "%s: does not name %s" % (where, path)


def documents(root):
    for folder in (root, root / "docs", root / "bench", root / "examples"):
        yield from sorted(folder.glob("*.md"))


def faults(root):
    root = pathlib.Path(root)
    for path in documents(root):
        where, text = path.relative_to(root), path.read_text()
        for target in LINK.findall(CODE.sub("", text)):
            if "://" not in target and not (path.parent / target).exists():
                yield "%s: no such file: %s" % (where, target)
        for example, shown in KERNEL.findall(text):
            if shown not in (root / example).read_text():
                yield "%s: %s reads differently" % (where, example)
    yield from room_faults(root)


if __name__ == "__main__":
    found = list(faults(sys.argv[1]))
    print("\n".join(found) or "the documents hold")
    sys.exit(bool(found))
