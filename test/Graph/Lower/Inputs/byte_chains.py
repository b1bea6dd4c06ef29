# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chains from a byte to a byte, drawn: DequantizeLinear, a few operators of
numbers, QuantizeLinear and so on, for all 256 bytes; NumPy in f32, rounded after
each operation, has to say the same.

usage: byte_chains.py FOLDER COUNT SEED [hidet-run's options...]
"""
import pathlib
import subprocess
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = numpy.random.default_rng(seed)
f4 = numpy.float32
TYPES = {numpy.int8: TensorProto.INT8, numpy.uint8: TensorProto.UINT8}


class Chain:
    def __init__(self):
        self.nodes, self.constants, self.value, self.name = [], [], None, "x"

    def constant(self, value):
        name = "c%d" % len(self.constants)
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def node(self, op, *constants):
        name = "v%d" % len(self.nodes)
        names = [self.constant(c) for c in constants]
        self.nodes.append(helper.make_node(op, [self.name, *names], [name]))
        self.name = name

    def widen(self, scale, zero):
        self.node("DequantizeLinear", scale, zero)
        self.value = (self.value.astype("f4") - f4(zero)) * scale

    def narrow(self, kind):
        limits = numpy.iinfo(kind)
        zero = kind([0, limits.min, rng.integers(limits.min, limits.max + 1)][rng.integers(3)])
        reach = max(float(numpy.abs(self.value).max()), 1e-6)
        scale = f4(reach / rng.uniform(60, 260))
        if rng.integers(4) == 0:
            scale = f4(2.0 ** numpy.round(numpy.log2(scale)))
        self.node("QuantizeLinear", scale, zero)
        self.value = numpy.clip(numpy.rint(self.value / scale) + f4(zero), limits.min, limits.max).astype(kind)
        return scale, zero

    def step(self):
        which = rng.integers(4)
        c = f4(rng.uniform(-2, 2))
        if which == 0:
            self.node("Relu")
            self.value = numpy.maximum(self.value, f4(0))
        elif which == 1:
            self.node("Mul", c)
            self.value = self.value * c
        elif which == 2:
            self.node("Add", c)
            self.value = self.value + c
        else:
            self.node("Abs")
            self.value = numpy.abs(self.value)


def kind():
    return [numpy.int8, numpy.uint8][rng.integers(2)]


for case in range(count):
    chain = Chain()
    first = kind()
    x = numpy.arange(256, dtype="u1").view(first).reshape(4, 64)
    chain.value = x
    limits = numpy.iinfo(first)
    scale, zero = f4(rng.uniform(0.001, 0.1)), first(rng.integers(limits.min, limits.max + 1))
    for turn in range(rng.integers(1, 4)):
        chain.widen(scale, zero)
        for _ in range(rng.integers(3)):
            chain.step()
        scale, zero = chain.narrow(kind())
    graph = helper.make_graph(
        chain.nodes, "g", [helper.make_tensor_value_info("x", TYPES[first], x.shape)],
        [helper.make_tensor_value_info(chain.name, TYPES[chain.value.dtype.type], x.shape)], chain.constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9), folder / "m.onnx")
    numpy.save(folder / "x.npy", x)
    numpy.save(folder / "y.npy", chain.value)
    command = ["hidet-run", str(folder / "m.onnx"), "-q", "--input=@%s" % (folder / "x.npy"),
               "--expected=@%s" % (folder / "y.npy"), *sys.argv[4:]]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit("case %d: %s\n%s" % (case, [n.op_type for n in chain.nodes], run.stdout + run.stderr))
print("%d chains" % count)
