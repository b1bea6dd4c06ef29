# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What NumPy says of narrow.hir in a precision: narrow.py FOLDER PRECISION.

Operands of products are rounded; sums and all else are f64 here, f32 there. A
value that a product reads is stored rounded, so the second one reads relu of
what was rounded once.
"""

import sys

import numpy as np


def to_bits(x, kept):
    """To the nearest, ties to even, of so many bits below the leading one."""
    bits = x.astype("f4").view("u4")
    drop = 23 - kept
    odd = bits >> drop & 1
    return ((bits + (1 << (drop - 1)) - 1 + odd) >> drop << drop).view("f4")


ROUND = {
    "f32": lambda x: x.astype("f4"),
    "tf32": lambda x: to_bits(x, 10),
    "bf16": lambda x: to_bits(x, 7),
    "f16": lambda x: x.astype("f4").astype("f2"),
}


def convolve(image, k):
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
    z = np.zeros((image.shape[0], k.shape[0]) + image.shape[2:])
    for i in range(3):
        for j in range(3):
            part = padded[:, :, i:i + image.shape[2], j:j + image.shape[3]]
            z += np.einsum("bchw,oc->bohw", part, k[:, :, i, j])
    return z


def main():
    folder, precision = sys.argv[1:]
    draw = np.random.default_rng(5)
    shapes = {"x": (5, 32), "w": (32, 24), "bias": (24,), "v": (24, 8),
              "image": (2, 3, 9, 9), "k": (4, 3, 3, 3)}
    data = {n: draw.standard_normal(s).astype("f4") for n, s in shapes.items()}

    def narrow(x):
        return ROUND[precision](np.asarray(x)).astype("f8")

    t = narrow(data["x"]) @ narrow(data["w"])
    r = np.maximum(narrow(t + data["bias"]), 0)
    e = np.exp(t - t.max(1, keepdims=True))  # of log(exp(t))
    data["y"] = r @ narrow(data["v"])
    data["z"] = np.maximum(convolve(narrow(data["image"]), narrow(data["k"])),
                           0)
    data["p"] = e / e.sum(1, keepdims=True)
    for name, value in data.items():
        np.save("%s/%s.npy" % (folder, name), value.astype("f4"))


main()
