# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command with --time-passes; checks that its rows add up to its total,
that the total is the time that the command took and not more, and prints the
names of its rows that have a time.

Usage: times.py COMMAND...
"""

import re
import subprocess
import sys
import time

start = time.monotonic()
result = subprocess.run(sys.argv[1:] + ["--time-passes"], check=True, text=True,
                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
passed = 1000 * (time.monotonic() - start)
rows = re.findall(r"^ *([0-9.]+) +[0-9.]+%  (.*)$", result.stderr, re.M)
parts = {name: float(ms) for ms, name in rows[:-1]}
total = float(rows[-1][0])
assert rows[-1][1] == "total", rows
assert abs(sum(parts.values()) - total) < 0.001 * len(rows), (parts, total)
assert total <= passed, (total, passed)
print(", ".join(name for name, ms in parts.items() if ms > 0))
print("named:", sum(parts.values()) - parts["the rest"] > 0.5 * total)
