# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows that are reduced by themselves, drawn, against NumPy: maximum (with a
NaN here and there), its place, mean, and a monoid that does not commute (the
last element, where it is not 0), of images whose channels are last or first, and
ONNX's pooling with rounded up sizes and counted borders. Numbers are small
integers; all but means have to be equal.

usage: slides.py FOLDER COUNT SEED [hidet-run's options...]
"""
import pathlib
import subprocess
import sys

import numpy

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = numpy.random.default_rng(seed)
NUMPY = {"f16": numpy.float16, "f32": numpy.float32, "i8": numpy.int8}
MONOIDS = {
    "max": "  monoid m(v: {T})(w) from ({least}) = (v > w || v != v ? v : w)\n",
    "last": "  monoid m(v: {T})(w) from (0) = (w != 0 ? w : v)\n",
    "mean": ""}


def draw(*choices):
    return int(rng.choice(choices))


class Windows:
    """Along some axes: drawn so that there is one at least."""

    def __init__(self, rank, by_name=False):
        most = {1: 13, 2: 5, 3: 3}[rank]
        same = rng.integers(2)
        self.kernel = [draw(2, 3)] * rank if same else [draw(1, 2, 3, most) for _ in range(rank)]
        self.strides = [draw(1, 2)] * rank if same else [draw(1, 2, 3) for _ in range(rank)]
        self.dilations = [1] * rank if rng.integers(3) else [draw(1, 2) for _ in range(rank)]
        self.extents = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations)]
        self.begin = [draw(*range(0, (e + 1) // 2 + 1)) if e > 1 else 0 for e in self.extents]
        self.begin = [min(b, k - 1) for b, k in zip(self.begin, self.kernel)]
        self.end = self.begin if same else [min(draw(0, 1), k - 1) for k in self.kernel]
        self.up = bool(by_name and rng.integers(2))
        self.image = [e + int(rng.integers(0, {1: 900, 2: 40, 3: 12}[rank])) for e in self.extents]
        self.sizes = []
        for i, e, s, b, n in zip(self.image, self.extents, self.strides, self.begin, self.end):
            size = (i + b + n - e) // s + 1
            if self.up and (i + b + n - e) % s and size * s < i + b:
                size += 1
            self.sizes.append(size)

    def taps(self, x, outside):
        """x[n, c, ..] as each place of the window has it."""
        room = [(b, max((o - 1) * s + e - i - b, 0)) for b, o, s, e, i in zip(
            self.begin, self.sizes, self.strides, self.extents, self.image)]
        x = numpy.pad(x, [(0, 0), (0, 0)] + room, constant_values=outside)
        for tap in numpy.ndindex(*self.kernel):
            yield x[(slice(None),) * 2 + tuple(
                slice(t * d, t * d + (o - 1) * s + 1, s)
                for t, d, o, s in zip(tap, self.dilations, self.sizes, self.strides))]


def reduce_windows(w, x, how):
    if how == "max":
        least = -128 if x.dtype == numpy.int8 else -numpy.inf
        y = numpy.full(1, least, x.dtype)
        for tap in w.taps(x, least):
            y = numpy.maximum(y, tap)
    elif how == "last":
        y = 0
        for tap in w.taps(x, 0):
            y = numpy.where(tap != 0, tap, y)
    else:
        y = sum(tap.astype(numpy.float32) for tap in w.taps(x, 0)) / numpy.prod(w.kernel)
    return y.astype(x.dtype)


def task(w, kind, how, last):
    """The windows written out, channels last or first."""
    axes = range(len(w.kernel))
    places = ["at%d * %d + q%d * %d - %d" % (a, w.strides[a], a, w.dilations[a], w.begin[a])
              for a in axes]
    at, over = ["at%d" % a for a in axes], ", ".join("q%d: %d" % (a, w.kernel[a]) for a in axes)
    put = (lambda names: ", ".join(["b"] + names + ["f"] if last else ["b", "f"] + names))
    least = {"i8": "-128"}.get(kind, "-inf")
    rank = ", ".join("d%d" % a for a in range(len(at) + 2))
    sizes = ["o%d" % a for a in axes]
    shape = ", ".join(["d0"] + sizes + ["d%d" % (len(at) + 1)] if last else ["d0", "d1"] + sizes)
    read = "x[%s] else %s" % (put(places), least if how == "max" else "0")
    if how == "mean":
        term = "%s((sum(%s) f32(%s)) / %d)" % (kind, over, read, numpy.prod(w.kernel))
    else:
        term = "m(%s) %s" % (over, read)
    return "task slide(x: %s[%s], %s) -> y: %s[%s] {\n%s  y[%s] = %s\n}\n" % (
        kind, rank, ", ".join(s + ": i64" for s in sizes), kind, shape,
        MONOIDS[how].format(T=kind, least=least), put(at), term)


def numbers(kind, shape, nans):
    x = rng.integers(-3, 4, shape).astype(NUMPY[kind])
    if nans:
        x[rng.random(shape) < 0.01] = numpy.nan
    return x


def shape_of(w):
    """Images and channels, for some thousand or a million elements."""
    channels = draw(1, 3, 8, 12, 16, 20, 32, 64, 96)
    one = channels * numpy.prod([max(s, i) for s, i in zip(w.sizes, w.image)])
    images = max(int(2 ** rng.uniform(12, 21) / one), 1)
    return (min(images, 300), channels)


def written(rank):
    kind, how = str(rng.choice(["f16", "f16", "f32", "i8"])), str(rng.choice(["max", "max", "mean", "last"]))
    kind = "f16" if how == "mean" and kind == "i8" else kind
    w, last = Windows(rank), rng.integers(4) > 0
    x = numbers(kind, shape_of(w) + tuple(w.image), how == "max" and kind != "i8" and rng.integers(2))
    y = reduce_windows(w, x, how)
    if last:
        x, y = (numpy.ascontiguousarray(numpy.moveaxis(v, 1, -1)) for v in (x, y))
    node = "slide(x) { %s }" % ", ".join("o%d = %d" % p for p in enumerate(w.sizes))
    return task(w, kind, how, last), kind, x, [("y", kind, y)], node


def listed(values):
    return "[%s]" % ", ".join(map(str, values))


def onnx(rank):
    kind, op = str(rng.choice(["f16", "f32"])), str(rng.choice(["MaxPool", "MaxPool2", "AveragePool"]))
    w = Windows(rank, True)
    x = numbers(kind, shape_of(w) + tuple(w.image), False)
    attributes = {"kernel_shape": listed(w.kernel), "strides": listed(w.strides),
                  "dilations": listed(w.dilations), "pads": listed(w.begin + w.end),
                  "ceil_mode": int(w.up)}
    if op == "AveragePool":
        padded = int(rng.integers(2))
        attributes["count_include_pad"] = padded
        ones = numpy.ones((1, 1) + tuple(w.image), numpy.float32)
        if padded:
            ones = numpy.pad(ones, [(0, 0)] * 2 + list(zip(w.begin, w.end)), constant_values=1)
        counted = Windows.__new__(Windows)
        counted.__dict__.update(w.__dict__)
        if padded:
            counted.begin, counted.image = [0] * rank, list(ones.shape[2:])
        many = sum(counted.taps(ones, 0))
        y = sum(tap.astype(numpy.float32) for tap in w.taps(x, 0)) / many
        results = [("y", kind, y.astype(x.dtype))]
    else:
        results = [("y", kind, reduce_windows(w, x, "max"))]
    if op == "MaxPool2":
        places = numpy.arange(x.size).reshape(x.shape)
        best, at = None, None
        for v, p in zip(w.taps(x.astype(numpy.float32), -numpy.inf), w.taps(places, -1)):
            better = v > best if best is not None else numpy.ones(v.shape, bool)
            best, at = (numpy.where(better, v, best), numpy.where(better, p, at)) if best is not None else (v, p)
        results.append(("at", "i64", at))
    node = "onnx22.%s(x) { %s }" % (op.rstrip("2"), ", ".join("%s = %s" % a for a in attributes.items()))
    return "", kind, x, results, node


def case(number):
    rank = draw(1, 2, 2, 2, 3)
    text, kind, x, results, node = (written if rng.integers(3) else onnx)(rank)
    names = ", ".join(name for name, _, _ in results)
    typed = ", ".join("%s: %s%s" % (name, t, listed(y.shape)) for name, t, y in results)
    text += "graph main(x: %s%s) -> %s {\n  %s = %s\n}\n" % (kind, listed(x.shape), names, typed, node)
    (folder / "slide.hir").write_text(text)
    numpy.save(folder / "x.npy", x)
    command = ["hidet-run", str(folder / "slide.hir"), "-q", "--input=@%s" % (folder / "x.npy")]
    for name, _, y in results:
        numpy.save(folder / (name + ".npy"), y)
        command.append("--expected=%s=@%s" % (name, folder / (name + ".npy")))
    means = "sum" in text or "Average" in text
    command += ["--rtol=1e-3" if means else "--rtol=0", "--atol=%s" % (2e-3 if means else 0)]
    done = subprocess.run(command + sys.argv[4:], text=True, capture_output=True)
    if done.returncode:
        print("%d of seed %d:\n%s%s%s" % (number, seed, text, done.stdout[-2000:], done.stderr[-2000:]))
    return done.returncode == 0


right = sum([case(number) for number in range(count)])
print("%d of %d are what NumPy says" % (right, count))
sys.exit(right != count)
