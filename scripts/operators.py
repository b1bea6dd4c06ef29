# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Puts the results of ONNX's tests beside the operators: docs/OPERATORS.md.

usage: operators.py RESULTS < the table that hidet-opt makes

RESULTS is what test/tools/onnx_suite.py --write-results writes: an operator,
how many of its node tests pass, of how many.
"""

import pathlib
import re
import sys

ROW = re.compile(r"\| `(\w+\.\w+)` \|")
ABOUT = """
The last column says how many of ONNX's own node tests of the operator pass on
the simulator, of how many (of all, %d of %d); a test of several operators counts for its first.
Why the others do not stands in `test/Models/onnx_expected_failures.txt`. Where
the column is empty, no test counts for the operator.
"""


def read_results(path):
    """{operator: (passed, all)}"""
    lines = [line for line in path.read_text().splitlines()
             if line and not line.startswith("#")]
    return {name: (int(passed), int(total))
            for name, passed, total in map(str.split, lines)}


def cell(result):
    return "%d of %d" % result if result else ""


def joined(lines, results):
    """The lines with the column; takes from `results` what it shows."""
    about = ABOUT % tuple(map(sum, zip(*results.values())))
    for line in lines:
        row = ROW.match(line)
        if row:
            yield "%s %s |" % (line, cell(results.pop(row[1], None)))
        elif line.startswith("| operator"):
            yield about.replace("\n", " ").strip() + "\n\n" + line + " tests |"
        elif line.startswith("|---"):
            yield line + "---|"
        else:
            yield line


def main():
    results = read_results(pathlib.Path(sys.argv[1]))
    print("\n".join(joined(sys.stdin.read().splitlines(), results)))
    if results:
        print("\n## Not supported\n\nWhat ONNX tests and no row is for.\n\n"
              "| operator | tests |\n|---|---|")
        for name, result in results.items():
            print("| `%s` | %s |" % (name, cell(result)))


if __name__ == "__main__":
    main()
