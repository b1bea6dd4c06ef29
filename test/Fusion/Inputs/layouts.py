# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks of images in f16 on the simulator, laid out as for a GPU, against
ONNX's own reference in f32.

usage: layouts.py FOLDER HIDET_RUN
"""
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

random = np.random.default_rng(11)
folder, tool = pathlib.Path(sys.argv[1]), sys.argv[2]
folder.mkdir(parents=True, exist_ok=True)


class Network:
    """Nodes from x, [1, channels, side, side], with random weights."""

    def __init__(self, side):
        self.side, self.nodes, self.weights = side, [], []

    def put(self, op, inputs, **attributes):
        name = "%s%d" % (op.lower(), len(self.nodes))
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def weight(self, *shape):
        name = "w%d" % len(self.weights)
        fan = np.prod(shape[1:]) if len(shape) > 1 else 4
        w = random.standard_normal(shape) / np.sqrt(fan)
        self.weights.append(numpy_helper.from_array(w.astype(np.float32), name))
        return name

    def conv(self, x, channels, to, kernel=1, groups=1, **attributes):
        inputs = [x, self.weight(to, channels // groups, kernel, kernel),
                  self.weight(to)]
        return self.put("Conv", inputs, group=groups,
                        pads=[kernel // 2] * 4, **attributes)


def residual(n):
    a = n.put("Relu", [n.conv("x", 16, 32, 3)])
    b = n.put("Relu", [n.conv(a, 32, 16)])
    c = n.put("Relu", [n.conv(b, 16, 16, 3)])
    d = n.put("Add", [n.conv(c, 16, 32), a])
    e = n.put("MaxPool", [n.put("Relu", [d])], kernel_shape=[3, 3],
              strides=[2, 2], pads=[1, 1, 1, 1])
    f = n.put("Flatten", [n.put("GlobalAveragePool", [e])])
    return n.put("Gemm", [f, n.weight(10, 32)], transB=1)


def separable(n):
    a = n.put("Clip", [n.conv("x", 16, 32), n.weight(), n.weight()])
    b = n.put("HardSwish", [n.conv(a, 32, 32, 3, groups=32, strides=[2, 2])])
    s = n.put("Sigmoid", [n.conv(n.put("GlobalAveragePool", [b]), 32, 32)])
    return n.conv(n.put("Mul", [b, s]), 32, 24)


def branches(n):
    a = n.put("Relu", [n.conv("x", 16, 16, 3)])
    parts = [n.put("Relu", [n.conv(a, 16, 32)]), n.conv(a, 16, 16, 3),
             n.put("AveragePool", [a], kernel_shape=[3, 3], pads=[1] * 4)]
    k = n.put("Concat", parts, axis=1)
    return n.put("Concat", [n.conv(k, 64, 16, 3), n.conv(k, 64, 8)], axis=1)


def grouped(n):
    a = n.put("Relu", [n.conv("x", 16, 32)])
    b = n.put("Relu", [n.conv(a, 32, 32, 3, groups=4, dilations=[1, 1])])
    return n.conv(b, 32, 32, 3, groups=2)


def tokens(n):
    """As a vision transformer begins, and as channels are shuffled."""
    a = n.put("Relu", [n.conv("x", 16, 32, 3)])
    shape = numpy_helper.from_array(np.array([1, 2, 16, n.side, n.side]), "by")
    flat = numpy_helper.from_array(np.array([1, 32, n.side ** 2]), "flat")
    n.weights += [shape, flat]
    b = n.put("Transpose", [n.put("Reshape", [a, "by"])], perm=[0, 2, 1, 3, 4])
    c = n.put("Transpose", [n.put("Reshape", [b, "flat"])], perm=[0, 2, 1])
    return n.put("MatMul", [c, n.weight(32, 24)])


def normalized(n):
    a = n.conv("x", 16, 32, 3)
    b = n.put("InstanceNormalization", [a, n.weight(32), n.weight(32)])
    c = n.put("Softmax", [n.conv(b, 32, 16, 3)], axis=1)
    return n.put("ReduceMean", [c], axes=[1], keepdims=0)


def stem(n):
    """As networks of images begin."""
    a = n.put("Relu", [n.conv("x", 3, 16, 7, strides=[2, 2])])
    return n.conv(a, 16, 24, 3)


def stem_of_every_pixel(n):
    a = n.put("Relu", [n.conv("x", 3, 16, 3)])
    b = n.put("Relu", [n.conv("x", 3, 16, 5)])
    return n.conv(n.put("Add", [a, b]), 16, 8)


def grey(n):
    """One channel, by steps that ask for more or less to be filled up."""
    steps = [n.put("GlobalAveragePool", [n.put("Relu", [
        n.conv("x", 1, 128, kernel, strides=[step, step])])])
        for step, kernel in ((1, 3), (2, 5), (3, 5), (4, 7), (8, 11))]
    return n.put("Concat", steps, axis=1)


def volumes(n):
    """Windows of each channel by itself that slide along three axes, or two of
    them."""
    n.weights.append(numpy_helper.from_array(
        np.array([1, 16, 4, n.side // 2, n.side // 2]), "volume"))
    a = n.put("Relu", [n.put("Reshape", [n.put("Relu", ["x"]), "volume"])])
    b = n.put("Conv", [a, n.weight(16, 1, 3, 3, 3), n.weight(16)], group=16,
              pads=[1] * 6, strides=[1, 2, 2])
    c = n.put("MaxPool", [n.put("Relu", [b])], kernel_shape=[1, 3, 3],
              pads=[0, 1, 1] * 2, strides=[1, 2, 2])
    return n.put("Transpose", [n.put("Relu", [c])], perm=[0, 2, 3, 4, 1])


def odd_channels(n):
    """Rows of channels that are no multiples of 16 bytes, and of them windows
    that reach past the borders."""
    a = n.put("Concat", [n.conv("x", 16, 130), n.conv("x", 16, 112)], axis=1)
    b = n.conv(n.conv(a, 242, 90, 3), 90, 116)
    return n.conv(b, 116, 33, 3)


def run(make, side, channels=16):
    network = Network(side)
    last = make(network)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        network.nodes, make.__name__,
        [value("x", TensorProto.FLOAT, [1, channels, side, side])],
        [value(last, TensorProto.FLOAT, None)], network.weights)
    model = helper.make_model(graph, ir_version=8,
                              opset_imports=[helper.make_opsetid("", 14)])
    path = folder / (make.__name__ + "%d.onnx" % side)
    onnx.save(model, path)
    x = random.standard_normal((1, channels, side, side)).astype(np.float32)
    y, = ReferenceEvaluator(model).run(None, {"x": x})
    np.save(folder / "x.npy", x)
    for more in ([], ["--no-fusion"], ["--sanitize", "--async=latest"]):
        subprocess.run(
            [tool, str(path), "--device=sim", "--precision=f16",
             "--input=@%s" % (folder / "x.npy"),
             "--output=@%s" % (folder / "y.npy"), "-q", *more], check=True)
        ours = np.load(folder / "y.npy").astype(np.float64)
        worst = np.abs(ours - y).max() / np.abs(y).max()
        assert ours.shape == y.shape and worst < 6e-3, (path.name, more, worst)


for make in (residual, separable, branches, grouped, tokens, normalized):
    for side in (8, 7):
        run(make, side)
for make in (stem, stem_of_every_pixel):
    for side in (16, 15):
        run(make, side, channels=3)
for side in (97, 96):
    run(grey, side, channels=1)
run(odd_channels, 19)
for side in (16, 12):
    run(volumes, side)
