# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Softmax and LayerNormalization between QuantizeLinear and DequantizeLinear, drawn,
against NumPy in f64: what lies more than a thousandth from the middle of two
integers is the same, and nothing is off by more than one.

usage: quantized_rows.py FOLDER COUNT SEED [hidet-run's options...]
"""
import pathlib
import subprocess
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = numpy.random.default_rng(seed)


def softmax(x):
    e = numpy.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True), []


def norm(x):
    scale, bias = rng.standard_normal((2, x.shape[-1])).astype("f4")
    centred = x - x.mean(-1, keepdims=True)
    y = centred / numpy.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5)
    return y * scale + bias, [numpy_helper.from_array(scale, "scale"), numpy_helper.from_array(bias, "bias")]


for case in range(count):
    kind = [numpy.int8, numpy.uint8][case % 2]
    limits = numpy.iinfo(kind)
    zero = kind([0, int(rng.integers(limits.min, limits.max + 1))][case // 2 % 2])
    q = rng.integers(-128, 128, [int(rng.integers(1, 40)), int(rng.choice([16, 100, 128, 768]))]).astype("i1")
    if case // 4 % 2 == 0:
        q[0, 1:] = -128
    unit = numpy.float32(rng.uniform(0.01, 0.1))
    y, constants = [softmax, norm][case // 4 % 2](q * numpy.float64(unit))
    step = numpy.float32(y.max() / rng.uniform(60, 250))
    op = helper.make_node("LayerNormalization", ["f", "scale", "bias"], ["g"]) if constants else helper.make_node("Softmax", ["f"], ["g"])
    graph = helper.make_graph(
        [helper.make_node("DequantizeLinear", ["q", "u"], ["f"]), op, helper.make_node("QuantizeLinear", ["g", "s", "z"], ["y"])],
        "rows", [helper.make_tensor_value_info("q", TensorProto.INT8, q.shape)],
        [helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(numpy.dtype(kind)), q.shape)],
        constants + [numpy_helper.from_array(unit, "u"), numpy_helper.from_array(step, "s"), numpy_helper.from_array(zero, "z")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), folder / "rows.onnx")
    numpy.save(folder / "q.npy", q)
    run = subprocess.run(["hidet-run", str(folder / "rows.onnx"), "-q", "--input=q=@%s" % (folder / "q.npy"),
                          "--output=y=@%s" % (folder / "y.npy"), *sys.argv[4:]], text=True, capture_output=True)
    if run.returncode:
        sys.exit("case %d\n%s" % (case, run.stdout + run.stderr))
    exact = y / numpy.float64(step)
    wanted = numpy.clip(numpy.rint(exact) + float(zero), limits.min, limits.max)
    given = numpy.load(folder / "y.npy").astype("f8")
    near = abs(abs(exact - numpy.floor(exact)) - 0.5) < 1e-3
    if numpy.any(abs(given - wanted) > near):
        sys.exit("case %d: %d of %d are off" % (case, (abs(given - wanted) > near).sum(), near.size))
print(count, "cases")
