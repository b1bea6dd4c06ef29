# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds a Chrome trace against what the format asks and the run's report says.

usage: check_trace.py TRACE.json REPORT.json [--gpu]
"""
import collections
import json
import sys


def check_nesting(spans):
    """In a lane spans lie inside or beside each other."""
    ends = []
    for begin, end, name in sorted(spans, key=lambda s: (s[0], -s[1])):
        while ends and ends[-1] <= begin + 1e-3:
            ends.pop()
        assert not ends or end <= ends[-1] + 1e-3, (name, begin, end, ends)
        ends.append(end)


trace, report = (json.load(open(path)) for path in sys.argv[1:3])
events = trace["traceEvents"]
assert {e["ph"] for e in events} == {"X", "M"} and "lost" not in trace
lanes = collections.defaultdict(list)
for e in events:
    if e["ph"] == "X":
        assert e["ts"] >= 0 and e["dur"] >= 0, e
        lanes[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"], e["name"]))
names = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
assert names == set(lanes), (names, set(lanes))
for lane in lanes.values():
    check_nesting(lane)
host = [e for e in events if e["ph"] == "X" and e["pid"] == 1]
whole = [e for e in host if e["name"] == "hidet-run"]
assert len(whole) == 1 and all(e["ts"] + e["dur"] <= whole[0]["dur"] + 1 for e in host)
kernels = {e["args"]["of"] for e in host if e["name"] == "kernel"}
launches = [e["name"] for e in host if e.get("args", {}).get("of") == "launch"]
assert len(kernels) == report["kernels"] and set(launches) <= kernels, (kernels, launches)
assert len(launches) == report["launches"], (len(launches), report["launches"])
gpu = [e for e in events if e["ph"] == "X" and e["pid"] == 2]
assert bool(gpu) == ("--gpu" in sys.argv)
assert not gpu or [e["name"] for e in gpu] == launches
print(len(lanes), "lanes;", ", ".join(sorted({e["name"] for e in host if "args" not in e})))
