# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks whose inputs are images of a few channels, on the simulator: how many
launches they are, and what comes out against NumPy. Numbers are small integers,
so that it has to be equal.

usage: pixels.py FOLDER HIDET_RUN
"""
import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(5)
folder, tool = pathlib.Path(sys.argv[1]), sys.argv[2]
folder.mkdir(parents=True, exist_ok=True)


def convolve(x, w, stride, pad, dilation):
    n, _, high, wide = x.shape
    window = [(k - 1) * dilation + 1 for k in w.shape[2:]]
    out = [(s + 2 * pad - e) // stride + 1 for s, e in zip((high, wide), window)]
    x = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    y = np.zeros((n, w.shape[0], *out))
    for u, v in np.ndindex(*w.shape[2:]):
        part = x[:, :, u * dilation:, v * dilation:][
            :, :, :stride * out[0]:stride, :stride * out[1]:stride]
        y += np.einsum("nchw,oc->nohw", part, w[:, :, u, v])
    return y


def run(name, shape, to, kernel, stride=1, pad=0, dilation=1, kind="f32", first=()):
    """A convolution, an activation, and a convolution that sums two channels.
    first: the operator that makes the image of the input."""
    x = random.integers(-2, 3, shape).astype(np.float16 if kind == "f16" else np.float32)
    w = random.integers(-1, 2, (to, shape[1], kernel, kernel)).astype(x.dtype)
    c = random.integers(-3, 4, to).astype(x.dtype)
    v = np.zeros((24, to, 3, 3), x.dtype)
    for i in range(24):
        v[i, i % to, 1, 1] = v[i, (i + 1) % to, 0, 2] = 1
    image = {"": x, "Mul": x * 2}["".join(first)].astype(np.float64)
    y = np.maximum(convolve(image, w, stride, pad, dilation) + c[:, None, None], 0)
    z = convolve(y, v, 1, 1, 1)
    named = {"w": w, "c": c, "v": v, "two": np.array(2, x.dtype)}
    nodes = [helper.make_node(op, ["x", "two"], ["image"]) for op in first]
    nodes += [
        helper.make_node("Conv", ["image" if first else "x", "w", "c"], ["a"], name="first",
                         strides=[stride] * 2, pads=[pad] * 4, dilations=[dilation] * 2),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "v"], ["y"], pads=[1] * 4)]
    element = TensorProto.FLOAT16 if kind == "f16" else TensorProto.FLOAT
    graph = helper.make_graph(
        nodes, name, [helper.make_tensor_value_info("x", element, shape)],
        [helper.make_tensor_value_info("y", element, None)],
        [numpy_helper.from_array(value, key) for key, value in named.items()])
    onnx.save(helper.make_model(graph, ir_version=8,
                                opset_imports=[helper.make_opsetid("", 14)]),
              folder / (name + ".onnx"))
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", z.astype(x.dtype))
    launches = []
    for more in ([], ["--sanitize", "--async=latest"], ["--sanitize", "--async=earliest"],
                 ["--disable-template=product_pixels"]):
        done = subprocess.run(
            [tool, str(folder / (name + ".onnx")), "--device=sim", "--precision=f16",
             "--input=@%s" % (folder / "x.npy"), "--expected=@%s" % (folder / "y.npy"),
             "--rtol=0", "--atol=0", "--json=%s" % (folder / "said.json"), "--explain", *more],
            text=True, capture_output=True)
        if done.returncode:
            sys.exit("%s %s: %s" % (name, more, done.stderr[-2000:]))
        launches.append(json.loads((folder / "said.json").read_text())["launches"])
        by_pixels = "product_pixels_tiles[" in done.stderr
        assert by_pixels == ("--disable-template=product_pixels" not in more), (name, more)
    print(name, *launches)


run("digits", (1, 1, 28, 28), 32, 3)
run("stem", (1, 3, 33, 47), 16, 7, stride=2, pad=3)
run("half", (1, 3, 32, 40), 24, 3, stride=2, pad=1, kind="f16")
run("scaled", (1, 3, 32, 40), 24, 3, stride=2, pad=1, first=("Mul",))
run("latents", (2, 4, 16, 16), 40, 3, pad=1)
run("patches", (1, 3, 32, 48), 96, 4, stride=4)
run("dilated", (1, 6, 21, 19), 16, 3, pad=2, dilation=2)
