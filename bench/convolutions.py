# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions in f16 by what is chosen for them, with bias and relu, against
cuDNN's plain ones as PyTorch calls them.

usage: convolutions.py --tools=DIR [--json=FILE] [--seconds=N] [--rounds=N]
           [--part=K/N] [--batch=N,N...] [--tune=N [--tune-db=FILE]]
           [--depthwise] [--pin=TEXT] [--again=TABLE] [NAME...]

The distinct dense, grouped and transposed convolutions of networks (NAME: a
part of one's), bench/shapes/convolutions.json: channels, height and width of
the image, channels of the result, height and width of the window, stride, pads
of height and width, groups. Those of squeeze-and-excite, of one pixel, are left
out. All sides in this process (measure.Compiled), channels last, plain
launches, own images, weights and results past twice the L2; cuDNN may try its
algorithms. Weights of channels that are no multiples of 8, which are few, are
constants of ours, packed before, and one for all launches.
--tune: first `hidet-run --tune=N` of one graph of all cases keeps what it
measures in --tune-db; a case is measured by what is expected and by what is
known there.

--depthwise  depthwise ones instead: against cuDNN, and the share of the device
    copy's bandwidth for what an image and its result come to, and of the f32
    rate that a kernel of multiply-adds alone reaches
--again      the candidates that a table has for its cases instead, pinned, as
    bench/results/h200/convolutions_candidates.json does, which prices are held to:
    one round of them, and one more of those that are a fourth slower at most
--part=K/N   every N-th case, from the K-th on (of 0..N-1)
--batch      1,16 where nothing is said; depthwise 1,16,64

One line a case; at last geometric means and the worst, by batch.
"""
import argparse
import concurrent.futures
import json
import math
import pathlib
import statistics
import tempfile
import time

import numpy

import measure

LEAST = 4  # Launches in a graph.
FARTHEST = 0.01  # Of the largest result, from cuDNN's.
AGAIN = 14  # Replays of a candidate,
NEAR = 1.25  # and as many more where it is so near to the best.
FMA = """kernel fma_rate(out y: f32[135168]) grid(528) block(256) {
  register x: f32[8] = 1
  let f = f32(thread) * 0.001
  for t in 0..4096 unroll(16) {
    for i in 0..8 unroll { x[i] = fma(x[i], f, 0.5) }
  }
  register sum: f32 = 0
  for i in 0..8 unroll { sum = sum + x[i] }
  y[block * 256 + thread] = sum
}
"""
FMA_FLOP = 2.0 * 135168 * 4096 * 8


class Case:
    def __init__(self, network, batch, shape, transposed=False):
        (self.c, self.h, self.w, self.o, self.kh, self.kw, self.stride,
         self.pad_h, self.pad_w, self.groups) = shape
        self.network, self.n, self.transposed = network, batch, transposed
        if transposed:
            self.oh, self.ow = self.h * self.stride, self.w * self.stride
        else:
            self.oh = (self.h + 2 * self.pad_h - self.kh) // self.stride + 1
            self.ow = (self.w + 2 * self.pad_w - self.kw) // self.stride + 1
        self.weights = ((self.c, self.o // self.groups) if transposed
                        else (self.o, self.c // self.groups)) + (self.kh, self.kw)
        self.images = 2 * batch * (self.h * self.w * self.c + self.oh * self.ow * self.o)
        self.bytes = self.images + 2 * math.prod(self.weights)
        pixels = self.h * self.w if transposed else self.oh * self.ow
        self.flop = 2.0 * batch * pixels * math.prod(self.weights)

    def __str__(self):
        return "%-14s %2d x %3dx%-3d %4d -> %4d %s %dx%d%s%s" % (
            self.network, self.n, self.h, self.w, self.c, self.o,
            "up" if self.transposed else "  ", self.kh, self.kw,
            " / %d" % self.stride if self.stride > 1 else "",
            " of %d groups" % self.groups if self.groups > 1 else "")

    def copies(self, l2):
        return max(LEAST, -(-2 * l2 // self.bytes))


def cases_of(options):
    shapes = json.loads((measure.SHAPES / "convolutions.json").read_text())
    kinds = ["depthwise"] if options.depthwise else ["dense", "transposed"]
    found = [Case(network, batch, shape, kind == "transposed")
             for kind in kinds for network, row in shapes[kind].items()
             if not options.names or any(n in network for n in options.names)
             for shape in row for batch in options.batch]
    first, of = options.part
    return found[first::of]


# What is measured of a group is known by its text, with its tasks' names: these are the
# same whatever else is in a graph.
TASKS = {
    # What layouts make of a convolution inside a network.
    "dense": """task conv_dense(x: f16[n, h, l, c], w: f16[o, kh, kw, d], groups: i64, stride: i64,
               ph: i64, pw: i64, oh: i64, ow: i64) -> y: f32[n, oh, ow, o] {
  y[b, i, j, f] = sum(p: d, u: kh, v: kw) f32(x[b, i * stride + u - ph, j * stride + v - pw, %s] else 0) * f32(w[f, u, v, p])
}
""",
    # Of an image as networks get it, channels first.
    "first": """task conv_first(x: f16[n, c, h, l], w: f16[o, c, kh, kw], groups: i64, stride: i64,
               ph: i64, pw: i64, oh: i64, ow: i64) -> y: f32[n, oh, ow, o] {
  y[b, i, j, f] = sum(p: c, u: kh, v: kw) f32(x[b, p, i * stride + u - ph, j * stride + v - pw] else 0) * f32(w[f, p, u, v])
}
""",
    "depthwise": """task conv_depthwise(x: f16[n, h, l, c], w: f16[kh, kw, c], stride: i64, ph: i64, pw: i64,
               oh: i64, ow: i64) -> y: f32[n, oh, ow, c] {
  y[b, i, j, f] = sum(u: kh, v: kw) f32(x[b, i * stride + u - ph, j * stride + v - pw, f] else 0) * f32(w[u, v, f])
}
""",
    "transposed": """task conv_transposed(x: f16[n, h, l, c], w: f16[k, k, d, c]) -> y: f32[n, k * h, k * l, d] {
  y[b, i, j, f] = sum(p: c) f32(x[b, i / k, j / k, p]) * f32(w[i % k, j % k, f, p])
}
""",
}


def task_of(case):
    """Its text, its weights' shape, and its attributes."""
    if case.transposed:  # By as many as the window has.
        return TASKS["transposed"], (case.kh, case.kw, case.o, case.c), {}
    size = {"stride": case.stride, "oh": case.oh, "ow": case.ow}
    size |= {"ph": case.pad_h, "pw": case.pad_w}
    if case.groups == case.c:
        return TASKS["depthwise"], (case.kh, case.kw, case.c), size
    if case.c == 3:
        return TASKS["first"], case.weights, size | {"groups": case.groups}
    text = TASKS["dense"] % "p" if case.groups == 1 else (
        TASKS["dense"] % "f / (o / groups) * d + p").replace("conv_dense", "conv_grouped")
    return (text, (case.o, case.kh, case.kw, case.c // case.groups),
            size | {"groups": case.groups})


class Node:
    """A convolution with bias and relu, as text; i tells it from others."""

    def __init__(self, case, i, pin):
        n, c, h, w, o, oh, ow = (case.n, case.c, case.h, case.w, case.o, case.oh, case.ow)
        self.task, weights, attributes = task_of(case)
        self.image = (n, c, h, w) if c == 3 else (n, h, w, c)
        self.shapes = [("f32", (o,)), ("f16", self.image), ("f16", weights),
                       ("f16", (n, oh, ow, o))]
        name = "f16[%s]" % ", ".join(map(str, weights))
        self.packed = weights[-1] % 8 != 0 or c == 3
        self.kept = numpy.random.default_rng(i).standard_normal(weights).astype("float16")
        self.given = ["b%d: f32[%d]" % (i, o), "x%d: f16[%d, %d, %d, %d]" % (i, *self.image)]
        self.constant = "const w%d: %s = file(\"weights\", 0)" % (i, name)
        if self.packed:
            del self.shapes[2]
        else:
            self.given.append("w%d: %s" % (i, name))
            self.constant = ""
        sums = "f32[%d, %d, %d, %d]" % (n, oh, ow, o)
        listed = ", ".join("%s = %d" % a for a in attributes.items())
        self.lines = [
            "p%d: %s = %%s(x%d, w%d)%s%s" % (
                i, sums, i, i, listed and " { %s }" % listed, " with " + pin if pin else ""),
            "s%d: %s = add(p%d, b%d)" % (i, sums, i, i), "r%d: %s = relu(s%d)" % (i, sums, i),
            "y%d: f16[%d, %d, %d, %d] = cast(r%d)" % (i, n, oh, ow, o, i)]


def graph(nodes):
    body = []
    for node in nodes:
        name = node.task[len("task "):node.task.index("(")]
        body += [node.lines[0] % name, *node.lines[1:]]
    return "".join(dict.fromkeys(node.task for node in nodes)) + (
        "graph main(%s) -> %s {\n  %s\n}\n" % (
            ", ".join(given for node in nodes for given in node.given),
            ", ".join("y%d" % i for i in range(len(nodes))),
            "\n  ".join([n.constant for n in nodes if n.constant] + body)))


def peer(case):
    """What calls cuDNN's on an image and weights, and how weights lie for it."""
    import torch
    from torch.nn import functional
    call = functional.conv_transpose2d if case.transposed else functional.conv2d
    results = {}

    def run(i, x, w):
        results[i] = call(x, w, stride=case.stride, groups=case.groups,
                          padding=(case.pad_h, case.pad_w))
        return results[i]

    def draw(*shape):
        return torch.randn(*shape, device="cuda", dtype=torch.float16).to(
            memory_format=torch.channels_last)

    return run, lambda: (draw(case.n, case.c, case.h, case.w), draw(*case.weights))


def copy(size, copies):
    """Milliseconds of a copy that reads and writes so many bytes."""
    import torch

    def operands():
        x = torch.empty(max(size // 2, 1), device="cuda", dtype=torch.uint8)
        return x, torch.empty_like(x)

    pairs = [operands() for _ in range(copies)]
    ms = measure.replayed([lambda p=p: p[1].copy_(p[0]) for p in pairs])
    del pairs
    torch.cuda.empty_cache()
    return ms, None


def as_task(case, w):
    """Weights as the task has them, of cuDNN's."""
    return (w.permute(2, 3, 1, 0) if case.transposed else
            w.squeeze(1).permute(1, 2, 0) if case.groups == case.c else
            w if case.c == 3 else w.permute(0, 2, 3, 1))


def as_cudnn(case, w):
    return (w.permute(3, 2, 0, 1) if case.transposed else
            w.permute(2, 0, 1).unsqueeze(1) if case.groups == case.c else
            w if case.c == 3 else w.permute(0, 3, 1, 2))


class Bench:
    def __init__(self, options):
        import torch
        torch.manual_seed(0)
        torch.backends.cudnn.benchmark = True
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        self.options, self.lines, self.sides = options, [], {}
        self.l2 = torch.cuda.get_device_properties(0).L2_cache_size
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.database = options.tune_db or str(self.folder / "tune.db")
        self.until = time.monotonic() + options.seconds
        self.rate = self.fma_rate() if options.depthwise else None

    def fma_rate(self):
        """f32 operations a second of multiply-adds alone."""
        path = self.folder / "fma.hir"
        path.write_text(FMA)
        ms, report = measure.run(self.options.tools, path, ["--no-cache"])
        if ms is None:
            raise SystemExit(report)
        print("multiply-adds alone: %.1f TFLOP/s" % (FMA_FLOP / ms * 1e-9), flush=True)
        return FMA_FLOP / (ms * 1e-3)

    def put_weights(self, cases):
        """Those of constants."""
        import torch
        size = max((math.prod(case.weights) for case in cases), default=1)
        (self.folder / "weights").write_bytes(
            torch.randn(size).half().numpy().tobytes())

    def tune(self, cases):
        """Measures the candidates of all; the report."""
        nodes = [Node(case, i, None) for i, case in enumerate(cases)]
        inputs = ["--input=%s=zeros" % given.split(":")[0] for node in nodes
                  for given in node.given]
        return measure.tune(self.options.tools, self.options.tune, self.database,
                            self.folder, graph(nodes), inputs)

    def compile(self, cases):
        """All at once: each by what is expected, and by what was measured."""
        ways = {"ours": None, **({"tuned": self.database} if self.options.tune else {})}
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for case in cases:
                node = Node(case, 0, self.options.pin)
                self.sides[case] = node, {
                    way: pool.submit(measure.Compiled, self.options.tools, graph([node]),
                                     node.shapes, database=database,
                                     weights={"w0": ("f16", node.kept)} if node.packed
                                     else {})
                    for way, database in ways.items()}

    def operands(self, case, node):
        """cuDNN's image and weights, and ours, which share memory where they can."""
        import torch
        _, make = peer(case)
        copies = [make() for _ in range(case.copies(self.l2))]
        bias = torch.randn(case.o, device="cuda")
        ours = []
        for x, w in copies:
            # As the task has them: what memory has already, but for depthwise's
            # and transposed ones' weights.
            image = x.contiguous() if case.c == 3 else x.permute(0, 2, 3, 1)
            weights = as_task(case, w).contiguous()
            y = torch.empty(node.shapes[-1][1], device="cuda", dtype=torch.float16)
            ours.append((bias, image, *([] if node.packed else [weights]), y))
        return copies, ours

    def check(self, case, node, compiled, copies, ours):
        """Runs it once beside cuDNN's."""
        import torch
        x, w = copies[0]
        if node.packed:
            w = as_cudnn(case, torch.from_numpy(node.kept).cuda())
        compiled(*ours[0])
        self.compare(ours[0][-1], peer(case)[0](0, x, w), ours[0][0])

    def measures(self, case):
        node, jobs = self.sides.pop(case)
        run, _ = peer(case)
        copies, ours = self.operands(case, node)

        def replayed(calls):
            return lambda: (measure.replayed(calls), None)

        def side(job):
            compiled = job.result()
            self.check(case, node, compiled, copies, ours)
            return replayed([lambda o=o: compiled(*o) for o in ours])

        return {**{way: side(job) for way, job in jobs.items()},
                "cudnn": replayed([lambda i=i, o=o: run(i, *o)
                                   for i, o in enumerate(copies)])}

    @staticmethod
    def compare(ours, theirs, bias):
        theirs = (theirs.float() + bias[:, None, None]).relu().permute(0, 2, 3, 1)
        far = float((ours.float() - theirs).abs().max() / theirs.abs().max())
        if far > FARTHEST:
            raise RuntimeError("%.2g of the largest result away" % far)

    def run(self, case):
        import torch
        try:
            with torch.no_grad():
                measures = self.measures(case)
                if self.options.depthwise:
                    measures["copy"] = lambda: copy(case.images, case.copies(self.l2))
                times, report = measure.in_turns(measures, self.options.rounds)
        except RuntimeError as error:
            times, report = None, str(error)
        if times is None:
            print("%-62s FAILED: %s" % (case, report.strip()[-300:]), flush=True)
            self.lines.append({"case": str(case), "failed": report.strip()[-300:]})
            return
        us = {key: ms * 1000 for key, ms in times.items()}
        line = "%-62s %8.2f us %6.1f TFLOP/s  cuDNN %8.2f  %5.3f of it" % (
            case, us["ours"], case.flop / us["ours"] * 1e-6, us["cudnn"],
            us["cudnn"] / us["ours"])
        if "tuned" in us:
            line += "  tuned %8.2f  %5.3f" % (us["tuned"], us["cudnn"] / us["tuned"])
        if self.options.depthwise:
            line += "  %.3f of the copy  %.3f of the f32 rate" % (
                us["copy"] / us["ours"], case.flop / (us["ours"] * 1e-6) / self.rate)
        print(line, flush=True)
        self.lines.append({"case": str(case), "batch": case.n, "network": case.network,
                           "us": us, "flop": case.flop, "bytes": case.images,
                           "ratio": us["cudnn"] / us["ours"]})

    def again(self, row, jobs):
        """Microseconds of a case of a table by each of its candidates, whose nodes
        and sessions the jobs give."""
        case = Case(row["network"], row["batch"], row["shape"])
        sides, us = {pin: job.result() for pin, job in jobs.items()}, {}
        copies, ours = self.operands(case, next(iter(sides.values()))[0])
        for turn in range(2):
            for pin, (node, compiled) in sides.items():
                if turn and us[pin] > NEAR * min(us.values()):
                    continue
                if not turn:
                    self.check(case, node, compiled, copies, ours)
                ms = measure.replayed([lambda o=o, c=compiled: c(*o) for o in ours], AGAIN)
                us[pin] = min(round(ms * 1000, 3), us.get(pin, math.inf))
        best = min(us, key=us.get)
        print("%-62s %8.2f us by %s" % (case, us[best], best), flush=True)
        self.lines.append({**row, "us": us})

    def run_again(self, table):
        def make(row, pin):
            node = Node(Case(row["network"], row["batch"], row["shape"]), 0, pin)
            return node, measure.Compiled(
                self.options.tools, graph([node]), node.shapes,
                weights={"w0": ("f16", node.kept)} if node.packed else {})

        with concurrent.futures.ThreadPoolExecutor() as pool:
            rows = [(row, {pin: pool.submit(make, row, pin) for pin in row["us"]})
                    for row in json.loads(pathlib.Path(table).read_text())["cases"]]
            for row, jobs in rows:
                self.again(row, jobs)

    def sum_up(self):
        for batch in self.options.batch:
            for way in ("ours", "tuned"):
                lines = [(x["us"]["cudnn"] / x["us"][way], x["case"].strip())
                         for x in self.lines if x.get("batch") == batch and way in x["us"]]
                if not lines:
                    continue
                print("batch %d, %s, %d cases: geometric mean %.3f of cuDNN's speed, "
                      "worst %.3f (%s)" % (
                          batch, way, len(lines),
                          statistics.geometric_mean(r for r, _ in lines), *min(lines)),
                      flush=True)


def main():
    def part(text):
        first, of = map(int, text.split("/"))
        return first, of

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="build/bin")
    parser.add_argument("--json")
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--rounds", type=int, default=measure.ROUNDS)
    parser.add_argument("--part", type=part, default=(0, 1))
    parser.add_argument("--batch", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--tune", type=int, default=0)
    parser.add_argument("--tune-db")
    parser.add_argument("--depthwise", action="store_true")
    parser.add_argument("--pin")
    parser.add_argument("--again")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.batch = options.batch or ([1, 16, 64] if options.depthwise else [1, 16])
    bench = Bench(options)
    if options.again:
        bench.run_again(options.again)
        measure.write(options.json, bench.lines)
        return
    cases = cases_of(options)
    bench.put_weights(cases)
    tuned = bench.tune(cases) if options.tune else []
    measure.write(options.json, [], tune=tuned)
    bench.compile(cases)
    for i, case in enumerate(cases):
        if time.monotonic() > bench.until:
            print("no time for the last %d of %d cases" % (len(cases) - i, len(cases)))
            break
        bench.run(case)
    bench.sum_up()
    measure.write(options.json, bench.lines, tune=tuned)


if __name__ == "__main__":
    main()
