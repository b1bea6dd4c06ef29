# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of normalized rows, of drawn shapes and by drawn candidates, against
NumPy in f64: with a mean and without, rows whose mean is 100 deviations, both
layouts of the matrix, f16 and bf16, results that are rounded, neighbours fused.

usage: normed.py FOLDER COUNT SEED [hidet-run's options...]
"""
import pathlib
import re
import subprocess
import sys

import numpy

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = numpy.random.default_rng(seed)
head = (pathlib.Path(__file__).parents[3] /
        "lib/Schedule/templates/product_normed.hir").read_text().split("\ntemplate ")[1]
CHOICES = {key: [int(v) for v in values.split(",")]
           for key, values in re.findall(r"(\w+) in \{([^}]*)\}", head)}


def candidate(rows):
    while True:
        values = {key: int(rng.choice(vs)) for key, vs in CHOICES.items()}
        n = values["BN"]
        if (rows or 64 % n == 0 or n % 64 == 0) and values["STAGES"] * (64 + n) <= 1200:
            return values


def case(number):
    rows, centred = bool(rng.integers(2)), bool(rng.integers(3))
    k, m = int(rng.choice([256, 320, 512, 768])), int(rng.choice([9, 31, 64, 67, 128, 130]))
    n = int(rng.choice([8, 9, 31, 64, 129, 200] if rows else [8, 24, 64, 104, 200]))
    kind, wide, after = str(rng.choice(["f16", "f16", "bf16"])), bool(rng.integers(2)), str(
        rng.choice(["none", "relu", "across"]))
    # Exact in both types; bf16 has 8 bits.
    far = 100 if kind == "f16" and centred and rng.integers(2) else 0
    x = numpy.round(rng.standard_normal((1, m, k)) * 8) / 8 + far
    w = numpy.round(rng.standard_normal((n, k) if rows else (k, n)) * 8) / 128
    matrix = w.T if rows else w
    u, v, b = matrix.sum(0), rng.standard_normal(n), rng.standard_normal(n)
    mean = x.mean(-1) if centred else numpy.zeros((1, m))
    inverse = 1 / numpy.sqrt(((x - mean[..., None]) ** 2).mean(-1) + 1e-3)
    y = ((x - mean[..., None]) * inverse[..., None]) @ matrix + (v if centred else 0)
    end = {"none": ("z: {t}[1, {m}, {n}] = copy(y)", lambda y: y),
           "relu": ("s: {t}[1, {m}, {n}] = add(y, bt)\n  z: {t}[1, {m}, {n}] = relu(s)",
                    lambda y: numpy.maximum(y + b, 0)),
           "across": ("z: {t}[{n}, 1, {m}] = transpose(y) {{ order = [2, 0, 1] }}",
                      lambda y: y.transpose(2, 0, 1))}[after]
    result = "f32" if wide else kind
    names = ["mean", "inverse"] if centred else ["inverse"]
    values = candidate(rows)
    (folder / "normed.hir").write_text("""graph main(x: f32[1, {m}, {k}], w: f32[{w}], u: f32[{n}], v: f32[{n}], b: f32[{n}]) -> z, {names} {{
  xt: {kind}[1, {m}, {k}] = cast(x)
  wt: {kind}[{w}] = cast(w)
  bt: {t}[{n}] = cast(b)
  y: {t}[1, {m}, {n}], {typed} = {op}(xt, wt{more}) {{ epsilon = 1e-3, tb = {tb}{wide} }} with product_normed({pin})
  {after}
}}
""".format(m=m, n=n, k=k, w=", ".join(map(str, w.shape)), kind=kind, t=result,
           names=", ".join(names), typed=", ".join("%s: f32[1, %d]" % (name, m) for name in names),
           op="norm_matmul" if centred else "rms_matmul", more=", u, v" if centred else "",
           tb="true" if rows else "false", wide=", R = f32" if wide else "",
           pin=", ".join("%s = %d" % item for item in values.items()),
           after=end[0].format(t=result, m=m, n=n)))
    command = ["hidet-run", str(folder / "normed.hir"), *sys.argv[4:]]
    for name, value in {"x": x, "w": w, "u": u, "v": v, "b": b}.items():
        numpy.save(folder / (name + ".npy"), value.astype(numpy.float32))
        command.append("--input=%s=@%s" % (name, folder / (name + ".npy")))
    for name in ["z"] + names:
        command.append("--output=%s=@%s" % (name, folder / (name + "_out.npy")))
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode:
        print("case %d of seed %d: exit %d\n%s" % (number, seed, done.returncode, done.stderr))
        return False
    # What distances in T lose, and f32 sums where x is far from 0.
    bound = {"f32": 2e-4 if kind == "f16" else 2e-3, "f16": 2e-3, "bf16": 2e-2}[result] + far * 5e-6
    worst = 0
    for name, value, most in [("z", end[1](y), bound), ("mean", mean, (1e-4 if kind == "f16" else 1e-3) * (1 + far / 20)),
                              ("inverse", inverse, 1e-4 if kind == "f16" else 1e-3)]:
        if name == "z" or name in names:
            got = numpy.load(folder / (name + "_out.npy"))
            if got.dtype.kind == "V" or got.dtype == numpy.uint16:  # bf16
                got = (got.view(numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)
            error = numpy.abs(got.astype(numpy.float64) - value) / (1 + numpy.abs(value))
            worst = max(worst, error.max() / most)
    if not worst <= 1:
        print("case %d of seed %d: %dx%dx%d %s %s %s %s far %g %s: %.2f times the bound" % (
            number, seed, m, n, k, kind, result, "rows" if rows else "columns", after, far,
            values, worst))
    return bool(worst <= 1)


right = sum(case(number) for number in range(count))
print("%d of %d as NumPy says" % (right, count))
sys.exit(right != count)
