# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs that would be one kernel if kernels had no bounds, with what numpy
says of them: limits.py NAME FOLDER writes main.hir, inputs and outputs.

  terms       a product and 300 nodes of 15 terms, one after the other
  pointwise   the same without the product
  reads       a product and 1200 operations with an input each
  stores      a product and 700 heads, each an output
  separate    a product and 128 additions of constants, each an output
  group       a group by hand of 600 additions
"""
import os
import sys

import numpy as np

FIFTEEN = """task fifteen(x: f32[..s]) -> y: f32[..s] {
  y[..i] = ((((x[..i] * 0.5 + 0.25) * 0.5 + 0.125) * 0.5 + 0.5) * 0.5 + 1) * 0.5
}
"""


def fifteen(x):
    for c in [0.25, 0.125, 0.5, 1]:
        x = x * np.float32(0.5) + np.float32(c)
    return x * np.float32(0.5)


def vector(name, values):
    listed = ", ".join(str(float(v)) for v in values)
    return f"  const {name}: f32[8] = [{listed}]\n"


def chain(count, rng, product):
    x = rng.random((8, 8), dtype=np.float32)
    first = "matmul(x, x)" if product else "exp(x)"
    text = FIFTEEN + f"graph main(x: f32[8, 8]) -> v{count} {{\n"
    text += f"  v0: f32[8, 8] = {first}\n"
    y = x @ x if product else np.exp(x)
    for i in range(count):
        text += f"  v{i + 1}: f32[8, 8] = fifteen(v{i})\n"
        y = fifteen(y)
    return text + "}\n", {"x": x}, {f"v{count}": y}


def reads(count, rng, _):
    inputs = {f"c{i}": rng.random(8, dtype=np.float32) for i in range(count)}
    params = ", ".join(f"{name}: f32[8]" for name in inputs)
    x = rng.random((8, 8), dtype=np.float32)
    text = f"graph main({params}, x: f32[8, 8]) -> v{count} {{\n"
    text += "  v0: f32[8, 8] = matmul(x, x)\n"
    y = x @ x
    for i in range(count):
        op = "add" if i % 2 else "mul"
        text += f"  v{i + 1}: f32[8, 8] = {op}(v{i}, c{i})\n"
        y = y + inputs[f"c{i}"] if i % 2 else y * inputs[f"c{i}"]
    return text + "}\n", inputs | {"x": x}, {f"v{count}": y}


def stores(count, rng, in_turn):
    x = rng.random((8, 8), dtype=np.float32)
    names = [f"v{i}" for i in range(count)]
    text = f"graph main(x: f32[8, 8]) -> {', '.join(names)} {{\n"
    constants = rng.integers(0, 64, (count, 8)).astype(np.float32) / 64
    for i in range(count):
        text += vector(f"c{i}", constants[i])
    text += "  h: f32[8, 8] = matmul(x, x)\n"
    y = x @ x
    outputs = {}
    for i in range(count):
        before = f"v{i - 1}" if in_turn and i else "h"
        text += f"  v{i}: f32[8, 8] = add({before}, c{i})\n"
        outputs[f"v{i}"] = y + constants[i]
        y = outputs[f"v{i}"] if in_turn else y
    return text + "}\n", {"x": x}, outputs


def group(count, rng, _):
    text, inputs, outputs = reads(count, rng, _)
    lines = text.splitlines()
    lines[1] = "group {\nanchor" + lines[1]
    lines[-1] = "}\n}"
    return "\n".join(lines) + "\n", inputs, outputs


GRAPHS = {
    "terms": (chain, 300, True),
    "pointwise": (chain, 300, False),
    "reads": (reads, 1200, None),
    "stores": (stores, 700, False),
    "separate": (stores, 128, True),
    "group": (group, 600, None),
}


def main():
    make, count, how = GRAPHS[sys.argv[1]]
    folder = sys.argv[2]
    text, inputs, outputs = make(count, np.random.default_rng(1), how)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "main.hir"), "w") as file:
        file.write(text)
    options = []
    for kind, arrays in [("input", inputs), ("expected", outputs)]:
        for name, array in arrays.items():
            path = os.path.join(folder, name + ".npy")
            np.save(path, np.asarray(array, dtype=np.float32))
            options.append(f"--{kind}={name}=@{path}")
    with open(os.path.join(folder, "options"), "w") as file:
        file.write("\n".join(options) + "\n")


main()
