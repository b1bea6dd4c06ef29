# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows of each channel by itself, drawn, by the template that is chosen for
them or a drawn candidate of it, against NumPy: of small integers, so that all
sums are exact and results have to be equal; of a third a few elements are
infinite, which no result may know that does not read them, and of a third a few
weights, which all results know: beside an image, too, there is 0 times them. To the
sums a tensor is added that lies along some of the result's axes, behind them relu; of
16-bit operands half of the results are stored in their type, and a third of the sums
are rounded to it before.

usage: windows.py FOLDER TEMPLATE.hir COUNT SEED [hidet-run's options...]
"""
import pathlib
import re
import subprocess
import sys

import numpy

folder, path = map(pathlib.Path, sys.argv[1:3])
TEMPLATE, head = path.stem, path.read_text()
count, seed = int(sys.argv[3]), int(sys.argv[4])
rng = numpy.random.default_rng(seed)
CHOICES = {name: [int(v) for v in values.split(",")] for name, values in re.findall(
    r"(\w+) in \{([\d, ]+)\}", head[head.index("\ntemplate "):])}
TASK = """task window(x: {T}[n, h, l, c], w: {T}[kh, kw, c], sh: i64, sw: i64, dh: i64, dw: i64, ph: i64,
            pw: i64, oh: i64, ow: i64) -> y: {O}[n, oh, ow, c] {{
  y[b, i, j, f] = {O}(sum(u: kh, v: kw) f32(x[b, i * sh + u * dh - ph, j * sw + v * dw - pw, f]{outside}) * f32(w[u, v, f]))
}}
"""


def draw(*choices):
    return int(rng.choice(choices))


def reach(size, stride, extent, pads):
    return max((size + pads - extent) // stride + 1, 0)


def compute(x, w, strides, dilations, pads, sizes):
    room = [(0, 0)] + [(p, p + s * o) for p, s, o in zip(pads, strides, sizes)] + [(0, 0)]
    x = numpy.pad(x, room)
    y = 0
    for u, v in numpy.ndindex(w.shape[:2]):
        r, c = u * dilations[0], v * dilations[1]
        y = y + w[u, v] * x[:, r:r + sizes[0] * strides[0]:strides[0],
                            c:c + sizes[1] * strides[1]:strides[1]]
    return y


def case(number):
    kind = str(rng.choice(["f16", "f16", "bf16", "f32"]))
    c = draw(2, 3, 8, 16, 24, 40, 58, 96)
    n, h, l = draw(1, 1, 2, 3), draw(1, 2, 5, 7, 9, 14), draw(1, 3, 7, 8, 13)
    kernel = [draw(1, 2, 3, 5), draw(1, 3, 3, 5, 7)]
    strides, dilations = [draw(1, 1, 2, 3), draw(1, 1, 2)], [draw(1, 1, 2), draw(1, 1, 2)]
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    pads = [draw(0, e // 2, e // 2) for e in extents]
    sizes = [reach(s, t, e, 2 * p) for s, t, e, p in zip((h, l), strides, extents, pads)]
    if not all(sizes) or kernel == [1, 1]:
        return case(number)
    x = rng.integers(-2, 3, (n, h, l, c)).astype(numpy.float32)
    w = rng.integers(-2, 3, (*kernel, c)).astype(numpy.float32)
    if rng.integers(3) == 0:
        x.flat[rng.integers(0, x.size, 3)] = numpy.inf, -numpy.inf, numpy.nan
    if rng.integers(3) == 0:
        w.flat[rng.integers(0, w.size, 2)] = numpy.inf, numpy.nan
    y = compute(x, w, strides, dilations, pads, sizes)
    b = rng.integers(-8, 9, [size if rng.integers(2) else 1 for size in y.shape])
    y = numpy.maximum(y + b, 0)
    stored = kind if kind != "f32" and rng.integers(2) else "f32"
    pin = ""
    if rng.integers(2):
        pin = " with %s(%s)" % (TEMPLATE, ", ".join(
            "%s = %d" % (key, draw(*values)) for key, values in CHOICES.items()))
    given = kind if kind != "bf16" else "f32"
    result = kind if rng.integers(3) == 0 else "f32"
    text = TASK.format(T=kind, O=result, outside=" else 0" if any(pads) else "")
    text += "graph main(x: {0}[{1}], w: {0}[{2}], b: f32[{3}]) -> y {{\n".format(
        given, *(", ".join(map(str, a.shape)) for a in (x, w, b)))
    names = ["x", "w"]
    if kind == "bf16":
        names = ["xt", "wt"]
        for name, value in zip(names, (x, w)):
            text += "  %s: bf16[%s] = cast(%s) { U = bf16 }\n" % (
                name, ", ".join(map(str, value.shape)), name[0])
    shape = ", ".join(map(str, y.shape))
    text += "  r: %s[%s] = window(%s, %s) { sh = %d, sw = %d, dh = %d, dw = %d, ph = %d, " \
            "pw = %d, oh = %d, ow = %d }%s\n  s: f32[%s] = cast(r) { U = f32 }\n" \
            "  t: f32[%s] = add(s, b)\n  u: f32[%s] = relu(t)\n" % (
                result, shape, *names, *strides, *dilations, *pads, *sizes, pin, shape,
                shape, shape)
    text += "  v: %s[%s] = cast(u) { U = %s }\n  y: f32[%s] = cast(v) { U = f32 }\n}\n" % (
        stored, shape, stored, shape)
    path = folder / "window.hir"
    path.write_text(text)
    for name, value in {"x": x, "w": w, "b": b}.items():
        numpy.save(folder / (name + ".npy"), value.astype(
            numpy.float16 if given == "f16" and name != "b" else numpy.float32))
    numpy.save(folder / "y.npy", y.astype(numpy.float32))
    command = ["hidet-run", str(path), "-q", "--rtol=0", "--atol=0",
               "--expected=@%s" % (folder / "y.npy")]
    command += ["--input=%s=@%s" % (name, folder / (name + ".npy")) for name in "xwb"]
    done = subprocess.run(command + sys.argv[5:], text=True, capture_output=True)
    if done.returncode == 3 and pin and "E0320" in done.stderr:
        return case(number)  # Not for these sizes.
    if done.returncode:
        print("case %d of seed %d: exit %d\n%s%s%s" % (
            number, seed, done.returncode, text, done.stdout, done.stderr))
    return done.returncode == 0


numpy.seterr(invalid="ignore")
right = sum(case(number) for number in range(count))
print("%d of %d as NumPy says" % (right, count))
sys.exit(right != count)
