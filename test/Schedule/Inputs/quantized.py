# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of few rows with matrices of 4 and 8 bits, of drawn shapes, against
NumPy: signed and unsigned, zero points that are constants or of each group,
scales of groups, of columns or of all, in f16, bf16 or f32, scales of 0, NaN and
infinity. Drawn rows choose between the matrix computed where it is read, and by
a kernel of its own.

usage: quantized.py FOLDER COUNT SEED [hidet-run's options...]
"""
import pathlib
import subprocess
import sys

import numpy

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = numpy.random.default_rng(seed)
RANGES = {"u4": (0, 16), "i4": (-8, 8), "u8": (0, 256), "i8": (-128, 128)}


def rounded(x, kind):
    """As kind has them, in f32."""
    if kind == "f16":
        return x.astype(numpy.float16).astype(numpy.float32)
    if kind == "f32":
        return x.astype(numpy.float32)
    bits = x.astype(numpy.float32).view(numpy.uint32).astype(numpy.uint64)
    even = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000
    return numpy.where(numpy.isfinite(x), even.astype(numpy.uint32).view(numpy.float32),
                       x.astype(numpy.float32))


def case(number):
    bits, kind = str(rng.choice(list(RANGES))), str(rng.choice(["f16", "f16", "f16", "bf16", "f32"]))
    m, n = int(rng.choice([1, 1, 2, 3, 8, 11, 16, 40])), int(rng.choice([16, 24, 50, 64, 131]))
    size = int(rng.choice([16, 32, 48, 128]))
    groups = int(rng.integers(256 // size + 1, 1024 // size + 1))
    k = groups * size
    low, high = RANGES[bits]
    q = rng.integers(low, high, (n, groups, size))
    zero_kind = str(rng.choice(["none", "number", "group"]))
    shape = {"all": (1, 1, 1), "column": (n, 1, 1), "group": (n, groups, 1)}[
        str(rng.choice(["all", "column", "group", "group"]))]
    scale = rounded(rng.uniform(-1, 1, shape) / (high - low) * 2, kind)
    if rng.integers(3) == 0:
        scale.flat[int(rng.integers(scale.size))] = rng.choice([0, numpy.inf, numpy.nan])
    zero = {"none": 0, "number": (low + high) // 2,
            "group": rng.integers(low, high, shape)}[zero_kind]
    x = rounded(rng.standard_normal((m, k)), kind)
    b = rng.standard_normal(n).astype(numpy.float32)
    with numpy.errstate(invalid="ignore", over="ignore"):
        w = rounded((q - zero).astype(numpy.float32) * scale, kind).reshape(n, k)
        y = x.astype(numpy.float64) @ w.T.astype(numpy.float64)
    task = "dequantize(q, st{zero}) {{ R = {kind} }}" if zero_kind != "none" \
        else "dequantize_scale(q, st) {{ R = {kind} }}"
    given = ", zero: %s[%s]" % (bits, ", ".join(map(str, shape))) if zero_kind == "group" else ""
    constant = "const zero: %s[] = [%d]\n  " % (bits, zero) if zero_kind == "number" else ""
    (folder / "quantized.hir").write_text("""graph main(x: f32[{m}, {k}], q: {bits}[{n}, {groups}, {size}], s: f32[{shape}]{given}, b: f32[{n}]) -> z {{
  {constant}xt: {kind}[{m}, {k}] = cast(x)
  st: {kind}[{shape}] = cast(s)
  e: {kind}[{n}, {groups}, {size}] = {task}
  v: {kind}[{n}, {k}] = reshape(e)
  y: f32[{m}, {n}] = matmul(xt, v) {{ tb = true, R = f32 }}
  z: f32[{m}, {n}] = add(y, b)
}}
""".format(m=m, n=n, k=k, bits=bits, kind=kind, groups=groups, size=size, given=given,
           constant=constant, shape=", ".join(map(str, shape)),
           task=task.format(kind=kind, zero=", zero")))
    inputs = {"x": x, "q": q.astype(numpy.int8 if bits[0] == "i" else numpy.uint8), "s": scale,
              "b": b}
    if zero_kind == "group":
        inputs["zero"] = numpy.broadcast_to(zero, shape).astype(inputs["q"].dtype)
    numpy.save(folder / "z.npy", (y + b).astype(numpy.float32))
    command = ["hidet-run", str(folder / "quantized.hir"), "-q", "--rtol=1e-4", "--atol=1e-4",
               "--expected=z=@%s" % (folder / "z.npy"), *sys.argv[4:]]
    for name, value in inputs.items():
        numpy.save(folder / (name + ".npy"), value)
        command.append("--input=%s=@%s" % (name, folder / (name + ".npy")))
    run = subprocess.run(command, text=True, capture_output=True)
    if run.returncode != 0:
        print((folder / "quantized.hir").read_text(), run.stdout, run.stderr)
        sys.exit("case %d of seed %d" % (number, seed))


for number in range(count):
    case(number)
print(count, "cases")
