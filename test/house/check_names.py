# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names that a debugger and a newcomer can use: a type with a prefix is defined
once and declared in a header; a static function says what it works on.

usage: check_names.py ROOT
"""

import pathlib
import re
import sys

FOLDERS = ["include", "lib", "unittests", "fuzz", "bench"]
# typedef struct hd_x { ... } hd_x_t; and struct hd_x { ... };
TAG = re.compile(r"^(?:typedef )?(?:struct|union|enum) (h(?:d|idet)_\w+)\s*\{",
                 re.MULTILINE)
NAME = re.compile(r"^(?:\}|typedef\b[^;{}]*?) ?(h(?:d|idet)_\w+_t);"
                  r"|^typedef\b[^;{}()]*\(\*(h(?:d|idet)_\w+)\)\(",
                  re.MULTILINE)
FORWARD = re.compile(r"^typedef (?:struct|union) (\w+) (\w+);", re.MULTILINE)
# Verbs that say nothing of what a function works on.
GENERAL = {"add", "check", "do", "find", "get", "handle", "make", "process",
           "put", "run", "set", "take", "use", "work"}
STATIC = re.compile(r"^static\b[^;{}()=]*?\b(\w+)\(", re.MULTILINE)


def sources(root):
    for folder in FOLDERS:
        for path in sorted(pathlib.Path(root, folder).rglob("*.[ch]")):
            yield path.relative_to(root), path.read_text()


def line_of(text, match):
    return text.count("\n", 0, match.start(match.lastindex)) + 1


def types(text):
    """Each tag and type that a text defines, with the match; `typedef struct x
    x_t;` alone defines none."""
    for match in TAG.finditer(text):
        yield match.group(1), match
    for match in NAME.finditer(FORWARD.sub("", text)):
        yield match.group(match.lastindex), match


def faults(root):
    places, headers, locals_ = {}, set(), []
    for where, text in sources(root):
        if where.suffix == ".h":
            headers.update(re.findall(r"\bh(?:d|idet)_\w+", text))
        for name, match in types(text):
            if name in places:
                yield "%s: '%s' is a type of %s, too" % (where, name,
                                                         places[name])
            places.setdefault(name, where)
            if where.suffix == ".c":
                locals_.append((where, name))
        for match in STATIC.finditer(text if where.parts[0] == "lib" else ""):
            if match.group(1) in GENERAL:
                yield "%s:%d: '%s' does not say what it works on" % (
                    where, line_of(text, match), match.group(1))
    for where, name in locals_:
        if name not in headers:
            yield "%s: '%s' has a prefix, and no header knows it" % (where,
                                                                     name)


if __name__ == "__main__":
    found = list(faults(sys.argv[1]))
    print("\n".join(found) or "every name is one thing's")
    sys.exit(bool(found))
