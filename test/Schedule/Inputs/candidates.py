# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of drawn shapes by drawn candidates of one template, against NumPy:
every candidate that the head allows for some size, sizes that no tile divides,
1s, both layouts of b, batches, the types of its head, and neighbours fused into
it.

usage: candidates.py FOLDER TEMPLATE.hir COUNT SEED [hidet-run's options...]

What the head demands of rows and columns is left out, so that small sizes do.
Alignment stays: the copy engine takes rows of whole 16 bytes.
"""
import pathlib
import re
import subprocess
import sys

import numpy

folder, template = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
count, seed = int(sys.argv[3]), int(sys.argv[4])
rng = numpy.random.default_rng(seed)
text = template.read_text()
at = text.index("\ntemplate ")
kernel, head = text[:at], text[at:]
name = re.search(r"template (\w+)", head).group(1)
CHOICES = {key: [int(v) for v in values.split(",")]
           for key, values in re.findall(r"(\w+) in \{([^}]*)\}", head)}
TYPES = re.search(r"types \{([^}]*)\}", head).group(1).split(", ")
BITS = {"f64": 64, "f32": 32, "tf32": 32}  # Of others 16.
OTHERS = ["--disable-template=" + line.split()[0] for line in subprocess.run(
    ["hidet-opt", "--list-templates"], text=True, capture_output=True).stdout.splitlines()
    if line.split()[0] != name]
SIZES = [8, 9, 24, 31, 64, 67, 96, 127, 129, 200, 257, 320]
EVEN = [8, 16, 40, 64, 72, 104, 128, 136, 200, 264, 320]  # Rows of 16 bytes.
# What follows the product: of f32[z, m, n] and a row of n numbers.
AFTER = {
    "relu": ("s: f32[{z}, {m}, {n}] = add(p, v)\n  y: f32[{z}, {m}, {n}] = relu(s)",
             lambda p, v: numpy.maximum(p + v, 0)),
    "cast": ("s: f32[{z}, {m}, {n}] = add(p, v)\n  y: f16[{z}, {m}, {n}] = cast(s)",
             lambda p, v: p + v),
    "none": ("y: f32[{z}, {m}, {n}] = copy(p)", lambda p, v: p),
    "across": ("s: f16[{z}, {m}, {n}] = cast(p)\n"
               "  y: f16[{n}, {z}, {m}] = transpose(s) {{ order = [2, 0, 1] }}",
               lambda p, v: p.transpose(2, 0, 1)),
}


def demands():
    """Those of parameters and k, as Python."""
    found = re.search(r"requires (.*?)\n  \w+\(", head, re.S).group(1)
    for demand in re.split(r",\s*(?![^()]*\))", found):
        if not re.search(r"\b[zmn]\b|\bsm\b|\bnative\b|^k >= \d+$", demand):
            yield demand.replace("&&", " and ").replace("||", " or ").replace("/", "//")


def candidate(rows, k, bits):
    """One that the head allows."""
    while True:
        values = {key: int(rng.choice(vs)) for key, vs in CHOICES.items()}
        if all(eval(demand, {"rows": rows, "k": k, "bits": bits}, values) for demand in demands()):
            return values


def one(values):
    """The template with this candidate alone, for all sizes."""
    made = re.sub(r"(\w+) in \{[^}]*\}", lambda x: "%s in {%d}" % (x[1], values[x[1]]), head)
    made = re.sub(r"requires .*?(\n  \w+\()", r"requires native == 1\1", made, flags=re.S)
    return kernel + made


def case(number):
    rows = bool(rng.integers(2))
    z, m, n, k = int(rng.choice([1, 1, 2])), int(rng.choice(SIZES + [1])), int(
        rng.choice(SIZES if rows else EVEN)), int(rng.choice(EVEN + [520]))
    kind, after = str(rng.choice(TYPES)), str(rng.choice(list(AFTER)))
    values = candidate(rows, k, BITS.get(kind, 16))
    if min(m, n) < 8:
        m = n = 8  # Below, it is no product to the scheduler.
    draw = lambda *shape: numpy.round(rng.standard_normal(shape) * 8) / 8
    x, w, v = draw(z, m, k), draw(z, n, k) if rows else draw(z, k, n), draw(n)
    y = AFTER[after][1](x @ (w.transpose(0, 2, 1) if rows else w), v)
    (folder / "candidate.hir").write_text(one(values))
    (folder / "case.hir").write_text("""graph main(x: f16[{z}, {m}, {k}], w: f16[{w}], v: f32[{n}]) -> y, xt, wt {{
  xt: {t}[{z}, {m}, {k}] = cast(x)
  wt: {t}[{w}] = cast(w)
  p: f32[{z}, {m}, {n}] = matmul(xt, wt){nt}
  {after}
}}
""".format(z=z, m=m, n=n, k=k, t=kind, nt=" { tb = true }" if rows else "",
           w=", ".join(map(str, w.shape)), after=AFTER[after][0].format(z=z, m=m, n=n)))
    command = ["hidet-run", str(folder / "case.hir"), "--rtol=1e-3", "--atol=1e-3", "--explain",
               "--load=%s" % (folder / "candidate.hir"), *OTHERS,
               "--expected=y=@%s" % (folder / "case_y.npy")]
    for key, value in {"x": x, "w": w, "v": v, "y": y}.items():
        numpy.save(folder / ("case_%s.npy" % key),
                   value.astype(numpy.float16 if key in "xw" else numpy.float32))
        if key != "y":
            command.append("--input=%s=@%s" % (key, folder / ("case_%s.npy" % key)))
    done = subprocess.run(command + sys.argv[5:], text=True, capture_output=True)
    used = "%s_tiles[" % name in done.stderr
    if done.returncode or not used:
        print("case %d of seed %d: %dx%dx%dx%d %s %s %s %s: exit %d%s\n%s%s" % (
            number, seed, z, m, n, k, kind, "rows" if rows else "columns", after,
            values, done.returncode, "" if used else ", another kernel",
            done.stdout, done.stderr))
    return done.returncode == 0 and used


right = sum(case(number) for number in range(count))
print("%d of %d as NumPy says" % (right, count))
sys.exit(right != count)
