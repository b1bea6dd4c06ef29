# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorts of drawn rows against NumPy.

usage: sorts.py FOLDER COUNT SEED [option of hidet-run...]

Rows of every length up to a few blocks', any number of places, axes in the
middle; ties, NaN, infinities, zeros of both signs, sorted rows; every type that
NumPy has. Six cases are one graph; MANY, rows enough that a block selects of
each alone, are another. Exits 1 where an element differs.
"""

import pathlib
import subprocess
import sys

import numpy

TYPES = {
    "f16": numpy.float16, "f32": numpy.float32, "f64": numpy.float64,
    "i8": numpy.int8, "u8": numpy.uint8, "i16": numpy.int16,
    "u16": numpy.uint16, "i32": numpy.int32, "u32": numpy.uint32,
    "i64": numpy.int64, "u64": numpy.uint64,
}  # fmt: skip
LENGTHS = (1, 2, 3, 31, 33, 64, 100, 127, 513, 1000, 4095, 4096, 4097, 9000, 20011)
WAYS = ("normal", "ties", "wild", "equal", "rising", "falling")
STRANGE = (numpy.nan, numpy.inf, -numpy.inf, 0.0, -0.0)
CHUNK = 6
MANY = (("f32", (300, 5000, 1), 32, True), ("f16", (260, 4500, 1), 100, False),
        ("u64", (257, 4999, 1), 256, True), ("i8", (100, 4112, 1), 300, False))


def draw_values(rng, kind, shape):
    name = rng.choice(WAYS)
    if kind.startswith("f"):
        x = rng.standard_normal(shape)
        if name == "ties":
            x = numpy.round(x * 2) / 2
        if name == "wild":
            which = rng.integers(0, 2 * len(STRANGE), shape)
            for i, value in enumerate(STRANGE):
                x[which == i] = value
    else:
        info = numpy.iinfo(TYPES[kind])
        x = rng.integers(info.min, info.max, shape, TYPES[kind], endpoint=True)
        if name == "ties":
            x = x % 5
        if name == "wild":
            x[rng.integers(0, 4, shape) == 0] = info.max
            x[rng.integers(0, 4, shape) == 0] = info.min
    if name == "equal":
        x[...] = x.flat[0]
    if name in ("rising", "falling"):
        x = numpy.sort(x, axis=1)
        x = x[:, ::-1] if name == "falling" else x
    return numpy.ascontiguousarray(x.astype(TYPES[kind]))


def sort(x, m, descends):
    """NumPy's stable sort has NaN last; from the greatest on that is first."""
    if descends:
        back = numpy.argsort(x[:, ::-1], axis=1, kind="stable")
        order = x.shape[1] - 1 - back[:, ::-1]
    else:
        order = numpy.argsort(x, axis=1, kind="stable")
    return order[:, :m]


def draw_case(rng):
    kind = str(rng.choice(list(TYPES)))
    n = int(rng.choice(LENGTHS))
    least = int(rng.choice((0, 1, 1, 7, 100, 1024, n)))
    m = n if rng.integers(0, 3) == 0 else min(n, least)
    p, q = (int(rng.choice((1, 2, 5))) for _ in range(2))
    return kind, (p, n, q if n < 5000 else 1), m, rng.random() < 0.5


def run(folder, number, cases, rng, options):
    inputs, nodes, results, args = [], [], [], []
    for i, (kind, shape, m, descends) in enumerate(cases):
        x = draw_values(rng, kind, shape)
        at = sort(x, m, descends)
        y = numpy.take_along_axis(x, at, axis=1)
        for name, value in ((f"x{i}", x), (f"y{i}", y), (f"at{i}", at)):
            path = folder / f"{number}-{name}.npy"
            numpy.save(path, numpy.ascontiguousarray(value))
            how = "input" if name == f"x{i}" else "expected"
            args.append(f"--{how}={name}=@{path}")
        task = "sort_descending" if descends else "sort_ascending"
        inputs.append(f"x{i}: {kind}[{', '.join(map(str, shape))}]")
        nodes.append(f"  y{i}, at{i} = {task}(x{i}) {{ m = {m} }}\n")
        results += [f"y{i}", f"at{i}"]
    file = folder / f"{number}.hir"
    text = f"graph main({', '.join(inputs)}) -> {', '.join(results)} {{\n"
    file.write_text(text + "".join(nodes) + "}\n")
    command = ["hidet-run", file, "--rtol=0", "--atol=0", *args, *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"exit {done.returncode}: {cases}\n{done.stdout}{done.stderr}"[:4000])
    return done.returncode == 0


def main():
    folder, count, seed = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:4])
    folder.mkdir(parents=True, exist_ok=True)
    rng = numpy.random.default_rng(seed)
    right = run(folder, "many", MANY, rng, sys.argv[4:])
    for number in range(0, count, CHUNK):
        cases = [draw_case(rng) for _ in range(min(CHUNK, count - number))]
        right &= run(folder, number, cases, rng, sys.argv[4:])
    sys.exit(not right)


if __name__ == "__main__":
    main()
