# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions of drawn images by drawn candidates of product_windows, against
NumPy: of small integers, so that all sums are exact and results have to be
equal. Small ones: what the head demands of sizes is left out, but for columns,
of which b may stay where they are one tile.

usage: images.py FOLDER TEMPLATES.hir COUNT SEED [hidet-run's options...]
"""
import pathlib
import re
import subprocess
import sys

import numpy

folder, library = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
count, seed = int(sys.argv[3]), int(sys.argv[4])
rng = numpy.random.default_rng(seed)
TASK = """task image(x: {T}[n, h, l, c], w: {T}[o, kh, kw, c], sh: i64, sw: i64, dh: i64, dw: i64, ph: i64,
           pw: i64, oh: i64, ow: i64) -> y: {O}[n, oh, ow, o] {{
  y[b, i, j, f] = {O}(sum(p: c, u: kh, v: kw) f32(x[b, i * sh + u * dh - ph, j * sw + v * dw - pw, p]{outside}) * f32(w[f, u, v, p]))
}}
"""
text, changed = re.subn(r"requires native == 1[^\n]*", "requires native == 1, rows == 1, z == 1, "
                        "STAYS == (n <= BN ? 1 : 0)", library.read_text())
assert changed == 1
(folder / "template.hir").write_text(text)


def draw(*choices):
    return int(rng.choice(choices))


def compute(x, w, strides, dilations, pads, sizes):
    room = [(0, 0)] + [(p, p + s * o) for p, s, o in zip(pads, strides, sizes)] + [(0, 0)]
    x, y = numpy.pad(x, room), 0
    for u, v in numpy.ndindex(w.shape[1:3]):
        r, c = u * dilations[0], v * dilations[1]
        at = x[:, r:r + sizes[0] * strides[0]:strides[0], c:c + sizes[1] * strides[1]:strides[1]]
        y = y + at @ w[:, u, v].T
    return y


def is_product(kernel, strides, sizes, pads):
    """Of rows that lie side by side."""
    return kernel == [1, 1] and pads == [0, 0] and all(
        s == 1 or n == 1 for s, n in zip(strides, sizes))


def case(number):
    kind = str(rng.choice(["f16", "f16", "bf16"]))
    c, o = draw(8, 24, 64, 72, 136), draw(8, 16, 40, 64, 72, 136, 200)
    n, h, l = draw(1, 1, 2, 3), draw(1, 3, 5, 7, 12), draw(3, 7, 8, 13)
    kernel = [draw(1, 1, 3, 3), draw(1, 3, 3, 5)]
    strides, dilations = [draw(1, 1, 2, 3), draw(1, 1, 2)], [draw(1, 1, 2), draw(1, 1, 2)]
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    pads = [draw(0, e // 2, e // 2, e) for e in extents]
    sizes = [max((s + 2 * p - e) // t + 1, 0)
             for s, t, e, p in zip((h, l), strides, extents, pads)]
    if not all(sizes) or n * sizes[0] * sizes[1] < 8 or is_product(kernel, strides, sizes, pads):
        return case(number)
    x = rng.integers(-2, 3, (n, h, l, c)).astype(numpy.float32)
    w = rng.integers(-1, 2, (o, *kernel, c)).astype(numpy.float32)
    y = compute(x, w, strides, dilations, pads, sizes)
    if numpy.abs(y).max() > (200 if kind == "bf16" else 2000):
        return case(number)
    result = str(rng.choice(["f32", kind]))
    program = TASK.format(T=kind, O=result, outside=" else 0" if any(pads) else "")
    shapes = [", ".join(map(str, v.shape)) for v in (x, w, y)]
    program += "graph main(x: {0}[{1}], w: {0}[{2}]) -> y {{\n".format(kind, *shapes)
    relu = draw(0, 1)
    program += "  s: %s[%s] = image(x, w) { sh = %d, sw = %d, dh = %d, dw = %d, ph = %d, pw = %d, " \
               "oh = %d, ow = %d } with product_windows(BN = %d, STEP = %d, C = %d)\n" % (
                   result, shapes[2], *strides, *dilations, *pads, *sizes,
                   draw(32, 64, 96, 128, 160, 192, 256), draw(64, 128), draw(1, 2))
    last = "s"
    if relu:
        last, y = "r", numpy.maximum(y, 0)
        program += "  r: %s[%s] = relu(s)\n" % (result, shapes[2])
    program += "  y: f32[%s] = %s\n}\n" % (
        shapes[2], "cast(%s) { U = f32 }" % last if result != "f32" else "neg(%s)" % last)
    y = y if result != "f32" else -y
    path = folder / "image.hir"
    path.write_text(program)
    for name, value in {"x": x, "w": w}.items():
        numpy.save(folder / (name + ".npy"), value.astype(numpy.float16) if kind == "f16"
                   else (value.view(numpy.uint32) >> 16).astype(numpy.uint16))
    numpy.save(folder / "y.npy", y.astype(numpy.float32))
    command = ["hidet-run", str(path), "-q", "--rtol=0", "--atol=0",
               "--load=%s" % (folder / "template.hir"), "--expected=@%s" % (folder / "y.npy")]
    command += ["--input=%s=@%s" % (name, folder / (name + ".npy")) for name in "xw"]
    done = subprocess.run(command + sys.argv[5:], text=True, capture_output=True)
    if done.returncode:
        print("case %d of seed %d: exit %d\n%s%s%s" % (
            number, seed, done.returncode, program, done.stdout, done.stderr))
    return done.returncode == 0


right = sum(case(number) for number in range(count))
print("%d of %d as NumPy says" % (right, count))
sys.exit(right != count)
