# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models at the edges of what a walk through a graph allows.

usage: edges.py FOLDER
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

node = helper.make_node
FOLDER = sys.argv[1]


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def graph(nodes, inputs, outputs, constants=()):
    return helper.make_graph(
        nodes, "g", inputs, outputs,
        [numpy_helper.from_array(np.array(a), n) for n, a in constants])


def save(name, nodes, outputs, constants=(), shape=(3, 4)):
    model = helper.make_model(
        graph(nodes, [value("x", shape)], outputs, constants),
        opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, f"{FOLDER}/{name}.onnx")


def sequence_models():
    """A sequence where a tensor is needed."""
    construct = node("SequenceConstruct", ["x"], ["s"])
    branch = graph([node("Neg", ["x"], ["b"])], [], [value("b", [3, 4])])
    y = [value("y", None)]
    save("relu", [construct, node("Relu", ["s"], ["y"])], y)
    save("scatter",
         [construct, node("ScatterElements", ["x", "s", "s"], ["y"])], y)
    save("if", [construct, node("If", ["s"], ["y"], then_branch=branch,
                                else_branch=branch)], y)
    save("nested", [construct, node("SequenceConstruct", ["s"], ["q"]),
                    node("SequenceLength", ["q"], ["y"])], y)
    save("output", [node("Relu", ["x"], ["r"]),
                    node("SequenceConstruct", ["r", "x"], ["y"])],
         [helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None)])


def size_models():
    y = [value("y", None)]
    save("reshape", [node("Reshape", ["x", "s"], ["y"])], y,
         [("s", np.array([np.nan], np.float32))])
    save("shape", [node("ConstantOfShape", ["s"], ["y"])], y,
         [("s", [2**32, 2**32])])
    save("zero", [node("ConstantOfShape", ["s"], ["y"])], y,
         [("s", [0, 2**40, 2**40])])
    save("window", [node("HannWindow", ["s"], ["y"])], y, [("s", 2**40)])
    save("det", [node("Det", ["x"], ["y"])], y, shape=(0, 2**20, 2**20))
    save("depth", [node("SpaceToDepth", ["x"], ["y"], blocksize=2**31 - 1)], y,
         shape=(1, 3, 0, 0))
    save("empty", [node("Add", ["x", "c"], ["a"]),
                   node("Concat", ["a", "x"], ["b"], axis=0),
                   node("ReduceSum", ["b", "axes"], ["y"], keepdims=0)],
         [value("b", [0, 1000]), value("y", [1000])],
         [("c", np.ones((0, 1000), np.float32)), ("axes", [0])], (0, 1000))


def slice_model():
    """Backwards from before the first element: the standard has places below 0
    brought to it, and ends below it to -1; numpy would find nothing."""
    save("slice", [node("Slice", ["x", "s", "e", "a", "t"], ["y"])],
         [value("y", [3, 1])],
         [("s", [-10]), ("e", [-20]), ("a", [1]), ("t", [-1])])
    v = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
    np.save(f"{FOLDER}/slice.x.npy", v)
    np.save(f"{FOLDER}/slice.y.npy", v[:, :1])


def loop_model():
    """v is halved until it is small, and the condition is data of each turn;
    parts of it, which differ in an attribute alone, are gathered."""
    body = graph(
        [node("Mul", ["v", "half"], ["v2"]),
         node("ReduceSum", ["v2"], ["t"], keepdims=0),
         node("Greater", ["t", "one"], ["c2"]),
         node("Slice", ["v2", "zero", "one_", "zero"], ["p"]),
         node("Slice", ["v2", "one_", "two", "zero"], ["q"]),
         node("Sub", ["p", "q"], ["d"])],
        [value("i", [], TensorProto.INT64), value("c", [], TensorProto.BOOL),
         value("v", [3, 4])],
        [value("c2", [], TensorProto.BOOL), value("v2", [3, 4]),
         value("d", [1, 4])])
    save("loop", [node("Loop", ["m", "c0", "x"], ["y", "d"], body=body)],
         [value("y", [3, 4]), value("d", [None, 1, 4])],
         [("m", 100), ("c0", True), ("half", np.float32(.5)),
          ("one", np.float32(1)), ("zero", [0]), ("one_", [1]), ("two", [2])])
    v, parts = np.arange(12, dtype=np.float32).reshape(3, 4), []
    np.save(f"{FOLDER}/x.npy", v)
    while True:
        v = v / 2
        parts.append(v[0:1] - v[1:2])
        if v.sum() <= 1:
            break
    np.save(f"{FOLDER}/y.npy", v)
    np.save(f"{FOLDER}/d.npy", np.stack(parts))


def name_model():
    """Names that the walk would make are taken."""
    save("names", [node("Hardmax", ["x"], ["y"]),
                   node("Add", ["y", "y_1"], ["z"]),
                   node("Add", ["z", "y_2"], ["w"])], [value("w", [3, 4])],
         [("y_1", np.ones((3, 4), np.float32)),
          ("y_2", np.ones((4,), np.float32))])


sequence_models()
size_models()
slice_model()
loop_model()
name_model()
