#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random graphs with two sizes that vary: by an executable of bounds on the
simulator, and by the reference evaluator for the sizes themselves.

usage: buckets.py --tools=FOLDER --out=FOLDER [--count=N] [--seed=N]

A graph is a chain of operators of ONNX on a value of axes from n, b and fixed
sizes. What differs, and what crashes, is left in the folder; at the end it is
said how many graphs there were, and of how many no bucket was made.
"""

import argparse
import pathlib
import random
import subprocess
import sys


class Graph:
    """A chain of nodes; shapes are lists of "n", "b" and integers."""

    def __init__(self, rng):
        self.rng = rng
        self.lines = []
        self.inputs = []
        self.count = 0
        rank = rng.randint(1, 4)
        self.shape = [rng.choice(["n", "n", "b", 1, 2, 3, 4, 8])
                      for _ in range(rank)]
        if "n" not in self.shape:
            self.shape[rng.randrange(rank)] = "n"
        self.value = self.add_input(self.shape)

    def name(self, stem):
        self.count += 1
        return "%s%d" % (stem, self.count)

    def add_input(self, shape, kind="f32"):
        name = self.name("x")
        self.inputs.append("%s: %s[%s]" % (name, kind,
                                           ", ".join(map(str, shape))))
        return name

    def const(self, kind, values):
        name = self.name("c")
        self.lines.append("const %s: %s[%d] = [%s]" % (
            name, kind, len(values), ", ".join(map(str, values))))
        return name

    def scalar(self, kind, value):
        name = self.name("c")
        self.lines.append("const %s: %s[] = %s" % (name, kind, value))
        return name

    def put(self, call):
        name = self.name("t")
        self.lines.append("%s = %s" % (name, call))
        return name

    def axis(self):
        return self.rng.randrange(len(self.shape))

    # What follows the value.

    def unary(self):
        op = self.rng.choice(["Tanh", "Relu", "Neg", "Sigmoid", "Abs", "Erf"])
        self.value = self.put("onnx13.%s(%s)" % (op, self.value))

    def binary(self):
        op = self.rng.choice(["Add", "Sub", "Mul", "Max"])
        shape = [size if self.rng.random() < 0.6 else 1 for size in self.shape]
        shape = shape[self.rng.randrange(len(shape)):]
        other = self.add_input(shape)
        pair = [self.value, other]
        self.rng.shuffle(pair)
        self.value = self.put("onnx13.%s(%s, %s)" % (op, *pair))

    def product(self):
        if len(self.shape) < 2:
            return
        last = self.rng.choice([1, 4, "n", "b", 8])
        other = self.add_input([self.shape[-1], last])
        product = self.put("onnx13.MatMul(%s, %s)" % (self.value, other))
        self.value = self.put("onnx13.Tanh(%s)" % product)
        self.shape = self.shape[:-1] + [last]

    def square(self):
        """x times itself, along the last axis."""
        if len(self.shape) < 2:
            return
        order = list(range(len(self.shape)))
        order[-1], order[-2] = order[-2], order[-1]
        turned = self.put("onnx13.Transpose(%s) { perm = %s }"
                          % (self.value, order))
        product = self.put("onnx13.MatMul(%s, %s)" % (self.value, turned))
        self.value = self.put("onnx13.Tanh(%s)" % product)
        self.shape = self.shape[:-1] + [self.shape[-2]]

    def softmax(self):
        op = self.rng.choice(["Softmax", "LogSoftmax"])
        self.value = self.put("onnx13.%s(%s) { axis = %d }"
                              % (op, self.value, self.axis()))

    def transpose(self):
        order = list(range(len(self.shape)))
        self.rng.shuffle(order)
        self.value = self.put("onnx13.Transpose(%s) { perm = %s }"
                              % (self.value, order))
        self.shape = [self.shape[i] for i in order]

    def reduce(self):
        op = self.rng.choice(["ReduceMean", "ReduceMax", "ReduceSum",
                              "ReduceMin", "ReduceL2", "ReduceLogSumExp"])
        axis, keep = self.axis(), self.rng.random() < 0.6
        if len(self.shape) == 1:
            keep = True
        axes = self.const("i64", [axis])
        self.value = self.put("onnx18.%s(%s, %s) { keepdims = %d }" % (
            op, self.value, axes, keep))
        self.shape = (self.shape[:axis] + [1] * keep + self.shape[axis + 1:])

    def scan(self):
        axis = self.scalar("i64", self.axis())
        total = self.put(
            "onnx14.CumSum(%s, %s) { reverse = %d, exclusive = %d }"
            % (self.value, axis, self.rng.randrange(2),
               self.rng.randrange(2)))
        self.value = self.put("onnx13.Tanh(%s)" % total)

    def shape_of(self, parts):
        """A shape: each part a list of axes that become one."""
        dims = self.put("onnx13.Shape(%s)" % self.value)
        sizes = []
        for part in parts:
            size = self.const("i64", [1])
            for axis in part:
                at = self.const("i64", [axis])
                one = self.put("onnx13.Gather(%s, %s)" % (dims, at))
                size = self.put("onnx13.Mul(%s, %s)" % (size, one))
            sizes.append(size)
        return self.put("onnx13.Concat(%s) { axis = 0 }" % ", ".join(sizes))

    def merge(self):
        """Reshapes so that two neighbours are one axis."""
        if len(self.shape) < 2:
            return
        at = self.rng.randrange(len(self.shape) - 1)
        parts = [[i] for i in range(len(self.shape))]
        parts[at:at + 2] = [[at, at + 1]]
        to = self.shape_of(parts)
        self.value = self.put("onnx13.Reshape(%s, %s)" % (self.value, to))
        self.shape = (self.shape[:at] + ["?"] + self.shape[at + 2:])

    def turn(self):
        """Reshapes to the axes in another order."""
        if "?" in self.shape:
            return
        order = [[i] for i in range(len(self.shape))]
        self.rng.shuffle(order)
        to = self.shape_of(order)
        self.value = self.put("onnx13.Reshape(%s, %s)" % (self.value, to))
        self.shape = [self.shape[i] for [i] in order]

    def cut(self):
        """The first or last elements, or others in reverse."""
        axis = self.const("i64", [self.axis()])
        begin, end, by = self.rng.choice(
            [(0, -1, 1), (1, 1000, 1), (-1, 1000, 1), (-1, -1000, -1),
             (0, 1000, 2), (-2, 1000, 1)])
        if self.shape[int(self.lines[-1].split("[")[-1][:-1])] in (1, 2):
            return
        args = [self.const("i64", [v]) for v in (begin, end)]
        steps = self.const("i64", [by])
        self.value = self.put("onnx13.Slice(%s, %s, %s, %s, %s)" % (
            self.value, *args, axis, steps))
        at = int([l for l in self.lines if l.startswith("const %s:" % axis)][0]
                 .split("[")[-1][:-1])
        self.shape = self.shape[:at] + ["?"] + self.shape[at + 1:]

    def join(self):
        """With itself, or something, along an axis."""
        at = self.axis()
        other = self.value
        if self.rng.random() < 0.5 and "?" not in self.shape:
            other = self.add_input(self.shape[:at] + [2] + self.shape[at + 1:])
        self.value = self.put("onnx13.Concat(%s, %s) { axis = %d }"
                              % (self.value, other, at))
        self.shape = self.shape[:at] + ["?"] + self.shape[at + 1:]

    def pad(self):
        pads = [0] * (2 * len(self.shape))
        at = self.axis()
        pads[at], pads[at + len(self.shape)] = 1, 2
        mode = self.rng.choice(["constant", "edge"])
        pads = self.const("i64", pads)
        self.value = self.put("onnx18.Pad(%s, %s) { mode = \"%s\" }"
                              % (self.value, pads, mode))
        self.shape = self.shape[:at] + ["?"] + self.shape[at + 1:]

    def positions(self):
        """Adds each place along the last axis, or masks by it."""
        dims = self.put("onnx13.Shape(%s)" % self.value)
        at = self.scalar("i64", len(self.shape) - 1)
        size = self.put("onnx13.Gather(%s, %s)" % (dims, at))
        zero, one = self.scalar("i64", 0), self.scalar("i64", 1)
        places = self.put("onnx13.Range(%s, %s, %s)" % (zero, size, one))
        if self.rng.random() < 0.5:
            floats = self.put("onnx13.Cast(%s) { to = 1 }" % places)
            small = self.scalar("f32", 0.1)
            small = self.put("onnx13.Mul(%s, %s)" % (floats, small))
            self.value = self.put("onnx13.Add(%s, %s)" % (self.value, small))
        else:
            half = self.put("onnx13.Div(%s, %s)"
                            % (size, self.scalar("i64", 2)))
            mask = self.put("onnx13.Greater(%s, %s)" % (places, half))
            other = self.scalar("f32", -0.5)
            self.value = self.put("onnx13.Where(%s, %s, %s)"
                                  % (mask, other, self.value))

    def pool(self):
        if len(self.shape) != 3 or "?" in self.shape:
            return
        op, rest = self.rng.choice(
            [("MaxPool", ""), ("AveragePool", ""),
             ("AveragePool", ", count_include_pad = 1")])
        self.value = self.put(
            "onnx13.%s(%s) { kernel_shape = [3], pads = [1, 1]%s }"
            % (op, self.value, rest))

    def greatest(self):
        at = self.axis()
        found = self.put("onnx13.ArgMax(%s) { axis = %d, keepdims = 1 }"
                         % (self.value, at))
        self.value = self.put("onnx13.Cast(%s) { to = 1 }" % found)
        self.shape = self.shape[:at] + [1] + self.shape[at + 1:]

    def text(self):
        return "graph main(%s) -> y {\n  %s\n  y = onnx13.Neg(%s)\n}\n" % (
            ", ".join(self.inputs + ["unused: f32[b, n]"]),
            "\n  ".join(self.lines), self.value)


STEPS = ["unary", "binary", "binary", "product", "square", "softmax",
         "transpose", "reduce", "scan", "merge", "turn", "cut", "join", "pad",
         "positions", "pool", "greatest"]


def draw(seed):
    rng = random.Random(seed)
    graph = Graph(rng)
    for _ in range(rng.randint(1, 7)):
        if graph.shape and "?" in graph.shape and rng.random() < 0.3:
            break
        step = rng.choice(STEPS)
        if step in ("binary", "product", "square") and "?" in graph.shape:
            continue
        getattr(graph, step)()
    return graph.text(), rng.randint(3, 16), rng.randint(3, 4)


def run(args):
    return subprocess.run([str(a) for a in args], capture_output=True,
                          text=True, timeout=120, check=False)


def check(options, seed):
    """0: the same; 1: without a bucket; 2: not a graph; 3: differs."""
    text, n, b = draw(seed)
    path = pathlib.Path(options.out) / ("bucket%d.hir" % seed)
    path.write_text(text)
    want = path.with_suffix(".npy")
    tool = pathlib.Path(options.tools) / "hidet-run"
    sizes = ["--shape=n=%d" % n, "--shape=b=%d" % b]
    plain = run([tool, "--device=ref", path, *sizes, "-q",
                 "--output=y=@%s" % want])
    code = 2
    if plain.returncode == 0:
        made = run([tool, "--device=sim", path, *sizes, "--buckets=n:16",
                    "--buckets=b:4", "--explain", "--rtol=1e-3", "--atol=1e-5",
                    "--expected=y=@%s" % want] +
                   ["--sanitize"] * (seed % 4 == 0))
        code = 3 if made.returncode else int("bucket: none" in made.stderr)
        if code == 3:
            path.with_suffix(".err").write_text(
                " ".join(sizes) + "\n" + made.stdout + made.stderr[-2000:])
    if code != 3:
        path.unlink()
    want.unlink(missing_ok=True)
    return code


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    pathlib.Path(options.out).mkdir(parents=True, exist_ok=True)
    codes = [check(options, seed)
             for seed in range(options.seed, options.seed + options.count)]
    print("%d graphs, %d without a bucket, %d no graphs, %d wrong" % (
        len(codes), codes.count(1), codes.count(2), codes.count(3)))
    sys.exit(codes.count(3) > 0)


if __name__ == "__main__":
    main()
