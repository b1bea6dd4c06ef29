# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer of BERT in numpy: its weights, what examples/bert_layer.hir takes of
them, and what it computes, in f64."""

import math

import numpy as np

HEAD = 64  # Columns.
_erf = np.vectorize(math.erf, otypes=["f8"])


def weights(rng, n, ff):
    """A layer's, drawn so that values keep their size: matrices w* in f16,
    biases b*, and the scales g* and shifts s* of the two norms."""
    def draw(*shape, scale):
        return rng.standard_normal(shape, dtype=np.float32) * np.float32(scale)

    layer = {}
    for name, rows, k in (("q", 3 * n, n), ("p", n, n), ("u", ff, n),
                          ("d", n, ff)):
        layer["w" + name] = draw(rows, k, scale=k ** -0.5).astype("f2")
        layer["b" + name] = draw(rows, scale=0.1)
    for norm in "01":
        layer["g" + norm] = 1 + draw(n, scale=0.1)
        layer["s" + norm] = draw(n, scale=0.1)
    return layer


def _padded(x, axis, unit):
    wide = [(0, 0)] * x.ndim
    wide[axis] = (0, -x.shape[axis] % unit)
    return np.pad(x, wide)


def folded(layer, proj, down):
    """What the kernels take: a norm's scale in the weights behind it, its shift
    in their bias; padded to whole tiles of proj and down columns."""
    given = {}
    for name, norm in (("q", "0"), ("u", "1")):
        w = layer["w" + name].astype("f4")
        scaled = (w * layer["g" + norm]).astype("f2")
        c = layer["b" + name] + w @ layer["s" + norm]
        u = scaled.sum(axis=1, dtype="f4")
        given["w" + name], given["v" + name] = scaled, np.stack([c, u])
    for name, norm, unit in (("p", "0", proj), ("d", "1", down)):
        vectors = np.stack([layer["b" + name] + layer["s" + norm],
                            layer["g" + norm]])
        given["w" + name] = _padded(layer["w" + name], 0, unit)
        given["v" + name] = _padded(vectors, 1, unit)
    return {name: x.astype("f4") if name[0] == "v" else x
            for name, x in given.items()}


def statistics(x, unit):
    """(mean, sum of squared distances from it) of each row's parts of `unit`
    columns: [parts, rows, 2]."""
    parts = [x[:, first:first + unit].astype("f8")
             for first in range(0, x.shape[1], unit)]
    return np.stack([np.stack([p.mean(axis=1), p.var(axis=1) * p.shape[1]], 1)
                     for p in parts]).astype("f4")


def _norm(x, scale, shift):
    centered = x - x.mean(axis=1, keepdims=True)
    deviation = np.sqrt((centered ** 2).mean(axis=1, keepdims=True) + 1e-12)
    return centered / deviation * scale + shift


def _attention(qkv):
    rows = qkv.shape[0]
    q, k, v = (x.reshape(rows, -1, HEAD).transpose(1, 0, 2)
               for x in np.split(qkv, 3, axis=1))
    s = q @ k.transpose(0, 2, 1) / math.sqrt(HEAD)
    e = np.exp(s - s.max(axis=2, keepdims=True))
    return (e / e.sum(axis=2, keepdims=True) @ v).transpose(
        1, 0, 2).reshape(rows, -1)


def apply(x, layer):
    """The layer's result; what comes is what the layer before left, its norm
    not applied."""
    w = {name: value.astype("f8") for name, value in layer.items()}
    h = _norm(x.astype("f8"), w["g0"], w["s0"])
    x1 = h + _attention(h @ w["wq"].T + w["bq"]) @ w["wp"].T + w["bp"]
    h1 = _norm(x1, w["g1"], w["s1"])
    u = h1 @ w["wu"].T + w["bu"]
    u *= 0.5 * (1 + _erf(u / math.sqrt(2)))
    return h1 + u @ w["wd"].T + w["bd"]
