# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Drawn products whose results leave in parts, and turned, on the simulator with
--sanitize, against NumPy in f64 (parts.test).

usage: parts.py FOLDER SEED COUNT [--large] [OPTION...]

--large: one of them is. Other options are hidet-run's. Exits 1 where a result
differs.
"""
import pathlib
import subprocess
import sys

import numpy

folder = pathlib.Path(sys.argv[1])
rng = numpy.random.default_rng(int(sys.argv[2]))
graph, inputs, wanted = [], [], {}
BOUNDS = {"f16": 2e-3, "f32": 1e-5}  # Of 1 + |value|, rounded twice.


def eighths(*shape):
    return numpy.round(rng.standard_normal(shape) * 8) / 8


def save(name, kind, value):
    numpy.save(folder / (name + ".npy"),
               numpy.ascontiguousarray(value).astype({"f16": "f2", "f32": "f4"}[kind]))


def given(name, kind, *shape):
    value = eighths(*shape)
    inputs.append((name, "%s: %s[%s]" % (name, kind, ", ".join(map(str, shape)))))
    save(name, kind, value)
    return value


def node(name, kind, shape, text):
    graph.append("%s: %s[%s] = %s" % (name, kind, ", ".join(map(str, shape)), text))
    return name


def factor(size):
    """A number that divides it."""
    return int(rng.choice([f for f in range(1, size + 1) if size % f == 0]))


def turned(name, kind, value):
    """The same with its rows or columns taken apart, and the parts in another
    order."""
    m, n = value.shape
    rows, columns = factor(m), factor(n)
    shape = (m // rows, rows, n // columns, columns)
    order = [int(axis) for axis in
             (rng.permutation(4) if rng.integers(3) == 0 else
              [(0, 2, 1, 3), (2, 0, 1, 3), (1, 0, 2, 3), (0, 1, 2, 3)][rng.integers(4)])]
    node(name + "v", kind, shape, "reshape(%s)" % name)
    node(name + "t", kind, [shape[axis] for axis in order],
         "transpose(%sv) { order = %s }" % (name, order))
    name, value = name + "t", value.reshape(shape).transpose(order)
    if rng.integers(3) == 0:
        joined = (value.shape[0] * value.shape[1],) + value.shape[2:]
        name, value = node(name + "j", kind, joined, "reshape(%s)" % name), value.reshape(joined)
    return name, value


def draw(number, large):
    kind = "f16" if large else str(rng.choice(["f16", "f16", "f32"]))
    m = int(rng.choice([1, 6, 16, 60, 96, 130, 197]))
    n = int(rng.choice([24, 64, 96, 192, 200]))
    k = int(rng.choice([16, 64, 72]))
    pin = ""
    if large:  # Enough for large tiles by the copy engine.
        m, n, k = 1088, int(rng.choice([976, 1032])), 72
        pin = " with product_wgmma(BN = %d)" % rng.choice([64, 128, 192, 256])
    elif (kind == "f16" and m >= 60 and k >= 64 and rng.integers(2) and
          "--target=sm_75" not in sys.argv):
        pin = " with product_mma(BM = 64, BN = 64)"
    x, w = given("x%d" % number, kind, m, k), given("w%d" % number, kind, k, n)
    values = x @ w
    node("p%d" % number, kind, (m, n), "matmul(x%d, w%d)%s" % (number, number, pin))
    name = "p%d" % number
    if rng.integers(2):
        b = given("b%d" % number, kind, n)
        name, values = node("q%d" % number, kind, (m, n), "add(%s, b%d)" % (name, number)), values + b
    count = int(rng.integers(1, 5))
    # Even parts, as models have them, or any; some are left out or overlap.
    cuts = ([n * i // count // 8 * 8 for i in range(count)] + [n] if rng.integers(2)
            else sorted(int(c) for c in rng.integers(0, n, count)) + [n])
    for i in range(count):
        first, last = cuts[i], cuts[i + 1] + int(rng.integers(0, 4) == 0)
        last = min(last, n)
        if last <= first:
            continue
        part = "y%d_%d" % (number, i)
        node(part, kind, (m, last - first),
             "slice(%s) { start = [0, %d], stride = 1, size = [%d, %d] }" % (
                 name, first, m, last - first))
        value = values[:, first:last]
        if rng.integers(2):
            b = given("c%d_%d" % (number, i), kind, last - first)
            part, value = node(part + "b", kind, value.shape,
                               "add(%s, c%d_%d)" % (part, number, i)), value + b
        if rng.integers(3):
            part, value = turned(part, kind, value)
        wanted[part] = kind, value


for number in range(int(sys.argv[3])):
    draw(number, "--large" in sys.argv and number == 0)
(folder / "drawn.hir").write_text("graph main(%s) -> %s {\n  %s\n}\n" % (
    ", ".join(text for _, text in inputs), ", ".join(wanted), "\n  ".join(graph)))
done = subprocess.run(
    ["hidet-run", str(folder / "drawn.hir"), "--device=sim", "--sanitize", "-q",
     *(option for option in sys.argv[4:] if option != "--large"),
     *("--input=%s=@%s" % (name, folder / (name + ".npy")) for name, _ in inputs),
     *("--output=%s=@%s" % (name, folder / (name + ".npy")) for name in wanted)],
    text=True, capture_output=True)
if done.returncode:
    sys.exit(done.stderr)
for name, (kind, value) in wanted.items():
    got = numpy.load(folder / (name + ".npy")).astype(float)
    error = numpy.abs(got - value) / (1 + numpy.abs(value))
    if got.shape != value.shape or not error.max() <= BOUNDS[kind]:
        sys.exit("%s, %s%s, is %g off" % (name, kind, value.shape, error.max()))
