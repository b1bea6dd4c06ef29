# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A file with the defaults of its compile-time parameters left out, and its
templates, which would have to give them.

usage: strip_defaults.py FILE
"""

import re
import sys

TEMPLATE = re.compile(r"^template .*?^}\n", re.MULTILINE | re.DOTALL)
HEAD = re.compile(r"^((?:kernel|fn|plan) \w+\[)([^\]]*)\]", re.MULTILINE)


def without_defaults(head):
    return head[1] + re.sub(r"\s*=\s*[^,\]]+", "", head[2]) + "]"


with open(sys.argv[1]) as file:
    text = file.read()
stripped, count = HEAD.subn(without_defaults, TEMPLATE.sub("", text))
assert count and stripped != text, "the file has no default to leave out"
sys.stdout.write(stripped)
