# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a model with a Scan or a Loop, its input x, and what NumPy makes of it.

usage: turns.py KIND TURNS FILE

scan: axes and directions of all kinds, and a value of the graph around it;
loop: the turn's number as an index into data; grows: a state that becomes
longer; cut: the turn's number as a place to cut, which must be known; stops: a
condition that ends it.
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name, shape, kind=F):
    return helper.make_tensor_value_info(name, kind, shape)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def constant(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


def scan(turns, x):
    """x [3, turns], scanned backwards along axis 1; results along axis 1 too."""
    body = helper.make_graph(
        [node("Mul", ["h", "half"], ["less"]), node("Add", ["less", "v"], ["g"]),
         node("Mul", ["g", "w"], ["y"])],
        "body", [info("h", [3]), info("v", [3])],
        [info("g", [3]), info("y", [3])], [constant("half", np.float32(0.5))])
    made = node("Scan", ["h0", "x"], ["last", "all"], body=body,
                num_scan_inputs=1, scan_input_axes=[1],
                scan_input_directions=[1], scan_output_axes=[1],
                scan_output_directions=[1])
    w = np.float32([1, 2, 3])
    h, ys = np.zeros(3, np.float32), []
    for t in reversed(range(turns)):
        h = h * np.float32(0.5) + x[:, t]
        ys.append(h * w)
    return ([node("Exp", ["lw"], ["w"]), made],
            [constant("h0", np.zeros(3, np.float32)),
             constant("lw", np.log(w))],
            {"last": h, "all": np.stack(ys[::-1], 1)})


def loop_of(body_nodes, states, results, constants, turns, stops="keep"):
    """A Loop with h0 as its state; the body's condition is `stops`."""
    body = helper.make_graph(
        body_nodes, "body",
        [info("i", [], I), info("keep", [], B), info("h", states)],
        [info(stops, [], B), info("g", None)] +
        [info(name, None) for name in results], constants)
    return node("Loop", ["turns", "true", "h0"], ["last"] +
                ["all" for _ in results], body=body)


def loop(turns, x):
    """h + x[:, i]."""
    made = loop_of([node("Gather", ["x", "i"], ["v"], axis=1),
                    node("Add", ["h", "v"], ["g"]),
                    node("Cast", ["i"], ["number"], to=F),
                    node("Mul", ["g", "number"], ["y"])],
                   [3], ["y"], [], turns)
    h = np.cumsum(x, 1)
    return [made], [], {"last": h[:, -1],
                        "all": (h * np.arange(turns, dtype=np.float32)).T}


def grows(turns, x):
    made = loop_of([node("Concat", ["h", "x"], ["g"], axis=0)], None, [], [],
                   turns)
    return [made], [], {"last": np.concatenate([np.zeros(3, np.float32)] +
                                               [x.reshape(-1)] * turns)}


def cut(turns, x):
    made = loop_of([node("Unsqueeze", ["i", "zero"], ["at"]),
                    node("Add", ["at", "one"], ["end"]),
                    node("Slice", ["x", "at", "end", "zero"], ["piece"]),
                    node("Reshape", ["piece", "three"], ["v"]),
                    node("Add", ["h", "v"], ["g"])], [3], [],
                   [constant("zero", np.int64([0])),
                    constant("one", np.int64([1])),
                    constant("three", np.int64([3]))], turns)
    return [made], [], {"last": x.sum(1)}


def stops(turns, x):
    """Ends when a state passes 4, which only a run can tell."""
    made = loop_of([node("Add", ["h", "x"], ["g"]),
                    node("ReduceMax", ["g"], ["most"], keepdims=0),
                    node("Less", ["most", "four"], ["go"])], [3], [],
                   [constant("four", np.float32(4))], turns, "go")
    h = np.zeros(3, np.float32)
    for _ in range(turns):
        h = h + x.reshape(-1)
        if h.max() >= 4:
            break
    return [made], [], {"last": h}


def main():
    kind, turns, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    x = np.random.default_rng(turns).integers(-4, 5, (3, turns))
    x = x.astype(np.float32)
    if kind in ("grows", "stops"):
        x = np.float32([[1], [-1], [0.5]])
    nodes, constants, outputs = globals()[kind](turns, x)
    given = x
    if kind == "cut":  # Along its first axis.
        given = x.T.reshape(turns, 3)
    if kind in ("grows", "stops"):
        given = x.reshape(-1)
    constants += [constant("turns", np.int64(turns)),
                  constant("true", np.bool_(True)),
                  constant("h0", np.zeros(3, np.float32))]
    constants = list({c.name: c for c in constants}.values())
    graph = helper.make_graph(
        nodes, "main", [info("x", given.shape)],
        [info(name, None) for name in outputs], constants)
    onnx.save(helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    np.save(path + ".x.npy", given)
    for name, value in outputs.items():
        np.save(f"{path}.{name}.npy", value.astype(np.float32))


if __name__ == "__main__":
    main()
