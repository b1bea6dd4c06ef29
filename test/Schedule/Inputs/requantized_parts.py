# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A product of bytes whose columns leave as two tensors, of signed and of unsigned
bytes, or of bytes and f16: a graph, its inputs and what NumPy makes of them. The
scales are powers of two, so all are exact.

usage: requantized_parts.py FOLDER M K FIRST SECOND [f16]
"""
import pathlib
import sys

import numpy

folder, m, k, first, second = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:6])
n = first + second
wide = len(sys.argv) > 6
last = (f"u: f16[{m}, {second}] = cast(q) {{ U = f16 }}" if wide else
        f"u: u8[{m}, {second}] = quantize(q, one, v) {{ P = f32 }}")
(folder / "parts.hir").write_text(f"""graph main(x: i8[{m}, {k}], w: i8[{n}, {k}]) -> y, u {{
  const f: f32[] = 0.0009765625
  const z: i8[] = 3
  const v: u8[] = 120
  const one: f32[] = 1
  c: i32[{m}, {n}] = matmul_integer(x, w) {{ tb = true }}
  a: i32[{m}, {first}] = slice(c) {{ start = [0, 0], stride = 1, size = [{m}, {first}] }}
  b: i32[{m}, {second}] = slice(c) {{ start = [0, {first}], stride = 1, size = [{m}, {second}] }}
  p: f32[{m}, {first}] = dequantize_scale(a, f) {{ R = f32 }}
  q: f32[{m}, {second}] = dequantize_scale(b, f) {{ R = f32 }}
  y: i8[{m}, {first}] = quantize(p, one, z) {{ P = f32 }}
  {last}
}}
""")
rng = numpy.random.default_rng(m)
x, w = (rng.integers(-128, 128, shape).astype("i1") for shape in ((m, k), (n, k)))
exact = (x.astype("f8") @ w.T.astype("f8")) / 1024
sums = numpy.rint(exact)
numpy.save(folder / "x.npy", x)
numpy.save(folder / "w.npy", w)
numpy.save(folder / "y.npy", numpy.clip(sums[:, :first] + 3, -128, 127).astype("i1"))
numpy.save(folder / "u.npy", exact[:, first:].astype("f2") if wide else numpy.clip(sums[:, first:] + 120, 0, 255).astype("u1"))
