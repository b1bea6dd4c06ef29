# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How making machine code grows with threads: a model of so many products, each
of another size with one of four epilogues, is compiled with -j1 and with more.
Measured is what the pool does: LLVM's work, and the driver's linker.

usage: cubins.py [--tools=FOLDER] [--json=FILE] [--device=cuda] [--kernels=200]
           [--threads=1,16] [--runs=2]

One line a number of threads, the least of its runs.
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile

import measure

EPILOGUES = ("relu", "tanh", "sigmoid", "exp")
# Steps of --time-passes that threads of the pool do.
STEPS = ("code", "emit", "LLVM's passes", "LLVM's code", "LLVM's PTX", "link")


def text(kernels):
    sizes = [64 + 16 * i for i in range(kernels)]
    lines = ["graph main(%s) -> %s {" % (
        ", ".join("x%d: f16[64, %d]" % pair for pair in enumerate(sizes)),
        ", ".join("y%d" % i for i in range(kernels)))]
    for i, size in enumerate(sizes):
        lines += ["  const w%d: f16[%d, 128] = 0.015625" % (i, size),
                  "  t%d: f16[64, 128] = matmul(x%d, w%d)" % (i, i, i),
                  "  y%d: f16[64, 128] = %s(t%d)" % (
                      i, EPILOGUES[i % len(EPILOGUES)], i)]
    return "\n".join(lines + ["}", ""])


def compiled(tools, model, device, threads, folder):
    """Of one process: milliseconds of the steps, and how many kernels."""
    report = folder / "report.json"
    # The driver would find what it has linked for the run before.
    alone = {**os.environ, "CUDA_CACHE_DISABLE": "1"}
    subprocess.run([pathlib.Path(tools) / "hidet-run", model,
                    "--device=" + device, "--no-cache", "-q",
                    "-j%d" % threads, "--json=%s" % report],
                   check=True, stdout=subprocess.DEVNULL, env=alone)
    found = json.loads(report.read_text())
    steps = {row["name"]: row["ms"] for row in found["steps"]
             if row["name"] in STEPS}
    return {"ms": sum(steps.values()), "kernels": found["kernels"],
            "steps_ms": steps}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="build/bin")
    parser.add_argument("--json")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--kernels", type=int, default=200)
    parser.add_argument("--threads", default="1,16")
    parser.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    cases = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = folder / "products.hir"
        model.write_text(text(options.kernels))
        for threads in map(int, options.threads.split(",")):
            best = min((compiled(options.tools, model, options.device, threads,
                                 folder) for _ in range(options.runs)),
                       key=lambda found: found["ms"])
            case = {"threads": threads, **best}
            case["over_first"] = (cases[0] if cases else case)["ms"] / case["ms"]
            cases.append(case)
            print("%3d threads: %d kernels in %.1f ms (%.2f x)  %s" % (
                threads, case["kernels"], case["ms"], case["over_first"],
                ", ".join("%s %.1f" % step for step in case["steps_ms"].items())),
                flush=True)
            if options.json and "cuda" in options.device:
                measure.write(options.json, cases)


if __name__ == "__main__":
    main()
