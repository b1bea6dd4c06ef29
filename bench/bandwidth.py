# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels bounded by memory against the device's copy of as many bytes.

usage: bandwidth.py [--tools=DIR] [--json=FILE] [name...]

One line a case: TB/s of both, compulsory reads and writes, and the quotient.
The peer copies half as many bytes as the kernel reads and writes, which moves
the same number; see copy().
"""

import json
import statistics
import sys

import measure
import torch


def copy_once(size, in_graph):
    """Milliseconds of one cudaMemcpyDtoD of `size` bytes."""
    x = torch.randint(0, 256, (size,), device="cuda", dtype=torch.uint8)
    y = torch.empty_like(x)
    if in_graph:
        return measure.peer(lambda: (x, y), lambda a, b: b.copy_(a))
    times = []
    for _ in range(measure.REPLAYS + 5):
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        start.record()
        y.copy_(x)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times[5:])


def copy(size):
    """Milliseconds of a copy that reads and writes `size` bytes, at its best:
    the driver chooses between ways by the size and by how it is launched."""
    times = []
    for extra in (0, 4096):
        for in_graph in (False, True):
            bytes_ = size // 2 + extra
            times.append(copy_once(bytes_, in_graph) * (size // 2) / bytes_)
            torch.cuda.empty_cache()
    return min(times)


def main():
    options = measure.arguments(__doc__.splitlines()[0])
    rows = json.loads((measure.SHAPES / "bandwidth.json").read_text())
    cases, failures = [], 0
    for name in options.names or rows:
        row = rows[name]
        theirs = copy(row["bytes"])
        mine, report = measure.ours(options.tools, name, row["shapes"])
        if mine is None:
            failures += 1
            print("%-12s FAILED: %s" % (name, report.strip()), flush=True)
            continue
        print("%-12s %5.2f TB/s  copy %5.2f  %.3f of it" % (
            name, row["bytes"] / mine / 1e9, row["bytes"] / theirs / 1e9,
            theirs / mine), flush=True)
        cases.append({"kernel": name, "shapes": row["shapes"],
                      "bytes": row["bytes"], "ms": mine, "copy_ms": theirs,
                      "ratio": theirs / mine})
    measure.write(options.json, cases)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
