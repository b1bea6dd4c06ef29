# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each example kernel is given, and what numpy says of it.

A row is a function named after its file, examples/<name>.hir. Given a random
generator and sizes it returns the arguments by parameter name and the expected
outputs, computed in f64. The sizes are tuples: the first is the one that the
demonstration runs, the others are odd ones with partial tiles.
examples/run.py runs the rows; the demonstration and the tests use it.
"""

import numpy as np

EXAMPLES = {}


class Example:
    """A row of the table."""

    def __init__(self, function, sizes, rtol, atol, entry):
        self.function = function
        self.sizes = sizes
        self.rtol = rtol
        self.atol = atol
        self.entry = entry  # the kernel or plan, where a file has several

    def make(self, sizes=None):
        """The arguments and the expected outputs, always the same ones."""
        rng = np.random.default_rng(0)
        return self.function(rng, *(sizes or self.sizes[0]))


def example(*sizes, rtol=1e-5, atol=1e-6, entry=None):
    """Adds a row; the tolerance is atol + rtol * |expected|."""

    def add(function):
        EXAMPLES[function.__name__] = Example(function, sizes, rtol, atol,
                                              entry)
        return function

    return add


def normal(rng, *shape, dtype=np.float32):
    return rng.standard_normal(shape, dtype=np.float32).astype(dtype)


def product(rng, m, n, k):
    a, b = normal(rng, m, k), normal(rng, k, n)
    return {"a": a, "b": b}, {"c": a.astype("f8") @ b.astype("f8")}


# Errors of a product grow with the square root of k, for sums of numbers of
# both signs.

@example((64, 48, 80), (17, 19, 23), (1, 33, 5), atol=2e-5)
def matmul_naive(rng, m, n, k):
    return product(rng, m, n, k)


@example((256, 128, 64), (131, 133, 17), (129, 4, 9), (3, 132, 8), atol=2e-5)
def matmul_simt(rng, m, n, k):
    return product(rng, m, n, k)


@example((128, 256, 128), (130, 262, 72), (37, 41, 19), (129, 258, 40),
         rtol=1e-3, atol=1e-3)
def matmul_mma(rng, m, n, k):
    a = normal(rng, m, k, dtype="f2")
    b = normal(rng, n, k, dtype="f2")
    return {"a": a, "b": b}, {"c": a.astype("f8") @ b.astype("f8").T}


@example((64, 32, 512), (33, 35, 133), (5, 7, 3), atol=5e-5)
def split_k(rng, m, n, k):
    return product(rng, m, n, k)


@example((16, 2048), (7, 77), (5, 1000), (2, 1), rtol=1e-3, atol=1e-6)
def softmax(rng, rows, n):
    x = normal(rng, rows, n, dtype="f2")
    e = np.exp(x.astype("f8") - x.max(axis=1, keepdims=True))
    return {"x": x}, {"y": e / e.sum(axis=1, keepdims=True)}


@example((16, 2048), (7, 77), (5, 1000), (2, 3), rtol=1e-3, atol=2e-3)
def layer_norm(rng, rows, n):
    x = normal(rng, rows, n, dtype="f2")
    scale = normal(rng, n, dtype="f2")
    bias = normal(rng, n, dtype="f2")
    v = x.astype("f8")
    v -= v.mean(axis=1, keepdims=True)
    v /= np.sqrt((v * v).mean(axis=1, keepdims=True) + 1e-5)
    return ({"x": x, "scale": scale, "bias": bias},
            {"y": v * scale.astype("f8") + bias.astype("f8")})


@example((4, 64, 64), (3, 29, 37), (5, 131, 1), (1, 3, 70), atol=2e-5)
def reduce(rng, outer, n, inner):
    x = normal(rng, outer, n, inner)
    return {"x": x}, {"y": x.astype("f8").sum(axis=1)}


@example((128, 192), (135, 139), (136, 200), (1, 8), rtol=0, atol=0)
def transpose(rng, m, n):
    x = normal(rng, m, n, dtype="f2")
    return {"x": x}, {"y": np.ascontiguousarray(x.T)}


@example((16384,), (8195,), (5,), rtol=1e-3, atol=1e-4)
def elementwise(rng, n):
    x = normal(rng, n, dtype="f2") * np.float16(3)
    v = x.astype("f8")
    return {"x": x}, {"y": v * np.clip(v + 3, 0, 6) / 6}


@example((2, 4, 32, 64), (1, 3, 17, 35), (2, 1, 3, 2))
def depthwise_conv(rng, batch, channels, h, w):
    x = normal(rng, batch * channels, h, w)
    weight = normal(rng, channels, 3, 3)
    padded = np.pad(x.astype("f8"), ((0, 0), (1, 1), (1, 1)))
    filters = np.tile(weight.astype("f8"), (batch, 1, 1))
    y = sum(padded[:, p:p + h, q:q + w] * filters[:, p, q, None, None]
            for p in range(3) for q in range(3))
    return {"x": x, "weight": weight}, {"y": y}


@example((64, 100, 128), (13, 7, 77), (3, 5, 8), rtol=0, atol=0)
def embedding(rng, tokens, words, d):
    table = normal(rng, words, d, dtype="f2")
    ids = rng.integers(0, words, tokens, dtype=np.int32)
    ids[-1] = words  # out of range: zeros
    y = np.where((ids < words)[:, None], table[ids % words], np.float16(0))
    return {"ids": ids, "table": table}, {"y": y}


@example((16384,), (4099,), (1,), rtol=0, atol=0)
def histogram(rng, n):
    x = np.minimum(rng.geometric(0.02, n), 255).astype(np.uint8)
    bins = np.arange(256, dtype=np.int32)
    counted = bins + np.bincount(x, minlength=256).astype(np.int32)
    return {"x": x, "bins": bins}, {"bins": counted}


@example((8192,), (5003,), (3,), rtol=0, atol=0, entry="prefix_sum")
def prefix_sum(rng, n):
    x = rng.integers(-1000, 1000, n, dtype=np.int32)
    return {"x": x}, {"y": np.cumsum(x, dtype=np.int32)}
