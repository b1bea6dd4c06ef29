# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of 1 to 16 rows, as a language model's decoding step has them, by
the share of the device copy's bandwidth that they come to.

usage: few_rows.py [--tools=DIR] [--json=FILE] [--seconds=N] [--pin=PIN]...
           [--no-torch] [--list] [CASE...]

The shapes are bench/shapes/few_rows.json: N x K of the weight, kept as [n, k].

f16 bf16 f32   weights of that type, results too
i8             weights of i8, an f16 scale for each column
i4             weights of u4, zero point 8, f16 scales of groups of 128 along k

Bytes are weights, scales, rows and results, each once; the copy is the
best of several sizes in the same process, what it reads and writes together. Copies of the weights
rotate through more than four times the L2 cache, plain launches. cuBLAS is
torch.matmul, of f16, bf16 and f32.

A chain is products of N to N or N to K and back, each of what the one before
gives, weights of their own, programmatic; microseconds of one product.

One line a case. --pin times a candidate beside what is chosen, such as
'product_mma(BM = 32)'. CASE: a regular expression that a case's name matches.
"""
import argparse
import json
import pathlib
import re
import tempfile
import time

import measure

ROTATED = 240_000_000  # Four times the L2 cache of an H200.
GROUP = 128
FACTOR = 1 / 128  # Keeps the numbers of a chain within f16.
BITS = {"f16": 16, "bf16": 16, "f32": 32, "i8": 8, "i4": 4}


def cases():
    """Names in the order in which they are measured."""
    shapes = json.loads((measure.SHAPES / "few_rows.json").read_text())
    every = ["%s %s %d" % (kind, shape, m) for kind in shapes["types"]
             for shape, rows in shapes["rows"].items() for m in rows]
    chains = ["chain " + name for name in shapes["chain"]]
    return list(dict.fromkeys(shapes["first"] + chains + every))


def parts(name):
    kind, shape, m = name.replace("chain ", "").split()
    return (kind, *map(int, shape.split("x")), int(m))


def size_of(kind, n, k, m):
    """Bytes read and written, each once."""
    scales = {"i8": n, "i4": n * k // GROUP}.get(kind, 0) * 2
    return n * k * BITS[kind] // 8 + scales + m * (n + k) * (4 if kind == "f32" else 2)


def weight(kind, n, k, i):
    """What is given of weight i, and the lines that make it w<i>[n, k]."""
    if kind == "i8":
        return (["q%d: i8[%d, %d]" % (i, n, k), "s%d: f16[%d, 1]" % (i, n)],
                ["w%d = dequantize_scale(q%d, s%d) { R = f16 }" % (i, i, i)])
    if kind == "i4":
        groups = "%d, %d" % (n, k // GROUP)
        return (["q%d: u4[%s, %d]" % (i, groups, GROUP), "s%d: f16[%s, 1]" % (i, groups)],
                ["d%d = dequantize(q%d, s%d, eight) { R = f16 }" % (i, i, i),
                 "w%d: f16[%d, %d] = reshape(d%d)" % (i, n, k, i)])
    return ["w%d: %s[%d, %d]" % (i, kind, n, k)], []


def element(kind):
    return kind if kind in ("bf16", "f32") else "f16"


def graph(given, body, results):
    return "graph main(%s) -> %s {\n  %s\n}\n" % (
        ", ".join(given), ", ".join(results),
        "\n  ".join(["const eight: u4[] = [8]"] + body))


def rotated(kind, n, k, m, pin):
    """The text, and products in it."""
    copies = -(-ROTATED // size_of(kind, n, k, m))
    given, body = [], []
    for i in range(copies):
        inputs, lines = weight(kind, n, k, i)
        given += ["x%d: %s[%d, %d]" % (i, element(kind), m, k), *inputs]
        body += lines + ["y%d: %s[%d, %d] = matmul(x%d, w%d) { tb = true }%s"
                         % (i, element(kind), m, n, i, i, pin and " with " + pin)]
    return graph(given, body, ["y%d" % i for i in range(copies)]), copies


def chain(kind, n, k, m, pin):
    count = max(8, -(-ROTATED // size_of(kind, n, k, m)) // 2 * 2)
    given, body, x = ["x: f16[%d, %d]" % (m, k)], ["const c: f32[] = [%g]" % FACTOR], "x"
    for i in range(count):
        to, of = (n, k) if i % 2 == 0 else (k, n)
        inputs, lines = weight(kind, to, of, i)
        given += inputs
        body += lines + ["p%d: f32[%d, %d] = matmul(%s, w%d) { tb = true }%s"
                         % (i, m, to, x, i, pin and " with " + pin),
                         "r%d = mul(p%d, c)" % (i, i),
                         "y%d: f16[%d, %d] = cast(r%d)" % (i, m, to, i)]
        x = "y%d" % i
    return graph(given, body, [x]), count


def peer(kind, n, k, m):
    import torch
    dtype = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[kind]
    size = size_of(kind, n, k, m)

    def operands():
        return (torch.randn(m, k, device="cuda", dtype=dtype),
                torch.randn(n, k, device="cuda", dtype=dtype),
                torch.empty(m, n, device="cuda", dtype=dtype))

    copies = [operands() for _ in range(-(-ROTATED // size))]
    ms = measure.replayed([lambda o=o: torch.matmul(o[0], o[1].t(), out=o[2])
                           for o in copies])
    del copies
    torch.cuda.empty_cache()
    return ms


def peer_chain(n, k, m):
    """As ours, the factor in the weights."""
    import torch
    count = max(8, -(-ROTATED // size_of("f16", n, k, m)) // 2 * 2)
    pairs = [(n, k) if i % 2 == 0 else (k, n) for i in range(count)]
    weights = [torch.randn(*p, device="cuda", dtype=torch.float16) * FACTOR for p in pairs]
    x = torch.randn(m, k, device="cuda", dtype=torch.float16)

    def run():
        y = x
        for w in weights:
            y = torch.matmul(y, w.t())

    ms = measure.replayed([run]) / count
    torch.cuda.empty_cache()
    return ms


def copy_bandwidth():
    """Bytes a millisecond, read and written, of the best of several sizes, which
    a graph copies by other means."""
    import torch
    best = 0
    for size in (1 << 25, 1 << 26, 1 << 27, 1 << 28, 1 << 29):
        pairs = [[torch.empty(size, device="cuda", dtype=torch.uint8) for _ in range(2)]
                 for _ in range(max(2, ROTATED // size))]
        ms = measure.replayed([lambda p=p: p[1].copy_(p[0]) for p in pairs])
        best = max(best, 2 * size / ms)
        del pairs
        torch.cuda.empty_cache()
    return best


class Bench:
    def __init__(self, options):
        self.options, self.results = options, []
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.bandwidth = None if options.no_torch else copy_bandwidth()
        if self.bandwidth:
            print("copy: %.0f GB/s" % (self.bandwidth / 1e6), flush=True)

    def ours(self, name, pin):
        chained = name.startswith("chain")
        text, count = (chain if chained else rotated)(*parts(name), pin)
        path = self.folder / "graph.hir"
        path.write_text(text)
        ms, report = measure.run(self.options.tools, path, ["--no-cache"] + (
            [] if chained else ["--no-early-launches"]))
        return ms and ms / count, report

    def run(self, name):
        kind, n, k, m = parts(name)
        theirs = None
        if self.bandwidth and kind in ("f16", "bf16", "f32"):
            theirs = peer_chain(n, k, m) if "chain" in name else peer(kind, n, k, m)
        for pin in [""] + self.options.pin:
            ms, report = self.ours(name, pin)
            if ms is None:
                print("%-26s %s FAILED: %s" % (name, pin, report.strip()[-300:]), flush=True)
                continue
            line = "%-26s %9.2f us" % (name, ms * 1e3)
            size = size_of(kind, n, k, m)
            if self.bandwidth:
                line += "  %.3f of the copy" % (size / ms / self.bandwidth)
            if theirs:
                line += "  cuBLAS %9.2f us  %.2f x" % (theirs * 1e3, theirs / ms)
            print(line, pin, flush=True)
            self.results.append({
                "case": name, "pin": pin, "bytes": size, "us": ms * 1e3,
                "cublas_us": theirs and theirs * 1e3,
                "share": self.bandwidth and size / ms / self.bandwidth})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="build/bin")
    parser.add_argument("--json")
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--pin", action="append", default=[])
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    chosen = [name for name in cases()
              if not options.names or any(re.search(part, name) for part in options.names)]
    if options.list:
        print("\n".join(chosen))
        return
    until = time.monotonic() + options.seconds
    bench = Bench(options)
    for name in chosen:
        if time.monotonic() < until:
            bench.run(name)
    if options.json and bench.bandwidth:
        measure.write(options.json, bench.results)


if __name__ == "__main__":
    main()
