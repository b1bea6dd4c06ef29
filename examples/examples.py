# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each example kernel is given, and what numpy says of it.

A row is a function named after its file, examples/<name>.hir. It returns the
arguments by parameter name (arrays and sizes) and the expected outputs.
examples/run.py runs the rows; the demonstration and the tests use it.
"""

import numpy as np

EXAMPLES = {}


def example(rtol=1e-5, atol=1e-6, entry=None):
    """Adds a row; `entry` names the kernel or plan where a file has several."""

    def add(function):
        EXAMPLES[function.__name__] = (function, rtol, atol, entry)
        return function

    return add
