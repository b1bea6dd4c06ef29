# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The library exports what the public headers declare, and only that.

usage: check_symbols.py LIBHIDET.so INCLUDE-DIR...
"""

import pathlib
import re
import subprocess
import sys

DECLARATION = re.compile(r"HIDET_API\b[^;{]*?\b(\w+)\s*(?:\(|;|\[)")


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    return {line.split()[-1].partition("@")[0] for line in lines}


def declared(folders):
    names = set()
    for folder in folders:
        for header in pathlib.Path(folder).rglob("*.h"):
            text = re.sub(r"//[^\n]*|^#[^\n]*", "", header.read_text(),
                          flags=re.MULTILINE)
            names.update(DECLARATION.findall(text))
    return names


def faults(exports, declarations):
    for name in sorted(exports):
        if not name.startswith("hidet_"):
            yield "%s is exported" % name
        elif name not in declarations:
            yield "%s is exported but in no public header" % name
    for name in sorted(declarations - exports):
        yield "%s is declared HIDET_API but not exported" % name


if __name__ == "__main__":
    exports = exported(sys.argv[1])
    found = list(faults(exports, declared(sys.argv[2:])))
    print("\n".join(found) or "%d symbols exported" % len(exports))
    sys.exit(bool(found))
