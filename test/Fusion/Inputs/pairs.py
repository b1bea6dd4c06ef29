# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Drawn products whose results meet, on the simulator with --sanitize, against
NumPy in f64 (pairs.test).

usage: pairs.py FOLDER SEED COUNT [OPTION...]

Options are hidet-run's. Exits 1 where a result differs, or where nothing became
one kernel.
"""
import pathlib
import subprocess
import sys

import numpy

folder = pathlib.Path(sys.argv[1])
rng = numpy.random.default_rng(int(sys.argv[2]))
graph, inputs, wanted = [], {}, {}
# Of 1 + |value|: three results are rounded, and multiplied.
BOUNDS = {"f16": 4e-3, "bf16": 3e-2, "f32": 1e-5}


def eighths(*shape):
    return numpy.round(rng.standard_normal(shape) * 8) / 8


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def constant(name, kind, value):
    """Elements in the text: no file has to be found."""
    number = int if kind == "u4" else float
    numbers = ", ".join("%r" % number(each) for each in value.ravel())
    graph.append("const %s: %s[%s] = [%s]" % (
        name, kind, ", ".join(map(str, value.shape)), numbers))


def node(name, kind, shape, text):
    graph.append("%s: %s[%s] = %s" % (name, kind, ", ".join(map(str, shape)), text))
    return name


def gate(number, kind, shape, g):
    """silu of g as a model may spell it, and what it is."""
    if rng.integers(2):
        return node("s%d" % number, kind, shape, "swish(%s)" % g)
    s = node("r%d" % number, kind, shape, "sigmoid(%s)" % g)
    return node("s%d" % number, kind, shape, "mul(%s, %s)" % (g, s))


def with_bias(number, kind, shape, values, name):
    """A product's result, and what has been added to it."""
    if rng.integers(2):
        return name, values
    b = eighths(shape[-1])
    constant("b%d_%s" % (number, name), kind, b)
    return node("c%d_%s" % (number, name), kind, shape,
                "add(%s, b%d_%s)" % (name, number, name)), values + b


def narrow(name, n, k):
    """A matrix of 4 bits an element with scales and zero points, which is
    computed where it is read: its numbers, and the node."""
    groups = k // 32
    q = rng.integers(0, 16, (n, groups, 32))
    scale = 2.0 ** rng.integers(-6, -3, (n, groups, 1))
    zero = rng.integers(0, 16, (n, groups, 1))
    for part, kind, value in (("q", "u4", q), ("s", "f16", scale), ("z", "u4", zero)):
        constant(name + part, kind, value)
    node(name + "d", "f16", q.shape,
         "dequantize(%sq, %ss, %sz) { R = f16 }" % (name, name, name))
    node(name, "f16", (n, k), "reshape(%sd)" % name)
    return ((q - zero) * scale).reshape(n, k)


def draw_narrow(number):
    """Of few rows; a pin, since so small a matrix is not worth it, but one that
    is not computed before."""
    m, n, k = int(rng.choice([1, 3, 8])), int(rng.choice([24, 40, 66])), 256
    x = eighths(m, k)
    inputs["x%d" % number] = "f16[%d, %d]" % (m, k)
    save("x%d" % number, "f16", x)
    pin = "{ tb = true } with product_rows(E = 32)"
    if rng.integers(2):
        both = narrow("w%d" % number, 2 * n, k)
        p = node("p%d" % number, "f16", (m, 2 * n),
                 "matmul(x%d, w%d) %s" % (number, number, pin))
        g, h = (node("%s%d" % (name, number), "f16", (m, n),
                     "slice(%s) { start = [0, %d], stride = 1, size = [%d, %d] }" % (
                         p, start, m, n))
                for name, start in (("g", 0), ("h", n)))
        first, second = x @ both[:n].T, x @ both[n:].T
    else:
        first, second = (x @ narrow("%s%d" % (name, number), n, k).T
                         for name in ("w", "v"))
        g, h = (node("%s%d" % (name, number), "f16", (m, n),
                     "matmul(x%d, %s%d) %s" % (number, matrix, number, pin))
                for name, matrix in (("g", "w"), ("h", "v")))
    node("y%d" % number, "f16", (m, n),
         "mul(%s, %s)" % (gate(number, "f16", (m, n), g), h))
    wanted["y%d" % number] = "f16", first * sigmoid(first) * second


def matrix(name, kind, value):
    """A constant, every other column of one below its first row, or what a node
    makes of two."""
    way = rng.integers(4)
    if way == 2:
        wide = eighths(value.shape[0] + 1, 2 * value.shape[1])
        wide[1:, ::2] = value
        constant(name + "wide", kind, wide)
        node(name, kind, value.shape,
             "slice(%swide) { start = [1, 0], stride = [1, 2], size = [%d, %d] }" % (
                 name, *value.shape))
    elif way == 3:
        factors = 2.0 ** rng.integers(-1, 2, (value.shape[0], 1))
        constant(name + "whole", kind, value / factors)
        constant(name + "factors", kind, factors)
        node(name, kind, value.shape, "mul(%swhole, %sfactors)" % (name, name))
    else:
        constant(name, kind, value)


def draw(number):
    kind = str(rng.choice(["f16", "f16", "bf16", "f32"]))
    m = int(rng.choice([1, 3, 8, 13, 16, 31, 64, 97]))
    n = int(rng.choice([8, 24, 31, 40, 53]))
    k = int(rng.choice([16, 64, 67, 256, 264]))
    halves, rows = bool(rng.integers(2)), bool(rng.integers(2))
    x, w, v = eighths(m, k), eighths(k, n) / 4, eighths(k, n) / 4
    at = "{ tb = true }" if rows else ""
    inputs["x%d" % number] = "%s[%d, %d]" % (kind, m, k)
    save("x%d" % number, kind, x)
    if halves:
        both = numpy.concatenate([w, v], 1)
        matrix("w%d" % number, kind, both.T if rows else both)
        p = node("p%d" % number, kind, (m, 2 * n), "matmul(x%d, w%d) %s" % (
            number, number, at))
        p, values = with_bias(number, kind, (m, 2 * n), x @ both, p)
        g, u = (node("%s%d" % (name, number), kind, (m, n),
                     "slice(%s) { start = [0, %d], stride = 1, size = [%d, %d] }" % (
                         p, start, m, n))
                for name, start in (("g", 0), ("h", n)))
        first, second = values[:, :n], values[:, n:]
    else:
        matrix("w%d" % number, kind, w.T if rows else w)
        matrix("v%d" % number, kind, v.T if rows else v)
        g = node("g%d" % number, kind, (m, n), "matmul(x%d, w%d) %s" % (number, number, at))
        g, first = with_bias(number, kind, (m, n), x @ w, g)
        u = node("h%d" % number, kind, (m, n), "matmul(x%d, v%d) %s" % (number, number, at))
        u, second = with_bias(number, kind, (m, n), x @ v, u)
    s = gate(number, kind, (m, n), g)
    y, value = "y%d" % number, first * sigmoid(first) * second
    node(y, kind, (m, n), "mul(%s, %s)" % ((s, u) if rng.integers(2) else (u, s)))
    wanted[y] = kind, value


def save(name, kind, value):
    value = numpy.ascontiguousarray(value)
    if kind == "bf16":
        bits = value.astype(numpy.float32).view(numpy.uint32).astype(numpy.uint64)
        even = (bits + 0x7fff + (bits >> 16 & 1)) >> 16
        numpy.save(folder / (name + ".npy"), even.astype(numpy.uint16))
    else:
        numpy.save(folder / (name + ".npy"),
                   value.astype({"f16": "f2", "f32": "f4"}[kind]))


def read(name, kind):
    value = numpy.load(folder / (name + ".npy"))
    if kind == "bf16":
        value = (value.astype(numpy.uint32) << 16).view(numpy.float32)
    return value.astype(float)


for number in range(int(sys.argv[3])):
    (draw if rng.integers(4) else draw_narrow)(number)
(folder / "drawn.hir").write_text("graph main(%s) -> %s {\n  %s\n}\n" % (
    ", ".join("%s: %s" % item for item in inputs.items()), ", ".join(wanted),
    "\n  ".join(graph)))
done = subprocess.run(
    ["hidet-run", str(folder / "drawn.hir"), "--device=sim", "--sanitize",
     "--explain", *sys.argv[4:],
     *("--input=%s=@%s" % (name, folder / (name + ".npy")) for name in inputs),
     *("--output=%s=@%s" % (name, folder / (name + ".npy")) for name in wanted)],
    text=True, capture_output=True)
if done.returncode or "pairs: one kernel" not in done.stderr:
    sys.exit(done.stderr)
for name, (kind, value) in wanted.items():
    error = numpy.abs(read(name, kind) - value) / (1 + numpy.abs(value))
    if not error.max() <= BOUNDS[kind]:
        sys.exit("%s, %s%s, is %g off" % (name, kind, value.shape, error.max()))
