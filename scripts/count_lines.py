# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lines of lib/ by folder, at commits.

A row for each folder of lib/ and the whole, a column for each commit: lines of
C (.c, .h, .def), then those of the language (.hir) that the library holds. Read
from the repository, so that the working tree does not matter.

usage: count_lines.py COMMIT...
"""

import collections
import subprocess
import sys

KINDS = (("C", (".c", ".h", ".def")), ("hir", (".hir",)))


def git(*args):
    return subprocess.run(("git",) + args, check=True,
                          capture_output=True).stdout


def count(commit):
    """Lines by (kind, folder), and of each kind's whole by (kind, "lib")."""
    lines = collections.Counter()
    for path in git("ls-tree", "-r", "--name-only", commit,
                    "lib/").decode().splitlines():
        for kind, endings in KINDS:
            if path.endswith(endings):
                number = git("show", "%s:%s" % (commit, path)).count(b"\n")
                folder = path.split("/")[1]
                lines[kind, folder] += number
                lines[kind, "lib"] += number
    return lines


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    commits = sys.argv[1:]
    names = [git("rev-parse", "--short", commit).decode().strip()
             for commit in commits]
    counts = [count(commit) for commit in commits]
    print("%-5s %-12s" % ("kind", "folder") +
          "".join("%9s" % name for name in names))
    for kind, _ in KINDS:
        folders = sorted({folder for lines in counts for k, folder in lines
                          if k == kind and folder != "lib"})
        for folder in folders + ["lib"]:
            print("%-5s %-12s" % (kind, folder) + "".join(
                "%9s" % (lines[kind, folder] or "-") for lines in counts))


if __name__ == "__main__":
    main()
