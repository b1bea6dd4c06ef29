# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attentions of drawn shapes, masks, groups of heads and types, against NumPy in
f64: each is one kernel.

usage: attentions.py FOLDER COUNT SEED [large] [hidet-run's options...]
large: shapes that attention_wgmma takes, and no other template
"""
import pathlib
import subprocess
import sys

import numpy

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = numpy.random.default_rng(seed)
options = sys.argv[4:]
LARGE = options[:1] == ["large"]
if LARGE:
    options = ["--disable-template=attention_mma"] + options[1:]
SIZES = [8, 9, 16, 24, 31, 33, 40, 61, 64, 67, 96, 104, 128, 131, 197]
WIDTHS = [8, 16, 24, 32, 40, 64, 72, 80, 96, 128, 200, 256, 11, 35]


class Graph:
    """The text, and the inputs that it names."""

    def __init__(self):
        self.lines, self.inputs, self.next = [], {}, 0

    def input(self, name, value, kind="f16"):
        self.inputs[name] = (value, kind)
        return name

    def node(self, kind, shape, call):
        self.next += 1
        name = "t%d" % self.next
        self.lines.append("  %s: %s[%s] = %s" % (name, kind, ", ".join(map(str, shape)), call))
        return name

    def text(self, result):
        inputs = ", ".join("%s: %s[%s]" % (name, kind, ", ".join(map(str, value.shape)))
                           for name, (value, kind) in self.inputs.items())
        return "graph main(%s) -> %s {\n%s\n}\n" % (inputs, result, "\n".join(self.lines))


def mask_of(g, s, scores, shape, choice):
    """Masks the scores, in the graph and in numbers."""
    b, h, m, n = shape
    if choice == "added":
        mask = numpy.where(rng.random((m, n)) < 0.3, -numpy.inf,
                           rng.standard_normal((m, n))).astype(numpy.float32)
        return g.node("f32", shape, "add(%s, %s)" % (s, g.input("mask", mask, "f32"))), scores + mask
    if choice == "keys":
        keep = rng.random((b, 1, 1, n)) < 0.7
        if rng.integers(3) == 0:
            keep[0] = False  # Rows without any key.
        low = g.input("low", numpy.full((), -numpy.inf, numpy.float32), "f32")
        return (g.node("f32", shape, "where(%s, %s, %s)" % (g.input("keep", keep, "bool"), s, low)),
                numpy.where(keep, scores, -numpy.inf))
    if choice == "causal":
        past = int(rng.integers(-8, n))
        seen = numpy.arange(n)[None, :] <= numpy.arange(m)[:, None] + past
        return (g.node("f32", shape, "mask_causal(%s) { past = %d }" % (s, past)),
                numpy.where(seen, scores, -numpy.inf))
    if choice == "finite":  # As models write it.
        mask = numpy.where(rng.random((m, n)) < 0.3, -3.4028235e38, 0).astype(numpy.float32)
        mask[0] = -3.4028235e38
        g.input("mask", mask, "f32")
        return (g.node("f32", shape, "add(%s, mask)" % s),
                (scores.astype(numpy.float32) + mask).astype(numpy.float64))
    if choice == "capped":
        return (g.node("f32", shape, "softcap(%s) { cap = 2.0 }" % s), 2 * numpy.tanh(scores / 2))
    return s, scores


def case(number):
    b, h = int(rng.choice([1, 1, 2])), int(rng.choice([1, 2, 3, 4]))
    group = int(rng.choice([1, 1, 2])) if h % 2 == 0 else 1
    m, n = (int(rng.choice([64, 72, 131, 192, 197, 256] if LARGE else SIZES)) for _ in range(2))
    n += 65 if LARGE else 0
    if not LARGE and rng.integers(5) == 0:  # As in decoding.
        m, n = int(rng.integers(1, 8)), int(rng.choice([8, 67, 300, 1030, 2048]))
    d, e = (int(rng.choice([52, 56, 64, 120, 128] if LARGE else WIDTHS)) for _ in range(2))
    kind = str(rng.choice(["f16", "f16", "bf16"]))
    choice = str(rng.choice(["none", "added", "keys", "causal", "finite", "capped"]))
    flipped, guarded, merged = (bool(rng.integers(2)) for _ in range(3))

    def draw(*shape):
        return (numpy.round(rng.standard_normal(shape) * 16) / 16).astype(numpy.float16)

    q, k, v = draw(b, h, m, d), draw(b, h // group, n, d), draw(b, h // group, n, e)
    g = Graph()
    names = {}
    for name, value in (("q", q), ("v", v),
                        ("k", k.transpose(0, 1, 3, 2).copy() if flipped else k)):
        names[name] = g.node(kind, value.shape, "cast(%s) { U = %s }" % (g.input(name, value), kind))
    for name in "kv" if group > 1 else "":
        shape = list(g.inputs[name][0].shape)
        wide = [shape[0], shape[1], group] + shape[2:]
        at = g.node(kind, [shape[0], shape[1], 1] + shape[2:], "reshape(%s)" % names[name])
        at = g.node(kind, wide, "expand(%s) { sizes = %s }" % (at, wide))
        names[name] = g.node(kind, [shape[0], h] + shape[2:], "reshape(%s)" % at)
    shape = [b, h, m, n]
    s = g.node("f32", shape, "matmul(%s, %s) { %sR = f32 }" % (names["q"], names["k"], "" if flipped else "tb = true, "))
    scale = g.input("scale", numpy.array(d ** -0.5, numpy.float32), "f32")
    s = g.node("f32", shape, "mul(%s, %s)" % (s, scale))
    wide = [numpy.repeat(x, group, 1).astype(numpy.float64) for x in (k, v)]
    scores = q.astype(numpy.float64) @ wide[0].transpose(0, 1, 3, 2) * d ** -0.5
    s, scores = mask_of(g, s, scores, shape, choice)
    r = g.node("f32", shape, "softmax(%s) { s = 3 }" % s)
    r = g.node(kind, shape, "cast(%s) { U = %s }" % (r, kind))
    with numpy.errstate(invalid="ignore"):
        weights = numpy.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
    if guarded:
        nan = g.node("bool", shape, "is_nan(%s)" % r)
        g.lines.insert(0, "  const zero: %s[] = 0.0" % kind)
        r = g.node(kind, shape, "where(%s, zero, %s)" % (nan, r))
        weights = numpy.where(numpy.isnan(weights), 0, weights)
    y = g.node("f32", [b, h, m, e], "matmul(%s, %s) { R = f32 }" % (r, names["v"]))
    o = weights @ wide[1]
    if merged:
        y = g.node("f32", [b, m, h, e], "transpose(%s) { order = [0, 2, 1, 3] }" % y)
        y = g.node("f32", [b, m, h * e], "reshape(%s)" % y)
        o = o.transpose(0, 2, 1, 3).reshape(b, m, h * e)
    (folder / "attention.hir").write_text(g.text(y))
    numpy.save(folder / "attention_o.npy", o.astype(numpy.float32))
    near = "4e-3" if kind == "f16" else "3e-2"
    command = ["hidet-run", str(folder / "attention.hir"), "--rtol=" + near,
               "--atol=" + near, "--expected=@%s" % (folder / "attention_o.npy")]
    for name, (value, _) in g.inputs.items():
        numpy.save(folder / ("attention_%s.npy" % name), value)
        command.append("--input=%s=@%s" % (name, folder / ("attention_%s.npy" % name)))
    done = subprocess.run(command + options, text=True, capture_output=True)
    said = subprocess.run(["hidet-opt", "--target=sm_90a", "--fuse", "--explain", "-o", "/dev/null",
                           *options[:LARGE], str(folder / "attention.hir")], text=True, capture_output=True)
    one = "are one task over attention" in said.stderr
    if done.returncode or not one:
        print("case %d of seed %d: b %d h %d/%d m %d n %d d %d e %d %s %s%s%s%s: exit %d%s\n%s%s" % (
            number, seed, b, h, group, m, n, d, e, kind, choice, " flipped" * flipped,
            " guarded" * guarded, " merged" * merged, done.returncode,
            "" if one else ", several kernels" + said.stderr, done.stdout, done.stderr))
    return done.returncode == 0 and one


right = sum(case(number) for number in range(count))
print("%d of %d as NumPy says" % (right, count))
sys.exit(right != count)
