# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of any shape and type as they are chosen, against cuBLAS as PyTorch
calls it: each alone, plain launches.

usage: product_shapes.py --tools=DIR [--json=FILE] [--seconds=N] [--seed=N]
                         [--rounds=N] [--tune=N [--tune-db=FILE]] [--part=K/N]
                         [KIND...]

shapes   60 of f16: squares from 256 to 16384, the products of BERT, GPT-2,
         ViT-B, Llama 1 B and 8 B for 16, 128 and 2,048 rows, primes
drawn    30 of f16, drawn by the seed
types    f32 of 4096, and tf32, bf16, e4m3, i8 of 8192; f16 of 8192 by mma.sync,
         as older GPUs have it (mma)
narrow   i4 weights with scales of groups of 128, 4096x14336, of 128 and 2,048
         rows, against our f16 product (the peer there), by hidet-run
batched  96 products of f16, operands transposed in all four ways
sweep    17 to 128 rows of f16 by matrices of 768 to 14336; only where it is named

One line a case, at last the geometric mean and the worst of each kind. b lies as
[n, k] where nothing is said. --part: every N-th case, from the K-th on.

All sides run in this process (measure.Compiled), on the same operands. --tune:
first `hidet-run --tune=N` of one graph of all cases keeps what it measures in
--tune-db; a case is measured by what is expected and by what is known there, so
without what --tune exchanges afterwards in the whole of a model. Behind a kind is
said what it costs not to have measured, the regret: the time of the candidate that
is expected to be the best over that of the best of those measured, both by --tune.
"""
import argparse
import concurrent.futures
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
TORCH = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "i8": "int8",
         "i32": "int32", "f8e4m3": "float8_e4m3fn"}
SWEPT = ((17, 24, 32, 40, 48, 56, 64, 65, 80, 96, 112, 128),  # Rows,
         ((768, 768), (768, 3072), (2048, 2048), (4096, 4096), (14336, 4096),
          (4096, 14336)))  # by columns and what is summed.
REGRETTED = 1.1  # A regret that is named.
FARTHEST = 0.01  # Results of e4m3 are kept to 14 bits on the way.


class Case:
    against = "cuBLAS"

    def __init__(self, m, n, k, type_="f16", ta=False, tb=True, batch=1, pin=""):
        self.m, self.n, self.k, self.type = m, n, k, type_
        self.ta, self.tb, self.batch, self.pin = ta, tb, batch, pin

    def __str__(self):
        return "%-4s %s%s%dx%dx%d%s" % (
            self.type, "mma " if self.pin else "",
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

    def types(self):
        """Of the operands, and of the result."""
        given = "f32" if self.type == "tf32" else self.type
        return given, {"i8": "i32", "f8e4m3": "f32"}.get(given, given)

    def node(self, i):
        """Product i: its inputs, and the line that makes y<i>."""
        a, b, c = (", ".join(map(str, shape)) for shape in self.shapes())
        given, result = self.types()
        how = ["ta = true"] * self.ta + ["tb = true"] * self.tb
        how += ["R = %s" % result] * (given != result)
        return "x%d: %s[%s], w%d: %s[%s]" % (i, given, a, i, given, b), (
            "y%d: %s[%s] = matmul(x%d, w%d)%s%s" % (
                i, result, c, i, i, " { %s }" % ", ".join(how) if how else "",
                self.pin and " with " + self.pin))

    def measures(self, bench):
        """What gives milliseconds and a report, by names; None where one is not
        compiled, and why."""
        try:
            return self.replays(bench.compiled(self)), None
        except RuntimeError as error:
            return None, str(error)

    def replays(self, sides):
        import torch
        torch.backends.cuda.matmul.allow_tf32 = self.type == "tf32"
        given, result = (getattr(torch, TORCH[t]) for t in self.types())
        a, b, c = self.shapes()

        def draw(shape):
            if self.type == "i8":
                return torch.randint(-128, 128, shape, device="cuda", dtype=given)
            return torch.randn(*shape, device="cuda").to(given)

        one = torch.ones((), device="cuda")

        def peer(x, w, y):
            x = x.transpose(-1, -2) if self.ta else x
            w = w.transpose(-1, -2) if self.tb else w
            if self.type == "i8":
                torch._int_mm(x, w, out=y)
            elif self.type == "f8e4m3":
                torch._scaled_mm(x, w, one, one, out_dtype=torch.float32, out=y,
                                 use_fast_accum=True)
            else:
                torch.matmul(x, w, out=y)

        def make():
            return draw(a), draw(b), torch.empty(*c, device="cuda", dtype=result)

        copies = measure.copies_of(make)
        for name, run in sides.items():
            far = distance(run, peer, *make())
            if far > FARTHEST:
                raise RuntimeError("%s is %.2g of the largest result away" % (name, far))

        def replayed(run):
            return lambda: (measure.replayed([lambda o=o: run(*o) for o in copies]), None)

        return {name: replayed(run) for name, run in {**sides, "peer": peer}.items()}


def distance(run, peer, x, w, y):
    """Of the results of two, the largest, by the largest of the second's."""
    run(x, w, y)
    ours = y.double() if y.numel() < 1 << 24 else y.float()
    peer(x, w, y)
    theirs = y.to(ours.dtype)
    return float((ours - theirs).abs().max() / theirs.abs().max())


def texts(cases):
    """A graph of all of them."""
    nodes = [case.node(i) for i, case in enumerate(cases)]
    return "graph main(%s) -> %s {\n  %s\n}\n" % (
        ", ".join(given for given, _ in nodes),
        ", ".join("y%d" % i for i in range(len(nodes))),
        "\n  ".join(line for _, line in nodes))


class Narrow(Case):
    """Weights of 4 bits; what it is compared with is ours, of f16."""

    against = "f16"

    def __init__(self, m, n, k):
        super().__init__(m, n, k, "f16")

    def __str__(self):
        return "i4   %dx%dx%d" % (self.m, self.n, self.k)

    def measures(self, bench):
        def measured(kind):
            text, copies = few_rows.rotated(kind, self.n, self.k, self.m, "")
            ms, report = bench.run(text)
            return ms and ms / copies, report

        return {"ours": lambda: measured("i4"), "peer": lambda: measured("f16")}, None


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        self.sides, self.candidates = {}, {}
        self.database = options.tune_db or str(self.folder / "tune.db")

    def run(self, text):
        path = self.folder / "product.hir"
        path.write_text(text)
        return measure.run(self.options.tools, path, ["--no-cache", "--no-early-launches"])

    def tune(self, cases):
        """Measures the candidates of all that are not pinned; the report."""
        cases = [c for c in cases if not c.pin and not isinstance(c, Narrow)]
        found = []
        for precision in ("model", "tf32"):
            some = [c for c in cases if (c.type == "tf32") == (precision == "tf32")]
            if not some:
                continue
            new = measure.tune(
                self.options.tools, self.options.tune, self.database, self.folder, texts(some),
                ["--precision=" + precision,
                 *("--input=%s%d=zeros" % (x, i) for i in range(len(some)) for x in "xw")],
                self.options.device)
            found += new
            groups = {group["group"]: group["candidates"] for group in new}
            self.candidates.update(
                (case, groups["matmul 'y%d'" % i]) for i, case in enumerate(some)
                if "matmul 'y%d'" % i in groups)
        return found

    def regret(self, case):
        """What the candidate that is expected to be the best takes over the best
        that was measured, and both; None where that is not known."""
        took = [(x["expected_us"], x["us"], x["choice"]) for x in self.candidates.get(case, [])
                if x["status"] == "measured" and "expected_us" in x]
        if not took:
            return None
        first, best = (min(took, key=lambda x, i=i: x[i]) for i in range(2))
        return first[1] / best[1], first, best

    def compile(self, cases):
        """All at once: each by what is expected, and by what was measured."""
        ways = {"ours": None, **({"tuned": self.database} if self.options.tune else {})}
        jobs = {}
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for case in cases:
                if isinstance(case, Narrow):
                    continue
                given, result = case.types()
                arrays = [*((given, shape) for shape in case.shapes()[:2]),
                          (result, case.shapes()[2])]
                for way, database in ways.items():
                    jobs[case, way] = pool.submit(
                        measure.Compiled, self.options.tools, texts([case]), arrays, 1,
                        "tf32" if case.type == "tf32" else "model", database,
                        self.options.device)
        for (case, way), job in jobs.items():
            self.sides.setdefault(case, {})[way] = job

    def compiled(self, case):
        return {way: job.result() for way, job in self.sides.pop(case).items()}


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
        return [Case(4096, 4096, 4096, "f32")] + [
            Case(8192, 8192, 8192, type_) for type_ in ("tf32", "bf16", "f8e4m3", "i8")] + [
            Case(8192, 8192, 8192, pin="product_mma()")]
    if kind == "sweep":
        return [Case(m, n, k) for n, k in SWEPT[1] for m in SWEPT[0]]
    if kind == "narrow":
        return [Narrow(m, 4096, 14336) for m in (128, 2048)]
    return [Case(m, n, k, "f16", ta, tb, 96)
            for m, n, k in ((128, 128, 64), (128, 64, 128), (197, 197, 64), (512, 512, 64),
                            (512, 512, 128))
            for ta in (False, True) for tb in (False, True)]


def measured(kind, todo, bench, until):
    """Measures cases of a kind; a line for each that did not fail."""
    lines = []
    for case in todo:
        if time.monotonic() > until:
            break
        measures, why = case.measures(bench)
        times = None
        if measures:
            times, why = measure.in_turns(measures, bench.options.rounds)
        if times is None:
            print("%-46s failed: %s" % (case, str(why)[-300:]), flush=True)
            continue
        us = {name: ms * 1e3 for name, ms in times.items()}
        ways = [way for way in us if way != "peer"]
        print("%-46s %s  %s %9.2f" % (case, "  ".join(
            "%s %9.2f us %.3f, %4.0f TFLOP/s" % (
                way, us[way], us["peer"] / us[way], case.flop() / us[way] / 1e6)
            for way in ways), case.against, us["peer"]), flush=True)
        lines.append({"kind": kind, "case": str(case), "us": us["ours"],
                      "peer_us": us["peer"],
                      **({"tuned_us": us["tuned"]} if "tuned" in us else {})})
    for way in ("us", "tuned_us"):
        ratios = [(x["peer_us"] / x[way], x["case"]) for x in lines if way in x]
        if ratios:
            print("%s, %s, %d of %d cases: geometric mean %.3f, worst %.3f (%s)" % (
                kind, {"us": "untuned", "tuned_us": "tuned"}[way], len(ratios), len(todo),
                statistics.geometric_mean(r for r, _ in ratios), *min(ratios)), flush=True)
    regrets = [(bench.regret(case), case) for case in todo]
    regrets = [(regret, case) for regret, case in regrets if regret]
    for (ratio, first, best), case in regrets:
        if ratio > REGRETTED:
            print("%-30s regret %.2f: %s %.2f us, %.2f expected; %s %.2f us, %.2f expected" % (
                case, ratio, first[2], *first[1::-1], best[2], *best[1::-1]))
    if regrets:
        ratios = [regret[0] for regret, _ in regrets]
        print("%s, regret, %d cases: geometric mean %.3f, worst %.3f, %d over %.2f" % (
            kind, len(ratios), statistics.geometric_mean(ratios), max(ratios),
            sum(r > REGRETTED for r in ratios), REGRETTED), flush=True)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json")
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--tune", type=int)
    parser.add_argument("--tune-db")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("kinds", nargs="*")
    options = parser.parse_args()
    until, lines = time.monotonic() + options.seconds, []
    first, step = map(int, options.part.split("/"))
    todo = {kind: cases(kind, options.seed)[first::step] for kind in
            options.kinds or ("shapes", "drawn", "types", "narrow", "batched")}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        every = [case for some in todo.values() for case in some]
        tuned = bench.tune(every) if options.tune else []
        measure.write(options.json, [], seed=options.seed, tune=tuned)
        bench.compile(every)
        for kind, some in todo.items():
            lines += measured(kind, some, bench, until)
            measure.write(options.json, lines, seed=options.seed, tune=tuned)


if __name__ == "__main__":
    main()
