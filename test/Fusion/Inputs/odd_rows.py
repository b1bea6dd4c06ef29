# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of drawn sizes, whose rows are mostly no multiples of 16 bytes, on the
simulator as for a GPU, against NumPy. Elements are small integers, so that sums
are exact in whatever order.

usage: odd_rows.py FOLDER HIDET_RUN
"""
import pathlib
import subprocess
import sys

import numpy

folder, tool = pathlib.Path(sys.argv[1]), sys.argv[2]
folder.mkdir(parents=True, exist_ok=True)
draw = numpy.random.default_rng(15)
# What the result is summed in, and the most that a product of two may be.
TYPES = {"f16": ("f2", "f32", 2), "f32": ("f4", "f32", 4), "i8": ("i1", "i32", 9)}
SIZES = ((65, 257, 1031), (61, 130, 519), (129, 68, 777), (8, 401, 1021))


def product(number, kind, z, sizes, ta, tb):
    """A line of the graph; its operands and NumPy's result become files."""
    m, n, k = sizes
    name, sums, most = TYPES[kind]
    lead = (z,) if z > 1 else ()
    a, b = (draw.integers(-most, most + 1, lead + shape).astype(name)
            for shape in ((k, m) if ta else (m, k), (n, k) if tb else (k, n)))
    wide = [x.astype("i8") for x in (a, b)]
    y = numpy.matmul(wide[0].swapaxes(-1, -2) if ta else wide[0],
                     wide[1].swapaxes(-1, -2) if tb else wide[1])
    y = y.astype("f4" if sums == "f32" else "i4")
    files = {"a%d" % number: a, "b%d" % number: b, "y%d" % number: y}
    for key, value in files.items():
        numpy.save(folder / (key + ".npy"), value)
    declared = ["%s%d: %s[%s]" % (key, number, kind, ", ".join(map(str, x.shape)))
                for key, x in (("a", a), ("b", b))]
    line = "  y%d: %s[%s] = matmul(a%d, b%d) { ta = %s, tb = %s, R = %s }" % (
        number, sums, ", ".join(map(str, y.shape)), number, number,
        str(ta).lower(), str(tb).lower(), sums)
    return declared, line


def check(name, cases, more):
    inputs, lines, files = [], [], []
    for number, case in enumerate(cases):
        declared, line = product(number, *case)
        inputs += declared
        lines.append(line)
        files += ["--input=%s%d=@%s/%s%d.npy" % (x, number, folder, x, number) for x in "ab"]
        files.append("--expected=y%d=@%s/y%d.npy" % (number, folder, number))
    path = folder / (name + ".hir")
    path.write_text("graph main(%s) -> %s {\n%s\n}\n" % (
        ", ".join(inputs), ", ".join("y%d" % i for i in range(len(lines))),
        "\n".join(lines)))
    run = subprocess.run(
        [tool, path, "--device=sim", "--no-cache", "--explain", "--rtol=0", "--atol=0",
         *files, *more], capture_output=True, text=True)
    said = run.stdout + run.stderr
    assert run.returncode == 0, said
    assert ": copied" in said, "nothing was copied:\n" + said


ways = [(ta, tb) for ta in (False, True) for tb in (False, True)]
check("halves", [("f16", 1, SIZES[i % 4], *way) for i, way in enumerate(ways)] +
      [("f16", 3, SIZES[(i + 1) % 4], *way) for i, way in enumerate(ways)], ["--sanitize"])
check("old", [("f16", 1, SIZES[(i + 2) % 4], *way) for i, way in enumerate(ways)],
      ["--target=sm_80", "--sanitize"])
check("others", [("i8", 1, (65, 257, 519), False, True), ("i8", 2, (130, 67, 1031), True, False),
                 ("f32", 1, (129, 257, 515), False, True)], [])
