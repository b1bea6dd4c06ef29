# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Norms folded into products, against NumPy in f64, and against norms that are
kernels.

usage: fold.py FOLDER layer    a layer after attention, in f32 lowered to f16:
                               writes main.hir, inputs, y.npy
       fold.py FOLDER rms      a norm without a mean that products read, two
                                of which are merged
       fold.py FOLDER far TEMPLATE.hir
                               rows whose mean is 100 deviations, in f16: fails
                               where the error is more than 1.05 times that of
                               norms of their own (geometric mean of 8 inputs)
       fold.py FOLDER parts    the same in f32 lowered to f16, by statistics that
                               the product before leaves
       fold.py FOLDER squares  the same of norms without a mean
       fold.py FOLDER decoder llama|gemma|t5
                               two layers of a decoder without its attention, as
                               exporters write norms: in f16, with a gate; in f32
                               lowered to f16, with a scale about 1; in bf16
"""
import pathlib
import subprocess
import sys

import numpy

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)


def write(rng, kind, constants):
    """Constants as files; what they are in f64."""
    made = {}
    for name, value in constants.items():
        value = value.astype(kind)
        value.tofile(folder / (name + ".bin"))
        made[name] = value.astype(numpy.float64)
    return made


def norm(x, g, b, epsilon):
    x = x - x.mean(-1, keepdims=True)
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * g + b


def layer():
    rng = numpy.random.default_rng(11)
    normal = rng.standard_normal
    c = write(rng, numpy.float32, {
        "wp": normal((256, 256)) / 16, "g": 1 + normal(256) / 4, "b": normal(256) / 4,
        "wu": normal((256, 1024)) / 16, "wd": normal((1024, 256)) / 32})
    a, r = (normal((1, 100, 256)).astype(numpy.float32) for _ in range(2))
    h = norm(a @ c["wp"] + r + 3, c["g"], c["b"], 1e-5)
    y = norm(numpy.maximum(h @ c["wu"], 0) @ c["wd"] + h, c["g"], c["b"], 1e-5) @ c["wp"]
    for name, value in {"a": a, "r": r + 3, "y": y}.items():
        numpy.save(folder / (name + ".npy"), value.astype(numpy.float32))
    (folder / "main.hir").write_text("""graph main(a: f32[1, 100, 256], r: f32[1, 100, 256]) -> y {
  const wp: f32[256, 256] = file("wp.bin", 0)
  const g: f32[256] = file("g.bin", 0)
  const b: f32[256] = file("b.bin", 0)
  const wu: f32[256, 1024] = file("wu.bin", 0)
  const wd: f32[1024, 256] = file("wd.bin", 0)
  p: f32[1, 100, 256] = matmul(a, wp)
  s: f32[1, 100, 256] = add(p, r)
  h: f32[1, 100, 256] = layer_norm(s, g, b) { s = 2, epsilon = 1e-5, count = 256 }
  u: f32[1, 100, 1024] = matmul(h, wu)
  e: f32[1, 100, 1024] = relu(u)
  d: f32[1, 100, 256] = matmul(e, wd)
  t: f32[1, 100, 256] = add(d, h)
  i: f32[1, 100, 256] = layer_norm(t, g, b) { s = 2, epsilon = 1e-5, count = 256 }
  y: f32[1, 100, 256] = matmul(i, wp)
}
""")


def rms():
    rng = numpy.random.default_rng(12)
    normal = rng.standard_normal
    c = write(rng, numpy.float32, {
        "wp": normal((256, 256)) / 16, "g": 1 + normal(256) / 4,
        "wu": normal((256, 512)) / 16, "wv": normal((512, 256)) / 16})
    a, r = (normal((48, 256)).astype(numpy.float32) for _ in range(2))
    x = a @ c["wp"] + r
    h = x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * c["g"]
    y, z, o = h @ c["wu"], (h @ c["wv"].T).reshape(6, 8, 512), h @ c["wp"]
    for name, value in {"a": a, "r": r, "y": y, "z": z, "o": o}.items():
        numpy.save(folder / (name + ".npy"), value.astype(numpy.float32))
    (folder / "main.hir").write_text("""graph main(a: f32[48, 256], r: f32[48, 256]) -> y, z, o {
  const wp: f32[256, 256] = file("wp.bin", 0)
  const g: f32[256] = file("g.bin", 0)
  const wu: f32[256, 512] = file("wu.bin", 0)
  const wv: f32[512, 256] = file("wv.bin", 0)
  p: f32[48, 256] = matmul(a, wp)
  x: f32[48, 256] = add(p, r)
  q: f32[48, 256] = rms_norm_scale(x, g) { s = 1, epsilon = 1e-5, count = 256 }
  h: f32[6, 8, 256] = reshape(q)
  y: f32[48, 512] = matmul(q, wu)
  z: f32[6, 8, 512] = matmul(h, wv) { tb = true }
  o: f32[48, 256] = matmul(q, wp)
}
""")


FAMILIES = {
    # The type of weights and of what is between, what a norm's scale is, the gate.
    "llama": ("f16", "", "swish"), "gemma": ("f32", "one", "gelu_tanh"), "t5": ("bf16", "", None)}
GATES = {
    "swish": lambda x: x / (1 + numpy.exp(-x)),
    "gelu_tanh": lambda x: x / 2 * (1 + numpy.tanh(numpy.sqrt(2 / numpy.pi) * (x + 0.044715 * x ** 3)))}


def decoder():
    kind, one, gate = FAMILIES[sys.argv[3]]
    rng = numpy.random.default_rng(13)
    normal = rng.standard_normal
    weights = {"e": normal((256, 256)) / 16}
    for l in "01":
        weights |= {"q" + l: normal((256, 256)) / 16, "o" + l: normal((256, 256)) / 16,
                    "u" + l: normal((256, 512)) / 16, "v" + l: normal((256, 512)) / 16,
                    "d" + l: normal((512, 256)) / 16}
    scales = {g: normal(256) / 4 + (not one) for g in ("g0", "h0", "g1", "h1", "g2")}
    c = write(rng, numpy.float32, {**weights, **scales})
    a = normal((1, 70, 256)).astype(numpy.float32)
    lines, nodes = [], []
    for name, value in c.items():
        shape = ", ".join(map(str, value.shape))
        lines.append("const %s_given: f32[%s] = file(\"%s.bin\", 0)" % (name, shape, name))
        nodes.append("%s: %s[%s] = cast(%s_given) { U = %s }" % (name, kind, shape, name, kind)
                     if kind != "f32" else "%s: f32[%s] = copy(%s_given)" % (name, shape, name))

    def put(name, op, width=256, of=kind):
        nodes.append("%s: %s[1, 70, %s] = %s" % (name, of, width, op))
        return name

    def put_norm(x, g):
        n = "n_%s_" % g
        wide = x if kind == "f32" else put(n + "wide", "cast(%s) { U = f32 }" % x, of="f32")
        put(n + "square", "pow(%s, two)" % wide, of="f32")
        nodes.append("%sthree: f32[70, 256, 1] = reshape(%ssquare)" % (n, n))
        nodes.append("%ssum: f32[70, 1] = reduce_mean(%sthree)" % (n, n))
        nodes.append("%smean: f32[1, 70, 1] = reshape(%ssum)" % (n, n))
        put(n + "more", "add(%smean, epsilon)" % n, 1, "f32")
        put(n + "inverse", "rsqrt(%smore)" % n, 1, "f32")
        put(n + "normal", "mul(%s, %sinverse)" % (wide, n), of="f32")
        if one:
            nodes.append("%sscale: f32[256] = add(%s, one)" % (n, g))
            return put(n + "y", "mul(%snormal, %sscale)" % (n, n))
        put(n + "narrow", "cast(%snormal) { U = %s }" % (n, kind))
        return put(n + "y", "mul(%s, %snarrow)" % (g, n))

    x, y = put("x", "matmul(start, e)"), a @ c["e"]
    for l in "01":
        h = put("q_" + l, "matmul(%s, q%s)" % (put_norm(x, "g" + l), l))
        x = put("x_" + l, "add(%s, %s)" % (x, put("o_" + l, "matmul(%s, o%s)" % (h, l))))
        h = put_norm(x, "h" + l)
        u = put("u_" + l, "matmul(%s, u%s)" % (h, l), 512)
        s = put("s_" + l, "%s(%s)%s" % (gate or "relu", u, " { alpha = 1 }" if gate == "swish" else ""), 512)
        s = put("t_" + l, "mul(%s, %s)" % (s, put("v_" + l, "matmul(%s, v%s)" % (h, l), 512)), 512) if gate else s
        x = put("z_" + l, "add(%s, %s)" % (x, put("d_" + l, "matmul(%s, d%s)" % (s, l))))
        y = y + root(y, c["g" + l] + bool(one), 0, 1e-6) @ c["q" + l] @ c["o" + l]
        r = root(y, c["h" + l] + bool(one), 0, 1e-6)
        inner = GATES[gate](r @ c["u" + l]) * (r @ c["v" + l]) if gate else numpy.maximum(r @ c["u" + l], 0)
        y = y + inner @ c["d" + l]
    end, y = put_norm(x, "g2"), root(y, c["g2"] + bool(one), 0, 1e-6)
    if kind == "f32":
        nodes.insert(0, "start: f32[1, 70, 256] = copy(a)")
    else:
        nodes.insert(0, "start: %s[1, 70, 256] = cast(a) { U = %s }" % (kind, kind))
    nodes.append("y: f32[1, 70, 256] = cast(%s) { U = f32 }" % end)
    numpy.save(folder / "a.npy", a)
    numpy.save(folder / "y.npy", y.astype(numpy.float32))
    lines += ["const two: f32[] = 2.0", "const one: f32[] = 1.0", "const epsilon: f32[] = 1e-6"]
    (folder / "main.hir").write_text("graph main(a: f32[1, 70, 256]) -> y {\n  %s\n}\n" % (
        "\n  ".join(lines + nodes)))


def error_of(options, expected):
    subprocess.run(["hidet-run", str(folder / "far.hir"), "--device=sim",
                    "--input=a=@%s" % (folder / "a.npy"), "--input=r=@%s" % (folder / "r.npy"),
                    "--output=y=@%s" % (folder / "far.npy"), *options], check=True)
    y = numpy.load(folder / "far.npy").astype(numpy.float64)
    return numpy.sqrt(((y - expected) ** 2).mean())


def root(x, g, b, epsilon):
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * g


def squares():
    return parts("rms_norm_scale(s, g)", root)


def parts(node="layer_norm(s, g, b)", norm=norm):
    """Rows in f32, of a mean of 100 and of 1000 deviations."""
    (folder / "far.hir").write_text("""graph main(a: f32[75, 256], r: f32[75, 256]) -> y {
  const wp: f32[256, 256] = file("wp.bin", 0)
  const g: f32[256] = file("g.bin", 0)
  const b: f32[256] = file("b.bin", 0)
  const wu: f32[256, 520] = file("wu.bin", 0)
  p: f32[75, 256] = matmul(a, wp)
  s: f32[75, 256] = add(p, r)
  h: f32[75, 256] = NORM { s = 1, epsilon = 1e-5, count = 256 }
  y: f32[75, 520] = matmul(h, wu)
}
""".replace("NORM", node))
    ratios = []
    for seed in range(8):
        rng = numpy.random.default_rng(seed)
        normal = rng.standard_normal
        c = write(rng, numpy.float32, {
            "wp": normal((256, 256)) / 16, "g": 1 + normal(256) / 4, "b": normal(256) / 4,
            "wu": normal((256, 520)) / 16})
        sides = numpy.where(rng.integers(2, size=(75, 1)), 1, -1)
        a = normal((75, 256)).astype(numpy.float32)
        r = (normal((75, 256)) + (1000 if seed % 2 else 100) * numpy.sqrt(2) * sides).astype(numpy.float32)
        for name, value in {"a": a, "r": r}.items():
            numpy.save(folder / (name + ".npy"), value)
        half = [x.astype(numpy.float16).astype(numpy.float64) for x in (a, c["wp"])]
        expected = norm(half[0] @ half[1] + r, c["g"], c["b"], 1e-5) @ c["wu"]
        options = ["--precision=f16", "--no-cache", "-q"]
        ratios.append(error_of(options, expected) /
                      error_of([*options, "--disable-template=product_centred"], expected))
    mean = numpy.exp(numpy.log(ratios).mean())
    print("%.3f times the error of norms of their own, at most %.3f" % (mean, max(ratios)))
    return int(mean > 1.05)


def far():
    (folder / "far.hir").write_text("""graph main(a: f16[64, 256], r: f16[64, 256]) -> y {
  const wp: f16[256, 256] = file("wp.bin", 0)
  const g: f16[256] = file("g.bin", 0)
  const b: f16[256] = file("b.bin", 0)
  const wu: f16[256, 1024] = file("wu.bin", 0)
  p: f16[64, 256] = matmul(a, wp)
  s: f16[64, 256] = add(p, r)
  h: f16[64, 256] = layer_norm(s, g, b) { s = 1, epsilon = 1e-5, count = 256 }
  y: f16[64, 1024] = matmul(h, wu)
}
""")
    ratios = []
    own = "--disable-template=product_centred"
    for seed in range(8):
        rng = numpy.random.default_rng(seed)
        normal = rng.standard_normal
        c = write(rng, numpy.float16, {
            "wp": normal((256, 256)) / 16, "g": 1 + normal(256) / 4, "b": normal(256) / 4,
            "wu": normal((256, 1024)) / 16})
        sides = numpy.where(rng.integers(2, size=(64, 1)), 1, -1)
        a, r = normal((64, 256)), normal((64, 256)) + 100 * numpy.sqrt(2) * sides
        for name, value in {"a": a, "r": r}.items():
            numpy.save(folder / (name + ".npy"), value.astype(numpy.float16))
        a, r = (value.astype(numpy.float16).astype(numpy.float64) for value in (a, r))
        # The norm's own operand is f16 in the graph.
        s = ((a @ c["wp"]).astype(numpy.float16).astype(numpy.float64) + r).astype(numpy.float16)
        expected = norm(s.astype(numpy.float64), c["g"], c["b"], 1e-5) @ c["wu"]
        ratios.append(error_of(["--load=" + sys.argv[3], own], expected) /
                      error_of(["--disable-template=product_normed", own], expected))
    mean = numpy.exp(numpy.log(ratios).mean())
    print("%.3f times the error of norms of their own, at most %.3f" % (mean, max(ratios)))
    return int(mean > 1.05)


sys.exit({"layer": layer, "rms": rms, "far": far, "parts": parts, "squares": squares,
          "decoder": decoder}[sys.argv[2]]())
