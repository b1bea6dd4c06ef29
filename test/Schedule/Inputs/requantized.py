# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A product of bytes whose sums are scaled, quantized, added to a bias, quantized,
added to bytes and quantized: a graph, its inputs and what NumPy makes of them, in
f32 step by step. With these scales no sum of two bytes comes near the middle of
two.

usage: requantized.py FOLDER M N K [COLUMNS]
  COLUMNS: of a tile
"""
import pathlib
import sys

import numpy

folder, m, n, k = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:5])
pin = " with product_wgmma(BN = %s)" % sys.argv[5] if len(sys.argv) > 5 else ""
rng = numpy.random.default_rng(m)
f4 = numpy.float32
(folder / "graph.hir").write_text(f"""graph main(x: i8[{m}, {k}], w: i8[{n}, {k}], h: f32[{n}], b: f32[{n}], r: i8[{m}, {n}]) -> y {{
  const s1: f32[] = 0.0310513
  const s2: f32[] = 0.0331057
  const s3: f32[] = 0.0507721
  const s4: f32[] = 0.0613319
  const z: i8[] = 0
  c: i32[{m}, {n}] = matmul_integer(x, w) {{ tb = true }}{pin}
  p: f32[{m}, {n}] = dequantize_scale(c, h) {{ R = f32 }}
  pq: i8[{m}, {n}] = quantize(p, s1, z) {{ P = f32 }}
  pd: f32[{m}, {n}] = dequantize_scale(pq, s1) {{ R = f32 }}
  a: f32[{m}, {n}] = add(pd, b)
  aq: i8[{m}, {n}] = quantize(a, s2, z) {{ P = f32 }}
  ad: f32[{m}, {n}] = dequantize_scale(aq, s2) {{ R = f32 }}
  rd: f32[{m}, {n}] = dequantize_scale(r, s3) {{ R = f32 }}
  s: f32[{m}, {n}] = add(ad, rd)
  y: i8[{m}, {n}] = quantize(s, s4, z) {{ P = f32 }}
}}
""")


def narrowed(value, scale):
    return numpy.clip(numpy.rint(value / f4(scale)), -128, 127).astype("i1")


def widened(value, scale):
    return value.astype("f4") * f4(scale)


x, w, r = (rng.integers(-128, 128, shape).astype("i1") for shape in ((m, k), (n, k), (m, n)))
h = rng.uniform(1e-5, 1e-4, n).astype("f4")
b = rng.standard_normal(n).astype("f4")
sums = (x.astype("f8") @ w.T.astype("f8")).astype("f4")
a = widened(narrowed(sums * h, 0.0310513), 0.0310513) + b
y = narrowed(widened(narrowed(a, 0.0331057), 0.0331057) + widened(r, 0.0507721), 0.0613319)
for name, value in dict(x=x, w=w, h=h, b=b, r=r, y=y).items():
    numpy.save(folder / (name + ".npy"), value)
