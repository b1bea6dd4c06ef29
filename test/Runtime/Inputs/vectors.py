# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What vectors.hir computes."""
import numpy as np

rng = np.random.default_rng(1)

# floats
a = rng.integers(-5, 6, (64, 4)).astype("f4")
v = a.copy()
v[:, 1] = 7
v *= 2
w = v + a
w[:, 2] += 2
w[:, 3] += 3
q = v - w
z = 6 * q[:, 3] * 2 + sum(range(6)) + 2 * q.sum(1) + (v * w).sum(1)

# small
f = rng.integers(0, 2, (64, 4)).astype(bool)
b = rng.integers(0, 256, (64, 4)).astype("u1")
h = rng.integers(-5, 6, (64, 2)).astype("f2")
nibbles = np.stack([b & 15, b >> 4], 2).reshape(64, 8).astype(int)
nibbles[nibbles > 7] -= 16
nibbles[:, 3] = 2
truths = f.copy()
truths[:, 2] = True
s = (truths * (1 << np.arange(4))).sum(1) + 100 * nibbles.sum(1)
s = s + 10000 * 2 * (1 + 2 + 3) + (h.sum(1) + 1).astype(int) + 5

# narrow
q = rng.integers(0, 256, (64, 8)).astype("u1")
e = rng.integers(-4, 5, (64, 8)).astype("f2")

for name, array in dict(a=a, y=w, z=z.astype("f4"), f=f, b=b, h=h,
                        s=s.astype("i4"), q=q, e=e,
                        d=(q - q[:, :1]).astype("f2"),
                        p=((q.astype("f4") - 8) * e).astype("f2")).items():
    np.save(name, array)
