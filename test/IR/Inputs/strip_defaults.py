# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A file with the defaults of its compile-time parameters left out.

usage: strip_defaults.py FILE
"""

import re
import sys

HEAD = re.compile(r"^((?:kernel|fn|plan) \w+\[)([^\]]*)\]", re.MULTILINE)


def without_defaults(head):
    return head[1] + re.sub(r"\s*=\s*[^,\]]+", "", head[2]) + "]"


with open(sys.argv[1]) as file:
    text = file.read()
stripped, count = HEAD.subn(without_defaults, text)
assert count and stripped != text, "the file has no default to leave out"
sys.stdout.write(stripped)
