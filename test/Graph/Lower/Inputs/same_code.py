# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares what was compiled for few steps and for many.

usage: same_code.py FOLDER NAME...
"""

import json
import pathlib
import sys


def plan(path):
    """Lines of the plan in a module."""
    text = path.read_text()
    return text[text.index("plan "):].split("\n}\n")[0].count("\n")


folder = pathlib.Path(sys.argv[1])
for name in sys.argv[2:]:
    few, many = (json.loads((folder / f"{name}-{size}.json").read_text())
                 for size in ("few", "many"))
    plans = [plan(folder / f"{name}-{size}.hir") for size in ("few", "many")]
    print(f"{name}:",
          "as many kernels," if few["kernels"] == many["kernels"]
          else f"{few['kernels']} and {many['kernels']} kernels,",
          "as long a plan;" if plans[0] == plans[1]
          else f"plans of {plans[0]} and {plans[1]} lines;",
          f"launches {few['launches']} and {many['launches']}")
