# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starts a command, sends it SIGINT after a second, and wants exit 130; with
--within, so many milliseconds later at most. A report that the command writes
(--json=FILE, a new one) has the same exit.

usage: interrupt.py [--within=MS] COMMAND...
"""

import json
import pathlib
import signal
import subprocess
import sys
import time


def main():
    command, within = sys.argv[1:], 60000
    if command[0].startswith("--within="):
        within = int(command.pop(0).partition("=")[2])
    reports = [pathlib.Path(word.partition("=")[2]) for word in command
               if word.startswith("--json=")]
    for report in reports:
        report.unlink(missing_ok=True)
    process = subprocess.Popen(command)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    start = time.monotonic()
    code = process.wait(timeout=60)
    took = (time.monotonic() - start) * 1000
    exits = [json.loads(report.read_text())["exit"] for report in reports]
    print("exit %d, %s in reports, after %.0f ms" % (code, exits, took),
          flush=True)
    return code != 130 or took > within or any(e != 130 for e in exits)


if __name__ == "__main__":
    sys.exit(main())
