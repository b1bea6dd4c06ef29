# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels bounded by memory against the device's copy of as many bytes.

usage: bandwidth.py [--tools=DIR] [--json=FILE] [name...]

One line a case: TB/s of both, compulsory reads and writes, and the quotient.
The peer copies half as many bytes as the kernel reads and writes, which moves
the same number.
"""

import json
import sys

import measure
import torch


def copy(size):
    """Milliseconds of cuMemcpyDtoD that reads and writes `size` bytes."""
    half = size // 2

    def operands():
        return (torch.randint(0, 256, (half,), device="cuda",
                              dtype=torch.uint8),
                torch.empty(half, device="cuda", dtype=torch.uint8))

    time = measure.peer(operands, lambda x, y: y.copy_(x))
    torch.cuda.empty_cache()
    return time


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
