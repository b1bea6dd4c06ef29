# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""parse(print(x)) prints the same text, for every .hir file of the project.

usage: check_roundtrip.py HIDET-OPT ROOT

Files that are wrong on purpose (expected-error comments) are left out. A file
with `// -----` lines is several modules.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

FOLDERS = ("lib", "examples", "test", "bench", "fuzz")
WRONG = re.compile(r"expected-error|verify-diagnostics|RUN:.*(\bnot|%exit 3) hidet-opt")


def modules(root):
    """Yields (name, text) of each module that should parse."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.hir")):
            text = path.read_text(errors="replace")
            if "Inputs" in path.parts or WRONG.search(text):
                continue
            for number, part in enumerate(re.split(r"(?m)^// -----$", text)):
                yield "%s#%d" % (path.relative_to(root), number), part


def printed(tool, text):
    return subprocess.run([tool, "-"], input=text, capture_output=True,
                          text=True)


def check(tool, name, text):
    """Says what is wrong with a module, or None."""
    once = printed(tool, text)
    if once.returncode != 0:
        return "%s: does not parse:\n%s" % (name, once.stderr)
    twice = printed(tool, once.stdout)
    if twice.returncode != 0:
        return "%s: its own print does not parse:\n%s" % (name, twice.stderr)
    if once.stdout != twice.stdout:
        return "%s: prints differently the second time" % name
    return None


def main():
    tool, root = sys.argv[1], pathlib.Path(sys.argv[2])
    if printed(tool, "").returncode != 0:
        print("hidet-opt does not read modules yet")
        return 77
    work = list(modules(root))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = list(filter(None, pool.map(
            lambda module: check(tool, *module), work)))
    print("\n".join(faults) or "%d modules print as they parse" % len(work))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
