# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs that are drawn for templates of products, with inputs and with what
NumPy makes of them in f64: of matrices of all types, of narrow integers with
scales, of normalized rows, of matrices that an index chooses (template_shapes.py).
"""

import numpy

from template_cases import (
    BITS, F8, KEPT, eighths, evaluate, pins, quarters, size_of)


# Products.

# Below 8 a product is none to the scheduler, but for its batch.
SIZES = [8, 9, 24, 31, 64, 67, 96, 127, 129, 200, 257, 320]
MOST = 1 << 24  # Multiply-adds, of two tiles along each axis: sim does them, too.
EVEN = [8, 16, 40, 64, 72, 104, 128, 136, 200, 264, 320]  # Rows of 16 bytes.


def draw_product(rng, case, template):
    """Sizes below what the head demands are drawn, too. Alignment stays: the
    copy engine takes rows of whole 16 bytes."""
    maps = "maps {a" in template.head
    few = not {"m <= 16", "m <= 8", "m <= M"}.isdisjoint(template.demands)
    kind, after = str(rng.choice(template.types)), str(rng.choice(list(AFTER)))
    while True:
        rows = bool(rng.integers(2))
        turned = "TURNED: bool" in template.kernel and not rng.integers(3)
        z, m = int(rng.choice([1, 1, 2, 3])), int(
            rng.integers(1, 17) if few else size_of(rng, SIZES))
        if turned:  # Else it is not taken so.
            m = -(-m // 16) * 16
        n = size_of(rng, EVEN, 8) if maps and not rows else size_of(rng, SIZES)
        n = n // 2 * 2 if after == "gate" else n
        k = size_of(rng, EVEN + [520], 8) if maps else size_of(
            rng, EVEN + SIZES + [520, 1031])
        if maps:  # Whole pieces of 16 bytes, more than 8 of bytes.
            k = -(-k * BITS.get(kind, 16) // 128) * 128 // BITS.get(kind, 16)
        values = template.draw(rng)
        always = "Q: type" in template.kernel  # It is given what b is computed from.
        kept = str(rng.choice(list(KEPT))) if always or (
            "kept" in template.head and int(rng.integers(3))) else None
        group = int(rng.choice([16, 32, 48, 128]))
        if kept:
            k = max(k // group, 1) * group
        facts = {"rows": rows, "turned": turned, "z": z, "m": m, "n": n, "k": k,
                 "bits": BITS.get(kind, 16), "kept": KEPT.get(kept, 16),
                 "alike": group & -group if kept else 0}
        if (z * m * n * k <= MOST
                and template.allows(values, facts, r"^(m|k) >=? \d+$")
                and template.has_room(values, facts)):
            break
    is_bytes = kind in BYTES
    draw = BYTES.get(kind, quarters if kind in F8 else eighths)
    x = draw(rng, z, m, k)
    w = draw(rng, *((z, n, k) if rows else (z, k, n)))
    # What is computed where it is loaded has no tensor map.
    is_cast = [not maps and int(rng.integers(3)) == 0 for _ in "ab"]
    if kept:
        w, matrix = draw_narrow(rng, case, kind, kept, group, w.shape)
    else:
        matrix = case.operand("w", w, kind, is_cast[1])
    sums = "i32" if is_bytes else "f32"
    p = case.node(sums, (z, m, n), "matmul(%s, %s) { %sR = %s }%s" % (
        case.operand("x", x.transpose(0, 2, 1) if turned else x, kind,
                     is_cast[0]), matrix,
        "ta = true, " * turned + "tb = true, " * rows, sums, pins(template, values)))
    y = x @ (w.transpose(0, 2, 1) if rows else w)
    if is_bytes and after != "none":
        p, y = scale_sums(case, p, y, 2.0 ** (-10 if kind == "i8" else -16))
    AFTER[after](rng, case, p, y)
    tiles, case.partial = template.tiles(values, facts)
    case.blocks = z * tiles
    case.says = "%dx%dx%dx%d %s %s %s %s%s" % (
        z, m, n, k, kind, "turned " * turned + ("rows" if rows else "columns"),
        after, values,
        " of %s by %d" % (kept, group) if kept else "")


def draw_narrow(rng, case, kind, kept, group, shape):
    """A matrix of narrow integers with scales of groups along k, which are powers
    of 2, and zero points: its numbers, and the node that computes it."""
    z, n, k = shape
    parts = z, n, k // group
    low, bits = (-1 if kept[0] == "i" else 0) << KEPT[kept] - 1, KEPT[kept]
    q = rng.integers(low, low + (1 << bits), (*parts, group))
    scale = 2.0 ** rng.integers(-1, 2, (*parts, 1)) / (1 << bits)
    zero = rng.integers(low, low + (1 << bits), (*parts, 1))
    numbers = (q - zero) * scale
    if kind == "bf16":
        numbers = as_bf16(numbers)
    whole = case.node(kind, q.shape, "dequantize(%s, %s, %s) { R = %s }" % (
        case.input("q", q, kept), case.input("s", scale, kind),
        case.input("zero", zero, kept), kind))
    return numbers.reshape(shape), case.node(
        kind, shape, "reshape(%s)" % whole)


def as_bf16(x):
    bits = x.astype(numpy.float32).view(numpy.uint32).astype(numpy.uint64)
    even = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000
    return even.astype(numpy.uint32).view(numpy.float32).astype(float)


BYTES = {"i8": lambda rng, *shape: rng.integers(-128, 128, shape),
         "u8": lambda rng, *shape: rng.integers(0, 256, shape)}


def scale_sums(case, p, y, unit):
    """Those of bytes as floats, small enough for f16."""
    t = case.node("f32", y.shape, "cast(%s) { U = f32 }" % p)
    return (case.node("f32", y.shape, "mul(%s, %s)" % (
        t, case.input("unit", numpy.array(unit), "f32"))), y * unit)


def end_relu(rng, case, p, y):
    v = eighths(rng, y.shape[-1])
    s = case.node("f32", y.shape, "add(%s, %s)" % (p, case.input("v", v, "f32")))
    case.expect(case.node("f32", y.shape, "relu(%s)" % s),
                numpy.maximum(y + v, 0), 1e-3)


def end_cast(rng, case, p, y):
    v = eighths(rng, y.shape[-1])
    s = case.node("f32", y.shape, "add(%s, %s)" % (p, case.input("v", v, "f32")))
    case.expect(case.node("f16", y.shape, "cast(%s)" % s), y + v, 1e-3)


def end_none(rng, case, p, y):
    kind = "i32" if y.dtype.kind == "i" else "f32"
    case.expect(case.node(kind, y.shape, "copy(%s)" % p), y, 1e-3)


def end_bytes(rng, case, p, y):
    """The sums are multiples of what f32 has, so they round as they do here."""
    q = case.node("i8", y.shape, "quantize(%s, %s, %s) { P = f32 }" % (
        p, case.input("step", numpy.array(0.25), "f32"),
        case.input("middle", numpy.array(3), "i8")))
    case.expect(q, numpy.clip(numpy.rint(y * 4) + 3, -128, 127), 0)


def end_across(rng, case, p, y):
    s = case.node("f16", y.shape, "cast(%s)" % p)
    y = y.transpose(2, 0, 1)
    case.expect(case.node("f16", y.shape,
                          "transpose(%s) { order = [2, 0, 1] }" % s), y, 1e-3)


def end_gate(rng, case, p, y):
    """Columns in pairs, of which each makes one."""
    v = eighths(rng, y.shape[-1] // 2)
    shape = (*y.shape[:-1], y.shape[-1] // 2)
    parts = [case.node("f32", shape, "slice(%s) { start = [0, 0, %d], stride = [1, 1, 2], "
                       "size = [%d, %d, %d] }" % (p, i, *shape)) for i in (0, 1)]
    low = case.node("f32", shape, "mul(%s, %s)" % (
        parts[0], case.input("low", numpy.array(2.0 ** -8), "f32")))
    s = case.node("f32", shape, "add(%s, %s)" % (
        low, case.input("v", v, "f32")))
    g = case.node("f32", shape, "mul(%s, %s)" % (
        case.node("f32", shape, "relu(%s)" % s), parts[1]))
    case.expect(case.node("f16", shape, "cast(%s)" % g),
                numpy.maximum(y[..., 0::2] * 2.0 ** -8 + v, 0) * y[..., 1::2], 1e-3)


AFTER = {"gate": end_gate, "relu": end_relu, "cast": end_cast, "none": end_none,
         "across": end_across, "bytes": end_bytes}


# Products of normalized rows: with a mean and without, rows whose mean is 100
# deviations.

def draw_normed(rng, case, template):
    rows, centred = bool(rng.integers(2)), bool(rng.integers(3))
    k = size_of(rng, [256, 320, 512, 768], 64)
    m = size_of(rng, [9, 11, 31, 64, 67, 128, 130])
    m = m if centred else max(m, 17)
    n = size_of(rng, [8, 9, 31, 64, 129, 200], 1 if rows else 8)
    n = n if rows else -(-n // 8) * 8
    kind, wide = str(rng.choice(template.types)), bool(rng.integers(2))
    while True:
        values = template.draw(rng)
        facts = {"rows": rows, "k": k, "bits": 16, "z": 1, "m": m, "n": n, "mean": int(centred)}
        if template.allows(values, facts) and template.has_room(values, facts):
            break
    case.blocks, case.partial = template.tiles(values, facts)
    # Exact in both types; bf16 has 8 bits.
    far = 100 if kind == "f16" and centred and rng.integers(2) else 0
    x = eighths(rng, 1, m, k) + far
    w = eighths(rng, *((n, k) if rows else (k, n))) / 16
    matrix = w.T if rows else w
    u, v, b = matrix.sum(0), rng.standard_normal(n), rng.standard_normal(n)
    mean = x.mean(-1) if centred else numpy.zeros((1, m))
    inverse = 1 / numpy.sqrt(((x - mean[..., None]) ** 2).mean(-1) + 1e-3)
    y = ((x - mean[..., None]) * inverse[..., None]) @ matrix + (
        v if centred else 0)
    result = "f32" if wide else kind
    # What distances in T lose, and f32 sums where x is far from 0.
    bound = {"f32": 2e-4 if kind == "f16" else 2e-3, "f16": 2e-3,
             "bf16": 2e-2}[result] + far * 5e-6
    near = 1e-4 if kind == "f16" else 1e-3

    xt, wt = case.input("x", x, kind), case.input("w", w, kind)
    extra = "".join(", " + case.input(*item, "f32") for item in
                    (("u", u), ("v", v))) if centred else ""
    p, tail = "p_%d" % case.number, "_%d: f32[1, %d]" % (case.number, m)
    case.add("%s: %s[1, %d, %d], %sinverse%s = %s(%s, %s%s) { epsilon = 1e-3, "
             "tb = %s%s }%s" % (
                 p, result, m, n, "mean%s, " % tail if centred else "", tail,
                 "norm_matmul" if centred else "rms_matmul", xt, wt, extra,
                 "true" if rows else "false", ", R = f32" if wide else "",
                 pins(template, values)))
    # Distances of bf16 move the mean.
    more = near * numpy.abs(u) * inverse[..., None] if kind == "bf16" else 0
    after = str(rng.choice(["none", "relu", "across"]))
    if after == "relu":
        bt = case.node(result, [n], "cast(%s)" % case.input("b", b, "f32"))
        s = case.node(result, y.shape, "add(%s, %s)" % (p, bt))
        end, y = case.node(result, y.shape, "relu(%s)" % s), numpy.maximum(y + b, 0)
    elif after == "across":
        y, more = (numpy.broadcast_to(v, (1, m, n)).transpose(2, 0, 1)
                   for v in (y, more))
        end = case.node(result, y.shape,
                        "transpose(%s) { order = [2, 0, 1] }" % p)
    else:
        end = case.node(result, y.shape, "copy(%s)" % p)
    case.expect(end, y, bound, more)
    case.expect("inverse_%d" % case.number, inverse, near)
    if centred:
        case.expect("mean_%d" % case.number, mean, near * (1 + far / 20))
    case.says = "%dx%dx%d %s %s %s %s far %g %s" % (
        m, n, k, kind, result, "rows" if rows else "columns", after, far, values)


# Products of rows by matrices that an index chooses.

def draw_grouped(rng, case, template, values):
    """Of each token several rows, each by a matrix of its own, drawn from all, from
    a few, or always one. All matrices may come first, of which parts are chosen."""
    kind, first = str(rng.choice(template.types)), bool(rng.integers(2))
    tokens, each = int(rng.integers(20, 90)), int(rng.choice([1, 2, 3, 8]))
    z, n, k = int(rng.integers(2, 20)), int(rng.integers(8, 320)), 8 * int(
        rng.integers(16, 60))
    m = tokens * each
    at = rng.choice(rng.permutation(z)[:int(rng.choice([1, min(z, 3), z]))], m)
    x, w = eighths(rng, tokens, 1, k), eighths(rng, z, n, k) / 16
    rows = numpy.repeat(x[:, 0], each, axis=0)
    y = numpy.stack([w[matrix] @ row for matrix, row in zip(at, rows)])

    xt, index = case.input("x", x, kind), case.input("at", at[None], "i64")
    wt = case.input("w", w.reshape(1, z, n * k), kind)
    if first:
        p = case.node(kind, (tokens, z * n), "matmul(%s, %s) { tb = true }" % (
            case.node(kind, (tokens, k), "reshape(%s)" % xt),
            case.node(kind, (z * n, k), "reshape(%s)" % wt)))
        end = case.node(kind, (m, n), "choose_parts(%s, %s)" % (
            case.node(kind, (tokens, z, n), "reshape(%s)" % p), index))
    else:
        g = case.node(kind, (1, m, n * k), "gather_rows(%s, %s)" % (wt, index))
        xt = case.node(kind, (tokens, each, k), "expand(%s) { sizes = [%d, %d, %d] }" % (
            xt, tokens, each, k))
        p = case.node(kind, (m, n, 1), "matmul(%s, %s)" % (
            case.node(kind, (m, n, k), "reshape(%s)" % g),
            case.node(kind, (m, k, 1), "reshape(%s)" % xt)))
        end = case.node(kind, (m, n), "reshape(%s)" % p)
    case.expect(end, y, 1e-3 if kind == "f16" else 8e-3)
    rows, columns = (evaluate(text, values, {}) for text in template.tile)
    case.blocks = (min(z, m) + m // rows) * -(-n // columns)
    case.partial = bool(m % rows or n % columns)
    case.says = "%d rows of %d tokens, %d matrices of %dx%d %s %s%s" % (
        m, tokens, z, n, k, kind, values, " all first" * first)


# Products of rows whose parts' squares are there, drawn like all else; of pairs of
# columns, too.

def draw_scaled(rng, case, template, many):
    rows, part = bool(rng.integers(2)), int(rng.choice([8, 16, 32, 64]))
    k = -(-size_of(rng, [256, 320, 512, 768], 64) // (8 * part)) * 8 * part
    t = k // part
    m = size_of(rng, [65, 67, 128, 130, 200] if many else [9, 11, 31, 64, 67, 128, 130])
    n = size_of(rng, [512, 1000, 2056] if many else [8, 9, 31, 64, 129, 200],
                1 if rows else 8)
    n = n if rows else -(-n // 8) * 8
    kind, wide = str(rng.choice(template.types)), bool(rng.integers(2))
    while True:
        values = template.draw(rng)
        facts = {"rows": rows, "k": k, "bits": 16, "z": 1, "m": m, "n": n, "mean": 0}
        if template.allows(values, facts) and template.has_room(values, facts):
            break
    case.blocks, case.partial = template.tiles(values, facts)
    x, w = eighths(rng, m, k), eighths(rng, *((n, k) if rows else (k, n))) / 16
    squares = rng.random((m, t)) * part + 0.25
    inverse = 1 / numpy.sqrt(squares.sum(-1) / k + 1e-3)
    y = x @ (w.T if rows else w) * inverse[:, None]
    result = "f32" if wide else kind
    bound = {"f32": 1e-3 if kind == "f16" else 1e-2, "f16": 3e-3, "bf16": 3e-2}[result]
    after = str(rng.choice(["none", "relu", "pairs", "across"]))
    if n % 2 and after == "pairs":
        after = "none"
    xt, st, wt = (case.input("x", x, kind), case.input("squares", squares, "f32"),
                  case.input("w", w, kind))
    p = "p_%d" % case.number
    kept = bool(rng.integers(2)) and after != "pairs"
    case.add("%s: %s[%d, %d]%s(%s, %s, %s) { epsilon = 1e-3, tb = %s%s }%s" % (
                 p, result, m, n,
                 ", inverse_%d: f32[%d] = scaled_matmul_inverse" % (case.number, m)
                 if kept else " = scaled_matmul", xt, st, wt,
                 "true" if rows else "false", ", R = f32" if wide else "",
                 pins(template, values)))
    if after == "pairs":
        halves = [case.node(result, [m, n // 2], "slice(%s) { start = [0, %d], "
                            "stride = [1, 2], size = [%d, %d] }" % (p, i, m, n // 2))
                  for i in range(2)]
        end = case.node(result, [m, n // 2], "add(%s, %s)" % (
            case.node(result, [m, n // 2], "relu(%s)" % halves[0]), halves[1]))
        y = numpy.maximum(y[:, ::2], 0) + y[:, 1::2]
        bound *= 2
    elif after == "relu":
        end, y = case.node(result, y.shape, "relu(%s)" % p), numpy.maximum(y, 0)
    elif after == "across":
        end, y = case.node(result, [n, m], "transpose(%s) { order = [1, 0] }" % p), y.T
    else:
        end = case.node(result, y.shape, "copy(%s)" % p)
    case.expect(end, y, bound, 0)
    if kept:
        case.expect("inverse_%d" % case.number, inverse, 1e-4)
    case.says = "%dx%dx%d %s %s %s %s parts of %d without a mean %s" % (
        m, n, k, kind, result, "rows" if rows else "columns", after, part, values)


# Products of rows in parts, whose statistics are drawn like all else.

def draw_centred(rng, case, template):
    if template.name == "product_scaled" or not rng.integers(3):
        return draw_scaled(rng, case, template, template.name == "product_scaled")
    rows, part = bool(rng.integers(2)), int(rng.choice([8, 16, 32, 64]))
    k = size_of(rng, [256, 320, 512, 768], 64)
    k = -(-k // (8 * part)) * 8 * part
    t = k // part
    m = size_of(rng, [9, 11, 31, 64, 67, 128, 130])
    n = size_of(rng, [8, 9, 31, 64, 129, 200], 1 if rows else 8)
    n = n if rows else -(-n // 8) * 8
    kind, wide = str(rng.choice(template.types)), bool(rng.integers(2))
    while True:
        values = template.draw(rng)
        facts = {"rows": rows, "k": k + t, "bits": 16, "z": 1, "m": m, "n": n, "mean": 1}
        if template.allows(values, facts) and template.has_room(values, facts):
            break
    case.blocks, case.partial = template.tiles(values, facts)
    far = int(rng.choice([0, 100]))
    x, w = eighths(rng, m, k), eighths(rng, *((n, k + t) if rows else (k + t, n))) / 16
    centre = eighths(rng, m, t) + far
    squares, v = rng.random((m, t)) * part, rng.standard_normal(n)
    mean = centre.mean(-1)
    off = centre - mean[:, None]
    inverse = 1 / numpy.sqrt((squares + off * off * part).sum(-1) / k + 1e-3)
    y = numpy.concatenate([x, off], 1) @ (w.T if rows else w) * inverse[:, None] + v
    result = "f32" if wide else kind
    bound = {"f32": 1e-3 if kind == "f16" else 1e-2, "f16": 3e-3, "bf16": 3e-2}[result]
    p, tail = "p_%d" % case.number, "_%d: f32[%d]" % (case.number, m)
    case.add("%s: %s[%d, %d], mean%s, inverse%s = centred_matmul(%s, %s, %s, %s, %s) "
             "{ epsilon = 1e-3, tb = %s%s }%s" % (
                 p, result, m, n, tail, tail, case.input("x", x, kind),
                 case.input("centre", centre, "f32"), case.input("squares", squares, "f32"),
                 case.input("w", w, kind), case.input("v", v, "f32"),
                 "true" if rows else "false", ", R = f32" if wide else "",
                 pins(template, values)))
    after = str(rng.choice(["none", "relu"]))
    if after == "relu":
        end, y = case.node(result, y.shape, "relu(%s)" % p), numpy.maximum(y, 0)
    else:
        end = case.node(result, y.shape, "copy(%s)" % p)
    case.expect(end, y, bound, 0)
    case.expect("inverse_%d" % case.number, inverse, 1e-4)
    case.expect("mean_%d" % case.number, mean, 1e-4 * (1 + far / 20))
    case.says = "%dx%dx%d %s %s %s %s parts of %d far %g %s" % (
        m, n, k, kind, result, "rows" if rows else "columns", after, part, far, values)


DRAW = {"product": draw_product, "normed": draw_normed, "centred": draw_centred,
        "grouped": draw_grouped}
