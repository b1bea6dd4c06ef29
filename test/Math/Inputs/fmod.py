# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fmod.py TYPE FOLDER: pairs of that type and what numpy's fmod makes of them."""

import sys

import numpy as np

bits, kind = {"f32": (np.uint32, np.float32), "f64": (np.uint64, np.float64),
              "f16": (np.uint16, np.float16)}[sys.argv[1]]
rng = np.random.default_rng(7)
n = 4096
# Any bits: NaN, infinities and subnormals come along, and quotients up to the
# greatest; then numbers close to each other.
x = rng.integers(0, np.iinfo(bits).max, n, bits, True).view(kind)
y = rng.integers(0, np.iinfo(bits).max, n, bits, True).view(kind)
x[n // 2:] = rng.normal(size=n // 2) * 100
y[n // 2:] = rng.normal(size=n // 2)
special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 5e-324, -3],
                   kind)
x[:81] = np.repeat(special, 9)
y[:81] = np.tile(special, 9)
with np.errstate(all="ignore"):
    z = np.fmod(x.astype(np.float64), y.astype(np.float64)).astype(kind)
for name, array in (("x", x), ("y", y), ("z", z)):
    np.save("%s/%s.npy" % (sys.argv[2], name), array)
