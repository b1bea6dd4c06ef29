# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command with --max-mem=MIB and wants exit 5, a report that says E0901,
and a process that held no more than docs/ARCHITECTURE.md promises: MIB and 32
MiB beside what it began with, and SLACK for what it takes between two looks.

usage: held.py MIB REPORT COMMAND...
"""

import json
import pathlib
import resource
import subprocess
import sys

BESIDE, SLACK = 32, 32


def peak(command):
    """The exit code, and the largest memory of a child so far, in MiB."""
    code = subprocess.run(command, stdout=subprocess.DEVNULL).returncode
    return code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10


def main():
    mib, report, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    _, began = peak([command[0], "--version"])
    code, held = peak(command + ["--max-mem=%dM" % mib, "--json=" + report])
    result = json.loads(pathlib.Path(report).read_text())
    codes = [row.get("code") for row in result["diagnostics"]]
    print("exit %d (%d in the report), %s; %d MiB, %d at the beginning" %
          (code, result["exit"], codes, held, began))
    return (code != 5 or result["exit"] != 5 or codes != ["E0901"] or
            held > began + mib + BESIDE + SLACK)


if __name__ == "__main__":
    sys.exit(main())
