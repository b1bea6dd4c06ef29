# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel that selects the first of rows, with drawn parameters, against NumPy.

usage: selects.py FOLDER COUNT SEED [option of hidet-run...]

Rooms as small as they may be, parts of a turn and less, vectors or none, pairs;
rows in any order, above all such whose every turn comes before all that came
before it: a run is then more than there is room for. Exits 1 where an element
differs.
"""

import pathlib
import subprocess
import sys

import numpy

FILE = pathlib.Path(__file__).resolve().parents[3] / "lib/Schedule/templates/sort_select.hir"
WAYS = ("normal", "ties", "equal", "rising", "falling", "turns", "nan")
TYPES = {"f32": numpy.float32, "u64": numpy.uint64, "i32": numpy.int32}


def draw(rng):
    """Parameters of the kernel, and its sizes."""
    threads = int(rng.choice((32, 64, 128)))
    lanes = int(rng.choice((1, 2, 4)))
    each = max(8, lanes * int(rng.choice((2, 4))))
    groups = int(rng.choice((0, 1, 1, 2, 4))) * threads
    kept = int(rng.integers(1, groups // 4 + 1)) if groups else int(rng.integers(1, 90))
    room = max(2 * groups, threads * each) if groups else 4096
    turns, parts = int(rng.integers(1, 20)), int(rng.choice((1, 1, 1, 2, 3)))
    turn = threads * each
    short = int(rng.integers(0, turns * turn))  # The last part is.
    n = (parts * turns * turn - short) // lanes * lanes
    n = max(n, (parts - 1) * turns * turn + lanes)
    return {
        "S": str(rng.choice(list(TYPES))), "DOWN": bool(rng.integers(0, 2)),
        "FIRST": bool(rng.integers(0, 4)), "LAST": parts == 1, "ROOM": room,
        "GROUPS": groups, "EACH": each, "LANES": lanes, "AHEAD": int(rng.integers(0, 2)),
        "THREADS": threads,
    }, {  # fmt: skip
        "rows": int(rng.integers(1, 4)), "n": n, "parts": parts, "turns": turns,
        "kept": kept,
    }  # fmt: skip


def hide_sample(x, values, sizes, value):
    """What the first bound is of tells nothing of the rest."""
    lanes, lines = values["LANES"], values["THREADS"] * values["EACH"] // values["LANES"] // 8
    part = sizes["turns"] * values["THREADS"] * values["EACH"] // lanes
    for first in range(0, sizes["n"] // lanes, part):
        count = min(part, sizes["n"] // lanes - first)
        apart = max(count // lines, 8)
        vectors = (numpy.arange(lines)[:, None] * apart + numpy.arange(8)).ravel()
        vectors = first + vectors[vectors < count]
        x[:, (vectors[:, None] * lanes + numpy.arange(lanes)).ravel()] = value


def draw_rows(rng, values, sizes):
    way = rng.choice(WAYS)
    x = rng.standard_normal((sizes["rows"], sizes["n"]))
    sign = 1 if values["DOWN"] else -1
    if way == "ties":
        x = numpy.round(x * 2)
    if way == "equal":
        x[...] = 1
    if way in ("rising", "falling"):
        x = numpy.sort(x, axis=1)[:, :: 1 if way == "rising" else -1]
    if way == "turns":
        turn = values["THREADS"] * values["EACH"]
        x = sign * (numpy.arange(sizes["n"]) // turn * 100 + 10 * x)
        hide_sample(x, values, sizes, -1000 * sign)
    kind = TYPES[values["S"]]
    if kind != numpy.float32:
        x = x * 1000
        x = x - x.min() if values["S"] == "u64" else x
    x = numpy.ascontiguousarray(x.astype(kind))
    if way == "nan" and kind == numpy.float32:
        x[rng.random(x.shape) < rng.choice((0.001, 0.5, 1))] = numpy.nan
    return x


def sort(key, at, m):
    """Places of the first m by key and at."""
    return numpy.lexsort((at, key), axis=1)[:, :m]


def keys_of(x, descends):
    """Numbers that rise in the order of values, as the kernels have them."""
    if x.dtype == numpy.float32:
        bits = (x + numpy.float32(0)).view(numpy.uint32)
        flipped = numpy.where(bits >> 31, ~bits, bits | numpy.uint32(1 << 31))
        key = numpy.where(numpy.isnan(x), numpy.uint32(0xFFFFFFFF), flipped)
    elif x.dtype == numpy.int32:
        key = x.view(numpy.uint32) ^ numpy.uint32(1 << 31)
    else:
        key = x
    return ~key if descends else key


def run(folder, number, rng, options):
    values, sizes = draw(rng)
    x = draw_rows(rng, values, sizes)
    rows, n, parts, kept = (sizes[k] for k in ("rows", "n", "parts", "kept"))
    keys = keys_of(x, values["DOWN"] and values["FIRST"])
    if not values["FIRST"]:
        x, values["DOWN"] = keys, False
    key_type = "u64" if keys.dtype == numpy.uint64 else "u32"
    values["S"] = values["S"] if values["FIRST"] else key_type
    values["K"] = key_type
    at = numpy.tile(numpy.arange(n, dtype=numpy.int32), (rows, 1))
    if not values["FIRST"]:
        at = rng.permuted(at, axis=1)
    length = sizes["turns"] * values["THREADS"] * values["EACH"]
    want_key = numpy.full((rows, parts * kept), ~keys.dtype.type(0))
    want_at = numpy.full((rows, parts * kept), 0x7FFFFFFF, numpy.int32)
    for part in range(parts):
        columns = slice(part * length, min((part + 1) * length, n))
        order = sort(keys[:, columns], at[:, columns], kept)
        to = slice(part * kept, part * kept + order.shape[1])
        want_key[:, to] = numpy.take_along_axis(keys[:, columns], order, axis=1)
        want_at[:, to] = numpy.take_along_axis(at[:, columns], order, axis=1)
    expected = {"to_key": want_key, "to_at": want_at}
    if values["LAST"]:
        expected = {"y": want_at.astype(numpy.int64)}
    args = []
    for name, value in {"x": x, "key": keys, "at": at}.items():
        numpy.save(folder / f"{number}-{name}.npy", value)
        args.append(f"--input={name}=@{folder / f'{number}-{name}.npy'}")
    for name, value in expected.items():
        numpy.save(folder / f"{number}-{name}.npy", value)
        args.append(f"--expected={name}=@{folder / f'{number}-{name}.npy'}")
    args += [f"--shape={name}={value}" for name, value in sizes.items()]
    text = ", ".join(f"{k} = {str(v).lower() if isinstance(v, bool) else v}"
                     for k, v in values.items())
    command = ["hidet-run", "-q", FILE,
               f"--entry=sort_select_kernel[{text}]", *args, *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"exit {done.returncode}: {values} {sizes}\n{done.stdout}{done.stderr}"[:4000])
    return done.returncode == 0


def main():
    folder, count, seed = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:4])
    folder.mkdir(parents=True, exist_ok=True)
    rng = numpy.random.default_rng(seed)
    right = [run(folder, i, rng, sys.argv[4:]) for i in range(count)]
    sys.exit(not all(right))


if __name__ == "__main__":
    main()
