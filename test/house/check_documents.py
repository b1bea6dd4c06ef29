# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Links in the documents lead somewhere, and what README.md shows of an
example is what the example says.

usage: check_documents.py ROOT
"""

import pathlib
import re
import sys

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
KERNEL = re.compile(r"`(examples/[\w.]+)`[^`]*```\n(.*?)```", re.DOTALL)


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


if __name__ == "__main__":
    found = list(faults(sys.argv[1]))
    print("\n".join(found) or "the documents hold")
    sys.exit(bool(found))
