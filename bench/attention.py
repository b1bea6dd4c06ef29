# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attentions by the template that is chosen, or by each candidate, against the
better of cuDNN and FlashAttention as PyTorch calls them.

usage: attention.py --tools=DIR [--json=FILE] [--seconds=N] [--candidates]
           [short] [long]

short   batch 1, 12 heads of 64: 128, 197 and 512 tokens
long    16,384 tokens in all, 2,048 features: 128 to 8,192 tokens, heads of 64
        and 128, causal and not

A graph of several attentions, each of the one before as queries and keys and
values of its own, programmatic launches, one CUDA graph; f16. One line a case; --candidates also pins every candidate
that runs in the time.
"""
import argparse
import itertools
import json
import pathlib
import tempfile
import time

import measure

TASK = """task attention(q: f16[z, m, k], key: f16[z, n, k], v: f16[z, n, e]) -> o: f16[z, m, e] {
  s[b, i, j] = sum(p: k) f32(q[b, i, p]) * f32(key[b, j, p])
  t[b, i, j] = %s
  w[b, i, j] = exp(t[b, i, j] - (max(x: n) t[b, i, x]))
  r[b, i, j] = f16(w[b, i, j] / (sum(x: n) w[b, i, x]))
  o[b, i, c] = f16(sum(j: n) f32(r[b, i, j]) * f32(v[b, j, c]))
}
"""
SHORT = [(1, 12, n, 64, False) for n in (128, 197, 512)]
LONG = [(16384 // n, 2048 // d, n, d, causal)
        for n in (128, 512, 1024, 2048, 4096, 8192) for d in (64, 128) for causal in (False, True)]
CANDIDATES = [("attention_mma(WM = %d, WN = %d, BN = %d, STAGES = %d)" % (wm, wn, bn, stages),
               bn if stages == 1 else -bn)
              for wm, wn, bn, stages in itertools.product(
                  (1, 2, 4, 8), (1, 2, 4), (32, 64, 128, 256), (1, 2, 3))
              if 2 <= wm * wn <= 8 and 16 <= bn // wn <= 64]
CANDIDATES += [("attention_wgmma(G = %d, BN = %d)" % (g, bn), -bn) for g in (1, 2) for bn in (64, 128)]
CANDIDATES += [("attention_tma(BN = 128, STAGES = %d)" % stages, -64) for stages in (2, 3)]


def text(case, copies, pin):
    b, h, n, d, causal = case
    term = "s[b, i, j] * %r" % (d ** -0.5)
    if causal:
        term = "j > i ? -inf : " + term
    shape = "f16[%d, %d, %d]" % (b * h, n, d)
    inputs = ", ".join(["q: " + shape] + ["%s%d: %s" % (name, i, shape)
                                          for i in range(copies) for name in "kv"])
    body = "\n".join("  o%d: %s = attention(%s, k%d, v%d)%s" % (
        i, shape, "o%d" % (i - 1) if i else "q", i, i, " with " + pin if pin else "")
                     for i in range(copies))
    return TASK % term + "graph main(%s) -> o%d {\n%s\n}\n" % (inputs, copies - 1, body)


def copies_of(case):
    b, h, n, d, _ = case
    return max(2, min(24, 2 ** 27 // (b * h * n * d * 8)))


def peer(case):
    """The better one's milliseconds, and its name."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    b, h, n, d, causal = case

    def draw():
        return [torch.randn(b, h, n, d, device="cuda", dtype=torch.float16) for _ in range(3)]

    found = []
    for name, backend in (("cuDNN", SDPBackend.CUDNN_ATTENTION),
                          ("flash", SDPBackend.FLASH_ATTENTION)):
        def run(q, k, v, backend=backend):
            with sdpa_kernel(backend):
                torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
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
    return "%d x %d heads, %d tokens, %d%s" % (*case[:4], " causal" if case[4] else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="build/bin")
    parser.add_argument("--json")
    parser.add_argument("--seconds", type=int, default=500)
    parser.add_argument("--candidates", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp())
    until = time.monotonic() + options.seconds
    lines = []
    for case in (SHORT if not options.names or "short" in options.names else []) + (
            LONG if not options.names or "long" in options.names else []):
        if time.monotonic() > until:
            print("no time for %s" % label(case))
            continue
        theirs, name = peer(case)
        b, h, n, d, causal = case
        flops = 4.0 * b * h * n * n * d / (2 if causal else 1)
        # For so many keys at most, or for more than so many.
        pins = [""] + ([pin for pin, keys in CANDIDATES if (n <= keys if keys > 0 else n > -keys)]
                       if options.candidates else [])
        for pin in pins:
            ms, report = ours(options, folder, case, pin)
            if ms is None:
                print("%s %s: %s" % (label(case), pin, report.strip()[:300]))
                continue
            print("%-44s %9.2f us %6.1f TFLOPS  %s %9.2f  %.3f of it  %s" % (
                label(case), ms * 1e3, flops / ms * 1e-9, name, theirs * 1e3, theirs / ms, pin),
                  flush=True)
            lines.append({"case": label(case), "us": ms * 1e3, "peer": name,
                          "peer_us": theirs * 1e3, "pin": pin})
            if time.monotonic() > until:
                break
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(
            {"machine": measure.machine(), "cases": lines}, indent=1) + "\n")


if __name__ == "__main__":
    main()
