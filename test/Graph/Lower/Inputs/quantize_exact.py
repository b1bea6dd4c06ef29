# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""QuantizeLinear of f32 next to where the rounding turns, and far beyond, against
NumPy's division: for drawn scales, every quotient half way between integers up to
300 and its neighbours, infinities, the greatest and the least numbers; and NaN,
which becomes the least integer, as onnxruntime has it.

usage: quantize_exact.py FOLDER COUNT SEED [hidet-run's options...]
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


def drawn(scale):
    halves = (numpy.arange(-600, 601) / 2 * float(scale)).astype(f4)
    around = [halves]
    for to in (f4(-numpy.inf), f4(numpy.inf)):
        near = halves
        for _ in range(3):
            near = numpy.nextafter(near, to)
            around.append(near)
    far = [0, -0.0, numpy.inf, numpy.finfo(f4).max, 1e30, 1e8 * scale, 4194304.5 * scale, 8388609 * scale,
           12582912 * scale, 16777216 * scale, 1e-30, numpy.finfo(f4).tiny]
    far = numpy.array(far, f4)
    return numpy.concatenate(around + [far, -far, f4([numpy.nan, -numpy.nan]), (rng.standard_normal(2000) * 200 * scale).astype(f4)])


for case in range(count):
    kind = [numpy.int8, numpy.uint8][case % 2]
    limits = numpy.iinfo(kind)
    zero = kind([0, limits.min, limits.max, rng.integers(limits.min, limits.max + 1)][case // 2 % 4])
    ranges = [(-60, 60), (60, 125), (-12, 6), (-12, 6), (-12, 6)]
    scale = f4(2.0 ** rng.uniform(*ranges[case % 5]))
    with numpy.errstate(over="ignore"):
        x = drawn(scale)
    with numpy.errstate(over="ignore"):
        y = numpy.clip(numpy.rint(x / scale) + f4(zero), limits.min, limits.max)
    y = numpy.where(numpy.isnan(x), limits.min, y).astype(kind)
    type_of = TensorProto.INT8 if kind == numpy.int8 else TensorProto.UINT8
    graph = helper.make_graph(
        [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", type_of, x.shape)],
        [numpy_helper.from_array(scale, "s"), numpy_helper.from_array(zero, "z")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9), folder / "m.onnx")
    numpy.save(folder / "x.npy", x)
    numpy.save(folder / "y.npy", y)
    command = ["hidet-run", str(folder / "m.onnx"), "-q", "--input=x=@%s" % (folder / "x.npy"),
               "--expected=y=@%s" % (folder / "y.npy"), *sys.argv[4:]]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit("case %d: %s zero %d scale %r\n%s" % (case, kind.__name__, zero, scale, run.stdout + run.stderr))
print("%d scales" % count)
