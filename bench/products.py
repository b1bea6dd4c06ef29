# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products of examples/ against cuBLAS, as PyTorch calls it.

usage: products.py [--tools=DIR] [--json=FILE] [name...]

One line a case: TFLOP/s of the kernel made for its sizes, as hidet-run does by
itself, of the general one (--specialize=0), of cuBLAS, and the first quotient.
The peer is torch.matmul(a, b.t()), both operands contiguous along k. The f32
kernel takes b as [k, n]: its peer is the faster of that and torch.matmul(a, b).
"""

import json
import sys

import measure
import torch


def peers(name, m, n, k):
    """Measures of cuBLAS, by how b lies."""
    dtype = torch.float32 if name == "matmul_simt" else torch.float16

    def operands():
        return (torch.randn(m, k, device="cuda", dtype=dtype),
                torch.randn(n, k, device="cuda", dtype=dtype),
                torch.empty(m, n, device="cuda", dtype=dtype))

    def measured(run):
        ms = measure.peer(operands, run)
        torch.cuda.empty_cache()
        return ms, None

    measures = {"b.t()": lambda: measured(
        lambda a, b, c: torch.matmul(a, b.t(), out=c))}
    if name == "matmul_simt":
        measures["b"] = lambda: measured(
            lambda a, b, c: torch.matmul(a, b.view(k, n), out=c))
    return measures


def main():
    options = measure.arguments(__doc__.splitlines()[0])
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    shapes = json.loads((measure.SHAPES / "products.json").read_text())
    cases, failures = [], 0
    for name in options.names or shapes:
        for m, n, k in shapes[name]:
            b = [k, n] if name == "matmul_simt" else [n, k]
            shape = {"a": [m, k], "b": b}
            theirs = peers(name, m, n, k)
            times, report = measure.in_turns({
                **theirs,
                "ours": lambda: measure.ours(options.tools, name, shape),
                "general": lambda: measure.ours(options.tools, name, shape,
                                                specialize=False)})
            label = "%-12s %5d x %5d x %5d" % (name, m, n, k)
            if times is None:
                failures += 1
                print("%s  FAILED: %s" % (label, report.strip()), flush=True)
                continue
            mine, general = times.pop("ours"), times.pop("general")
            best = min(times.values())
            flop = 2 * m * n * k / 1e9
            print("%s  %7.1f TFLOP/s  general %7.1f  cuBLAS %7.1f  "
                  "%.3f of it" % (label, flop / mine, flop / general,
                                  flop / best, best / mine), flush=True)
            cases.append({"kernel": name, "m": m, "n": n, "k": k,
                          "ms": mine, "general_ms": general,
                          "peer_ms": times,
                          "tflops": flop / mine, "ratio": best / mine})
    measure.write(options.json, cases)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
