# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of a few rows by product_rows (f16 and bf16) or product_lanes (f32), of
drawn shapes and by drawn candidates, against NumPy in f64: batches, results that
are rounded, neighbours fused, NaN and infinity in either operand.

usage: few.py FOLDER COUNT SEED TEMPLATE [hidet-run's options...]
"""
import pathlib
import subprocess
import sys

import numpy

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng, template = numpy.random.default_rng(seed), sys.argv[4]
# Types of operands, the fewest rows, and what is drawn for a candidate.
TEMPLATES = {
    "product_rows": (["f16", "f16", "bf16"], 1,
                     {"SPLIT": [1, 2, 4], "WK": [4, 8, 16], "U": [1, 2, 4]}),
    "product_lanes": (["f32"], 2, {"KL": [8, 16, 32], "R": [1, 2, 4, 8],
                                   "WK": [2, 4, 8, 16], "U": [1, 2, 4]})}
ENDS = {"none": "z: {t}[{shape}] = copy(y)",
        "silu": "s: {t}[{shape}] = swish(y)\n  z: {t}[{shape}] = mul(s, b)",
        "bias": "s: {t}[{shape}] = add(y, b)\n  z: {t}[{shape}] = relu(s)"}


def end_of(after, y, b):
    if after == "silu":
        return y / (1 + numpy.exp(-y)) * b
    return numpy.maximum(y + b, 0) if after == "bias" else y


def case(number):
    kinds, least, values = TEMPLATES[template]
    m, n = int(rng.integers(least, 17)), int(rng.choice([8, 16, 31, 37, 64, 96, 131, 256]))
    k = int(rng.choice([256, 264, 419, 512, 520, 1024, 1031, 1536]))
    batch, kind = int(rng.choice([1, 1, 1, 3])), str(rng.choice(kinds))
    # Few bits, which both types hold and f32 adds without rounding.
    x = numpy.round(rng.standard_normal((batch, m, k)) * 8) / 8
    w = numpy.round(rng.standard_normal((batch, n, k)) * 8) / 128
    b = numpy.round(rng.standard_normal(n) * 8) / 8
    special = rng.integers(6)
    if special < 2:
        (x if special else w)[0, 0, int(rng.integers(k))] = rng.choice([numpy.inf, numpy.nan])
    after, wide = str(rng.choice(list(ENDS))), bool(rng.integers(2))
    result, shape = "f32" if wide else kind, "%d, %d, %d" % (batch, m, n)
    pin = ", ".join("%s = %d" % (name, rng.choice(of)) for name, of in values.items()
                    if rng.integers(2))
    (folder / "few.hir").write_text("""graph main(x: f32[{batch}, {m}, {k}], w: f32[{batch}, {n}, {k}], b: f32[{n}]) -> z {{
  xt: {kind}[{batch}, {m}, {k}] = cast(x)
  wt: {kind}[{batch}, {n}, {k}] = cast(w)
  c: {t}[{n}] = cast(b)
  y: {t}[{shape}] = matmul(xt, wt) {{ tb = true{wide} }} with {template}({pin})
  {after}
}}
""".format(batch=batch, m=m, n=n, k=k, kind=kind, t=result, shape=shape, pin=pin,
           template=template,
           wide=", R = f32" if wide else "",
           after=ENDS[after].format(t=result, shape=shape).replace(", b)", ", c)")))
    numpy.save(folder / "x.npy", x.astype(numpy.float32))
    numpy.save(folder / "w.npy", w.astype(numpy.float32))
    numpy.save(folder / "b.npy", b.astype(numpy.float32))
    with numpy.errstate(invalid="ignore", over="ignore"):
        y = end_of(after, x @ w.transpose(0, 2, 1), b)
    numpy.save(folder / "z.npy", y.astype(numpy.float32))
    tolerance = 1e-5 if wide or kind == "f32" else 2e-3 if kind == "f16" else 2e-2
    command = ["hidet-run", str(folder / "few.hir"), "-q", "--rtol=%g" % tolerance,
               "--atol=%g" % tolerance, "--expected=z=@%s" % (folder / "z.npy"), *sys.argv[5:]]
    command += ["--input=%s=@%s" % (name, folder / (name + ".npy")) for name in "xwb"]
    run = subprocess.run(command, text=True, capture_output=True)
    if ": it requires " in run.stderr:
        return False
    if run.returncode != 0:
        print((folder / "few.hir").read_text(), pin, run.stdout, run.stderr)
        sys.exit("case %d of seed %d" % (number, seed))
    return True


done = tried = 0
while done < count:
    tried += 1
    done += case(tried)
print(done, "cases")
