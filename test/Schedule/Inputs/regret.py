# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What choosing by what is expected costs, by what the candidates of f16 products
were measured to take on an H200 (bench/product_shapes.py --tune=16 sweep), or of
convolutions (bench/convolutions.py --again), or of attentions (eight, each of the
one before): the chosen one over the best, of each; their geometric mean, and the
worst.

usage: regret.py TABLE.json FOLDER MEAN WORST

Exits 1 where the mean or the worst is beyond what is given, or one of ten
chosen was not measured.
"""
import json
import pathlib
import re
import statistics
import subprocess
import sys

table, folder = json.load(open(sys.argv[1])), pathlib.Path(sys.argv[2])


def values_of(text):
    return dict(re.findall(r"(\w+) = (\d+)", text))


def product(m, n, k):
    return ("graph main(x: f16[%d, %d], w: f16[%d, %d]) -> y {\n"
            "  y: f32[%d, %d] = matmul(x, w) { tb = true }\n}\n" % (m, k, n, k, m, n))


def convolution(batch, shape):
    """With its channels last, in f16."""
    c, h, w, o, kh, kw, stride, ph, pw, _ = shape
    oh, ow = (h + 2 * ph - kh) // stride + 1, (w + 2 * pw - kw) // stride + 1
    result = "%d, %d, %d, %d" % (batch, oh, ow, o)
    return """task conv(x: f16[n, h, l, c], w: f16[o, kh, kw, c], s: i64, ph: i64, pw: i64,
    oh: i64, ow: i64) -> y: f32[n, oh, ow, o] {
  y[b, i, j, f] = sum(p: c, u: kh, v: kw) f32(x[b, i * s + u - ph, j * s + v - pw, p] else 0) * f32(w[f, u, v, p])
}
graph main(x: f16[%d, %d, %d, %d], w: f16[%d, %d, %d, %d]) -> z {
  y: f32[%s] = conv(x, w) { s = %d, ph = %d, pw = %d, oh = %d, ow = %d }
  r: f32[%s] = relu(y)
  z: f16[%s] = cast(r)
}
""" % (batch, h, w, c, o, kh, kw, c, result, stride, ph, pw, oh, ow, result, result)


def attention(heads, tokens, width):
    shape = "f16[%d, %d, %d]" % (heads, tokens, width)
    return """task attention(q: f16[z, m, k], key: f16[z, n, k], v: f16[z, n, e]) -> o: f16[z, m, e] {
  s[b, i, j] = sum(p: k) f32(q[b, i, p]) * f32(key[b, j, p])
  w[b, i, j] = exp(s[b, i, j] - (max(x: n) s[b, i, x]))
  r[b, i, j] = f16(w[b, i, j] / (sum(x: n) w[b, i, x]))
  o[b, i, c] = f16(sum(j: n) f32(r[b, i, j]) * f32(v[b, j, c]))
}
graph main(q: %s, key: %s, v: %s) -> o {
  o: %s = attention(q, key, v)
}
""" % (shape, shape, shape, shape)


regrets, unknown = [], 0
for case in table["cases"]:
    path = folder / "product.hir"
    if "attention" in case:
        name = case["attention"]
        path.write_text(attention(*name))
    elif "shape" in case:
        name = (case["network"], case["batch"], case["shape"])
        path.write_text(convolution(case["batch"], case["shape"]))
    else:
        name = (case["m"], case["n"], case["k"])
        path.write_text(product(*name))
    done = subprocess.run(["hidet-opt", "--target=sm_90a", "--expand", "--fuse",
                           "--schedule", "--explain", str(path)], text=True,
                          capture_output=True)
    template, values = re.search(r"schedule: \w+: (\w+)_(?:tiles|rows)\[(.*?)\], the best of",
                                 done.stderr).groups()
    # The kernel has parameters beside those of a candidate.
    us = [us for choice, us in case["us"].items()
          if choice.startswith(template + "(")
          and values_of(choice).items() <= values_of(values).items()]
    if us:
        regrets.append((us[0] / min(case["us"].values()), name))
    unknown += not us
mean, worst = statistics.geometric_mean(r for r, _ in regrets), max(regrets)
print("%d cases, %d not measured: geometric mean %.3f, worst %.3f %s"
      % (len(table["cases"]), unknown, mean, *worst))
sys.exit(mean > float(sys.argv[3]) or worst[0] > float(sys.argv[4])
         or unknown * 10 > len(table["cases"]))
