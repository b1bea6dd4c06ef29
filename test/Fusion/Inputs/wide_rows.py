# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chains of products by constants whose rows are no multiples of 16 bytes, on the
simulator as for a GPU, against NumPy. What a product reads is made in longer rows
by the one before, through whatever is between: biases, residuals of both kinds,
activations that are infinite, or no number, of zeros. Elements are small integers,
so that sums are exact in whatever order.

usage: wide_rows.py FOLDER HIDET_RUN
"""
import pathlib
import subprocess
import sys

import numpy

folder, tool = pathlib.Path(sys.argv[1]), sys.argv[2]
folder.mkdir(parents=True, exist_ok=True)
draw = numpy.random.default_rng(16)
# What stands between two products, of their results; who else reads it; whether
# all copies are saved.
CASES = [
    ("relu", None, True), ("quotient", None, True), ("logarithm", "added", True),
    ("own", None, True), ("given", "turned", True), ("relu", "output", False),
    ("relu", "reshaped", False)]


class Network:
    def __init__(self, m, n):
        self.lines, self.data, self.m, self.n = [], bytearray(), m, n

    def constant(self, name, value):
        while len(self.data) % 16:
            self.data.append(0)
        self.lines.append("const %s: f16[%s] = file(\"weights\", %d)" % (
            name, ", ".join(map(str, value.shape)), len(self.data)))
        self.data += value.astype("f2").tobytes()
        return value.astype("f8")

    def put(self, name, shape, call):
        self.lines.append("%s: f16[%s] = %s" % (name, ", ".join(map(str, shape)), call))

    def product(self, name, x, value):
        w = numpy.zeros((value.shape[1], self.n))
        for column in range(self.n):  # Two ones in a column: numbers stay small.
            w[draw.integers(0, value.shape[1], 2), column] = 1
        w = self.constant("w_" + name, w)
        b = self.constant("b_" + name, draw.integers(0, 2, self.n))
        shape = (self.m, self.n)
        self.put("p_" + name, shape, "onnx13.MatMul(%s, w_%s)" % (x, name))
        self.put(name, shape, "onnx13.Add(p_%s, b_%s)" % (name, name))
        return value @ w + b


def run(number, between, other, saved):
    net = Network(*[(257, 523), (130, 517), (301, 501)][number % 3])
    shape = (net.m, net.n)
    x = draw.integers(-1, 2, (net.m, net.n + 3)).astype("f2")
    y = draw.integers(-1, 2, shape).astype("f2")
    a = net.product("a", "x", x.astype("f8"))
    if between == "relu":
        a = numpy.maximum(a, 0)
        net.put("t", shape, "onnx13.Relu(a)")
    elif between == "quotient":  # 0 / 0 behind the rows.
        one = net.constant("one", numpy.full(net.n, 2.0))
        a = a / one
        net.put("t", shape, "onnx13.Div(a, one)")
    elif between == "logarithm":  # Of 0 behind the rows, times 0.
        two = net.constant("two", numpy.full(net.n, 2.0))
        net.put("l", (net.n,), "onnx13.Log(two)")
        net.put("u", shape, "onnx13.Mul(a, l)")
        net.put("t", shape, "onnx13.Div(u, l)")
    elif between == "own":  # A residual that is made so itself.
        first = a
        a = net.product("c", "a", a)
        a = a + first
        net.put("t", shape, "onnx13.Add(c, a)")
    else:  # One that is given.
        a = a + y
        net.put("t", shape, "onnx13.Add(a, y)")
    results = {"r": net.product("r", "t", a)}
    if other == "added":
        results["s"] = a + y
        net.put("s", shape, "onnx13.Add(t, y)")
    elif other == "turned":
        results["s"] = a.T
        net.put("s", (net.n, net.m), "onnx13.Transpose(t)")
    elif other == "output":
        results["t"] = a
    elif other == "reshaped":
        results["s"] = a.reshape(-1)
        net.lines.insert(0, "const flat: i64[1] = [-1]")
        net.put("s", (a.size,), "onnx13.Reshape(t, flat)")
    (folder / "weights").write_bytes(bytes(net.data))
    (folder / "net.hir").write_text(
        "graph main(x: f16[%d, %d], y: f16[%d, %d]) -> %s {\n  %s\n}\n" % (
            *x.shape, *shape, ", ".join(results), "\n  ".join(net.lines)))
    numpy.save(folder / "x.npy", x)
    numpy.save(folder / "y.npy", y)
    files = ["--input=%s=@%s/%s.npy" % (i, folder, i) for i in "xy"]
    for key, value in results.items():
        assert numpy.abs(value).max() < 2048
        numpy.save(folder / (key + ".npy"), value.astype("f2"))
        files.append("--expected=%s=@%s/%s.npy" % (key, folder, key))
    done = subprocess.run(
        [tool, folder / "net.hir", "--device=sim", "--no-cache", "--explain", "--rtol=0",
         "--atol=0", *files], capture_output=True, text=True)
    said = done.stdout + done.stderr
    assert done.returncode == 0, (between, other, said[-3000:])
    assert ("is made in rows of" in said) == saved, (between, other, said[:6000])


for number, case in enumerate(CASES):
    run(number, *case)
