# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs that are drawn for schedule templates, with inputs and with what NumPy
makes of them in f64: what all draw with, attentions, rows. template_shapes.py
runs them.
"""

import functools
import math
import re

import numpy

NUMPY = {"f16": "f2", "f32": "f4", "tf32": "f4", "f64": "f8", "bool": "?"}
BITS = {"f64": 64, "i64": 64, "u64": 64, "f32": 32, "tf32": 32, "i32": 32,
        "u32": 32, "i8": 8, "u8": 8, "f8e4m3": 8, "f8e5m2": 8}  # Others have 16.
F8 = {"f8e4m3": (3, 7), "f8e5m2": (2, 15)}  # Bits of the fraction, bias.
KEPT = {"u4": 4, "i4": 4, "u8": 8, "i8": 8}  # What matrices are computed from.


class Template:
    """A template of a file: its kernel's text, and what its head says."""

    def __init__(self, kernel, head):
        self.kernel, self.head = kernel, head
        self.name, self.form = re.match(r"(\w+) implements (\w+)", head).groups()
        self.choices = {
            key: [int(value) for value in values.split(",")]
            for key, values in re.findall(r"(\w+) in \{([^}]*)\}", head)}
        self.types = re.search(r"types \{([^}]*)\}", head)[1].split(", ")
        found = re.search(r"requires (.*?)\n  \w+\(", head, re.S)[1]
        self.demands = [as_python(demand) for demand in
                        re.split(r",\s*(?![^()]*\))", found)]
        # A block's share of the two axes of results, or of rows.
        self.tile = self.figure("tile")[:2]
        self.room = [", ".join(self.figure(name))
                     for name in ("shared", "threads", "registers")]

    def figure(self, name, default="0"):
        """The expressions of a clause of the head, as Python."""
        found = re.search(r"\b%s\(" % name, self.head)
        if not found:
            return [default]
        depth, end = 1, found.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(self.head[end], 0)
            end += 1
        return [as_python(part) for part in re.split(
            r",\s*(?![^()]*\))", self.head[found.end():end - 1])]

    def has_room(self, values, facts):
        """Whether a multiprocessor has room for a block."""
        shared, threads, registers = (
            evaluate(text, values, facts) for text in self.room)
        return shared <= 227 * 1024 and threads * registers <= 65536

    def draw_fitting(self, rng):
        """A candidate that demands of no sizes rule out."""
        of_choices = [demand for demand in self.demands
                      if set(compiled(demand).co_names) <= {*self.choices, "sm", "native"}]
        while True:
            values = self.draw(rng)
            if all(evaluate(demand, values, {}) for demand in of_choices):
                return values

    def allows(self, values, facts, ignored="^$"):
        """Whether it takes these values: demands that `ignored` is found in
        are left out."""
        return all(evaluate(demand, values, facts)
                   for demand in self.demands if not re.search(ignored, demand))

    def tiles(self, values, facts):
        """Blocks of a batch, and whether one of them is partial."""
        axes = ("m", "e") if self.form == "attention" else ("m", "n")
        tile = [evaluate(text, values, facts) for text in self.tile]
        if self.form == "rows":  # Blocks share a row, or have several.
            tile[1] = values["WORKERS"] * max(facts["lanes"], 1)
        counts = [-(-facts[axis] // each) for axis, each in zip(axes, tile)]
        partial = any(facts[axis] % each for axis, each in zip(axes, tile))
        if self.form == "rows":
            return counts[0] * values.get("BLOCKS", 1), partial
        return math.prod(counts), partial

    def draw(self, rng):
        return {key: int(rng.choice(values))
                for key, values in self.choices.items()}

    def for_blocks(self, count):
        """The same where a GPU has so many multiprocessors: blocks that stay
        have more than a tile each."""
        return Template(self.kernel.replace("device.sms", str(count)), self.head)

    def for_any_size(self):
        """The text, asking nothing of sizes: each case pins its candidate."""
        return "%s\ntemplate %s" % (self.kernel, re.sub(
            r"requires .*?(\n  \w+\()", r"requires native == 1\1", self.head,
            flags=re.S))

    def alone(self, values):
        """The text with one candidate, for batches of any size."""
        head = re.sub(r"(?<=[ ,])z \* [^,]*,", "", self.head)
        return "%s\ntemplate %s" % (self.kernel, re.sub(
            r"(\w+) in \{[^}]*\}",
            lambda found: "%s in {%d}" % (found[1], values[found[1]]), head))


def evaluate(text, values, facts):
    known = dict(facts, sm=90, sms=132, native=1, min=min, max=max,
                 ceildiv=lambda a, b: -(-a // b))
    return eval(compiled(text), known, dict(values))


@functools.cache
def compiled(text):
    """Few of the values that are drawn fit: what is asked of them is asked often."""
    return compile(text, text, "eval")


def as_python(text):
    """An expression of a head: choices become Python's, innermost first."""
    kept = []

    def keep(found):
        kept.append("(%s)" % ", ".join(map(choice, found[1].split(","))))
        return "<%d>" % (len(kept) - 1)

    count = 1
    while count:
        text, count = re.subn(r"\(([^()]*)\)", keep, text)
    text = ", ".join(map(choice, text.split(",")))
    while re.search(r"<\d+>", text):
        text = re.sub(r"<(\d+)>", lambda found: kept[int(found[1])], text)
    text = text.replace("&&", " and ").replace("||", " or ").replace("/", "//")
    return " ".join(text.split())


def choice(text):
    found = re.fullmatch(r"([^?]*)\?([^:]*):(.*)", text, re.S)
    return ("%s if %s else %s" % (found[2], found[1], choice(found[3])) if found
            else text)


def read_templates(paths):
    """Templates by name, of files in the library's folder."""
    templates = {}
    for path in paths:
        kernel, *heads = re.split(r"^template ", path.read_text(), flags=re.M)
        for head in heads:
            template = Template(kernel, head)
            templates[template.name] = template
    return templates


def listed(sizes):
    return ", ".join(map(str, sizes))


class Case:
    """A graph. Its names end in the case's number, so that several are one."""

    def __init__(self, number):
        self.number, self.lines, self.count = number, [], 0
        self.inputs, self.outputs, self.says = {}, {}, ""
        self.items = {}  # Tasks of the case's own, by name.
        self.blocks, self.partial = 0, False

    def input(self, name, value, kind):
        """A value that the type has: 'kind' in the graph, and NumPy's."""
        name = "%s_%d" % (name, self.number)
        assert name not in self.inputs, name
        value = numpy.asarray(value)
        if kind == "bf16":
            value = (value.astype("f4").view("u4") >> 16).astype("u2")
        elif kind in F8:
            value = f8_bits(value, *F8[kind])
        else:
            value = value.astype(NUMPY.get(kind) or "%s%d" % (
                kind[0], 1 if kind in KEPT else BITS.get(kind, 16) // 8))
        self.inputs[name] = value, kind
        return name

    def operand(self, name, value, kind, is_cast):
        """An input, or one in f32 that is converted first."""
        if not is_cast:
            return self.input(name, value, kind)
        return self.node(kind, value.shape, "cast(%s) { U = %s }" % (
            self.input(name, value, "f32"), kind))

    def node(self, kind, shape, call):
        self.count += 1
        name = "t%d_%d" % (self.count, self.number)
        self.lines.append("  %s: %s[%s] = %s" % (name, kind, listed(shape), call))
        return name

    def add(self, text):
        self.lines.append("  " + text)

    def expect(self, name, value, bound, more=0):
        """|result - value| <= bound * (1 + |value|) + more."""
        with numpy.errstate(invalid="ignore"):
            self.outputs[name] = value, bound * (1 + numpy.abs(value)) + more


def text_of(cases):
    """One graph of all cases."""
    inputs = ["%s: %s[%s]" % (name, kind, listed(value.shape)) for case in cases
              for name, (value, kind) in case.inputs.items()]
    lines = [line for case in cases for line in case.lines]
    items = {name: text for case in cases for name, text in case.items.items()}
    return "%sgraph main(%s) -> %s {\n%s\n}\n" % (
        "".join(items.values()),
        ",\n           ".join(inputs),
        ", ".join(name for case in cases for name in case.outputs),
        "\n".join(lines))


def pins(template, values):
    return " with %s(%s)" % (template.name, ", ".join(
        "%s = %d" % item for item in values.items()))


def eighths(rng, *shape):
    return numpy.round(rng.standard_normal(shape) * 8) / 8


def quarters(rng, *shape):
    """What floats of 8 bits have, too."""
    return rng.integers(-4, 5, shape) / 4


def f8_bits(value, fraction, bias):
    """Of 0, or a normal number that the type has."""
    part, exponent = numpy.frexp(numpy.abs(value))
    digits = (part * 2 - 1) * 2 ** fraction
    assert (digits[value != 0] % 1 == 0).all()
    bits = (exponent - 1 + bias << fraction) + digits.astype(int)
    return numpy.where(value == 0, 0, bits + 128 * (value < 0)).astype("u1")


def size_of(rng, listed, step=1):
    """One of a list, or any between the least and the largest of them."""
    if rng.integers(2):
        return int(rng.choice(listed))
    return int(rng.integers(min(listed) // step, max(listed) // step + 1)) * step


# Attentions: masks, groups of heads, decoding.

LENGTHS = [1, 2, 8, 9, 16, 24, 31, 33, 40, 61, 64, 67, 96, 104, 128, 131, 197]
WIDTHS = [8, 16, 24, 32, 40, 64, 72, 80, 96, 128, 200, 256, 11, 35]
MASKS = ["none", "added", "keys", "causal", "finite", "capped"]


FRAGMENT = 16  # Heads that share keys are rows where there is room for them.


def rows_of(queries, group):
    return queries * group if queries * group <= FRAGMENT else queries


def draw_attention_sizes(rng, template, values, group=1):
    """None where this candidate seems to take nothing."""
    wgmma = template.name in ("attention_wgmma", "attention_tma")
    for _ in range(1000):
        m, n = (size_of(rng, [64, 72, 131, 192, 197, 256] if wgmma
                        else LENGTHS) for _ in range(2))
        n = n + 65 if wgmma else max(n, 8)  # Of fewer keys it is no attention.
        if not wgmma and rng.integers(4) == 0:  # As in decoding: long caches.
            m, n = int(rng.choice([1, 2, 3, 4, 5, 7, 17, 40])), int(
                rng.choice([8, 67, 300, 1030, 2048]))
        whole = "maps" in template.head  # Rows are whole pieces of 16 bytes.
        d, e = (size_of(rng, [56, 64, 120, 128, 184, 192, 256] if whole
                        else [52, 56, 64, 120, 128] if wgmma else WIDTHS)
                for _ in range(2))
        facts = {"z": 1, "m": rows_of(m, group), "n": n, "k": d, "e": e, "bits": 16}
        if whole and (d % 8 or e % 8):
            continue
        if template.allows(values, facts, r"^z \*") and template.has_room(
                values, facts):
            return m, n, d, e
    return None


def mask_of(rng, case, s, scores, shape, choice):
    """Masks the scores, in the graph and in numbers."""
    b, h, m, n = shape
    if choice == "added":
        mask = numpy.where(rng.random((m, n)) < 0.3, -numpy.inf,
                           rng.standard_normal((m, n))).astype(numpy.float32)
        mask[0] = -numpy.inf
        mask[m // 2] = numpy.where(rng.random(n) < 0.3, numpy.nan, -numpy.inf)
        name = case.input("mask", mask, "f32")
        return case.node("f32", shape, "add(%s, %s)" % (s, name)), scores + mask
    if choice == "keys":
        keep = rng.random((b, 1, 1, n)) < 0.7
        if rng.integers(3) == 0:
            keep[0] = False  # Rows without any key.
        low = case.input("low", numpy.full((), -numpy.inf), "f32")
        return (case.node("f32", shape, "where(%s, %s, %s)" % (
            case.input("keep", keep, "bool"), s, low)),
            numpy.where(keep, scores, -numpy.inf))
    if choice == "causal":
        past = int(rng.integers(-8, n))
        seen = numpy.arange(n)[None, :] <= numpy.arange(m)[:, None] + past
        return (case.node("f32", shape, "mask_causal(%s) { past = %d }" % (s, past)),
                numpy.where(seen, scores, -numpy.inf))
    if choice == "finite":  # As models write it.
        mask = numpy.where(rng.random((m, n)) < 0.3, -3.4028235e38, 0)
        mask[0] = -3.4028235e38
        mask = mask.astype(numpy.float32)
        name = case.input("mask", mask, "f32")
        return (case.node("f32", shape, "add(%s, %s)" % (s, name)),
                (scores.astype(numpy.float32) + mask).astype(numpy.float64))
    if choice == "capped":
        return (case.node("f32", shape, "softcap(%s) { cap = 2.0 }" % s),
                2 * numpy.tanh(scores / 2))
    return s, scores


def paged(case, name, value, kind, page):
    """Keys or values by pages in disorder, which a table puts in order."""
    b, h, n, d = value.shape
    rng = numpy.random.default_rng([case.number, n, d])
    table = rng.permutation(b * n // page)
    pool = numpy.empty((b * n // page, h * page * d))
    pool[table] = value.reshape(b, h, n // page, page, d).transpose(0, 2, 1, 3, 4).reshape(
        -1, h * page * d)
    at = case.node(kind, [1, *pool.shape], "gather(%s, %s)" % (
        case.input("pool_" + name, pool[None], kind),
        case.input("table_" + name, table, str(rng.choice(["i32", "i64"])))))
    at = case.node(kind, [b, n // page, h, page, d], "reshape(%s)" % at)
    at = case.node(kind, [b, h, n // page, page, d],
                   "transpose(%s) { order = [0, 2, 1, 3, 4] }" % at)
    return case.node(kind, [b, h, n, d], "reshape(%s)" % at)


def draw_attention(rng, case, template, values):
    b, h = int(rng.choice([1, 1, 2])), int(rng.choice([1, 2, 3, 4, 8]))
    whole = "maps" in template.head  # Operands are tensors, as they are.
    sizes = None  # Few fit some candidates.
    while not sizes:
        group = int(rng.choice([g for g in (1, 1, 2, 3, 4, 8) if h % g == 0]))
        sizes = draw_attention_sizes(rng, template, values, group)
    m, n, d, e = sizes
    kind, choice = str(rng.choice(template.types)), str(rng.choice(MASKS))
    flipped, guarded, merged = (bool(rng.integers(2)) for _ in range(3))
    across = whole and not merged and not rng.integers(3)
    if whole:
        flipped = False
    q, k, v = (numpy.round(rng.standard_normal(shape) * 16) / 16 for shape in
               ((b, h, m, d), (b, h // group, n, d), (b, h // group, n, e)))
    names = {}
    for name, value in (("q", q), ("v", v),
                        ("k", k.transpose(0, 1, 3, 2) if flipped else k)):
        shape = list(value.shape)
        is_cast = int(rng.integers(3)) == 0 and not whole
        page = next((size for size in (16, 8, 4) if n % size == 0), 0)
        if (name != "q" and page and case.number % 3 == 0 and not whole and not is_cast
                and d % 8 == 0 and e % 8 == 0 and not (name == "k" and flipped)):
            at = paged(case, name, value, kind, page)
        else:
            at = case.operand(name, value, kind, is_cast)
        if name != "q" and group > 1:
            wide = [shape[0], shape[1], group] + shape[2:]
            at = case.node(kind, [shape[0], shape[1], 1] + shape[2:],
                           "reshape(%s)" % at)
            at = case.node(kind, wide, "expand(%s) { sizes = %s }" % (at, wide))
            at = case.node(kind, [shape[0], h] + shape[2:], "reshape(%s)" % at)
        names[name] = at
    shape = [b, h, m, n]
    s = case.node("f32", shape, "matmul(%s, %s) { %sR = f32 }" % (
        names["q"], names["k"], "" if flipped else "tb = true, "))
    if rng.integers(2):
        scale = case.input("scale", numpy.array(d ** -0.5), "f32")
    else:
        scale = "scale_%d" % case.number
        case.lines.insert(0, "  const %s: f32[] = %r" % (scale, d ** -0.5))
    s = case.node("f32", shape, "mul(%s, %s)" % (s, scale))
    k, v = (numpy.repeat(x, group, 1) for x in (k, v))
    scores = q @ k.transpose(0, 1, 3, 2) * d ** -0.5
    s, scores = mask_of(rng, case, s, scores, shape, choice)
    counted = bool(rng.integers(2))
    r = case.node("f32", shape, ("softmax_counted(%s)" if counted else
                                 "softmax(%s) { s = 3 }") % s)
    r = case.node(kind, shape, "cast(%s) { U = %s }" % (r, kind))
    with numpy.errstate(invalid="ignore"):
        weights = numpy.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
    if counted:
        weights = numpy.where((scores == -numpy.inf).all(-1, keepdims=True), 0, weights)
    if guarded:
        nan = case.node("bool", shape, "is_nan(%s)" % r)
        zero = "zero_%d" % case.number
        case.lines.insert(0, "  const %s: %s[] = 0.0" % (zero, kind))
        r = case.node(kind, shape, "where(%s, %s, %s)" % (nan, zero, r))
        weights = numpy.where(numpy.isnan(weights), 0, weights)
    y = case.node("f32", [b, h, m, e], "matmul(%s, %s) { R = f32 }" % (
        r, names["v"]))
    o = weights @ v
    if merged:
        y = case.node("f32", [b, m, h, e],
                      "transpose(%s) { order = [0, 2, 1, 3] }" % y)
        y = case.node("f32", [b, m, h * e], "reshape(%s)" % y)
        o = o.transpose(0, 2, 1, 3).reshape(b, m, h * e)
    if across:
        y = case.node("f32", [b, h, e, m],
                      "transpose(%s) { order = [0, 1, 3, 2] }" % y)
        o = o.transpose(0, 1, 3, 2)
    case.expect(y, o, 4e-3 if kind == "f16" else 3e-2)
    rows = rows_of(m, group)
    tiles, case.partial = template.tiles(values, {"m": rows, "n": n, "k": d, "e": e})
    case.blocks = b * h * m // rows * tiles
    case.says = "b %d h %d/%d m %d n %d d %d e %d %s %s%s%s%s%s%s %s" % (
        b, h, group, m, n, d, e, kind, choice, " counted" * counted, " flipped" * flipped,
        " guarded" * guarded, " merged" * merged, " across" * across, values)


# Attention whose weights are squared before they are multiplied, and not 0 where
# a key is not seen.
WEIGHED = """task weighed_{T}(q: {T}[z, m, k], key: {T}[z, n, k], mask: f32[m, n], v: {T}[z, n, e]) -> o: f32[z, m, e] {{
  s[b, i, j] = sum(p: k) f32(q[b, i, p]) * f32(key[b, j, p])
  t[b, i, j] = s[b, i, j] * 0.125 + mask[i, j]
  x[b, i, j] = exp(t[b, i, j] - (max(y: n) t[b, i, y]))
  r[b, i, j] = x[b, i, j] / (sum(y: n) x[b, i, y])
  w[b, i, j] = {T}(r[b, i, j] * r[b, i, j] + 0.125)
  o[b, i, c] = sum(j: n) f32(w[b, i, j]) * f32(v[b, j, c])
}}
"""


def draw_weighed(rng, case, template):
    values, kind = template.draw(rng), str(rng.choice(template.types))
    z, m = int(rng.integers(1, 4)), size_of(rng, [1, 8, 31, 64, 65, 128, 197])
    n = size_of(rng, [8, 40, 64, 100, 128, 197, 300])
    widths = WIDTHS if template.name == "attention_weighed_mma" else [52, 56, 64, 120, 128]
    d, e = (size_of(rng, widths) for _ in range(2))
    facts = {"z": z, "m": m, "n": n, "k": d, "e": e, "bits": 16}
    if not (template.allows(values, facts) and template.has_room(values, facts)):
        return draw_weighed(rng, case, template)
    q, key, v = (numpy.round(rng.standard_normal(shape) * 16) / 16
                 for shape in ((z, m, d), (z, n, d), (z, n, e)))
    mask = numpy.where(rng.random((m, n)) < 0.2, -numpy.inf,
                       rng.standard_normal((m, n))).astype(numpy.float32)
    mask[:, 0] = 0
    scores = q @ key.transpose(0, 2, 1) * 0.125 + mask
    x = numpy.exp(scores - scores.max(-1, keepdims=True))
    w = (x / x.sum(-1, keepdims=True)) ** 2 + 0.125
    case.items["weighed_" + kind] = WEIGHED.format(T=kind)
    y = case.node("f32", [z, m, e], "weighed_%s(%s)%s" % (kind, ", ".join(
        case.input(name, value, type) for name, value, type in (
            ("q", q, kind), ("key", key, kind), ("mask", mask, "f32"), ("v", v, kind))),
        pins(template, values)))
    # What weights lose where they are narrow.
    lost = (w @ numpy.abs(v)).max() * (2e-3 if kind == "f16" else 1.6e-2)
    case.expect(y, w @ v, 1e-3, lost)
    tiles, case.partial = template.tiles(values, facts)
    case.blocks = z * tiles
    case.says = "z %d m %d n %d d %d e %d %s %s" % (z, m, n, d, e, kind, values)
    return None


# Rows: what is made of all their elements, and a number for each.

ROWS = [1, 2, 3, 5, 8, 17, 32, 61, 130]
SHORT = [2, 7, 8, 24, 31, 64, 100, 197, 256, 333, 768, 1031, 2048]
LONG = [4096, 5003, 9000, 12344, 20008]
MOST_ROWS = 1 << 18  # Elements.
VECTORS = {
    "softmax": "softmax({x}) {{ s = {axis} }}",
    "log_softmax": "log_softmax({x}) {{ s = {axis} }}",
    "layer_norm": "layer_norm({x}, {g}, {b}) {{ s = {axis}, epsilon = 1.0e-5, count = {n} }}",
    "rms_norm": "rms_norm({x}) {{ s = {axis}, epsilon = 1.0e-5, count = {n} }}",
}
NUMBERS = {
    "reduce_log_sum_exp": ["f16", "f32", "f64"],
    "reduce_sum": ["f32", "i32", "i64"],
    "reduce_max_integer": ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"],
}
EPSILON = float(numpy.float32(1e-5))  # As the tasks have it.
NEAR = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 1e-4, "f64": 1e-9}


def draw_rows(rng, case, template):
    across = template.name == "rows_across"
    is_number = int(rng.integers(3)) == 0
    tasks = list(NUMBERS) if is_number else list(VECTORS)[:2 if across else 4]
    task = str(rng.choice(tasks))
    kind = str(rng.choice(NUMBERS[task] if is_number
                          else ["f16", "f16", "f32", "bf16", "f64"]))
    while True:
        m, values = size_of(rng, ROWS), template.draw(rng)
        n = size_of(rng, SHORT if template.name == "rows_registers" else LONG)
        shape, axis = ([m, n], 1) if rng.integers(2) else ([2, m, n], 2)
        if is_number:
            shape, axis = [m, n, 1], 1
        if across:
            shape, axis = [int(rng.choice([1, 2, 3])),
                           size_of(rng, [7, 24, 64, 197]), m + 8], 1
        n, bits = shape[axis], BITS.get(kind, 16)
        if is_number and n < 64:
            continue  # So few are no rows to the scheduler.
        if math.prod(shape) > MOST_ROWS:
            continue
        facts = {"m": math.prod(shape) // n, "n": n, "bits": bits,
                 "lanes": 0 if across else math.gcd(n, 128 // bits)}
        if template.allows(values, facts):
            break
    case.blocks, case.partial = template.tiles(values, facts)
    with_pins = pins(template, values)
    (draw_numbers if is_number else draw_vectors)(
        rng, case, task, kind, shape, axis, with_pins)
    case.says = "%s %s of %s%s" % (task, kind, shape, with_pins)


def draw_numbers(rng, case, task, kind, shape, axis, with_pins):
    if kind[0] == "f":
        x = rng.standard_normal(shape).astype(NUMPY[kind]).astype(numpy.float64)
    else:
        x = rng.integers(0 if kind[0] == "u" else -100, 100, shape)
    case.add("y_%d: %s[%d, %d] = %s(%s)%s" % (
        case.number, kind, shape[0], shape[2], task,
        case.input("x", x, kind), with_pins))
    if task == "reduce_log_sum_exp":
        top = x.max(1)
        y = numpy.log(numpy.exp(x - top[:, None]).sum(1)) + top
    else:
        y = x.max(1) if task == "reduce_max_integer" else x.sum(1)
    case.expect("y_%d" % case.number, y, NEAR.get(kind, 0))


def expect_vectors(task, x, axis, g, b):
    if task in ("softmax", "log_softmax"):
        e = x - x.max(axis, keepdims=True)
        s = numpy.exp(e).sum(axis, keepdims=True)
        return numpy.exp(e) / s if task == "softmax" else e - numpy.log(s)
    if task == "rms_norm":
        return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + EPSILON)
    c = x - x.mean(-1, keepdims=True)
    return c / numpy.sqrt((c * c).mean(-1, keepdims=True) + EPSILON) * g + b


def draw_vectors(rng, case, task, kind, shape, axis, with_pins):
    """With a prologue of its own, and an epilogue that turns it round."""
    n = shape[axis]
    g, b, x = (rng.standard_normal(size) for size in (n, n, shape))
    if kind in ("f16", "bf16"):  # Numbers that the types have.
        g, b, x = (numpy.round(v * 8) / 8 for v in (g, b, x))
    g, b = (v.astype(numpy.float32) for v in (g, b))
    x = x.astype(numpy.float64 if kind == "f64" else numpy.float32)
    name = case.input("x", x, "f64" if kind == "f64" else "f32")
    if kind in ("f32", "f64"):
        xt, x = case.node(kind, shape, "relu(%s)" % name), numpy.maximum(x, 0)
    else:
        xt = case.node(kind, shape, "cast(%s) { U = %s }" % (name, kind))
    names = {}
    if task == "layer_norm":
        names = {"g": case.input("g", g, "f32"), "b": case.input("b", b, "f32")}
    y = expect_vectors(task, x.astype(numpy.float64), axis,
                       g.astype(numpy.float64), b.astype(numpy.float64))
    t = case.node(kind, shape, VECTORS[task].format(
        x=xt, axis=axis, n=n, **names) + with_pins)
    if rng.integers(2):
        order = [len(shape) - 1] + list(range(len(shape) - 1))
        r = case.node(kind, shape, "relu(%s)" % t)
        y = numpy.maximum(y, 0).transpose(order)
        end = case.node(kind, y.shape, "transpose(%s) { order = %s }" % (r, order))
    else:
        end, y = case.node(kind, shape, "neg(%s)" % t), -y
    case.expect(end, y, NEAR[kind])


DRAW = {"rows": draw_rows, "attention": draw_attention, "weighed": draw_weighed}
