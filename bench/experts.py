# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products by a few of many matrices, which an index chooses for each row, as
mixtures of experts have them: 64 matrices of 1408 x 2048, 8 of them a token.

usage: experts.py [--tools=DIR] [--json=FILE] [CASE...]

f16 1, f16 16   tokens: the share of the device copy's bandwidth that bytes come
                to, those of the matrices touched, rows and results, each once
bf16 512        against torch._grouped_mm, whose rows are sorted already

Matrices are constants, [experts, n, k], of random numbers in a file. The experts
of a token are drawn, different ones, and given when it runs. A graph's products
are of other tokens each, or other matrices, so that together they read more than
four times the L2 cache.
"""
import argparse
import pathlib
import re
import tempfile

import numpy

import few_rows
import measure

EXPERTS, CHOSEN, N, K = 64, 8, 1408, 2048
# Products of a graph, and weights that they take in turns.
CASES = {"f16 1": (8, 1), "f16 16": (2, 2), "bf16 512": (1, 1)}


def drawn(tokens, count):
    """The experts of each product's tokens; each expert once in all, where that
    is how many they are."""
    draw = numpy.random.default_rng(5)
    if tokens * CHOSEN * count == EXPERTS:
        return numpy.split(draw.permutation(EXPERTS), count)
    return [numpy.concatenate([draw.permutation(EXPERTS)[:CHOSEN] for _ in range(tokens)])
            for _ in range(count)]


def write_matrices(path, kind, count):
    draw = numpy.random.default_rng(6)
    with open(path, "wb") as file:
        for _ in range(count * EXPERTS):
            w = draw.standard_normal((N, K), dtype=numpy.float32) / 32
            file.write((w.astype(numpy.float16) if kind == "f16" else  # Or its upper half.
                        (w.view(numpy.uint32) >> 16).astype(numpy.uint16)).tobytes())


def graph(kind, tokens, count, path, weights):
    p = tokens * CHOSEN
    body = ["const w%d: %s[1, %d, %d] = file(\"%s\", %d)" % (
        i, kind, EXPERTS, N * K, path, i * EXPERTS * N * K * 2) for i in range(weights)]
    for i in range(count):
        body += ["g%d = gather_rows(w%d, at%d)" % (i, i % weights, i),
                 "v%d: %s[%d, %d, %d] = reshape(g%d)" % (i, kind, p, N, K, i),
                 "again%d = expand(x%d) { sizes = [%d, %d, %d] }" % (i, i, tokens, CHOSEN, K),
                 "r%d: %s[%d, %d, 1] = reshape(again%d)" % (i, kind, p, K, i),
                 "y%d: %s[%d, %d, 1] = matmul(v%d, r%d)" % (i, kind, p, N, i, i)]
    given = ", ".join("x%d: %s[%d, 1, %d], at%d: i64[1, %d]" % (i, kind, tokens, K, i, p)
                      for i in range(count))
    return "graph main(%s) -> %s {\n  %s\n}\n" % (
        given, ", ".join("y%d" % i for i in range(count)), "\n  ".join(body))


def files(folder, kind, tokens, products, weights):
    """Writes a graph and what it reads; its path, the options of its inputs, the
    experts."""
    chosen = drawn(tokens, products)
    write_matrices(folder / "w.bin", kind, weights)
    path = folder / "graph.hir"
    path.write_text(graph(kind, tokens, products, "w.bin", weights))
    more = []
    for i, at in enumerate(chosen):
        numpy.save(folder / ("at%d.npy" % i), at.reshape(1, -1).astype("int64"))
        more.append("--input=at%d=@%s" % (i, folder / ("at%d.npy" % i)))
    return path, more, chosen


def grouped(at):
    """Milliseconds of torch's product of the same rows."""
    import torch
    ends = numpy.cumsum(numpy.bincount(at, minlength=EXPERTS))
    x = torch.randn(len(at), K, device="cuda", dtype=torch.bfloat16)
    w = torch.randn(EXPERTS, N, K, device="cuda", dtype=torch.bfloat16)
    offsets = torch.tensor(ends, device="cuda", dtype=torch.int32)
    return measure.replayed([lambda: torch._grouped_mm(x, w.transpose(1, 2), offs=offsets)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="build/bin")
    parser.add_argument("--json")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    results, bandwidth = [], None
    for name, (products, weights) in CASES.items():
        if options.names and not any(re.fullmatch(part, name) for part in options.names):
            continue
        kind, tokens = name.split()[0], int(name.split()[1])
        with tempfile.TemporaryDirectory() as folder:
            path, more, chosen = files(pathlib.Path(folder), kind, tokens, products, weights)
            ms, report = measure.run(options.tools, path, [
                "--no-cache", "--no-early-launches", *more])
        if ms is None:
            print("%-9s FAILED: %s" % (name, report.strip()[-300:]), flush=True)
            continue
        us = ms * 1e3 / products
        touched = sum(len(set(at)) for at in chosen) / products
        result = {"case": name, "us": us, "experts": touched}
        line = "%-9s %9.2f us" % (name, us)
        if tokens < 512:
            bandwidth = bandwidth or few_rows.copy_bandwidth()
            size = touched * N * K * 2 + tokens * (K + CHOSEN * N) * 2
            result["share"] = size / ms * products / bandwidth
            line += "  %.1f experts, %.3f of the copy" % (touched, result["share"])
        else:
            result["torch_us"] = grouped(chosen[0]) * 1e3
            line += "  torch %.2f us, %.3f of it" % (result["torch_us"], result["torch_us"] / us)
        print(line, flush=True)
        results.append(result)
    measure.write(options.json, results)


if __name__ == "__main__":
    main()
