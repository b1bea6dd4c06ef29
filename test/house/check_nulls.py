# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of unittests/Tools/NullTest.c has a row for each function of the
public headers, and says of each parameter rightly whether it is a pointer.

usage: check_nulls.py TABLE.c INCLUDE-DIR...
"""

import pathlib
import re
import sys

DECLARATION = re.compile(r"HIDET_API\b[^;{(]*?\b(\w+)\s*\(([^)]*)\)\s*;")
ROW = re.compile(r'\{"(hidet_\w+)",\s*"([!0.]*)",')


def declared(folders):
    """{"hidet_tensor_read": "**"}: '*' is a pointer, '.' none."""
    result = {}
    for folder in folders:
        for header in sorted(pathlib.Path(folder).rglob("*.h")):
            text = re.sub(r"//[^\n]*|^#[^\n]*", "", header.read_text(),
                          flags=re.MULTILINE)
            for name, parameters in DECLARATION.findall(text):
                parameters = parameters.strip()
                result[name] = "" if parameters in ("", "void") else "".join(
                    "*" if "*" in one or "[" in one else "."
                    for one in parameters.split(","))
    return result


def faults(table, functions):
    rows = dict(ROW.findall(table))
    for name in sorted(functions.keys() - rows.keys()):
        yield "%s has no row" % name
    for name in sorted(rows.keys() - functions.keys()):
        yield "%s is in no public header" % name
    for name in sorted(rows.keys() & functions.keys()):
        if re.sub("[!0]", "*", rows[name]) != functions[name]:
            yield "%s has the parameters %s, not %s" % (
                name, functions[name], rows[name])


if __name__ == "__main__":
    functions = declared(sys.argv[2:])
    found = list(faults(pathlib.Path(sys.argv[1]).read_text(), functions))
    print("\n".join(found) or "%d functions" % len(functions))
    sys.exit(bool(found) or not functions)
