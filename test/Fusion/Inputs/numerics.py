# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs of the graphs in test/Fusion/, and what numpy makes of them.

numerics.py NAME FOLDER writes FOLDER/INPUT.npy for each input of the graph and
FOLDER/y.npy.
"""

import os
import sys

import numpy as np

random = np.random.default_rng(7)


def tensor(*shape):
    return random.standard_normal(shape).astype(np.float32)


def product(x, a, w, b):
    p = (x.T.astype(np.float64) + a) @ w
    return p.reshape(4, 8, 24).transpose(0, 2, 1) + b


def convolution(x, w, scale, shift):
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    c = np.zeros((2, 4, 8, 8))
    for i in range(3):
        for j in range(3):
            window = padded[:, :, i:i + 8, j:j + 8]
            c += np.einsum("bpij,fp->bfij", window, w[:, :, i, j])
    return np.maximum(c * scale + shift, 0)


def user(x, b):
    s = (np.exp(x.astype(np.float64)) ** 2).sum(axis=0)
    return np.maximum(s + b, 0).reshape(5, 1)


def concat(x, w1, w2, w3, w4):
    def conv(x, w):
        return np.einsum("bphw,fp->bfhw", x, w[:, :, 0, 0])

    x = x.astype(np.float64)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    b = sum(np.einsum("bphw,fp->bfhw", padded[:, :, i:i + 6, j:j + 6],
                      w2[:, :, i, j]) for i in range(3) for j in range(3))
    y = np.concatenate([np.maximum(conv(x, w1), 0), b], axis=1)
    return conv(np.concatenate([y, conv(y, w3)], axis=1), w4)


GRAPHS = {
    "concat": (concat, {"x": (1, 4, 6, 6), "w1": (8, 4, 1, 1),
                        "w2": (4, 4, 3, 3), "w3": (4, 12, 1, 1),
                        "w4": (4, 16, 1, 1)}),
    "product": (product, {"x": (16, 32), "a": (16,), "w": (16, 24),
                          "b": (24, 1)}),
    "convolution": (convolution, {"x": (2, 3, 8, 8), "w": (4, 3, 3, 3),
                                  "scale": (4, 1, 1), "shift": (4, 1, 1)}),
    "user": (user, {"x": (6, 5), "b": (5,)}),
}

function, shapes = GRAPHS[sys.argv[1]]
folder = sys.argv[2]
os.makedirs(folder, exist_ok=True)
inputs = {name: tensor(*shape) for name, shape in shapes.items()}
for name, value in inputs.items():
    np.save(os.path.join(folder, name + ".npy"), value)
np.save(os.path.join(folder, "y.npy"), function(**inputs).astype(np.float32))
