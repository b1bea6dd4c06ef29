# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attentions of few queries that read their keys and values through a table of
pages, of drawn sizes, against NumPy: pages in disorder, some of several requests,
the last one in use in part, and no pages at all behind that one, heads of a page apart or together, lengths of each
request's own, as a task or as ONNX's operators.

usage: paged.py FOLDER COUNT SEED [hidet-run's options...]
"""
import pathlib
import subprocess
import sys

import numpy

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = numpy.random.default_rng(seed)
PAGES = {False: ("ng, nr", "g, j % nr"), True: ("nr, ng", "j % nr, g")}
TASKS = """task pages(pool: T[np, {0}, k], table: I[nb, nt]) -> o: T[nb, ng, nt * nr, k] where I in integer {{
  o[b, g, j, c] = pool[table[b, j / nr], {1}, c]
}}
task attention(q: T[nb, nh, nq, k], key: T[nb, ng, n, k], v: T[nb, ng, n, e], used: i64[nb]) -> o: T[nb, nh, nq, e] {{
  s[b, h, i, j] = sum(p: k) f32(q[b, h, i, p]) * f32(key[b, h / (nh / ng), j, p])
  t[b, h, i, j] = j < used[b] ? s[b, h, i, j] * {2} : -inf
  w[b, h, i, j] = exp(t[b, h, i, j] - (max(x: n) t[b, h, i, x]))
  r[b, h, i, j] = T(w[b, h, i, j] / (sum(x: n) w[b, h, i, x]))
  o[b, h, i, c] = T(sum(j: n) f32(r[b, h, i, j]) * f32(v[b, h / (nh / ng), j, c]))
}}
graph main({3}) -> o {{
  k: {4} = pages(pool, table)
  v: {4} = pages(vpool, table)
  o: {5} = attention(q, k, v, used)
}}
"""
ONNX = """graph main({0}) -> o {{
  const shape: i64[4] = [{1}]
  k0 = onnx24.Gather(pool, table) {{ axis = 0 }}
  k1{2} = onnx24.{3}
  k = onnx24.{4}
  v0 = onnx24.Gather(vpool, table) {{ axis = 0 }}
  v1{2} = onnx24.{5}
  v = onnx24.{6}
  o = onnx24.Attention(q, k, v, _, _, _, used)
}}
"""


def round_to(x, kind):
    """Values that the type has."""
    if kind == "bf16":
        return (x.astype("f4").view("u4") >> 16 << 16).astype("u4").view("f4")
    return x.astype({"f16": "f2", "f32": "f4"}[kind])


def bits(x, kind):
    return (x.view("u4") >> 16).astype("u2") if kind == "bf16" else x


def case(number):
    kind = str(rng.choice(["f16", "f16", "bf16", "f32"]))
    b, g, group = int(rng.integers(1, 4)), int(rng.choice([1, 2, 3])), int(rng.choice([1, 2, 4]))
    m, d, page = int(rng.choice([1, 1, 1, 3])), int(rng.choice([16, 64, 80, 128])), 16
    t = int(rng.choice([1, 3, 8, 17, 40]))
    together, onnx = bool(rng.integers(2)), bool(rng.integers(2))
    index = "i64" if onnx or rng.integers(2) else "i32"
    pages = b * t + 3 if rng.integers(2) else t // 2 + 1  # Some are shared.
    table = rng.permutation(pages)[:b * t] if pages > b * t else rng.integers(0, pages, b * t)
    table = table.reshape(b, t)
    used = rng.integers(1, t * page + 1, b)
    used[0] = t * page - 5
    shape = (pages, page, g, d) if together else (pages, g, page, d)
    q, pool, vpool = (round_to(rng.standard_normal(s), kind)
                      for s in ((b, g * group, m, d), shape, shape))

    def whole(x):
        x = x[table].astype("f8")
        x = x.transpose(0, 3, 1, 2, 4) if together else x.transpose(0, 2, 1, 3, 4)
        return numpy.repeat(x.reshape(b, g, t * page, d), group, 1)

    scores = q.astype("f8") @ whole(pool).transpose(0, 1, 3, 2) * d ** -0.5
    scores = numpy.where(numpy.arange(t * page) < used[:, None, None, None], scores, -numpy.inf)
    w = numpy.exp(scores - scores.max(-1, keepdims=True))
    o = w / w.sum(-1, keepdims=True) @ whole(vpool)
    given = {"q": (kind, bits(q, kind)), "pool": (kind, bits(pool, kind)),
             "vpool": (kind, bits(vpool, kind)), "table": (index, table.astype(
                 "i8" if index == "i64" else "i4")), "used": ("i64", used.astype("i8"))}
    if onnx and rng.integers(2):  # Counted from behind.
        given["table"] = "i64", table - numpy.where(rng.random(table.shape) < 0.5, pages, 0)
    if kind != "f32":  # By one kernel; a gather of its own reads all of the table.
        behind = numpy.arange(t) * page >= used[:, None]
        name, value = given["table"]
        given["table"] = name, numpy.where(
            behind, rng.choice([-1000000, -1000, pages, 1 << 30], (b, t)), value).astype(value.dtype)
    listed = ", ".join("%s: %s%s" % (name, k, list(v.shape)) for name, (k, v) in given.items())
    if onnx and together:
        text = ONNX.format(listed, "%d, %d, %d, %d" % (b, t * page, g, d), "",
                           "Reshape(k0, shape)", "Transpose(k1) { perm = [0, 2, 1, 3] }",
                           "Reshape(v0, shape)", "Transpose(v1) { perm = [0, 2, 1, 3] }")
    elif onnx:
        text = ONNX.format(listed, "%d, %d, %d, %d" % (b, g, t * page, d), "",
                           "Transpose(k0) { perm = [0, 2, 1, 3, 4] }", "Reshape(k1, shape)",
                           "Transpose(v0) { perm = [0, 2, 1, 3, 4] }", "Reshape(v1, shape)")
    else:
        text = TASKS.format(*PAGES[together], repr(d ** -0.5), listed, "%s[%d, %d, %d, %d]" % (
            kind, b, g, t * page, d), "%s%s" % (kind, list(q.shape)))
    (folder / "paged.hir").write_text(text)
    numpy.save(folder / "o.npy", bits(round_to(o, kind), kind))
    tolerance = {"f16": 4e-3, "bf16": 3e-2, "f32": 1e-5}[kind]
    command = ["hidet-run", str(folder / "paged.hir"), "-q", "--rtol=%g" % tolerance,
               "--atol=%g" % tolerance, "--expected=@%s" % (folder / "o.npy"), *sys.argv[4:]]
    for name, (_, value) in given.items():
        numpy.save(folder / (name + ".npy"), value)
        command.append("--input=%s=@%s" % (name, folder / (name + ".npy")))
    run = subprocess.run(command, text=True, capture_output=True)
    if run.returncode != 0:
        print(text, run.stdout, run.stderr)
        sys.exit("case %d of seed %d" % (number, seed))


for i in range(count):
    case(i)
