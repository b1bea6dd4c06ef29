# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every rule has a test that says what it does: a part of a test file that
begins with a comment with the rule's name, "// name: ..."."""
import pathlib
import re
import sys

rules = [line.split()[0] for line in open(sys.argv[1]) if line.strip()]
text = "\n".join(p.read_text() for p in pathlib.Path(sys.argv[2]).glob("*.hir"))
named = set(re.findall(r"^// ([a-z0-9_]+): ", text, re.M))
missing = [rule for rule in rules if rule not in named]
if missing:
    sys.exit("no test: " + ", ".join(missing))
