# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random graphs of concatenations: concats.py FIRST COUNT FOLDER.

Operands are products, other concatenations, inputs; some stand twice, some come
out, some pass through reshapes. Each graph is run on `ref` and, fused and under
the sanitizer, on `sim`; says how many had operands stored in place.
"""

import os
import random
import re
import subprocess
import sys


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.columns = self.r.choice([4, 4, 8, 6])
        self.inputs, self.nodes, self.values = [], [], []

    def name(self):
        return "v%d" % (len(self.nodes) + len(self.inputs))

    def put(self, text, rows):
        value = self.name()
        self.nodes.append("  %s = %s" % (value, text))
        self.values.append((value, rows))
        return value

    def add_input(self):
        value, rows = self.name(), self.r.choice([1, 2, 4, 4, 3])
        self.inputs.append("%s: f32[%d, %d]" % (value, rows, self.columns))
        self.values.append((value, rows))

    def reshape(self, x, rows):
        flat = self.name()
        self.nodes.append("  %s: f32[%d] = reshape(%s)"
                          % (flat, rows * self.columns, x))
        back = self.name()
        self.nodes.append("  %s: f32[%d, %d] = reshape(%s)"
                          % (back, rows, self.columns, flat))
        self.values.append((back, rows))

    def operand(self):
        x, rows = self.r.choice(self.values[-8:])
        if self.r.randrange(4):
            x = self.put("onnx13.MatMul(%s, w)" % x, rows)
        return x, rows

    def add_node(self):
        kind = self.r.randrange(10)
        x, rows = self.r.choice(self.values[-6:])
        if kind < 3:
            self.put("onnx13.MatMul(%s, w)" % x, rows)
        elif kind < 4:
            self.put("onnx13.Softmax(%s) { axis = 1 }" % x, rows)
        elif kind < 5:
            self.put("onnx13.Relu(%s)" % x, rows)
        elif kind < 6:
            others = [v for v, n in self.values if n == rows]
            self.put("onnx13.Add(%s, %s)" % (x, self.r.choice(others)), rows)
        elif kind < 7:
            self.reshape(x, rows)
        else:
            count = self.r.choice([2, 2, 3, 4])
            operands = [self.operand() for _ in range(count)]
            self.put("onnx13.Concat(%s) { axis = 0 }"
                     % ", ".join(v for v, _ in operands),
                     sum(n for _, n in operands))

    def graph(self):
        for _ in range(self.r.choice([1, 2])):
            self.add_input()
        for _ in range(self.r.randrange(5, 11)):
            self.add_node()
        given = [v for v, _ in self.values
                 if not any(i.startswith(v + ":") for i in self.inputs)]
        some = self.r.sample(given, min(2, len(given)))
        self.outputs = sorted(set(given[-1:] + some))
        return "graph main(%s, w: f32[%d, %d]) -> %s {\n%s\n}\n" % (
            ", ".join(self.inputs), self.columns, self.columns,
            ", ".join(self.outputs), "\n".join(self.nodes))


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit("%s\n%s" % (" ".join(command), result.stderr))
    return result.stdout


first, count, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
os.makedirs(folder, exist_ok=True)
views = 0
for seed in range(first, first + count):
    maker = Maker(seed)
    path = os.path.join(folder, "%d.hir" % seed)
    with open(path, "w") as file:
        file.write(maker.graph())
    plan = run("hidet-opt", "--expand", "--fuse", "--schedule", path)
    views += bool(re.search(r"^  view ", plan, re.M))
    expected = ["=".join((v, "@" + os.path.join(folder, v + ".npy")))
                for v in maker.outputs]
    run("hidet-run", "--device=ref", path, *["--output=" + e for e in expected])
    run("hidet-run", "--device=sim", "--sanitize", path, "--rtol=1e-3",
        "--atol=1e-4", *["--expected=" + e for e in expected])
print("%d graphs, %d with operands in place" % (count, views))
