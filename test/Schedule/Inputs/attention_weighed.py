# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention whose weights are made something of before they are multiplied, of
drawn shapes and pins of both templates, against NumPy in f64: squares with what a weight of 0 does
not leave 0, bytes; keys that no row sees, rows that see none or a NaN, one pass
over the keys or two.

usage: attention_weighed.py FOLDER COUNT SEED [hidet-run's options...]
"""
import pathlib
import subprocess
import sys

import numpy

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = numpy.random.default_rng(seed)
WEIGHTS = {"square": "f16(r[b, i, j] * r[b, i, j] + 0.125)",
           "byte": "f16(i32(i8(min(max(round_even(r[b, i, j] * 255) - 128, -128), 127))) + 128)",
           "seen": "f16(isnan(r[b, i, j]) ? 0.5 : r[b, i, j])"}


def weights(r, kind):
    if kind == "square":
        return r * r + 0.125
    if kind == "byte":
        return numpy.where(numpy.isnan(r), 0, numpy.round(r * 255))
    return numpy.where(numpy.isnan(r), 0.5, r)


def case(number):
    one, wide = bool(rng.integers(2)), bool(rng.integers(2))  # wide: by wgmma.
    if wide:
        bn = int(rng.choice([64, 128]))
        groups = int(rng.choice([1, 2]))
        least, pin = 64 * (groups - 1), "attention_weighed(G = %d" % groups
        d = e = int(rng.choice([64, 56])) if bn == 128 else int(rng.choice([64, 128, 52]))
    else:
        bn = int(rng.choice([32, 64, 128]))
        rows, shares = ((1, 2), (1, 4), (2, 1), (2, 4), (4, 1), (4, 2))[rng.integers(6)]
        shares = min(max(shares, bn // 64), bn // 16) if rows > 1 else max(2, min(shares, bn // 16))
        least, pin = 16 * (rows - 1), "attention_weighed_mma(WM = %d, WN = %d" % (rows, shares)
        d, e = (int(rng.choice([20, 64, 72, 128])) for _ in range(2))
    n = int(rng.integers(65 if bn == 128 else 16, bn + 1)) if one else int(rng.integers(bn + 1, 3 * bn + 1))
    m, z = int(rng.integers(least + 1, 150)), int(rng.integers(1, 3))
    kind = str(rng.choice(list(WEIGHTS)))
    q, key, v = (rng.standard_normal((z, rows, columns)).astype(numpy.float16)
                 for rows, columns in ((m, d), (n, d), (n, e)))
    mask = rng.standard_normal((m, n)).astype(numpy.float32)
    mask[:, rng.random(n) < 0.2] = -numpy.inf
    for row in range(m):
        if rng.integers(8) == 0:
            mask[row] = rng.choice([-numpy.inf, numpy.nan])
    t = q.astype("f8") @ key.astype("f8").transpose(0, 2, 1) * 0.125 + mask
    with numpy.errstate(invalid="ignore"):
        x = numpy.exp(t - t.max(-1, keepdims=True))
        w = weights(x / x.sum(-1, keepdims=True), kind)
        expected = w @ v.astype("f8")
    is_nan = "r[b, i, j] != r[b, i, j]"
    (folder / "weighed.hir").write_text("""task weighed(q: f16[z, m, k], key: f16[z, n, k], mask: f32[m, n], v: f16[z, n, e]) -> o: f32[z, m, e] {
  s[b, i, j] = sum(p: k) f32(q[b, i, p]) * f32(key[b, j, p])
  t[b, i, j] = s[b, i, j] * 0.125 + mask[i, j]
  x[b, i, j] = exp(t[b, i, j] - (max(y: n) t[b, i, y]))
  r[b, i, j] = x[b, i, j] / (sum(y: n) x[b, i, y])
  w[b, i, j] = %s
  o[b, i, c] = sum(j: n) f32(w[b, i, j]) * f32(v[b, j, c])
}

graph main(q: f16[%d, %d, %d], key: f16[%d, %d, %d], mask: f32[%d, %d], v: f16[%d, %d, %d]) -> o {
  o: f32[%d, %d, %d] = weighed(q, key, mask, v) with %s, BN = %d, STAGES = %d)
}
""" % ((WEIGHTS[kind].replace("isnan(r[b, i, j])", is_nan),) + q.shape + key.shape + mask.shape +
       v.shape + expected.shape + (pin, bn, 1 if one else 2)))
    names = {"q": q, "key": key, "mask": mask, "v": v}
    for name, value in names.items():
        numpy.save(folder / (name + ".npy"), value)
    command = ["hidet-run", str(folder / "weighed.hir"), "-q", *sys.argv[4:],
               "--output=o=@%s" % (folder / "o.npy")]
    command += ["--input=%s=@%s" % (name, folder / (name + ".npy")) for name in names]
    subprocess.run(command, check=True)
    found = numpy.load(folder / "o.npy")
    # A byte may be the next one where it is next to a half; else what f16 loses.
    step = 1 if kind == "byte" else 2 ** -10
    bound = (step if kind == "byte" else numpy.abs(w) * step) * numpy.ones_like(w) @ numpy.abs(v.astype("f8")) + 1e-3
    off = numpy.abs(found - expected)
    same = numpy.isnan(found) == numpy.isnan(expected)
    assert same.all() and (numpy.nan_to_num(off) <= numpy.nan_to_num(bound)).all(), \
        "%d: %s %s %s: %g" % (number, kind, q.shape, key.shape, numpy.nan_to_num(off).max())
    if kind == "byte":  # Few are.
        assert (numpy.nan_to_num(off) > 0.5).mean() < 0.02, number


for number in range(count):
    case(number)
print("%d right" % count)
