# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DynamicQuantizeLinear of drawn tensors against NumPy in f32, by the standard's
text: the range of x and 0 over 0 to 255.

usage: dynamic.py FOLDER COUNT SEED [hidet-run's options...]
"""
import pathlib
import subprocess
import sys

import numpy

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = numpy.random.default_rng(seed)
f32 = numpy.float32


def case(number):
    shape = [int(rng.integers(1, 40)) for _ in range(int(rng.integers(0, 4)))]
    x = rng.standard_normal(shape).astype(f32) * f32(2.0 ** int(rng.integers(-20, 20)))
    how = int(rng.integers(4))
    x = numpy.asarray([x, numpy.abs(x), -numpy.abs(x), x * 0][how], f32)
    high, low = max(x.max(), f32(0)), min(x.min(), f32(0))
    scale = (high - low) / f32(255) if high > low else f32(1)
    zero = numpy.clip(numpy.rint(-low / scale), 0, 255).astype(numpy.uint8)
    y = numpy.clip(numpy.rint(x / scale) + f32(zero), 0, 255).astype(numpy.uint8)
    (folder / "dynamic.hir").write_text(
        "graph main(x: f32[%s]) -> y, s, z {\n  y, s, z = onnx11.DynamicQuantizeLinear(x)\n}\n" % ", ".join(map(str, shape)))
    command = ["hidet-run", str(folder / "dynamic.hir"), "-q", "--rtol=0", "--atol=0", *sys.argv[4:]]
    for option, name, value in (("input", "x", x), ("expected", "y", y), ("expected", "s", f32(scale)), ("expected", "z", zero)):
        numpy.save(folder / (name + ".npy"), value)
        command.append("--%s=%s=@%s" % (option, name, folder / (name + ".npy")))
    run = subprocess.run(command, text=True, capture_output=True)
    if run.returncode:
        print(shape, how, run.stdout, run.stderr)
        sys.exit("case %d of seed %d" % (number, seed))


for number in range(count):
    case(number)
print(count, "cases")
