# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fusion points at the edges: kernels here, against numpy, on a device.

usage: points-edges.py [--only=NAME] [hidet-run's options...]
"""

import os
import subprocess
import sys
import tempfile

import numpy as np

RNG = np.random.default_rng(7)
WAIT = "cp_async_commit()\n  cp_async_wait(0)\n  barrier()\n"
LINE = "for p in spatial(16) * repeat(4) on thread"
TILE = "for i, j in spatial(16, 2) * repeat(2, 16) on thread"
BOXES = "for i, j in spatial(16, 4) * repeat(2, 8) on thread"
FRAGMENTS = ("spatial(2, 1) * repeat(1, 4) * repeat(2, 1) * spatial(8, 4)"
             " * repeat(1, 2)")
CASES = {}


def rand(*shape, dtype="f4"):
    return RNG.standard_normal(shape).astype(dtype)


def case(make):
    CASES[make.__name__] = make
    return make


def line(value, more=""):
    """A load of 64 elements, which are stored as they come."""
    return """kernel k(n: i32, %sin a: f32[n], out c: f32[64]) grid(1) block(16) {
  shared s: f32[64]
  %s { load s[p] <- %s }
  %s  %s { yield c[p] <- s[p] }
}""" % (more, LINE, value, WAIT, LINE)


def padded(values):
    result = np.zeros(64, "f4")
    result[:min(64, len(values))] = values[:64]
    return result


@case
def load_line():
    for n in (1, 5, 37, 63, 64, 90):
        a = rand(n)
        yield line("a[p]"), {"a": a}, {"c": padded(a)}
        yield line("a[p] * 2 + 1"), {"a": a}, {"c": padded(a * 2 + 1)}


@case
def yield_line():
    for through in ("", "through s[p]"):
        text = """kernel k(n: i32, in a: f32[n], out c: f32[n])
  grid(ceildiv(n, 64)) block(16) {
  shared s: f32[64]
  %s { yield c[block * 64 + p] <- a[block * 64 + p] else 0 %s }
}""" % (LINE, through)
        for n in (1, 5, 37, 64, 90, 129):
            a = rand(n)
            yield text, {"a": a}, {"c": a}


@case
def yield_before_the_tensor():
    for through in ("", "through s[i, j]"):
        text = """kernel k(m: i32, n: i32, in a: f32[32, 32], inout c: f32[m, n], row: i32, column: i32)
  grid(1) block(32) {
  shared s: f32[32, 32]
  %s { yield c[row - 8 + i, column - 8 + j] <- a[i, j] %s }
}""" % (TILE, through)
        for m, n, row, column in ((40, 40, -1, -4), (40, 40, -3, 0),
                                  (40, 40, 0, -5), (40, 33, 20, -8),
                                  (8, 8, -8, -8), (9, 40, 3, 9)):
            a, c = rand(32, 32), rand(m, n)
            expected = c.copy()
            for i in range(max(row, 0), min(row + 32, m)):
                for j in range(max(column, 0), min(column + 32, n)):
                    expected[i, j] = a[i - row, j - column]
            yield text, {"a": a, "c": c, "row": row + 8,
                         "column": column + 8}, {"c": expected}


@case
def stage_some_tasks():
    text = """kernel k(n: i32, in a: f32[8, 16], inout c: f32[8, n], w: i32)
  grid(1) block(32) {
  shared s: f32[8, 16]
  for i, j in within(spatial(8, 4) * repeat(1, 4), 5, w) on thread {
    yield c[i, j] <- a[i, j] through s[i, j]
  }
}"""
    for n, w in ((16, 7), (16, 16), (13, 9)):
        a, c = rand(8, 16), rand(8, n)
        expected = c.copy()
        expected[:5, :min(n, w)] = a[:5, :min(n, w)]
        yield text, {"a": a, "c": c, "w": w}, {"c": expected}


@case
def custom_tasks():
    tasks = "custom(8, [8, 1], (w, q: 1) -> [7 - w, 0]) * repeat(1, 16) on thread"
    text = """kernel k(n: i32, in a: f16[8, n], out c: f16[8, n]) grid(1) block(8) {
  shared s: f16[8, 16]
  for i, j in %s { load s[i, j] <- a[i, j] }
  %s  for i, j in %s { yield c[i, j] <- s[i, j] * 2 through s[i, j] }
}""" % (tasks, WAIT, tasks)
    for n in (16, 13, 8):
        a = rand(8, n, dtype="f2")
        yield text, {"a": a}, {"c": a * np.float16(2)}


@case
def gathers():
    for value, f in (("a[x[p]]", lambda a, x: a),
                     ("a[x[p]] + f32(x[p])", lambda a, x: a + x)):
        text = line(value, "m: i32, in x: i32[m], ")
        for n, m in ((50, 64), (50, 33), (7, 1)):
            a = rand(n)
            x = RNG.integers(-5, n + 5, m).astype("i4")
            there = (x >= 0) & (x < n)
            values = np.where(there, f(a[np.clip(x, 0, n - 1)], x), 0)
            yield text, {"a": a, "x": x}, {"c": padded(values.astype("f4"))}


@case
def many_sources():
    text = line(" + ".join("a[p + %d]" % i for i in range(10)))
    for n in (64, 30, 80):
        a = np.arange(n).astype("f4")
        sums = [a[p:p + 10].sum() for p in range(n - 9)]
        yield text, {"a": a}, {"c": padded(np.array(sums, "f4"))}


@case
def vectors_of_sources():
    for n in (256, 37):
        a = rand(n)
        yield line("a[p * 4 +: 4][1]"), {"a": a}, {
            "c": padded(a[:n // 4 * 4].reshape(-1, 4)[:, 1])}
    text = """kernel k(n: i32, in a: f32[n], out c: f32[64]) grid(1) block(16) {
  shared s: f32[64]
  %s { yield c[p] <- a[p * 4 +: 4][1] through s[p] }
}""" % LINE
    for n in (256, 37):  # Each lane by itself.
        a = rand(n)
        yield text, {"a": a}, {"c": padded(a[1::4])}


@case
def unsigned_indices():
    for kind in ("u32", "u64", "i64"):
        for n in (62, 37):
            a = rand(n)
            yield line("a[%s(p) - 2]" % kind), {"a": a}, {
                "c": padded(np.concatenate([np.zeros(2, "f4"), a]))}


@case
def functions_with_points():
    text = """fn twice(x: f32) -> f32 {
  register t: f32
  register t <- x * 2
  return t
}
fn below(x: i32, y: i32) -> bool {
  register t: i32
  register t <- x + 1
  return t <= y
}
fn put(out c: f32[m, n], shared s: f32[32, 32], row: i32) {
  %s { yield c[row + i, j] <- twice(s[i, j]) through s[i, j] sync(1, 32) }
}
kernel k(m: i32, n: i32, in a: f32[m, n], out c: f32[m, n]) grid(1) block(32) {
  shared s: f32[32, 32]
  register row: i32 = 0
  while below(row, m) {
    %s { load s[i, j] <- a[row + i, j] }
  %s    put(c, s, row)
    barrier()
    row += 32
  }
}""" % (TILE, TILE, WAIT)
    for m, n in ((32, 32), (65, 17), (5, 16), (1, 1)):
        a = rand(m, n)
        yield text, {"a": a}, {"c": a * 2}


@case
def elements_of_many_types():
    for name, dtype in (("u8", "u1"), ("bool", "?"), ("i64", "i8"),
                        ("f16", "f2"), ("f64", "f8")):
        for size, layout in (("i32", ""), ("i64", ""), ("i32", "align(8)")):
            text = """kernel k(m: %s, n: %s, in a: T[m, n] %s, out c: T[m, n] %s, out d: T[m, n])
  grid(1) block(32) {
  shared s: T[32, 32]
  %s { load s[i, j] <- a[i, j] }
  %s  %s { yield c[i, j] <- s[i, j] }
  %s { yield d[i, j] <- a[i, j] through s[i, j] }
}""" % (size, size, layout, layout, TILE, WAIT, TILE, TILE)
            for m, n in ((32, 32), (31, 17), (5, 16)):
                a = RNG.integers(0, 2, (m, n)).astype(dtype)
                yield (text.replace("T[", name + "["), {"a": a},
                       {"c": a, "d": a})


@case
def rank_0():
    text = """kernel k(in a: f32, out c: f32[4], out d: f32[1]) grid(1) block(1) {
  shared s: f32[4]
  register x: f32
  register x <- a
  for i in repeat(4) { load s[i] <- x + 1 }
  for i in repeat(4) { yield c[i] <- s[i] through s[i] }
  yield d[0] <- x
}""".replace("in a: f32,", "in b: f32[1],").replace("<- a", "<- b[0]")
    yield (text, {"b": np.ones(1, "f4")},
           {"c": np.full(4, 2, "f4"), "d": np.ones(1, "f4")})


def mapped(loop, staging, place, block=64):
    return """kernel k(m: i32, n: i32, in a: f16[m, n], inout c: f16[m, n], row: i32, column: i32, map t: c box(32, 32))
  grid(1) block(%d) {
  shared s: %s
  %s { yield c[row - 8 + i, column - 8 + j] <- a[row - 8 + i, column - 8 + j] * 2 through s%s }
}""" % (block, staging, loop, place)


def by_map(text, last=32):
    for m, n, row, column in ((64, 64, 0, 0), (64, 64, -3, 8),
                              (40, 40, 20, 16), (64, 64, 5, -8), (8, 8, 0, 0),
                              (40, 40, 60, 0)):
        a, c = rand(m, n, dtype="f2"), rand(m, n, dtype="f2")
        expected = c.copy()
        rows = slice(max(row, 0), max(row + last, 0))
        columns = slice(max(column, 0), max(column + 32, 0))
        expected[rows, columns] = a[rows, columns] * np.float16(2)
        yield (text, {"a": a, "c": c, "row": row + 8, "column": column + 8},
               {"c": expected})


@case
def boxes():
    for staging, place in (("f16[32, 32] align(128)", "[i, j]"),
                           ("f16[32, 32] align(128)", "[j, i]"),
                           ("f16[1024] align(128)", "[i * 32 + j]"),
                           ("f16[40, 32] align(128)", "[i + 8, j]"),
                           ("f16[33, 32] align(128)", "[i + 1, j]"),
                           ("f16[32, 2, 32] align(128)", "[i, 1, j]"),
                           ("f16[2, 32, 32] align(128)", "[1, i, j]")):
        yield from by_map(mapped(BOXES, staging, place))


@case
def box_of_some_tasks():
    yield from by_map(
        mapped(BOXES.replace("in ", "in within(", 1).replace(
            " on", ", 7, 32) on"), "f16[32, 32] align(128)", "[i, j]"), 7)


@case
def box_of_one_worker():
    yield from by_map(mapped("for i, j in repeat(32, 32)",
                             "f16[32, 32] align(128)", "[i, j]", 1))


@case
def fragments():
    for worker, begin, threads in (("thread", 0, 64), ("thread % 64", 64, 128),
                                   ("thread - 64", 64, 128)):
        text = """kernel k(n: i32, in a: f16[n, n], out c: f16[n, n], map t: c box(32, 32))
  grid(ceildiv(n, 32), ceildiv(n, 32)) block(%d) {
  shared s: f16[32, 32] align(128)
  let x = block.x * 32
  let y = block.y * 32
  if thread >= %d {
    for i, j in %s on %s {
      yield c[x + i, y + j] <- a[x + i, y + j] * 2 + f16(j) through s[i, j] sync(1, 64)
    }
  }
}""" % (threads, begin, FRAGMENTS, worker)
        for n in (32, 40, 8):
            a = rand(n, n, dtype="f2")
            yield text, {"a": a}, {
                "c": a * np.float16(2) + (np.arange(n) % 32).astype("f2")}


@case
def fragments_that_know_their_thread():
    text = """kernel k(n: i32, in a: f16[n, n], out c: f16[n, n], map t: c box(32, 32))
  grid(ceildiv(n, 32), ceildiv(n, 32)) block(64) {
  shared s: f16[32, 32] align(128)
  let x = block.x * 32
  let y = block.y * 32
  for i, j in %s on thread {
    yield c[x + i, y + j] <- f16(thread) through s[i, j]
  }
}""" % FRAGMENTS
    for n in (32, 40):
        i, j = np.mgrid[:n, :n] % 32
        yield text, {"a": rand(n, n, dtype="f2")}, {
            "c": (i // 16 * 32 + i % 8 * 4 + j % 8 // 2).astype("f2")}


@case
def one_staging_for_two():
    text = """kernel k(n: i32, in a: f16[n, n], out c: f16[n, n], out d: f16[n, n], map t: c box(32, 32))
  grid(ceildiv(n, 32), ceildiv(n, 32)) block(64) {
  shared s: f16[32, 32] align(128)
  let x = block.x * 32
  let y = block.y * 32
  %s { yield c[x + i, y + j] <- a[x + i, y + j] * 2 through s[i, j] }
  %s { yield d[x + i, y + j] <- a[x + i, y + j] * 3 through s[i, j] }
}""" % (BOXES, BOXES)
    for n in (32, 40, 8):
        a = rand(n, n, dtype="f2")
        yield text, {"a": a}, {"c": a * np.float16(2), "d": a * np.float16(3)}


@case
def staging_loaded_again():
    text = """kernel k(n: i32, in a: f16[32, n], out c: f16[32, n], map t: c box(32, 32))
  grid(1) block(64) {
  shared s: f16[32, 32] align(128)
  for b in 0..ceildiv(n, 32) {
    %s { load s[i, j] <- a[i, b * 32 + j] }
  %s    %s { yield c[i, b * 32 + j] <- s[i, j] * 2 through s[i, j] }
    barrier()
  }
}""" % (BOXES, WAIT, BOXES)
    for n in (32, 40, 104):
        a = rand(32, n, dtype="f2")
        yield text, {"a": a}, {"c": a * np.float16(2)}


@case
def two_buffers():
    text = """kernel k(n: i32, in a: f16[32, n], out c: f16[32, n], map t: c box(32, 32))
  grid(1) block(64) {
  shared s: f16[2, 32, 32] align(128)
  for b in 0..ceildiv(n, 32) {
    %s { yield c[i, b * 32 + j] <- a[i, b * 32 + j] * 2 through s[b %% 2, i, j] buffers(2) }
  }
}""" % BOXES
    for n in (32, 40, 104, 160):
        a = rand(32, n, dtype="f2")
        yield text, {"a": a}, {"c": a * np.float16(2)}


@case
def workers_with_effects():
    text = """kernel k(n: i32, in a: f32[64], out c: f32[n], inout w: i32[1])
  grid(1) block(16) {
  shared s: f32[64]
  for p in spatial(16) * repeat(4) on atomic_add(w[0], 1) {
    yield c[p] <- a[p] through s[p]
  }
}"""
    for n in (64, 37):
        a = rand(64)
        yield text, {"a": a, "n": n, "w": np.zeros(1, "i4")}, {
            "c": a[:n], "w": np.full(1, 16, "i4")}


@case
def shifted():
    text = """kernel k(m: i32, n: i32, in a: f32[m, n], out c: f32[m, n])
  grid(1) block(32) {
  shared s: f32[40, 36] align(4)
  %s { load s[i + 3, j + 4] <- a[i - 2, j + 8] }
  %s  %s { yield c[i, j] <- s[i + 3, j + 4] }
}""" % (TILE, WAIT, TILE)
    for m, n in ((32, 32), (31, 17), (5, 16), (30, 20)):
        a = rand(m, n)
        expected = np.zeros((m, n), "f4")
        expected[2:, :max(n - 8, 0)] = a[:m - 2, 8:]
        yield text, {"a": a}, {"c": expected}


def run(text, given, expected, options):
    with tempfile.TemporaryDirectory() as folder:
        hir = os.path.join(folder, "k.hir")
        with open(hir, "w") as f:
            f.write(text + "\n")
        command = ["hidet-run", hir, "--entry=k", "-q"] + options
        for name, value in given.items():
            if isinstance(value, int):
                command.append("--shape=%s=%d" % (name, value))
                continue
            path = os.path.join(folder, name + ".npy")
            np.save(path, value)
            command.append("--input=%s=@%s" % (name, path))
        for name in expected:
            path = os.path.join(folder, "out-" + name + ".npy")
            command.append("--output=%s=@%s" % (name, path))
        subprocess.run(command, check=True)
        for name, value in expected.items():
            got = np.load(os.path.join(folder, "out-" + name + ".npy"))
            np.testing.assert_allclose(got, value, rtol=1e-5, atol=1e-6)


def main():
    options = sys.argv[1:]
    only = [o[7:] for o in options if o.startswith("--only=")]
    options = [o for o in options if not o.startswith("--only=")]
    runs = failed = 0
    for name, make in CASES.items():
        if only and name not in only:
            continue
        for text, given, expected in make():
            runs += 1
            try:
                run(text, given, expected, options)
            except (AssertionError, subprocess.CalledProcessError) as e:
                failed += 1
                sizes = [getattr(v, "shape", v) for v in given.values()]
                print("%s, %s: %s\n%s" % (name, sizes, e, text))
    print("%d of %d runs as numpy says" % (runs - failed, runs))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
