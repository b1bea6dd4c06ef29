# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attentions by the template that is chosen, or by each candidate, against the
better of cuDNN and FlashAttention as PyTorch calls them.

usage: attention.py --tools=DIR [--json=FILE] [--seconds=N] [--candidates]
           [short] [long] [wide] [shared] [decode] [token] [paged]

short   batch 1, 12 heads of 64: 128, 197 and 512 tokens
long    16,384 tokens in all, 2,048 features: 128 to 8,192 tokens, heads of 64
        and 128, causal and not
wide    the same for heads of 192 and 256, and of 192 with values of 128
shared  32 heads that share the keys of 8, of 64 and 128: 2,048 and 8,192 tokens
decode  one query, 32 heads of 128 that share the keys of 8, as many requests as
        make 256 MiB of keys and values: 512 to 65,536 of them; also the share
        of the bandwidth that a copy of as many bytes has
token   the same of one request: 512 to 65,536 keys
paged   decode through pages of 16 rows that a table chooses, in disorder, heads of a
        page apart or together, over the same from a cache in one piece

A graph of several attentions, each of the one before as queries and keys and
values of its own, programmatic launches, one CUDA graph; f16. One line a case;
--candidates also pins every candidate that runs in the time.
"""
import argparse
import collections
import itertools
import json
import pathlib
import statistics
import tempfile
import time

import bandwidth
import measure

# Requests, heads, queries, keys, features; `shared` heads have the same keys.
# e: features of values; 0: as many.
Case = collections.namedtuple("Case", "b h m n d causal shared e", defaults=[False, 1, 0])

TASK = """task attention(q: f16[z, m, k], key: f16[y, n, k], v: f16[y, n, e]) -> o: f16[z, m, e] {
  s[b, i, j] = sum(p: k) f32(q[b, i, p]) * f32(key[b / (z / y), j, p])
  t[b, i, j] = %s
  w[b, i, j] = exp(t[b, i, j] - (max(x: n) t[b, i, x]))
  r[b, i, j] = f16(w[b, i, j] / (sum(x: n) w[b, i, x]))
  o[b, i, c] = f16(sum(j: n) f32(r[b, i, j]) * f32(v[b / (z / y), j, c]))
}
"""
CASES = {
    "short": [Case(1, 12, n, n, 64) for n in (128, 197, 512)],
    "long": [Case(16384 // n, 2048 // d, n, n, d, causal)
             for n in (128, 512, 1024, 2048, 4096, 8192) for d in (64, 128)
             for causal in (False, True)],
    "wide": [Case(16384 // n, 2048 // d, n, n, d, causal, e=e)
             for n in (128, 512, 2048, 8192) for d, e in ((192, 192), (192, 128), (256, 256))
             for causal in (False, True)],
    "shared": [Case(16384 // n, 32, n, n, d, causal, shared=4) for n in (2048, 8192)
               for d in (64, 128) for causal in (False, True)],
    "token": [Case(1, 32, 1, n, 128, shared=4) for n in (512, 1024, 2048, 4096, 8192, 65536)],
    "paged": [Case(65536 // n, 32, 1, n, 128, shared=4) for n in (512, 2048, 8192, 65536)],
    "decode": [Case(65536 // n, 32, 1, n, 128, shared=4) for n in (512, 2048, 8192, 65536)],
}
PAGE = 16
# How a page's rows and the heads of keys lie, and an element of them.
PAGES = {"heads apart": ("ng, nr", "g, j % nr"), "heads together": ("nr, ng", "j % nr, g")}
PAGED = """task pages(pool: f16[np, %s, k], table: i32[nb, nt]) -> o: f16[nb, ng, nt * nr, k] {
  o[b, g, j, c] = pool[table[b, j / nr], %s, c]
}
"""
HEADS = """task attention(q: f16[nb, nh, k], key: f16[nb, ng, n, k], v: f16[nb, ng, n, k]) -> o: f16[nb, nh, k] {
  s[b, i, j] = sum(p: k) f32(q[b, i, p]) * f32(key[b, i / (nh / ng), j, p])
  t[b, i, j] = s[b, i, j] * %r
  w[b, i, j] = exp(t[b, i, j] - (max(x: n) t[b, i, x]))
  r[b, i, j] = f16(w[b, i, j] / (sum(x: n) w[b, i, x]))
  o[b, i, c] = f16(sum(j: n) f32(r[b, i, j]) * f32(v[b, i / (nh / ng), j, c]))
}
"""
CANDIDATES = [("attention_mma(WM = %d, WN = %d, BN = %d, STAGES = %d)" % (wm, wn, bn, stages),
               bn if stages == 1 else -bn)
              for wm, wn, bn, stages in itertools.product(
                  (1, 2, 4, 8), (1, 2, 4), (32, 64, 128, 256), (1, 2, 3))
              if 2 <= wm * wn <= 8 and 16 <= bn // wn <= 64]
CANDIDATES += [("attention_wgmma(G = %d, BN = %d)" % (g, bn), -bn) for g in (1, 2) for bn in (64, 128)]
CANDIDATES += [("attention_tma(BN = 128, STAGES = %d)" % stages, -64) for stages in (2, 3)]
# Of few rows; PARTS are of the grid, SPLIT of a cluster.
SPLITS = ["SPLIT = %d" % blocks for blocks in (1, 4, 8, 16)]
PARTS = ["PARTS = %d" % blocks for blocks in (32, 48, 64, 96)]
FEW = ["attention_%s(WM = 1, WN = %d, BN = %d, STAGES = %d, %s)" % (
    "parts" if split in PARTS else "mma", wn, bn, stages, split)
       for split in PARTS + SPLITS for wn, bn in ((2, 32), (2, 64), (4, 64), (4, 128))
       for stages in (2, 3)]


def text(case, copies, pin):
    term = "s[b, i, j] * %r" % (case.d ** -0.5)
    if case.causal:
        term = "j > i ? -inf : " + term
    heads = case.b * case.h
    shape = "f16[%d, %d, %d]" % (heads, case.m, case.d)
    keys = "f16[%d, %d, %%d]" % (heads // case.shared, case.n)
    # Results of other widths are no queries.
    chained = not case.e or case.e == case.d
    given = ["q%d: %s" % (i, shape) for i in range(1 if chained else copies)]
    given += ["%s%d: %s" % (name, i, keys % width) for i in range(copies)
              for name, width in (("k", case.d), ("v", case.e or case.d))]
    body = "\n".join("  o%d: f16[%d, %d, %d] = attention(%s, k%d, v%d)%s" % (
        i, heads, case.m, case.e or case.d, "o%d" % (i - 1) if i and chained else "q%d" % i,
        i, i, " with " + pin if pin else "") for i in range(copies))
    results = ["o%d" % i for i in range(copies - 1 if chained else 0, copies)]
    return TASK % term + "graph main(%s) -> %s {\n%s\n}\n" % (
        ", ".join(given), ", ".join(results), body)


def paged_text(case, copies, pages, pin):
    """Each attention of the one before's result; pages: of PAGES, or None: one piece."""
    kept, number = case.h // case.shared, case.b * case.n // PAGE
    caches = "f16[%d, %d, %d, %d]" % (case.b, kept, case.n, case.d)
    pool = {None: caches,
            "heads apart": "f16[%d, %d, %d, %d]" % (number, kept, PAGE, case.d),
            "heads together": "f16[%d, %d, %d, %d]" % (number, PAGE, kept, case.d)}[pages]
    shape = "f16[%d, %d, %d]" % (case.b, case.h, case.d)
    given = ["q0: " + shape] + ["%s%d: %s" % (name, i, pool) for i in range(copies)
                                for name in "kv"]
    lines = []
    if pages:
        given += ["table: i32[%d, %d]" % (case.b, case.n // PAGE)]
    for i in range(copies):
        operands = ["k%d" % i, "v%d" % i]
        if pages:
            lines += ["  %s_: %s = pages(%s, table)" % (name, caches, name) for name in operands]
            operands = [name + "_" for name in operands]
        lines.append("  q%d: %s = attention(q%d, %s)%s" % (
            i + 1, shape, i, ", ".join(operands), " with " + pin if pin else ""))
    return (PAGED % PAGES[pages] if pages else "") + HEADS % case.d ** -0.5 + (
        "graph main(%s) -> q%d {\n%s\n}\n" % (", ".join(given), copies, "\n".join(lines)))


def paged(options, folder, case, lines):
    """In turns, and the median of each: what is compared is a few per cent apart."""
    import numpy
    table = numpy.random.default_rng(0).permutation(case.b * case.n // PAGE)
    numpy.save(folder / "table.npy", table.reshape(case.b, -1).astype("i4"))
    copies = copies_of(case)
    pins = [pin for pin in FEW if "mma" in pin] if options.candidates else [""]
    for pin in pins:
        times = collections.defaultdict(list)
        for pages in [None, *PAGES] * (1 if pin else 3):
            path = folder / "attention.hir"
            path.write_text(paged_text(case, copies, pages, pin))
            ms, report = measure.run(options.tools, path, ["--no-cache"] + (
                ["--input=table=@%s" % (folder / "table.npy")] if pages else []))
            if ms is None:
                print("%s %s: %s" % (label(case), pin, report.strip()[:300]))
                break
            times[pages].append(ms / copies)
        if len(times) <= len(PAGES):
            continue
        ms = {pages: statistics.median(found) for pages, found in times.items()}
        print("%-44s %9.2f us in one piece%s  %s" % (label(case), ms[None] * 1e3, "".join(
            "  %9.2f paged, %s: %.3f of it" % (ms[pages] * 1e3, pages, ms[pages] / ms[None])
            for pages in PAGES), pin), flush=True)
        lines += [{"case": label(case), "us": ms[None] * 1e3, "pin": pin,
                   "paged_us": {pages: ms[pages] * 1e3 for pages in PAGES}}]


def bytes_of(case):
    """Of queries, results, keys and values."""
    return 2 * case.b * case.h * (case.d + (case.e or case.d)) * (
        case.m + case.n // case.shared)


def copies_of(case):
    return max(2, min(24 if case.m == case.n else 64, 2 ** 27 // bytes_of(case)))


def peer(case):
    """The better one's milliseconds, and its name."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def draw():
        kept = case.h // case.shared
        return [torch.randn(case.b, h, rows, width, device="cuda", dtype=torch.float16)
                for h, rows, width in ((case.h, case.m, case.d), (kept, case.n, case.d),
                                       (kept, case.n, case.e or case.d))]

    found = []
    for name, backend in (("cuDNN", SDPBackend.CUDNN_ATTENTION),
                          ("flash", SDPBackend.FLASH_ATTENTION)):
        def run(q, k, v, backend=backend):
            with sdpa_kernel(backend):
                torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=case.causal,
                                                                 enable_gqa=case.shared > 1)
        try:
            found.append((measure.peer(draw, run), name))
        except RuntimeError as error:
            print("%s: %s" % (name, str(error).splitlines()[0]))
        torch.cuda.empty_cache()
    return min(found) if found else (float("nan"), "none")


def ours(options, folder, case, pin):
    path = folder / "attention.hir"
    copies = copies_of(case)
    path.write_text(text(case, copies, pin))
    ms, report = measure.run(options.tools, path, ["--no-cache"])
    return (ms / copies, report) if ms is not None else (None, report)


def label(case):
    text = "%d x %d heads, " % (case.b, case.h)
    if case.m < case.n:
        text += "%d of " % case.m
    text += "%d tokens, %d%s%s" % (case.n, case.d, " and %d" % case.e if case.e not in (0, case.d)
                                   else "", " causal" if case.causal else "")
    return text + (", %d share keys" % case.shared if case.shared > 1 else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="build/bin")
    parser.add_argument("--json")
    parser.add_argument("--seconds", type=int, default=500)
    parser.add_argument("--candidates", action="store_true")
    parser.add_argument("names", nargs="*", choices=[[], *CASES])
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp())
    until = time.monotonic() + options.seconds
    lines = []
    for name, case in ((name, case) for name in options.names or CASES for case in CASES[name]):
        if time.monotonic() > until:
            print("no time for %s" % label(case))
            continue
        if name == "paged":
            paged(options, folder, case, lines)
            continue
        theirs, better = peer(case)
        flops = 2.0 * case.b * case.h * case.m * case.n * (case.d + (case.e or case.d)) / (
            2 if case.causal else 1)
        copied = bandwidth.copy(bytes_of(case)) if case.m < case.n else None
        # For so many keys at most, or for more than so many.
        pins = [""]
        if options.candidates and case.m * case.shared <= 16:
            pins += FEW
        elif options.candidates:
            pins += [pin for pin, keys in CANDIDATES
                     if (case.n <= keys if keys > 0 else case.n > -keys)]
        for pin in pins:
            ms, report = ours(options, folder, case, pin)
            if ms is None:
                print("%s %s: %s" % (label(case), pin, report.strip()[:300]))
                continue
            print("%-44s %9.2f us %6.1f TFLOPS  %s %9.2f  %.3f of it%s  %s" % (
                label(case), ms * 1e3, flops / ms * 1e-9, better, theirs * 1e3, theirs / ms,
                "  %.3f of the copy" % (copied / ms) if copied else "", pin), flush=True)
            lines.append({"case": label(case), "us": ms * 1e3, "peer": better,
                          "peer_us": theirs * 1e3, "pin": pin})
            if copied:
                lines[-1]["copy_us"] = copied * 1e3
            if time.monotonic() > until:
                break
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(
            {"machine": measure.machine(), "cases": lines}, indent=1) + "\n")


if __name__ == "__main__":
    main()
