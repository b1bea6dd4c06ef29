# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a model of one recurrent layer, an input, and what NumPy makes of it.

usage: recurrent.py OPERATOR STEPS HIDDEN BATCH INPUT DIRECTION FILE [lengths]

FILE.X.npy is the input, FILE.Y.npy, FILE.Y_h.npy and (LSTM) FILE.Y_c.npy are
the outputs, computed in f64 by the formulas of ONNX's documentation. OPERATOR
GRU-reset is a GRU with linear_before_reset. With lengths there are initial
states, too.
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

GATES = {"RNN": 1, "GRU": 3, "GRU-reset": 3, "LSTM": 4}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(op, x, h, c, w, r, b):
    """One step: x [batch, input], h and c [batch, hidden]."""
    n = h.shape[1]
    wb, rb = np.split(b, 2)
    if op == "RNN":
        return np.tanh(x @ w.T + h @ r.T + wb + rb), c
    if op == "LSTM":
        g = x @ w.T + h @ r.T + wb + rb
        i, o, f, t = (g[:, k * n:(k + 1) * n] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(t)
        return sigmoid(o) * np.tanh(c), c
    if op == "GRU-reset":
        xs, hs = np.split(x @ w.T + wb, 3, 1), np.split(h @ r.T + rb, 3, 1)
        z = sigmoid(xs[0] + hs[0])
        new = np.tanh(xs[2] + sigmoid(xs[1] + hs[1]) * hs[2])
        return (1 - z) * new + z * h, c
    g, both = x @ w.T + wb, h @ r[:2 * n].T + rb[:2 * n]
    z = sigmoid(g[:, :n] + both[:, :n])
    reset = sigmoid(g[:, n:2 * n] + both[:, n:])
    new = np.tanh(g[:, 2 * n:] + (reset * h) @ r[2 * n:].T + rb[2 * n:])
    return (1 - z) * new + z * h, c


def sweep(op, x, w, r, b, lengths, h, c):
    """All steps of one direction."""
    y = []
    for t in range(len(x)):
        live = (t < lengths)[:, None]
        new, cell = step(op, x[t], h, c, w, r, b)
        h, c = np.where(live, new, h), np.where(live, cell, c)
        y.append(np.where(live, new, 0))
    return np.stack(y), h, c


def flip(x, lengths):
    """The first lengths[b] entries of each sequence backwards."""
    y = x.copy()
    for b, n in enumerate(lengths):
        y[:n, b] = x[:n, b][::-1]
    return y


def main():
    op, steps, hidden, batch, size, direction, path = sys.argv[1:8]
    steps, hidden, batch, size = map(int, (steps, hidden, batch, size))
    rng = np.random.default_rng(steps + hidden)
    ways = {"forward": [0], "reverse": [1], "bidirectional": [0, 1]}[direction]
    rows = GATES[op] * hidden
    w = rng.standard_normal((len(ways), rows, size)) / 4
    r = rng.standard_normal((len(ways), rows, hidden)) / 4
    b = rng.standard_normal((len(ways), 2 * rows)) / 8
    x = rng.standard_normal((steps, batch, size))
    w, r, b, x = (a.astype(np.float32) for a in (w, r, b, x))
    lengths = np.full(batch, steps, np.int32)
    has_lengths = len(sys.argv) > 8
    if has_lengths:
        lengths = rng.integers(1, steps + 1, batch).astype(np.int32)
    states = np.zeros((2, len(ways), batch, hidden), np.float32)
    if has_lengths:
        states[...] = rng.standard_normal(states.shape)
    outputs = ["Y", "Y_h"] + (["Y_c"] if op == "LSTM" else [])
    constants = {"W": w, "R": r, "B": b}
    if has_lengths:
        constants["lengths"] = lengths
        constants["h"] = states[0]
        if op == "LSTM":
            constants["c"] = states[1]
    more = {"linear_before_reset": 1} if op == "GRU-reset" else {}
    node = helper.make_node(op.split("-")[0], ["X", *constants], outputs,
                            hidden_size=hidden, direction=direction, **more)
    graph = helper.make_graph(
        [node], "main",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info(o, TensorProto.FLOAT, None)
         for o in outputs],
        [numpy_helper.from_array(a, n) for n, a in constants.items()])
    onnx.save(helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), path)
    ys, hs, cs = [], [], []
    for d, backwards in enumerate(ways):
        wide = [a.astype(np.float64) for a in (w[d], r[d], b[d])]
        before = states[:, d].astype(np.float64)
        seen = flip(x, lengths) if backwards else x
        y, h, c = sweep(op, seen.astype(np.float64), *wide, lengths, *before)
        ys.append(flip(y, lengths) if backwards else y)
        hs.append(h)
        cs.append(c)
    np.save(path + ".X.npy", x)
    np.save(path + ".Y.npy", np.stack(ys, 1).astype(np.float32))
    np.save(path + ".Y_h.npy", np.stack(hs).astype(np.float32))
    np.save(path + ".Y_c.npy", np.stack(cs).astype(np.float32))


if __name__ == "__main__":
    main()
