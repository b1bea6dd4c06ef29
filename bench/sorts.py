# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorts and the first of rows, beside PyTorch in a CUDA graph and the device's
copy of what is read; on the simulator, how the time grows with the rows.

usage: sorts.py --tools=DIR [--json=FILE] [--device=cuda|sim] [--no-torch]
                [CASE...]

One line a case: microseconds and nanoseconds for n * log2(n) of each row; on
cuda PyTorch's time over ours, and of the copy's bandwidth the share. CASE: a
part of a case's name. Values are random, or rise, the worst that selecting the
greatest can meet.
"""
import argparse
import json
import math
import pathlib
import tempfile

import numpy

import measure

# Rows, elements, places; values; where.
CASES = [(1, 2**k, 2**k, "random", "") for k in range(10, 21, 2)] + [
    (1, 65536, 65536, "rising", ""),
    (1, 32000, 32000, "random", ""), (64, 4096, 4096, "random", ""),
    (8, 128256, 32, "random", "sim"), (8, 128256, 32, "rising", "sim"),
    (1024, 128256, 32, "random", "cuda"), (1024, 128256, 32, "rising", "cuda"),
    (1, 128256, 32, "random", ""), (1, 128256, 1024, "random", ""),
    (1, 128256, 5000, "random", ""), (4096, 64, 2, "random", ""),
]
GRAPH = """graph main(x: f32[{rows}, {n}, 1]) -> y, at {{
  y: f32[{rows}, {m}, 1], at: i64[{rows}, {m}, 1] = sort_descending(x) {{ m = {m} }}
}}
"""


def values(rows, n, way):
    x = numpy.random.default_rng(1).standard_normal((rows, n, 1))
    return (numpy.sort(x, axis=1) if way == "rising" else x).astype(numpy.float32)


def replayed(x, run):
    """Of run(), with tensors of its own for each of a few calls."""
    import torch
    copies = max(1, min(64, 2 ** 27 // max(x.nbytes, 1)))
    tensors = [torch.from_numpy(x[..., 0]).cuda() for _ in range(copies)]
    return measure.replayed([lambda t=t: run(t) for t in tensors])


def peer(x, m):
    import torch
    if m == x.shape[1]:
        return replayed(x, lambda t: torch.sort(t, descending=True))
    return replayed(x, lambda t: torch.topk(t, m))


def copy(x):
    """As many bytes as x has, read and written together."""
    return replayed(x, lambda t: t.view(-1)[:t.numel() // 2].clone())


def run(options, folder, case):
    rows, n, m, way, _ = case
    x = values(rows, n, way)
    numpy.save(folder / "x.npy", x)
    (folder / "graph.hir").write_text(GRAPH.format(rows=rows, n=n, m=m))
    args = ["--input=@%s" % (folder / "x.npy"), "--device=" + options.device]
    if options.device == "sim":
        args.append("--bench=3")

    def ours():
        return measure.run(options.tools, folder / "graph.hir", args)

    measures = {"ours": ours}
    if options.device == "cuda" and not options.no_torch:
        measures.update(torch=lambda: (peer(x, m), None),
                        copy=lambda: (copy(x), None))
    found, report = measure.in_turns(measures, 3 if len(measures) > 1 else 1)
    if not found:
        raise SystemExit(report)
    us = found["ours"] * 1000
    result = {"rows": rows, "n": n, "places": m, "values": way, "us": us,
              "ns_for_n_log_n": us * 1000 / (rows * n * math.log2(n))}
    text = "%d x %d, %d places, %s: %.1f us, %.3f ns" % (
        rows, n, m, way, us, result["ns_for_n_log_n"])
    if "torch" in found:
        result["torch_us"] = found["torch"] * 1000
        result["share_of_copy"] = found["copy"] / found["ours"]
        text += ", PyTorch's %.2f times that, %.2f of the copy" % (
            found["torch"] / found["ours"], result["share_of_copy"])
    print(text, flush=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", default="build/bin")
    parser.add_argument("--json")
    parser.add_argument("--device", default="cuda", choices=("cuda", "sim"))
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            name = "%d x %d, %d places, %s" % case[:4]
            wanted = not options.names or any(p in name for p in options.names)
            if case[4] in ("", options.device) and wanted:
                results.append(run(options, pathlib.Path(folder), case))
    if options.json and options.device == "sim":
        pathlib.Path(options.json).write_text(
            json.dumps({"device": "sim", "cases": results}, indent=1))
    else:
        measure.write(options.json, results)


if __name__ == "__main__":
    main()
