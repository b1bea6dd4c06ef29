# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of any shape and type as they are chosen, against cuBLAS as PyTorch
calls it: each alone, plain launches.

usage: product_shapes.py --tools=DIR [--json=FILE] [--seconds=N] [--seed=N]
                         [--rounds=N] [--tune=N] [--part=K/N] [KIND...]

shapes   60 of f16: squares from 256 to 16384, the products of BERT, GPT-2,
         ViT-B, Llama 1 B and 8 B for 16, 128 and 2,048 rows, primes
drawn    30 of f16, drawn by the seed
types    f32 of 4096, and tf32, bf16, e4m3, i8 of 8192; f16 of 8192 without wgmma,
         as older GPUs have it (mma)
narrow   i4 weights with scales of groups of 128, 4096x14336, of 128 and 2,048
         rows, against our f16 product (the peer there)
batched  96 products of f16, operands transposed in all four ways

One line a case, at last the geometric mean and the worst of each kind. b lies as
[n, k] where nothing is said. --part: every N-th case, from the K-th on.
"""
import argparse
import pathlib
import random
import statistics
import tempfile
import time

import few_rows
import measure

ROWS = (16, 128, 2048)
MODELS = ((2304, 768), (768, 768), (3072, 768), (768, 3072),  # BERT, GPT-2, ViT-B.
          (2560, 2048), (2048, 2048), (16384, 2048), (2048, 8192),  # Llama 1 B.
          (6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336))  # 8 B.
SQUARES = (256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384)
PRIMES = ((127, 1009, 509), (1021, 1021, 1021), (2039, 4093, 1019), (4099, 4099, 4099),
          (17, 4093, 4093), (509, 8191, 2039), (4100, 4104, 4104), (8209, 1031, 2053),
          (131, 769, 3079), (1031, 257, 8209), (61, 2053, 1031))
TORCH = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "tf32": "float32",
         "i8": "int8", "f8e4m3": "float8_e4m3fn"}


class Case:
    against = "cuBLAS"

    def __init__(self, m, n, k, type_="f16", ta=False, tb=True, batch=1, more=()):
        self.m, self.n, self.k, self.type = m, n, k, type_
        self.ta, self.tb, self.batch, self.more = ta, tb, batch, list(more)

    def __str__(self):
        return "%-4s %s%s%dx%dx%d%s" % (
            self.type, "mma " if self.more else "",
            "%d x " % self.batch if self.batch > 1 else "", self.m,
            self.n, self.k, "" if (self.ta, self.tb) == (False, True)
            else " [%s] [%s]" % ("k, m" if self.ta else "m, k",
                                 "n, k" if self.tb else "k, n"))

    def shapes(self):
        a, b = (self.m, self.k), (self.n, self.k)
        lead = (self.batch,) if self.batch > 1 else ()
        return (lead + (a[::-1] if self.ta else a), lead + (b if self.tb else b[::-1]),
                lead + (self.m, self.n))

    def elements(self):
        return self.batch * (self.m * self.k + self.n * self.k + self.m * self.n)

    def flop(self):
        return 2.0 * self.batch * self.m * self.n * self.k

    def text(self):
        a, b, c = (", ".join(map(str, shape)) for shape in self.shapes())
        given = "f32" if self.type == "tf32" else self.type
        result = {"i8": "i32", "f8e4m3": "f32"}.get(given, given)
        how = ["ta = true"] * self.ta + ["tb = true"] * self.tb
        how += ["R = %s" % result] * (given != result)
        copies = max(1, -(-120_000_000 // (2 * self.elements())))
        return "graph main(%s) -> %s {\n%s}\n" % (
            ", ".join("x%d: %s[%s], w%d: %s[%s]" % (i, given, a, i, given, b)
                      for i in range(copies)),
            ", ".join("y%d" % i for i in range(copies)),
            "".join("  y%d: %s[%s] = matmul(x%d, w%d)%s\n" % (
                i, result, c, i, i, " { %s }" % ", ".join(how) if how else "")
                for i in range(copies))), copies

    def theirs(self, measured):
        """Milliseconds of what it is compared with, and a report; measured:
        of a text of ours."""
        import torch
        torch.backends.cuda.matmul.allow_tf32 = self.type == "tf32"
        dtype = getattr(torch, TORCH[self.type])

        def draw(shape):
            if self.type == "i8":
                return torch.randint(-128, 128, shape, device="cuda", dtype=dtype)
            return torch.randn(*shape, device="cuda").to(dtype)

        def make():
            a, b, c = self.shapes()
            results = {"i8": torch.int32, "f8e4m3": torch.float32}
            out = torch.empty(*c, device="cuda", dtype=results.get(self.type, dtype))
            return draw(a), draw(b), out

        one = torch.ones((), device="cuda")

        def run(x, w, y):
            x = x.transpose(-1, -2) if self.ta else x
            w = w.transpose(-1, -2) if self.tb else w
            if self.type == "i8":
                torch._int_mm(x, w, out=y)
            elif self.type == "f8e4m3":
                torch._scaled_mm(x, w, one, one, out_dtype=torch.float32, out=y,
                                 use_fast_accum=True)
            else:
                torch.matmul(x, w, out=y)

        ms = measure.peer(make, run)
        torch.cuda.empty_cache()
        return ms, None


class Narrow(Case):
    """Weights of 4 bits; what it is compared with is ours, of f16."""

    against = "f16"

    def __init__(self, m, n, k):
        super().__init__(m, n, k, "f16")

    def __str__(self):
        return "i4   %dx%dx%d" % (self.m, self.n, self.k)

    def text(self):
        return few_rows.rotated("i4", self.n, self.k, self.m, "")

    def theirs(self, measured):
        text, copies = super().text()
        ms, report = measured(text)
        return ms and ms / copies, report


def drawn(seed):
    draw = random.Random(seed)
    return [Case(*(round(2 ** draw.uniform(*bits)) for bits in ((4, 13), (6, 14), (6, 13))))
            for _ in range(30)]


def cases(kind, seed):
    if kind == "shapes":
        return ([Case(s, s, s) for s in SQUARES] + [Case(*shape) for shape in PRIMES] +
                [Case(m, n, k) for m in ROWS for n, k in MODELS])
    if kind == "drawn":
        return drawn(seed)
    if kind == "types":
        older = ["--disable-template=product_wgmma", "--disable-template=product_windows"]
        return [Case(4096, 4096, 4096, "f32")] + [
            Case(8192, 8192, 8192, type_) for type_ in ("tf32", "bf16", "f8e4m3", "i8")] + [
            Case(8192, 8192, 8192, more=older)]
    if kind == "narrow":
        return [Narrow(m, 4096, 14336) for m in (128, 2048)]
    return [Case(m, n, k, "f16", ta, tb, 96)
            for m, n, k in ((128, 128, 64), (128, 64, 128), (197, 197, 64), (512, 512, 64),
                            (512, 512, 128))
            for ta in (False, True) for tb in (False, True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", required=True)
    parser.add_argument("--json")
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--tune", type=int)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("kinds", nargs="*")
    options = parser.parse_args()
    until, lines = time.monotonic() + options.seconds, []
    first, step = map(int, options.part.split("/"))
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.kinds or ("shapes", "drawn", "types", "narrow", "batched"):
            todo = cases(kind, options.seed)[first::step]
            ratios = []
            for case in todo:
                if time.monotonic() > until:
                    break
                text, copies = case.text()
                path = pathlib.Path(folder) / "product.hir"
                more = ["--no-cache", "--no-early-launches"] + case.more
                more += ["--precision=tf32"] * (case.type == "tf32")
                more += ["--tune=%s" % options.tune] * bool(options.tune)

                def measured(text):
                    path.write_text(text)
                    return measure.run(options.tools, path, more)

                def ours():
                    ms, report = measured(text)
                    return ms and ms / copies, report

                times, report = measure.in_turns(
                    {"ours": ours, "peer": lambda: case.theirs(measured)}, options.rounds)
                if times is None:
                    print("%-46s failed: %s" % (case, str(report)[-200:]), flush=True)
                    continue
                us, peer = times["ours"] * 1e3, times["peer"] * 1e3
                print("%-46s %9.2f us  %s %9.2f  %.3f of it, %.0f TFLOP/s" % (
                    case, us, case.against, peer, peer / us,
                    case.flop() / us / 1e6), flush=True)
                ratios.append((peer / us, str(case)))
                lines.append({"kind": kind, "case": str(case), "us": us, "peer_us": peer})
            if ratios:
                print("%s, %d of %d cases: geometric mean %.3f, worst %.3f (%s)" % (
                    kind, len(ratios), len(todo),
                    statistics.geometric_mean(r for r, _ in ratios), *min(ratios)),
                    flush=True)
    measure.write(options.json, lines)


if __name__ == "__main__":
    main()
