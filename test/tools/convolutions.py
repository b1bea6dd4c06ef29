# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random networks of one to three convolutions against NumPy: along one to
three axes, strided, dilated, grouped, transposed, padded by numbers or by name,
of odd sizes, with biases, activations, pooling and residuals, in every type of
float and in bytes. Numbers are small integers, so that every type has all sums
exactly, and what comes out has to be equal.

usage: convolutions.py [--jobs=N] [--together=N] FOLDER COUNT SEED [hidet-run's options...]

--together=N  up to N networks of one precision in a graph, which saves most of
    what a process takes to begin on a GPU; where it is not right, each is run
    by itself

Exit 1 where a network differs; it stays in FOLDER, and how to run it is said.
"""
import argparse
import itertools
import math
import multiprocessing
import pathlib
import shlex
import subprocess
import sys

import numpy

WORK = 400_000  # Multiply-adds of a convolution at most.
# What a network is written in, and compiled for; the largest integer up to
# which its results have all of them.
KINDS = {"f32": ("f32", None, 2**24), "tf32": ("f32", "tf32", 2**11), "as f16": ("f32", "f16", 2**11),
         "as bf16": ("f32", "bf16", 2**8), "f16": ("f16", None, 2**11),
         "bf16": ("bf16", None, 2**8), "f64": ("f64", None, 2**24), "i8": ("i8", None, 2**24),
         "u8": ("u8", None, 2**24)}
KIND_SHARES = {"f32": 2, "tf32": 2, "as f16": 2, "as bf16": 1, "f16": 6, "bf16": 2, "f64": 1,
               "i8": 1, "u8": 1}
CHANNELS = [1, 2, 3, 4, 5, 8, 8, 12, 16, 16, 20, 24, 32, 32, 40, 58, 64]
NUMPY = {"f32": numpy.float32, "bf16": numpy.float32, "f16": numpy.float16,
         "f64": numpy.float64, "i8": numpy.int8, "u8": numpy.uint8}


def slices(firsts, counts, steps):
    return tuple(slice(f, f + (c - 1) * s + 1, s) for f, c, s in zip(firsts, counts, steps))


def by_group(x, groups):
    return x.reshape((x.shape[0], groups, x.shape[1] // groups) + x.shape[2:])


def convolve(x, w, c):
    """x[n, c, ..], w[o, c / groups, ..], both of f64."""
    x = numpy.pad(x, [(0, 0), (0, 0)] + list(zip(c.begin, c.end)))
    groups = w.reshape((c.groups, w.shape[0] // c.groups) + w.shape[1:])
    y = 0
    for tap in numpy.ndindex(*c.kernel):
        at = slices([t * d for t, d in zip(tap, c.dilations)], c.sizes, c.strides)
        part = by_group(x[(slice(None), slice(None)) + at], c.groups)
        y = y + numpy.einsum("ngp...,gop->ngo...", part, groups[(...,) + tap])
    return y.reshape((x.shape[0], w.shape[0]) + tuple(c.sizes))


def convolve_back(x, w, c):
    """x[n, c, ..], w[c, o / groups, ..]: every element goes to its window."""
    groups = w.reshape((c.groups, w.shape[0] // c.groups) + w.shape[1:])
    outputs = w.shape[1] * c.groups
    whole = [b + s + e for b, s, e in zip(c.begin, c.sizes, c.end)]
    y = numpy.zeros((x.shape[0], c.groups, w.shape[1]) + tuple(whole))
    for tap in numpy.ndindex(*c.kernel):
        at = slices([t * d for t, d in zip(tap, c.dilations)], x.shape[2:], c.strides)
        y[(slice(None),) * 3 + at] += numpy.einsum(
            "ngp...,gpo->ngo...", by_group(x, c.groups), groups[(...,) + tap])
    at = slices(c.begin, c.sizes, [1] * len(c.sizes))
    return y[(slice(None),) * 3 + at].reshape((x.shape[0], outputs) + tuple(c.sizes))


class Convolution:
    """One that suits an image of this shape."""

    def __init__(self, rng, shape, transposed):
        def drawn(choices, count=None):
            return [int(v) for v in rng.choice(choices, count or len(shape) - 2)]

        self.transposed = transposed
        rank, channels = len(shape) - 2, shape[1]
        same = rng.integers(3) == 0
        most = 7 if rank == 1 else 5 if rank == 2 else 3
        self.kernel = ([int(rng.choice([1, 1, 3, 3, most]))] * rank if same
                       else [int(rng.integers(1, most + 1)) for _ in range(rank)])
        self.strides = drawn([1]) if rng.integers(2) else drawn([1, 2, 2, 3])
        self.dilations = drawn([1]) if rng.integers(3) else drawn([1, 2, 3])
        divisors = [g for g in range(1, channels + 1) if channels % g == 0]
        self.groups = int(rng.choice([1, 1, 1, channels, rng.choice(divisors)]))
        self.outputs = self.groups * int(rng.choice([1, 1, 2, 3, 8, 16]))
        if self.groups == 1:
            self.outputs = int(rng.choice(CHANNELS))
        extents = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations)]
        self.attributes = {"kernel_shape": self.kernel, "strides": self.strides,
                           "dilations": self.dilations, "group": self.groups}
        (self.place_back if transposed else self.place)(rng, shape[2:], extents)

    def pad(self, rng, extents):
        """Before and behind: alike, different, or by name."""
        how = str(rng.choice(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
        if rng.integers(2):
            self.begin = self.end = [e // 2 for e in extents]
        else:
            self.begin, self.end = ([int(rng.integers(0, e + 1)) for e in extents]
                                    for _ in range(2))
        if how == "VALID":
            self.begin = self.end = [0] * len(extents)
        if how == "NOTSET":
            self.attributes["pads"] = self.begin + self.end
        else:
            self.attributes["auto_pad"] = how
        return how

    def halve(self, totals, more_behind):
        self.begin = [t // 2 if more_behind else t - t // 2 for t in totals]
        self.end = [t - b for t, b in zip(totals, self.begin)]

    def place(self, rng, inputs, extents):
        how = self.pad(rng, extents)
        if how.startswith("SAME"):
            self.sizes = [-(-i // s) for i, s in zip(inputs, self.strides)]
            self.halve([max((o - 1) * s + e - i, 0) for o, s, e, i in zip(
                self.sizes, self.strides, extents, inputs)], how == "SAME_UPPER")
        else:
            self.sizes = [(i + b + e - x) // s + 1 for i, b, e, x, s in zip(
                inputs, self.begin, self.end, extents, self.strides)]
        self.taken = self.sizes

    def place_back(self, rng, inputs, extents):
        how = self.pad(rng, extents)
        more = [int(rng.integers(0, max(s, d))) if rng.integers(3) == 0 else 0
                for s, d in zip(self.strides, self.dilations)]
        self.attributes["output_padding"] = more
        whole = [(i - 1) * s + e + m for i, s, e, m in zip(
            inputs, self.strides, extents, more)]
        if how.startswith("SAME"):
            self.sizes = [i * s for i, s in zip(inputs, self.strides)]
            self.halve([w - s for w, s in zip(whole, self.sizes)], how == "SAME_UPPER")
        else:
            self.sizes = [w - b - e for w, b, e in zip(whole, self.begin, self.end)]
        # Where what is padded lies behind the last element that is written.
        self.taken = [s if min(b, e) >= 0 else 0
                      for s, b, e in zip(self.sizes, self.begin, self.end)]

    def weights(self, channels):
        return ((channels, self.outputs // self.groups) if self.transposed
                else (self.outputs, channels // self.groups)) + tuple(self.kernel)

    def fits(self, shape):
        taps = math.prod(self.kernel) * shape[1] // self.groups * self.outputs
        pixels = math.prod(shape[2:] if self.transposed else self.sizes)
        return (min(self.taken) > 0 and max(self.sizes) < 200
                and 0 < shape[0] * pixels * taps <= WORK)


class Network:
    def __init__(self, rng, kind, label=""):
        """label: what its names end with, beside other networks."""
        self.rng, self.kind, self.label = rng, kind, label
        self.type, self.precision, self.limit = KINDS[kind]
        self.lines, self.constants, self.inputs, self.data = [], [], {}, bytearray()
        rank = int(rng.choice([1, 2, 2, 2, 2, 3]))
        side = {1: 60, 2: 20, 3: 8}[rank]
        shape = [int(rng.choice([1, 1, 2, 3])), int(rng.choice(CHANNELS))]
        shape += [int(v) for v in rng.integers(1, side, rank)]
        if rng.integers(4) == 0:  # Neighbours in whole pieces.
            shape[-1] = int(rng.choice([8, 16]))
        if rng.integers(2):
            shape[1] = int(rng.choice([8, 16, 32, 64]))
        self.bytes = self.type in ("i8", "u8")
        low = 0 if self.type == "u8" else -2
        x = rng.integers(low, 3, shape).astype(numpy.float64)
        name = self.put_input("x", x)
        if self.type == "bf16":
            name = self.put("x16", "bf16", x.shape, "cast(%s) { U = bf16 }" % name)
        stages = 1 if self.bytes else int(rng.choice([1, 1, 2, 3]))
        for stage in range(stages):
            name, x = self.stage(name, x, stage == stages - 1)
        if self.type == "bf16":
            name = self.put("y", "f32", x.shape, "cast(%s) { U = f32 }" % name)
        self.name, self.expected = name, x

    def put_input(self, name, value):
        name += self.label
        self.inputs[name] = value.astype(NUMPY[self.type])
        kind = "f32" if self.type == "bf16" else self.type
        self.text_input = "%s: %s[%s]" % (name, kind, ", ".join(map(str, value.shape)))
        return name

    def put(self, name, kind, shape, call):
        name += self.label
        self.lines.append("%s: %s[%s] = %s" % (name, kind, ", ".join(map(str, shape)), call))
        return name

    def put_constant(self, value):
        name = "w%d%s" % (len(self.constants), self.label)
        while len(self.data) % 8:
            self.data.append(0)
        self.constants.append("const %s: %s[%s] = file(\"weights%s\", %d)" % (
            name, self.type, ", ".join(map(str, value.shape)), self.label, len(self.data)))
        if self.type == "bf16":
            bits = value.astype(numpy.float32).view(numpy.uint32) >> 16
            self.data += bits.astype(numpy.uint16).tobytes()
        else:
            self.data += value.astype(NUMPY[self.type]).tobytes()
        return name

    def draw(self, shape):
        while True:
            c = Convolution(self.rng, shape, not self.bytes and self.rng.integers(5) == 0)
            if c.fits(shape):
                return c

    def stage(self, name, x, is_last):
        n = len(self.lines)
        c = self.draw(x.shape)
        low = 0 if self.type == "u8" else -1
        w = self.rng.integers(low, 2, c.weights(x.shape[1])).astype(numpy.float64)
        act = convolve_back if c.transposed else convolve
        y = act(x, w, c)
        while numpy.abs(y).max() + 3 > self.limit:
            w *= self.rng.integers(0, 4, w.shape) > 0
            y = act(x, w, c)
        operands = [name, self.put_constant(w)]
        attributes = ", ".join("%s = %s" % (key, '"%s"' % v if isinstance(v, str) else v)
                               for key, v in c.attributes.items())
        if self.bytes:
            return self.put("c%d" % n, "i32", y.shape, "onnx22.ConvInteger(%s) { %s }" % (
                ", ".join(operands), attributes)), y
        if self.rng.integers(2):
            bias = self.rng.integers(-2, 3, y.shape[1]).astype(numpy.float64)
            y = y + bias.reshape((-1,) + (1,) * (y.ndim - 2))
            operands.append(self.put_constant(bias))
        result = self.put("c%d" % n, self.type, y.shape, "onnx22.Conv%s(%s) { %s }" % (
            "Transpose" if c.transposed else "", ", ".join(operands), attributes))
        if self.rng.integers(2):
            y = numpy.maximum(y, 0)
            result = self.put("r%d" % n, self.type, y.shape, "onnx22.Relu(%s)" % result)
        if not is_last:  # What is summed next stays small.
            ends = [self.put_constant(numpy.array(v)) for v in (-1.0, 1.0)]
            y = numpy.clip(y, -1, 1)
            result = self.put("k%d" % n, self.type, y.shape, "onnx22.Clip(%s, %s, %s)" % (
                result, *ends))
        if not is_last and self.rng.integers(2) and min(y.shape[2:]) > 1:
            result, y = self.pool(result, y)
        if y.shape == x.shape and self.rng.integers(2):
            y = y + x
            result = self.put("a%d" % n, self.type, y.shape, "onnx22.Add(%s, %s)" % (
                result, name))
        return result, y

    def pool(self, name, x):
        """The greatest of windows of three, which reach over the borders."""
        n, rank = len(self.lines), x.ndim - 2
        stride = int(self.rng.integers(1, 3))
        sizes = [(i - 1) // stride + 1 for i in x.shape[2:]]
        x = numpy.pad(x, [(0, 0)] * 2 + [(1, 1)] * rank, constant_values=-numpy.inf)
        y = numpy.max([x[(slice(None),) * 2 + slices(tap, sizes, [stride] * rank)]
                       for tap in numpy.ndindex(*[3] * rank)], 0)
        return self.put("p%d" % n, self.type, y.shape, "onnx22.MaxPool(%s) { %s }" % (
            name, "kernel_shape = %s, strides = %s, pads = %s" % (
                [3] * rank, [stride] * rank, [1] * (2 * rank)))), y

    def write(self, folder):
        """Its weights, its input and what is expected; options that name them."""
        (folder / ("weights" + self.label)).write_bytes(bytes(self.data))
        kind = numpy.int32 if self.bytes else NUMPY[self.type]
        options = []
        for option, name, value in [("input", *item) for item in self.inputs.items()] + [
                ("expected", self.name, self.expected.astype(kind))]:
            numpy.save(folder / (name + ".npy"), value)
            options.append("--%s=%s=@%s" % (option, name, folder / (name + ".npy")))
        return options


def write(folder, networks):
    """Networks of one precision, as one graph; the command that runs it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph.hir").write_text("graph main(%s) -> %s {\n  %s\n}\n" % (
        ", ".join(n.text_input for n in networks), ", ".join(n.name for n in networks),
        "\n  ".join(line for n in networks for line in n.constants + n.lines)))
    command = ["hidet-run", str(folder / "graph.hir"), "-q", "--rtol=0", "--atol=0"]
    for network in networks:
        command += network.write(folder)
    precision = networks[0].precision
    return command + (["--precision=" + precision] if precision else [])


class Runner:
    """What a process of the pool needs to know."""

    def __init__(self, options, more):
        self.options, self.more = options, more

    def draw(self, number, label=""):
        rng = numpy.random.default_rng([self.options.seed, number])
        shares = numpy.array(list(KIND_SHARES.values())) / sum(KIND_SHARES.values())
        return Network(rng, str(rng.choice(list(KIND_SHARES), p=shares)), label)

    def run(self, numbers, networks):
        """How many are right."""
        name = "-".join(map(str, [self.options.seed, *numbers]))
        folder = self.options.folder / name
        command = write(folder, networks) + self.more
        done = subprocess.run(command, text=True, capture_output=True)
        if done.returncode and len(numbers) == 1:
            print("%d of seed %d: exit %d\n%s\n%s%s" % (
                *numbers, self.options.seed, done.returncode, shlex.join(command),
                done.stdout[-2000:], done.stderr[-2000:]), flush=True)
            return 0
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        if done.returncode:
            return sum(self.run([number], [self.draw(number)]) for number in numbers)
        return len(numbers)

    def __call__(self, numbers):
        if self.options.together == 1:
            return sum(self.run([number], [self.draw(number)]) for number in numbers)
        drawn = [(number, self.draw(number, "_%d" % number)) for number in numbers]
        drawn.sort(key=lambda of: of[1].precision or "")
        right = 0
        for _, alike in itertools.groupby(drawn, lambda of: of[1].precision):
            alike = list(alike)
            for at in range(0, len(alike), self.options.together):
                right += self.run(*zip(*alike[at:at + self.options.together]))
        return right


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--together", type=int, default=1)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int)
    options, more = parser.parse_known_args()
    # Of four precisions.
    chunk = 4 * options.together if options.together > 1 else 1
    chunks = [range(at, min(at + chunk, options.count))
              for at in range(0, options.count, chunk)]
    with multiprocessing.Pool(options.jobs) as pool:
        right = sum(pool.imap_unordered(Runner(options, more), chunks))
    print("%d of %d are what NumPy says" % (right, options.count))
    return right != options.count


if __name__ == "__main__":
    sys.exit(main())
