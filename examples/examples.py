# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each example kernel is given, and what numpy says of it.

A row is a function named after its file, examples/<name>.hir. Given a random
generator and sizes it returns the arguments by parameter name and the expected
outputs, computed in f64. The sizes are tuples: the first is the one that the
demonstration runs, the others are odd ones with partial tiles.
examples/run.py runs the rows; the demonstration and the tests use it.
"""

import numpy as np

import bert

EXAMPLES = {}


class Example:
    """A row of the table."""

    def __init__(self, function, sizes, rtol, atol, entry, target):
        self.function = function
        self.sizes = sizes
        self.rtol = rtol
        self.atol = atol
        self.entry = entry  # the kernel or plan, where a file has several:
        # its name, or a function of the sizes
        self.target = target  # the one GPU that it is for, or None

    def entry_of(self, sizes=None):
        """The kernel or plan for these sizes; None: the only one."""
        return (self.entry(*(sizes or self.sizes[0])) if callable(self.entry)
                else self.entry)

    def make(self, sizes=None):
        """The arguments and the expected outputs, always the same ones."""
        rng = np.random.default_rng(0)
        return self.function(rng, *(sizes or self.sizes[0]))


def example(*sizes, rtol=1e-5, atol=1e-6, entry=None, target=None):
    """Adds a row; the tolerance is atol + rtol * |expected|."""

    def add(function):
        EXAMPLES[function.__name__] = Example(function, sizes, rtol, atol,
                                              entry, target)
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


# Kernels for Hopper (sm_90a). Tensor maps ask for rows of 16 bytes and their
# multiples; every other size may be odd.

def product_t(a, b):
    return {"c": a.astype("f8") @ b.astype("f8").T}


@example((256, 512, 320), (300, 264, 72), (1, 8, 8), (129, 520, 584),
         (2100, 2056, 24), rtol=1e-3, atol=1e-3, target="sm_90a")
def matmul_wgmma(rng, m, n, k):
    a, b = normal(rng, m, k, dtype="f2"), normal(rng, n, k, dtype="f2")
    return {"a": a, "b": b}, product_t(a, b)


def e4m3():
    """The values of the 256 numbers of f8e4m3."""
    bits = np.arange(256)
    exponent, fraction = bits >> 3 & 15, bits & 7
    value = np.where(exponent > 0, np.ldexp(8.0 + fraction, exponent - 10),
                     np.ldexp(fraction * 1.0, -9))
    value[bits & 127 == 127] = np.nan
    return np.where(bits & 128, -value, value)


# The tensor cores keep 14 bits of a sum.
@example((256, 256, 640), (300, 264, 144), (1, 8, 16), (129, 520, 1040),
         rtol=1e-3, atol=1e-1, target="sm_90a")
def matmul_f8(rng, m, n, k):
    values = e4m3()

    def draw(*shape):  # below 2 in magnitude
        return rng.integers(0, 64, shape, dtype=np.uint8) | \
            rng.integers(0, 2, shape, dtype=np.uint8) << 7

    a, b = draw(m, k), draw(n, k)
    return {"a": a, "b": b}, product_t(values[a], values[b])


@example((256, 256, 160), (300, 260, 36), (1, 4, 4), (129, 516, 292),
         atol=2e-4, target="sm_90a")
def matmul_tf32(rng, m, n, k):
    def cut(x):  # the bits that tf32 has
        return (x.view("u4") & 0xffffe000).view("f4")

    a, b = cut(normal(rng, m, k)), cut(normal(rng, n, k))
    return {"a": a, "b": b}, product_t(a, b)


@example((128, 256, 1024), (130, 264, 328), (1, 8, 8), (65, 8, 1992),
         rtol=1e-3, atol=1e-3, entry="matmul_split", target="sm_90a")
def matmul_split(rng, m, n, k):
    a, b = normal(rng, m, k, dtype="f2"), normal(rng, n, k, dtype="f2")
    return {"a": a, "b": b}, product_t(a, b)


@example((2, 16, 16, 64, 128), (3, 5, 13, 72, 264), (1, 1, 1, 8, 8),
         (2, 7, 30, 8, 16), rtol=1e-3, atol=1e-3, target="sm_90a")
def conv_wgmma(rng, batch, h, w, channels, filters):
    x = normal(rng, batch, h, w, channels, dtype="f2")
    weight = normal(rng, filters, 9 * channels, dtype="f2")
    padded = np.pad(x.astype("f8"), ((0, 0), (1, 1), (1, 1), (0, 0)))
    places = weight.astype("f8").reshape(filters, 9, channels)
    y = sum(padded[:, p:p + h, q:q + w] @ places[:, 3 * p + q].T
            for p in range(3) for q in range(3))
    return ({"x": x, "weight": weight},
            {"y": y.reshape(batch * h * w, filters)})


@example((512, 1024), (65, 72), (1, 8), (4100, 4104), rtol=0, atol=0,
         target="sm_90a")
def copy_tma(rng, m, n):
    x = normal(rng, m, n, dtype="f2")
    return {"x": x}, {"y": x}


@example((16, 4096), (3, 1236), (3, 1237), (1, 1), (5, 8), (2, 16384),
         (2, 16400), atol=1e-5, target="sm_90a")
def rms_norm_cluster(rng, rows, n):
    x = normal(rng, rows, n)
    v = x.astype("f8")
    return {"x": x}, {"y": v / np.sqrt((v * v).mean(axis=1, keepdims=True) +
                                       1e-5)}


@example((65536,), (1003,), (1,), entry="dependent", target="sm_90a")
def dependent(rng, n):
    x, bias = normal(rng, n), normal(rng, n)
    return ({"x": x, "bias": bias},
            {"y": x.astype("f8") * 2 + bias.astype("f8")})


# Sizes are tokens, columns, columns between.
@example((128, 256, 512), (256, 128, 512), (128, 768, 3072), rtol=5e-3,
         atol=1e-2, target="sm_90a",
         entry=lambda m, n, ff: "bert_layer[M = %d, N = %d, FF = %d, RING = %d]"
         % (m, n, ff, max(2, n // 128)))
def bert_layer(rng, m, n, ff):
    layer = bert.weights(rng, n, ff)
    x = normal(rng, m, n, dtype="f2")
    given = {"x": x, "x_parts": bert.statistics(x, 56)}
    given.update(bert.folded(layer, 24, 56))
    y = bert.apply(x, layer)
    return given, {"y": y, "y_parts": bert.statistics(y, 56)}
