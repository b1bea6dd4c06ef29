# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the candidates of a template take, where products stand behind each
other: eight times M x K by K x N with bias and gelu, then by N x K with bias
and what came in, all in f16 with weights of their own, one CUDA graph. One of
the two products is given each candidate in turn, the other is as chosen; times
are microseconds of a pair. lib/Schedule/Product/ProductPrice.c is fitted to such tables.

usage: product_tiles.py --tools=FOLDER [--json=FILE] [--seconds=N] M K N
"""
import argparse
import itertools
import json
import pathlib
import re
import subprocess
import tempfile
import time

import measure

PAIRS = 8
TEMPLATE = (pathlib.Path(__file__).resolve().parent.parent
            / "lib/Schedule/templates/product_mma.hir")


def graph(m, k, n):
    given, body, x = ["x: f16[%d, %d]" % (m, k)], [], "x"
    for i in range(PAIRS):
        given += ["w%d: f16[%d, %d]" % (i, k, n), "b%d: f32[%d]" % (i, n),
                  "v%d: f16[%d, %d]" % (i, n, k), "c%d: f32[%d]" % (i, k)]
        body += ["p%d: f32[%d, %d] = matmul(%s, w%d)" % (i, m, n, x, i),
                 "q%d = add(p%d, b%d)" % (i, i, i), "g%d = gelu(q%d)" % (i, i),
                 "h%d: f16[%d, %d] = cast(g%d)" % (i, m, n, i),
                 "r%d: f32[%d, %d] = matmul(h%d, v%d)" % (i, m, k, i, i),
                 "s%d = add(r%d, c%d)" % (i, i, i),
                 "e%d: f32[%d, %d] = cast(%s)" % (i, m, k, x),
                 "t%d = add(s%d, e%d)" % (i, i, i),
                 "y%d: f16[%d, %d] = cast(t%d)" % (i, m, k, i)]
        x = "y%d" % i
    return "graph main(%s) -> %s {\n  %s\n}\n" % (", ".join(given), x,
                                                  "\n  ".join(body))


def candidates(head):
    """Every choice of values; what the head requires is asked of the tool."""
    names = re.findall(r"(\w+) in \{([^}]*)\}", head)
    values = [[int(v) for v in text.split(",")] for _, text in names]
    for choice in itertools.product(*values):
        yield dict(zip((name for name, _ in names), choice))


def one_for(kernel, head, candidate, condition):
    """The template with one candidate where the condition holds, and as it is
    elsewhere."""
    for name, value in candidate.items():
        head = re.sub(r"\b%s in \{[^}]*\}" % name, "%s in {%d}" % (name, value), head)
    library = TEMPLATE.read_text()[len(kernel):]
    texts = [kernel, head.replace("requires ", "requires %s, " % condition),
             library.replace("template product_mma ", "template product_other ")
             .replace("requires ", "requires !(%s), " % condition)]
    return "\n".join(texts).replace("product_mma_tiles", "given_tiles")


def run(tools, folder, more):
    """Microseconds of a pair, and how many products have one candidate; None
    where it does not compile."""
    report = folder / "report.json"
    done = subprocess.run(
        [str(pathlib.Path(tools) / "hidet-run"), str(folder / "graph.hir"),
         "--device=cuda", "--bench", "--json=%s" % report, "--no-cache", "-q",
         "--input=0", "--explain", *more],
        text=True, capture_output=True, timeout=120)
    if done.returncode:
        return None, 0
    us = json.loads(report.read_text())["median_ms"] * 1000 / PAIRS
    return us, done.stderr.count("the best of 1 candidates")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", required=True)
    parser.add_argument("--json")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("sizes", nargs=3, type=int, metavar="M K N")
    options = parser.parse_args()
    m, k, n = options.sizes
    text = TEMPLATE.read_text()
    at = text.index("template product_mma ")
    kernel, head = text[:at], text[at:]
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "graph.hir").write_text(graph(m, k, n))
    us, _ = run(options.tools, folder, [])
    cases = [{"m": m, "k": k, "n": n, "product": "both", "us": us}]
    print("%d: %d -> %d -> %d: %.2f us a pair as chosen" % (m, k, n, k, us))
    until = time.monotonic() + options.seconds
    for product, condition in ("up", "n == %d" % n), ("down", "n == %d" % k):
        for candidate in candidates(head):
            if time.monotonic() > until:
                break
            (folder / "one.hir").write_text(one_for(kernel, head, candidate,
                                                    condition))
            us, ones = run(options.tools, folder, ["--load=%s" % (folder / "one.hir")])
            if us is None or ones != 1:
                continue  # The head refuses it, or an SM has no room.
            cases.append({"m": m, "k": k, "n": n, "product": product, "us": us,
                          **candidate})
            print("%s %s %.2f us" % (product, candidate, us), flush=True)
    measure.write(options.json, cases)


if __name__ == "__main__":
    main()
