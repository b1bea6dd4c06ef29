# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of drawn shapes by whatever template is chosen, against NumPy: odd
sizes, primes, 1s, weights either way round, batches, with bias and relu.

usage: shapes.py FOLDER COUNT SEED [hidet-run's options...]
"""
import pathlib
import subprocess
import sys

import numpy

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = numpy.random.default_rng(seed)
SIZES = [8, 9, 16, 24, 31, 32, 40, 61, 64, 67, 96, 104, 128, 131, 200, 256]


def case(number):
    z = int(rng.choice([1, 1, 2, 3]))
    m, n, k = (int(rng.choice(SIZES)) for _ in range(3))
    k = int(rng.choice([k, k, 520, 1031]))
    rows = bool(rng.integers(2))
    kind = str(rng.choice(["f16", "f16", "bf16"]))
    x = rng.standard_normal((z, m, k)).astype(numpy.float16)
    w = (rng.standard_normal((z, n, k) if rows else (z, k, n))
         / numpy.sqrt(k)).astype(numpy.float16)
    b = rng.standard_normal(n).astype(numpy.float16)
    if kind == "bf16":  # Numbers that both types have.
        x, w, b = (numpy.round(v * 8).astype(numpy.float16) / 8
                   for v in (x, w * 4, b))
    wide = w.astype(numpy.float64)
    y = x.astype(numpy.float64) @ (wide.transpose(0, 2, 1) if rows else wide)
    y = numpy.maximum(y + b.astype(numpy.float64), 0)
    text = """graph main(x: f16[{z}, {m}, {k}], w: f16[{w}], b: f16[{n}]) -> y {{
  xt: {t}[{z}, {m}, {k}] = cast(x) {{ U = {t} }}
  wt: {t}[{w}] = cast(w) {{ U = {t} }}
  p: f32[{z}, {m}, {n}] = matmul(xt, wt){nt}
  bw: f32[{n}] = cast(b) {{ U = f32 }}
  s: f32[{z}, {m}, {n}] = add(p, bw)
  y: f32[{z}, {m}, {n}] = relu(s)
}}
""".format(z=z, m=m, n=n, k=k, t=kind, nt=" { tb = true }" if rows else "",
           w=", ".join(map(str, w.shape)))
    (folder / "shape.hir").write_text(text)
    for name, value in {"x": x, "w": w, "b": b, "y": y.astype(numpy.float32)}.items():
        numpy.save(folder / ("shape_%s.npy" % name), value)
    command = ["hidet-run", str(folder / "shape.hir"), "--rtol=1e-4", "--atol=1e-4",
               "--expected=@%s" % (folder / "shape_y.npy")]
    command += ["--input=%s=@%s" % (name, folder / ("shape_%s.npy" % name))
                for name in "xwb"]
    done = subprocess.run(command + sys.argv[4:], text=True, capture_output=True)
    if done.returncode:
        print("case %d of seed %d: %dx%dx%dx%d %s %s: exit %d\n%s%s" % (
            number, seed, z, m, n, k, kind, "rows" if rows else "columns",
            done.returncode, done.stdout, done.stderr))
    return done.returncode == 0


right = sum(case(number) for number in range(count))
print("%d of %d as NumPy says" % (right, count))
sys.exit(right != count)
