# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of graphs, by the templates that are chosen for them or by given
candidates, against cuBLAS as PyTorch calls it.

usage: template_products.py --tools=DIR [--json=FILE] [--seconds=N]
           [--candidates] [large] [chains]

large   f16 products, plain launches: each alone, then with bias and gelu
        against cuBLASLt's own epilogue (tanh-form gelu); b as [n, k], or [k, n]
chains  128 rows, programmatic, 24 pairs a graph, weights of their own: 768 to
        3072 with bias and gelu, then to 768 with bias and residual; 768 to 2304
        with bias, then its first 768 columns to 768 with bias and residual.
        The peer is addmm (gelu where ours has it), without the residual

One line a case; --candidates also pins every candidate of LARGE or FEW to one
of the products in turn, the others as chosen, and then the best of each to all.
"""
import argparse
import itertools
import pathlib
import tempfile
import time

import measure

PAIRS = 24
SHAPES = [(4096, 4096, 4096), (8192, 8192, 8192), (4096, 14336, 4096)]
LARGE = ["product_wgmma(BN = %d, C = %d)" % (bn, c) for bn in (256, 128) for c in (2, 1)]


def few():
    """Candidates for 128 rows: tiles, stages, splits that fill a GPU's SMs."""
    for bm, bn, stages, split in itertools.product(
            (64, 128), (16, 32, 64), (4, 6, 8, 12), (1, 2, 4, 8)):
        if stages * (bm + bn) * 128 + 2 * bm * (bn + 8) * 4 <= 229376:
            yield bm, bn, stages, split


def blocks(candidate, n):
    bm, bn, _, split = candidate
    return 128 // bm * -(-n // bn) * split


def suits(candidate, n, k):
    """In one wave or nearly, no more stages than steps."""
    steps = -(-k // 64) // candidate[3]
    return (48 <= blocks(candidate, n) <= 264 and steps >= 3
            and (candidate[2] <= steps or candidate[2] == 4))


def large(m, n, k, rows, gelu, pin, copies):
    with_ = " with " + pin if pin else ""
    given, body = [], []
    for i in range(copies):
        given += ["x%d: f16[%d, %d]" % (i, m, k),
                  "w%d: f16[%s]" % (i, "%d, %d" % ((n, k) if rows else (k, n)))]
        product = "matmul(x%d, w%d)%s%s" % (i, i, " { tb = true }" if rows else "", with_)
        if not gelu:
            body.append("y%d: f16[%d, %d] = %s" % (i, m, n, product))
            continue
        given.append("b%d: f32[%d]" % (i, n))
        body += ["p%d: f32[%d, %d] = %s" % (i, m, n, product),
                 "s%d = add(p%d, b%d)" % (i, i, i), "g%d = gelu(s%d)" % (i, i),
                 "y%d: f16[%d, %d] = cast(g%d)" % (i, m, n, i)]
    return "graph main(%s) -> %s {\n  %s\n}\n" % (
        ", ".join(given), ", ".join("y%d" % i for i in range(copies)), "\n  ".join(body))


def chain(up, gelu, pins):
    """Pairs of products of 128 rows: 768 to `up`, and its first columns back."""
    back = up if gelu else 768
    given, body, x = ["x: f16[128, 768]"], [], "x"
    first, second = (" with " + pin if pin else "" for pin in pins)
    for i in range(PAIRS):
        given += ["w%d: f16[768, %d]" % (i, up), "b%d: f32[%d]" % (i, up),
                  "v%d: f16[%d, 768]" % (i, back), "c%d: f32[768]" % i]
        body += ["p%d: f32[128, %d] = matmul(%s, w%d)%s" % (i, up, x, i, first),
                 "q%d = add(p%d, b%d)" % (i, i, i)]
        if gelu:
            body += ["g%d = gelu(q%d)" % (i, i), "h%d: f16[128, %d] = cast(g%d)" % (i, up, i)]
        else:
            body += ["g%d: f16[128, %d] = cast(q%d)" % (i, up, i),
                     "h%d: f16[128, 768] = slice(g%d) { start = [0, 0], stride = [1, 1], "
                     "size = [128, 768] }" % (i, i)]
        body += ["r%d: f32[128, 768] = matmul(h%d, v%d)%s" % (i, i, i, second),
                 "s%d = add(r%d, c%d)" % (i, i, i), "t%d: f16[128, 768] = cast(s%d)" % (i, i),
                 "y%d: f16[128, 768] = add(t%d, %s)" % (i, i, x)]
        x = "y%d" % i
    return "graph main(%s) -> %s {\n  %s\n}\n" % (", ".join(given), x, "\n  ".join(body))


class Bench:
    def __init__(self, options):
        self.tools, self.cases = options.tools, []
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.until = time.monotonic() + options.seconds

    def ours(self, text, *more):
        path = self.folder / "graph.hir"
        path.write_text(text)
        return measure.run(self.tools, path, ["--no-cache", *more])

    def late(self):
        return time.monotonic() > self.until

    def note(self, label, us, peer, **more):
        print("%-46s %9.2f us  cuBLAS %9.2f  %.3f of it  %s"
              % (label, us, peer, peer / us, more.get("pin", "")), flush=True)
        self.cases.append({"case": label, "us": us, "peer_us": peer, **more})


def peer_large(m, n, k, rows, gelu):
    import torch

    def operands():
        w = torch.randn(*((n, k) if rows else (k, n)), device="cuda", dtype=torch.float16)
        return (torch.randn(m, k, device="cuda", dtype=torch.float16), w,
                torch.randn(n, device="cuda", dtype=torch.float16),
                torch.empty(m, n, device="cuda", dtype=torch.float16))

    def run(x, w, b, y):
        w = w.t() if rows else w
        if gelu:
            torch._addmm_activation(b, x, w, use_gelu=True)
        else:
            torch.matmul(x, w, out=y)

    ms = measure.peer(operands, run)
    torch.cuda.empty_cache()
    return ms, None


def peer_chain(up, gelu):
    import torch

    def draw(*shape):
        return torch.randn(*shape, device="cuda", dtype=torch.float16) / shape[0] ** 0.5

    back = up if gelu else 768
    weights = [(draw(768, up), draw(up), draw(back, 768), draw(768)) for _ in range(PAIRS)]
    first = draw(128, 768)

    def pairs():
        x = first
        for w, b, v, c in weights:
            h = (torch._addmm_activation(b, x, w, use_gelu=True) if gelu
                 else torch.addmm(b, x, w)[:, :768])
            x = torch.addmm(c, h, v)

    return measure.replayed([pairs]) / PAIRS, None


def run_large(bench, options):
    ways = ((True, False), (True, True), (False, False))  # Rows, bias and gelu.
    for pin, (rows, gelu), (m, n, k) in itertools.product(
            [None] + (LARGE if options.candidates else []), ways, SHAPES):
        if bench.late():
            return
        if pin and not rows:
            continue
        copies = max(1, -(-100_000_000 // (2 * (m * k + n * k + m * n))))
        text = large(m, n, k, rows, gelu, pin, copies)

        def ours():
            ms, report = bench.ours(text, "--no-early-launches")
            return ms and ms / copies, report
        times, report = measure.in_turns({
            "ours": ours, "peer": lambda: peer_large(m, n, k, rows, gelu)})
        label = "%dx%dx%d %s%s" % (m, n, k, "[n, k]" if rows else "[k, n]",
                                   " bias gelu" if gelu else "")
        if times is None:
            print("%s %s FAILED: %s" % (label, pin or "", report.strip()[-300:]), flush=True)
            continue
        bench.note(label, times["ours"] * 1000, times["peer"] * 1000, pin=pin or "",
                   tflops=2e-9 * m * n * k / times["ours"])


def timed_chain(bench, up, gelu, pins):
    ms, report = bench.ours(chain(up, gelu, pins))
    return ms and ms / PAIRS, report


def run_chain(bench, up, gelu, pins):
    times, report = measure.in_turns({
        "ours": lambda: timed_chain(bench, up, gelu, pins),
        "peer": lambda: peer_chain(up, gelu)})
    label = "128 rows, 768 -> %d%s -> 768" % (up, " gelu" if gelu else "")
    if times is None:
        print("%s %s FAILED: %s" % (label, pins, report.strip()[-300:]), flush=True)
        return
    bench.note(label, times["ours"] * 1000, times["peer"] * 1000,
               pin=" / ".join(pin or "as chosen" for pin in pins))


def run_chains(bench, options):
    for up, gelu in ((3072, True), (2304, False)):
        run_chain(bench, up, gelu, (None, None))
        best = [None, None]
        for place, (n, k) in enumerate(((up, 768), (768, up if gelu else 768))):
            if not options.candidates:
                break
            found = []
            for candidate in few():
                if bench.late() or not suits(candidate, n, k):
                    continue
                pins = [None, None]
                pins[place] = ("product_few(BM = %d, BN = %d, STAGES = %d, SPLIT = %d)"
                               % candidate)
                ms, report = timed_chain(bench, up, gelu, pins)
                if ms is None:
                    print("FAILED %s: %s" % (pins[place], report.strip()[-200:]), flush=True)
                    continue
                found.append((ms * 1000, pins[place]))
                bench.cases.append({"up": up, "n": n, "k": k, "us": ms * 1000,
                                    "pin": pins[place]})
            found.sort()
            for us, pin in found[:8] + found[-1:]:
                print("  %d x %d x %d: %.2f us a pair with %s" % (128, n, k, us, pin), flush=True)
            best[place] = found[0][1] if found else None
        if any(best):
            run_chain(bench, up, gelu, best)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="build/bin")
    parser.add_argument("--json")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--candidates", action="store_true")
    parser.add_argument("parts", nargs="*")
    options = parser.parse_args()
    import torch
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    bench = Bench(options)
    for part, run in (("large", run_large), ("chains", run_chains)):
        if not options.parts or part in options.parts:
            run(bench, options)
    measure.write(options.json, bench.cases)


if __name__ == "__main__":
    main()
