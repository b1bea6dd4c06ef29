# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of drawn forms whose states are multiplied and added to, of numbers that
overflow, underflow or are none, against NumPy turn by turn: scans give the same
bits.

usage: loops.py FOLDER HIDET_RUN
"""
import pathlib
import subprocess
import sys

import numpy

folder, tool = pathlib.Path(sys.argv[1]), sys.argv[2]
folder.mkdir(parents=True, exist_ok=True)
draw = numpy.random.default_rng(51)
inf = numpy.inf
EDGES = {
    "f32": (0, -0.0, inf, -inf, 1, -1, 1.5, 1e25, -1e25, 1e-25, -1e-30, 1e-42),
    "f16": (0, -0.0, inf, -inf, 1, -1, 1.5, 300, -6e4, 0.01, 1e-4, 3e-4, 6e-8),
}
NUMPY = {"f32": numpy.float32, "f16": numpy.float16}
OPERATORS = {
    "mul": lambda a, b: a * b,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
}
numpy.seterr(all="ignore")


def numbers(kind, shape, wild):
    """Half of them are edges where those are wanted, the others normal."""
    x = draw.standard_normal(shape)
    edges = draw.choice(EDGES[kind], shape)
    return numpy.where(wild & (draw.random(shape) < 0.5), edges, x).astype(NUMPY[kind])


def bits(x):
    whole = numpy.ascontiguousarray(x).view("u%d" % x.dtype.itemsize)
    return numpy.where(numpy.isnan(x), whole.dtype.type(1), whole)


class Loop:
    def __init__(self, number, kind, steps, shape, wild, stages):
        self.n, self.kind, self.steps, self.shape = number, kind, steps, shape
        zeros = draw.random() < 0.3
        first = numpy.zeros(shape) if zeros else numbers(kind, shape, wild)
        self.given = {"h": first.astype(NUMPY[kind])}
        self.constant = zeros and draw.random() < 0.7
        self.results = [x for x in ("last", "each", "old") if draw.random() < 0.6]
        self.results = self.results or ["last"]
        self.stages = []
        for i in range(stages):
            scanned = draw.random() < 0.6
            self.given["x%d" % i] = numbers(
                kind, ((steps,) if scanned else ()) + shape, wild)
            self.stages.append(
                (draw.choice(list(OPERATORS)), scanned, draw.random() < 0.5))

    def name(self, x):
        return "%s_%d" % (x, self.n)

    def type(self, shape):
        return "%s[%s]" % (self.kind, ", ".join(map(str, shape)))

    def inputs(self):
        return [x for x in self.given if x != "h" or not self.constant]

    def body(self):
        lines, h = [], "h"
        for i, (op, _, swapped) in enumerate(self.stages):
            to = "g" if i + 1 == len(self.stages) else "t%d" % i
            a, b = ("x%d" % i, h) if swapped else (h, "x%d" % i)
            lines.append("    %s = %s(%s, %s)" % (to, op, a, b))
            h = to
        gives = ["g"]
        for x, of in (("each", "g"), ("old", "h")):
            if x in self.results:
                lines.append("    %s = copy(%s)" % (x, of))
                gives.append(x)
        return lines, gives

    def line(self):
        order = sorted(range(len(self.stages)), key=lambda i: not self.stages[i][1])
        lines, gives = self.body()
        text = ""
        if self.constant:
            text = "  const %s: %s = 0.0\n" % (self.name("h"), self.type(self.shape))
        takes = ["h"] + ["x%d" % i for i in order]
        return text + "  %s = loop(%s) { steps = %d, states = 1, scanned = %d, " % (
            ", ".join([self.name("last")] + [self.name(x) for x in gives[1:]]),
            ", ".join(map(self.name, takes)), self.steps,
            sum(s[1] for s in self.stages),
        ) + "body = graph(%s) -> %s {\n%s\n  } }" % (
            ", ".join("%s: %s" % (x, self.type(self.shape)) for x in takes),
            ", ".join(gives), "\n".join(lines))

    def expected(self):
        h, each, old = self.given["h"], [], []
        for turn in range(self.steps):
            old.append(h)
            for i, (op, scanned, swapped) in enumerate(self.stages):
                x = self.given["x%d" % i]
                x = x[turn] if scanned else x
                h = OPERATORS[op](*((x, h) if swapped else (h, x)))
            each.append(h)
        made = {"last": h, "each": numpy.stack(each), "old": numpy.stack(old)}
        return {x: made[x] for x in self.results}


def check(name, loops, runs):
    files, outputs, inputs = [], {}, []
    for loop in loops:
        for x in loop.inputs():
            path = folder / (loop.name(x) + ".npy")
            numpy.save(path, loop.given[x])
            files.append("--input=%s=@%s" % (loop.name(x), path))
            inputs.append("%s: %s" % (loop.name(x), loop.type(loop.given[x].shape)))
        for x, y in loop.expected().items():
            path = folder / (loop.name(x) + ".out.npy")
            outputs[loop.name(x)] = (path, y, loop)
            files.append("--output=%s=@%s" % (loop.name(x), path))
    graph = folder / (name + ".hir")
    graph.write_text("graph main(%s) -> %s {\n%s\n}\n" % (
        ", ".join(inputs), ", ".join(outputs), "\n".join(x.line() for x in loops)))
    for more in runs:
        run = subprocess.run([tool, graph, "--no-cache", "--explain", *files, *more],
                             capture_output=True, text=True)
        said = run.stdout + run.stderr
        assert run.returncode == 0, said
        if "--device=sim" in more:
            # One turn is no loop before.
            stay = [x.name("last") for x in loops if x.steps > 1 and
                    "'%s' is computed for all" % x.name("last") not in said]
            assert not stay, (stay, said)
        for x, (path, y, loop) in outputs.items():
            found = numpy.load(path)
            off = numpy.argwhere(bits(found) != bits(y))
            assert not off.size, (more, x, loop.line(), off[:4], found[tuple(off[0])],
                                  y[tuple(off[0])])


def given(number, kind, steps, stages, first, *numbers):
    """A loop of one state of four elements, of these numbers."""
    loop = Loop(number, kind, steps, (4,), False, 0)
    loop.constant, loop.results = False, ["last", "each"]
    loop.stages = [(op, numpy.ndim(x) > 0, False) for op, x in zip(stages, numbers)]
    wide = [numpy.full((4,), first)] + [
        numpy.repeat(numpy.reshape(x, (-1, 1)), 4, 1) if numpy.ndim(x) else
        numpy.full((4,), x) for x in numbers]
    loop.given = {"x%d" % (i - 1) if i else "h": x.astype(NUMPY[kind])
                  for i, x in enumerate(wide)}
    return loop


def drawn(number, steps, shape, wild):
    return Loop(number, draw.choice(["f32", "f16"]), steps, shape, wild,
                int(draw.integers(1, 6)))


loops = [drawn(i, int(draw.integers(1, 10)), (3, 16), i % 4 > 0) for i in range(64)]
check("short", loops, [["--device=ref"], ["--device=sim"], ["--device=sim", "--sanitize"]])
# Factors whose product overflows, underflows or is rounded, and one that is
# infinite.
ones = numpy.ones(2)
loops = [given(0, "f16", 2, ["mul", "mul"], 0.01, 300 * ones, 300.0),
         given(1, "f16", 2, ["mul", "mul"], 6e4, 1e-4 * ones, 3e-4),
         given(2, "f32", 2, ["mul", "mul"], 1e-30, 1e25 * ones, 1e25),
         given(3, "f32", 2, ["mul", "add"], 1, inf * ones, 1.0)]
check("factors", loops, [["--device=sim"]])
# Few rows, and many turns: no turns are taken together.
loops = [drawn(i, steps, (4,), False)
         for i, steps in enumerate((4095, 4096, 4097, 8192, 8192))]
last = numpy.zeros(8192)
last[-1] = 1
loops.append(given(5, "f32", 8192, ["mul", "add"], 0, 1.5, last))
check("long", loops, [["--device=sim"]])
