# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a model with its weights in a file of their own.

usage: saved.py FOLDER

FOLDER/model.onnx and model.onnx.data: a product with bias, f32[n, 40], whose
weights are external; x3.npy, x5.npy its inputs; y3.npy, y5.npy what NumPy says.
"""

import pathlib
import sys

import numpy
import onnx
from onnx import helper, numpy_helper


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    rng = numpy.random.default_rng(7)
    w = rng.standard_normal((40, 24), numpy.float32)
    b = rng.standard_normal(24, numpy.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["p"]),
         helper.make_node("Add", ["p", "b"], ["q"]),
         helper.make_node("Relu", ["q"], ["y"])],
        "main",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 40])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 24])],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, folder / "model.onnx", save_as_external_data=True,
              location="model.onnx.data", size_threshold=0)
    for n in (3, 5):
        x = rng.standard_normal((n, 40), numpy.float32)
        numpy.save(folder / f"x{n}.npy", x)
        numpy.save(folder / f"y{n}.npy", numpy.maximum(x @ w + b, 0))


if __name__ == "__main__":
    main()
