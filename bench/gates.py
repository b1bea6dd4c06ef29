# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A product and its gate, y = silu(x w) * (x v) in f16, by one kernel and by two.

usage: gates.py [--tools=DIR] [--device=cuda] [--json=FILE] [ROWSxINNERxCOLUMNS...]

The same graph with pass pair-products and without it, as many copies of the
weights as pass twice the L2 cache, plain launches in a CUDA graph; microseconds
of one pair, in turns. PyTorch, where it is there: two products by cuBLAS, and
silu and mul by Inductor in one kernel more.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import measure

CASES = ["1x2048x8192", "4x2048x8192", "16x2048x8192", "64x2048x8192", "128x2048x8192",
         "512x2048x8192", "2048x2048x8192", "1x4096x14336", "16x4096x14336",
         "128x4096x14336", "2048x4096x14336"]
ROTATED = 120_000_000  # Twice the L2 cache of an H200.
PASSES = ["--fold-weights", "--choose-layouts", "--prepare", "--fuse", "--schedule",
          "--early-launches"]


def graph(m, k, n):
    """So many pairs, and how many."""
    count = max(1, -(-ROTATED // (4 * k * n)))
    lines = []
    for i in range(count):
        lines += ["const w%d: f16[%d, %d] = 0.01" % (i, k, n),
                  "const v%d: f16[%d, %d] = 0.01" % (i, k, n)]
    for i in range(count):
        shape = "f16[%d, %d]" % (m, n)
        lines += ["g%d: %s = matmul(x, w%d)" % (i, shape, i),
                  "h%d: %s = matmul(x, v%d)" % (i, shape, i),
                  "s%d: %s = swish(g%d)" % (i, shape, i),
                  "y%d: %s = mul(s%d, h%d)" % (i, shape, i, i)]
    return "graph main(x: f16[%d, %d]) -> %s {\n  %s\n}\n" % (
        m, k, ", ".join("y%d" % i for i in range(count)), "\n  ".join(lines)), count


def plan(options, folder, name, text, passes):
    """The plan's file, without what is prepared."""
    source, made = folder / (name + ".hir"), folder / (name + ".out")
    source.write_text(text)
    subprocess.run([str(pathlib.Path(options.tools) / "hidet-opt"), "--target=sm_90a",
                    str(source), *passes, "-o", str(made)], check=True)
    return made


def timed(options, path, count):
    """Microseconds of a pair, and what was said."""
    report = path.with_suffix(".json")
    done = subprocess.run(
        [str(pathlib.Path(options.tools) / "hidet-run"), str(path), "--entry=main", "-q",
         "--device=" + options.device, "--bench=%d" % measure.REPLAYS,
         "--json=%s" % report], text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)
    if done.returncode:
        return None, done.stdout
    return json.loads(report.read_text())["median_ms"] * 1e3 / count, None


def peer(m, k, n):
    import torch

    def gate(g, h):
        return torch.nn.functional.silu(g) * h

    gate = torch.compile(gate)

    def make():
        return [torch.randn(*shape, device="cuda", dtype=torch.float16) * 0.1
                for shape in ((m, k), (k, n), (k, n))]

    return measure.peer(make, lambda x, w, v: gate(x @ w, x @ v)) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="build/bin")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json")
    parser.add_argument("cases", nargs="*", default=CASES)
    options = parser.parse_args()
    results = {}
    for name in options.cases:
        sizes = tuple(map(int, name.split("x")))
        text, count = graph(*sizes)
        with tempfile.TemporaryDirectory() as folder:
            at = PASSES.index("--prepare")
            plans = {
                "one": plan(options, pathlib.Path(folder), "one", text,
                            PASSES[:at] + ["--pair-products"] + PASSES[at:]),
                "two": plan(options, pathlib.Path(folder), "two", text, PASSES)}
            found, why = measure.in_turns({
                key: lambda path=path: timed(options, path, count)
                for key, path in plans.items()})
        if found is None:
            print("%-16s %s" % (name, why))
            continue
        try:
            found["torch"] = peer(*sizes) if options.device == "cuda" else None
        except ImportError:
            found["torch"] = None
        results[name] = found
        print("%-16s one %8.2f us, two %8.2f us%s" % (
            name, found["one"], found["two"],
            ", torch %8.2f us" % found["torch"] if found["torch"] else ""), flush=True)
    if options.json:
        measure.write(options.json, results)


if __name__ == "__main__":
    main()
