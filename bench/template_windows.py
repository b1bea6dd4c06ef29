# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs that are drawn for templates of windows in images: products of all
channels, of few of them wherever they lie, and of each by itself. Of small
integers, so that all sums are exact and results have to be equal
(template_shapes.py).
"""

import math

import numpy

import template_cases

TASK = """task {name}(x: {T}[{x}], w: {T}[{w}], sh: i64, sw: i64, dh: i64,
    dw: i64, ph: i64, pw: i64, oh: i64, ow: i64) -> y: {A}[n, oh, ow, {o}] {{
  y[b, i, j, f] = sum({p}u: kh, v: kw) {A}(x[{at}]{outside}) * {A}(w[{place}])
}}
"""
ROW, COLUMN = "i * sh + u * dh - ph", "j * sw + v * dw - pw"
LAST = "n, h, l, c", "b, " + ROW + ", " + COLUMN + ", %s"
FIRST = "n, c, h, l", "b, %s, " + ROW + ", " + COLUMN
VARIANTS = {
    "all": {"w": "o, kh, kw, c", "o": "o", "p": "p: c, ", "x": LAST[0],
            "at": LAST[1] % "p", "place": "f, u, v, p"},
    "each": {"w": "kh, kw, c", "o": "c", "p": "", "x": LAST[0],
             "at": LAST[1] % "f", "place": "u, v, f"},
    # Channels that are filled up.
    "pixels": {"w": "kh, kw, e, o", "o": "o", "p": "p: e, ", "x": LAST[0],
               "at": LAST[1] % "p", "place": "u, v, p, f"},
    "planes": {"w": "kh, kw, e, o", "o": "o", "p": "p: e, ", "x": FIRST[0],
               "at": FIRST[1] % "p", "place": "u, v, p, f"}}


class Windows:
    """Where windows lie; None of its sizes is 0."""

    def __init__(self, rng, large=()):
        """large: sizes of images and windows beside the rest."""
        draw = lambda *choices: int(rng.choice(choices))
        while True:
            self.count = draw(1, 1, 2, 3)
            self.image = [draw(1, 3, 5, 7, 12, *large), draw(3, 7, 8, 13, *large)]
            self.kernel = [draw(1, 1, 3, 5, *large[:1]), draw(1, 3, 3, 5, *large[:1])]
            self.strides = [draw(1, 1, 2, 3), draw(1, 1, 2)]
            self.dilations = [draw(1, 1, 2), draw(1, 1, 2)]
            extents = [(k - 1) * d + 1
                       for k, d in zip(self.kernel, self.dilations)]
            self.pads = [draw(0, e // 2, e // 2, e) for e in extents]
            self.sizes = [max((s + 2 * p - e) // t + 1, 0) for s, t, e, p in zip(
                self.image, self.strides, extents, self.pads)]
            # One element is no window.
            if all(self.sizes) and self.kernel != [1, 1]:
                return

    def parts(self, x):
        """What each element of the kernel reads."""
        room = [(0, 0)] + [(p, p + s * o) for p, s, o in zip(
            self.pads, self.strides, self.sizes)] + [(0, 0)]
        x = numpy.pad(x, room)
        for u, v in numpy.ndindex(*self.kernel):
            r, c = u * self.dilations[0], v * self.dilations[1]
            yield u, v, x[:, r:r + self.sizes[0] * self.strides[0]:self.strides[0],
                          c:c + self.sizes[1] * self.strides[1]:self.strides[1]]

    def __str__(self):
        return "%d of %s by %s strides %s dilations %s pads %s" % (
            self.count, self.image, self.kernel, self.strides, self.dilations,
            self.pads)


def finish(rng, case, template, values, windows, kind, operands, y, variant):
    """The node with its candidate, and what follows it."""
    filled = variant in ("pixels", "planes")
    outside = filled or any(windows.pads)
    name = "%s_%s%s" % (variant, kind, "_padded" if outside else "")
    sums = "i32" if kind in ("i8", "u8") else "f32"
    case.items[name] = TASK.format(
        name=name, T=kind, A=sums, outside=" else 0.0" if filled else
        " else 0" if outside else "", **VARIANTS[variant])
    cast = filled and rng.integers(2)
    s = case.node(sums, y.shape, "%s(%s) { %s }%s" % (
        name, ", ".join(case.operand(n, v, kind, cast and n == "x")
                        for n, v in zip("xw", operands)),
        ", ".join("%s = %d" % item for item in zip(
            ("sh", "sw", "dh", "dw", "ph", "pw", "oh", "ow"),
            windows.strides + windows.dilations + windows.pads + windows.sizes)),
        template_cases.pins(template, values)))
    across = int(rng.integers(2))
    if across:
        y = y.transpose(3, 0, 1, 2)
        end = case.node(sums, y.shape,
                        "transpose(%s) { order = [3, 0, 1, 2] }" % s)
    else:
        y = numpy.maximum(y, 0)
        end = case.node(sums, y.shape, "relu(%s)" % s)
    case.expect(end, y, 0)
    case.says = "%s %s %s %s %s %s%s" % (
        windows, variant, [v.shape for v in operands], kind,
        "across" if across else "relu", values, " cast" if cast else "")


def draw_images(rng, case, template):
    """How large sizes are, as the head demands it, is left out."""
    while True:
        windows, kind = Windows(rng), str(rng.choice(template.types))
        c, o = int(rng.choice([8, 24, 64, 72, 136])), int(
            rng.choice([8, 16, 40, 64, 72, 136, 200]))
        if kind in ("i8", "u8"):  # Whole pieces of 16 bytes.
            c = -(-c // 16) * 16
        values = template.draw(rng)
        facts = {"z": 1, "m": windows.count * math.prod(windows.sizes), "n": o,
                 "k": c * math.prod(windows.kernel), "rows": 1,
                 "bits": template_cases.BITS.get(kind, 16)}
        if (facts["m"] >= 8 and template.has_room(values, facts)
                and template.allows(
                    values, facts, r"^(m|k) [<>]=? \d+$")):
            break
    least = 0 if kind == "u8" else -1
    x = rng.integers(2 * least, 3, (windows.count, *windows.image, c)).astype(float)
    w = rng.integers(least, 2, (o, *windows.kernel, c)).astype(float)
    y = sum(part @ w[:, u, v].T for u, v, part in windows.parts(x))
    case.blocks, case.partial = template.tiles(values, facts)
    finish(rng, case, template, values, windows, kind, (x, w), y, "all")


def draw_pixels(rng, case, template):
    windows, kind = Windows(rng, (7, 35)), str(rng.choice(template.types))
    c, o = int(rng.integers(1, 9)), int(rng.choice([8, 9, 16, 24, 40, 64, 72, 96]))
    filled = -(-c // 4) * 4
    high, wide = ((k - 1) * d + 1
                  for k, d in zip(windows.kernel, windows.dilations))
    facts = {"z": 1, "m": windows.count * math.prod(windows.sizes), "n": o,
             "k": filled * math.prod(windows.kernel), "rows": 0, "bits": 16,
             "high": high, "wide": wide, "down": windows.strides[0],
             "across": windows.strides[1]}
    values = template.draw(rng)
    if facts["m"] < 8 or not (template.has_room(values, facts)
                              and template.allows(values, facts)):
        return draw_pixels(rng, case, template)
    x = rng.integers(-2, 3, (windows.count, *windows.image, c)).astype(float)
    w = rng.integers(-1, 2, (*windows.kernel, filled, o)).astype(float)
    y = sum(part @ w[u, v, :c] for u, v, part in windows.parts(x))
    tile = [template_cases.evaluate(text, values, facts)
            for text in template.figure("places") + template.figure("tile")[1:2]]
    sizes = (*windows.sizes, o)
    case.blocks = windows.count * math.prod(
        -(-a // b) for a, b in zip(sizes, tile))
    case.partial = any(a % b for a, b in zip(sizes, tile))
    variant = "planes" if rng.integers(2) else "pixels"
    if variant == "planes":
        x = x.transpose(0, 3, 1, 2)
    finish(rng, case, template, values, windows, kind, (x, w), y, variant)
    return None


def draw_each(rng, case, template):
    windows = Windows(rng, (7, 35))
    if "maps" in template.head and any(k == s == 1 < i for k, s, i in zip(
            windows.kernel, windows.sizes, windows.image)):
        return draw_each(rng, case, template)  # One row or column of the image.
    kind = str(rng.choice(template.types))
    bits = template_cases.BITS.get(kind, 16)
    c = int(rng.choice([2, 3, 8, 16, 24, 58, 96]))
    high, wide = ((k - 1) * d + 1
                  for k, d in zip(windows.kernel, windows.dilations))
    steps = [stride if size > 1 else 1  # One window takes no steps.
             for stride, size in zip(windows.strides, windows.sizes)]
    facts = {"z": windows.count, "m": windows.sizes[0], "n": windows.sizes[1],
             "c": c, "u": windows.kernel[0], "v": windows.kernel[1],
             "s": steps[0], "t": steps[1], "bits": bits,
             "lanes": math.gcd(c, 128 // bits), "high": high, "wide": wide,
             "line": windows.image[1]}
    for _ in range(100):
        values = template.draw(rng)
        if template.allows(values, facts) and template.has_room(values, facts):
            break
    else:
        return draw_each(rng, case, template)
    x = rng.integers(-2, 3, (windows.count, *windows.image, c)).astype(float)
    w = rng.integers(-2, 3, (*windows.kernel, c)).astype(float)
    y = sum(part * w[u, v] for u, v, part in windows.parts(x))
    tile = [template_cases.evaluate(text, values, facts)
            for text in template.figure("tile")]
    sizes = (*windows.sizes, c)
    tiles = windows.count * math.prod(-(-a // b) for a, b in zip(sizes, tile))
    # Of a block, or of a thread.
    of = 1 if template.figure("shared") != ["0"] else values["THREADS"]
    case.blocks = -(-tiles // of)
    case.partial = tiles % of != 0 or any(a % b for a, b in zip(sizes, tile))
    finish(rng, case, template, values, windows, kind, (x, w), y, "each")
    return None
