# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a graph whose constants lie in a file, and checks what came of them.

usage: constants.py write FOLDER | check FOLDER | one FILE TYPE NAME OFFSET
"""
import sys
from pathlib import Path

import numpy as np

FLOATS = np.array([1.5, -0.0, np.inf, 1e-3], np.float32)
HALVES = np.array([0.1, 65504, -2], np.float16)
CRUMBS = [0, 1, 2, 3, 3]
NIBBLES = [-8, 7, -1]

GRAPH = """graph main() -> floats, halves, crumbs, nibbles, nothing {{
  const a: f32[2, 2] = file("weights/data", 1)
  const b: f16[3] = file("weights/data", {b})
  const c: u2[5] = file("weights/data", {c})
  const d: i4[3] = file("weights/data", {d})
  const e: f32[0, 3] = file("weights/data", {e})
  floats = copy(a)
  halves = copy(b)
  crumbs = onnx13.Cast(c) {{ to = 3 }}
  nibbles = onnx13.Cast(d) {{ to = 3 }}
  nothing = copy(e)
}}
"""


def packed(values, bits):
    """The first element in the lowest bits."""
    number = sum((v & ((1 << bits) - 1)) << (i * bits)
                 for i, v in enumerate(values))
    return number.to_bytes((len(values) * bits + 7) // 8, "little")


def write(folder):
    data, places = b"\0" + FLOATS.tobytes(), {}
    for key, more in (("b", HALVES.tobytes()), ("c", packed(CRUMBS, 2)),
                      ("d", packed(NIBBLES, 4)), ("e", b"")):
        places[key] = len(data)
        data += more
    (folder / "weights" / "data").write_bytes(data)
    (folder / "graph.hir").write_text(GRAPH.format(**places))


def check(folder):
    for name, wanted in (("floats", FLOATS.reshape(2, 2)), ("halves", HALVES),
                         ("crumbs", np.array(CRUMBS, np.int8)),
                         ("nibbles", np.array(NIBBLES, np.int8)),
                         ("nothing", np.zeros((0, 3), np.float32))):
        found = np.load(folder / (name + ".npy"))
        assert found.dtype == wanted.dtype, (name, found.dtype)
        assert found.shape == wanted.shape, (name, found.shape)
        assert found.tobytes() == wanted.tobytes(), (name, found)


def one(path, kind, name, offset):
    path.write_text(f"graph main() -> y {{\n"
                    f"  const w: {kind} = file(\"{name}\", {offset})\n"
                    f"  y = copy(w)\n}}\n")


if __name__ == "__main__":
    what, where, *rest = sys.argv[1:]
    {"write": write, "check": check, "one": one}[what](Path(where), *rest)
