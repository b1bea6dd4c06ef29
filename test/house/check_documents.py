# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Links in the documents lead somewhere, what README.md shows of an example is
what the example says, the README.md of each room of lib/ names the files that are
there, and docs/ARCHITECTURE.md draws the house that is there: it names each
room, and every file that it names in backquotes exists.

A room is a folder with sources. Its README.md names each of them in backquotes,
`Name.c`, or by a pattern, `Name*.c`; a header beside a source of its name need
not be named. What else it names in backquotes as a file or a folder is there.

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
    """Each folder of lib/ with sources, and their names."""
    found = {}
    for path in sorted((root / "lib").rglob("*")):
        if path.suffix in SOURCES:
            found.setdefault(path.parent, []).append(path.name)
    return found


def room_faults(root):
    for room, there in sorted(rooms(root).items()):
        where = (room / "README.md").relative_to(root)
        if not (room / "README.md").exists():
            yield "%s: there is none, for %s" % (where, there[0])
            continue
        names = NAMED.findall((room / "README.md").read_text())
        for name in names:
            if not (fnmatch.filter(there, name) or
                    any((above / name).exists()
                        for above in (room, room.parent, root, root / "lib"))):
                yield "%s: no such file: %s" % (where, name)
        for name in there:
            source = name[:-2] + ".c" if name.endswith(".h") else None
            if not (any(fnmatch.fnmatch(name, pattern) for pattern in names) or
                    source in there):
                yield "%s: does not name %s" % (where, name)


def house_faults(root):
    drawing = root / "docs" / "ARCHITECTURE.md"
    if not drawing.exists():
        return
    text = drawing.read_text()
    there = ["/" + str(path.relative_to(root))
             for top in ("lib", "include", "tools", "test", "unittests")
             for path in (root / top).rglob("*")]
    for name in sorted(set(NAMED.findall(text))):
        if not fnmatch.filter(there, "*/" + name.rstrip("/")) and \
                not (root / name).exists():
            yield "docs/ARCHITECTURE.md: no such file: %s" % name
    for room in rooms(root):
        name = str(room.relative_to(root / "lib"))
        drawn = "lib/%s/" % name if "/" not in name else name.split("/")[1] + "/"
        if "`" + drawn not in text:
            yield "docs/ARCHITECTURE.md: does not name %s" % drawn


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
    yield from house_faults(root)


if __name__ == "__main__":
    found = list(faults(sys.argv[1]))
    print("\n".join(found) or "the documents hold")
    sys.exit(bool(found))
