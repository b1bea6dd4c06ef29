# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command under growing limits on its address space (as ulimit -v sets
them), from what the bare tool needs to begin, in steps of --step KiB. Each run
ends with exit 0, or with exit 5, one line and a report with that exit; the
first of them with 5, and the last, at --last KiB more, with 0.

usage: address_space.py --step=KIB --last=KIB REPORT COMMAND...
"""

import argparse
import json
import pathlib
import resource
import subprocess
import sys


def run(command, kib):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (kib << 10, kib << 10))

    return subprocess.run(command, text=True, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, preexec_fn=limit)


def least(tool):
    """What the tool needs to say its version, and a MiB more: whether it can
    begin is decided by then."""
    low, high = 1 << 10, 1 << 23
    while high - low > 256:
        middle = (low + high) // 2
        if run([tool, "--version"], middle).returncode == 0:
            high = middle
        else:
            low = middle
    return high + (1 << 10)


def fault(command, report, kib):
    report.unlink(missing_ok=True)
    result = run(command + ["--json=%s" % report], kib)
    code, lines = result.returncode, result.stderr.splitlines()
    if code not in (0, 5) or code == 5 and len(lines) != 1:
        return code, "exit %d and %d lines" % (code, len(lines))
    if not report.exists():
        return code, "no report"
    if json.loads(report.read_text())["exit"] != code:
        return code, "the report has another exit"
    return code, None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--step", type=int)
    parser.add_argument("--last", type=int)
    parser.add_argument("report", type=pathlib.Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    first, codes, faults = least(args.command[0]), [], 0
    limits = list(range(first, first + args.last, args.step))
    for kib in limits + [first + args.last]:
        code, what = fault(args.command, args.report, kib)
        codes.append(code)
        if what:
            print("%d KiB: %s" % (kib, what), file=sys.stderr)
            faults += 1
    print(codes)
    return faults > 0 or codes[0] != 5 or codes[-1] != 0


if __name__ == "__main__":
    sys.exit(main())
