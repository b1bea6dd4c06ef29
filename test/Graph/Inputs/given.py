# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models, and what users give them.

usage: given.py FOLDER
"""

import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

node = helper.make_node
FOLDER = sys.argv[1]


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def save(name, nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, [
        numpy_helper.from_array(np.array(a), n) for n, a in constants])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, f"{FOLDER}/{name}.onnx")


def data_set(name, inputs, outputs):
    folder = f"{FOLDER}/{name}/test_data_set_0"
    os.makedirs(folder)
    for kind, tensors in (("input", inputs), ("output", outputs)):
        for i, tensor in enumerate(tensors):
            onnx.save_tensor(numpy_helper.from_array(tensor),
                             f"{folder}/{kind}_{i}.pb")


x = np.array([[1, np.nan, -2, 0], [np.inf, -np.inf, -0.0, 5]], np.float32)
np.save(f"{FOLDER}/x.npy", x)
np.save(f"{FOLDER}/y.npy", np.sign(x))
save("sign", [node("Sign", ["x"], ["y"])], [value("x", ["n", 4])],
     [value("y", None), value("x", ["n", 4]), value("y", None)])
save("add", [node("Add", ["x", "w"], ["y"])],
     [value("x", ["n", 4]), value("w", [4])], [value("y", None)],
     [("w", np.ones(4, np.float32))])
one = np.ones((2, 4), np.float32)
data_set("good", [one], [one + 1])
data_set("shape", [one.T.copy()], [one.T + 1])
data_set("inputs", [one, one], [one + 1])
data_set("outputs", [one], [one + 1, one])

# A loop whose number of turns is an input, and a scan: what they gather.
body = helper.make_graph(
    [node("Identity", ["go"], ["on"]), node("Add", ["v", "v"], ["v2"]),
     node("Slice", ["v2", "zero", "two"], ["part"])], "body",
    [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL),
     value("v", [4])],
    [value("on", [], TensorProto.BOOL), value("v2", [4]), value("part", [2])])
save("loop", [node("Loop", ["m", "", "v0"], ["v", "y"], body=body)],
     [value("m", [], TensorProto.INT64), value("v0", [4])],
     [value("v", [4]), value("y", None)], [("zero", [0]), ("two", [2])])
body = helper.make_graph(
    [node("Add", ["s", "e"], ["t"]), node("Neg", ["t"], ["n"])], "body",
    [value("s", [4]), value("e", [4])], [value("t", [4]), value("n", [4])])
save("scan", [node("Scan", ["s0", "x"], ["s", "y"], body=body,
                   num_scan_inputs=1)],
     [value("s0", [4]), value("x", ["n", 4])],
     [value("s", [4]), value("y", None)])
