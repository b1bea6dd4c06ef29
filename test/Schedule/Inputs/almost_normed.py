# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tasks that are nearly products of normalized rows, each other than that in one
way: none may become one kernel, and each computes what it says.

usage: almost_normed.py FOLDER
"""
import pathlib
import subprocess
import sys

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
TASK = {
    "mean": "mean[i] = (sum(p: k) f32(x[i, p])) / f32(k)",
    "inverse": "inverse[i] = 1 / sqrt((sum(p: k) (f32(x[i, p]) - mean[i]) * "
               "(f32(x[i, p]) - mean[i])) / f32(k) + 1e-5)",
    "y": "y[i, j] = (sum(p: k) f32(x[i, p]) * f32(w[p, j]) - mean[i] * u[j]) * inverse[i] + v[j]",
}
CASES = {
    "the thing itself": {},
    "a mean of another tensor": {"mean": TASK["mean"].replace("x[", "z[")},
    "a mean of another row": {"mean": TASK["mean"].replace("x[i,", "x[63 - i,")},
    "a mean of half a row": {"mean": TASK["mean"].replace("sum(p: k)", "sum(p: k / 2)")},
    "a mean of another count": {"mean": TASK["mean"].replace("/ f32(k)", "/ f32(k - 1)")},
    "the distance from nothing": {"inverse": TASK["inverse"].replace(
        "* (f32(x[i, p]) - mean[i])", "* f32(x[i, p])")},
    "a maximum": {"inverse": TASK["inverse"].replace("sum(p: k)", "max(p: k)")},
    "no root": {"inverse": TASK["inverse"].replace("sqrt(", "(")},
    "two": {"inverse": TASK["inverse"].replace("1 /", "2 /")},
    "another row's scale": {"y": TASK["y"].replace("inverse[i]", "inverse[63 - i]")},
    "another column": {"y": TASK["y"].replace("u[j]", "u[255 - j]")},
    "a sum": {"y": TASK["y"].replace("- mean", "+ mean")},
    "rounded on the way": {"y": TASK["y"].replace("y[i, j] = ", "y[i, j] = f32(f16(") + "))"},
    "rounded distances": {"inverse": TASK["inverse"].replace(
        "f32(x[i, p])", "f32(bf16(x[i, p]))")},
}


def run(*command):
    return subprocess.run(command, text=True, capture_output=True)


wrong = 0
inputs = ["--input=%s=random:%d" % item for item in zip("xzwuv", range(1, 6))]
for name, changes in CASES.items():
    lines = {**TASK, **changes}
    path = folder / "almost.hir"
    path.write_text("""task almost(x: f16[m, k], z: f16[m, k], w: f16[k, n], u: f32[n], v: f32[n])
  -> y: f32[m, n], mean: f32[m], inverse: f32[m]
{
  %s
}
graph main(x: f16[64, 256], z: f16[64, 256], w: f16[256, 256], u: f32[256], v: f32[256]) -> y, mean, inverse {
  y, mean, inverse = almost(x, z, w, u, v)
}
""" % "\n  ".join(lines.values()))
    chosen = run("hidet-opt", "--target=sm_90a", "--expand", "--fuse", "--schedule", "--explain", str(path))
    is_one = "almost: product_normed_tiles[" in chosen.stderr
    outputs = ["y", "mean", "inverse"]
    said = run("hidet-run", "--device=ref", str(path), *inputs,
               *("--output=%s=@%s" % (o, folder / (o + ".npy")) for o in outputs))
    done = run("hidet-run", "--device=sim", str(path), *inputs, "--rtol=2e-3", "--atol=2e-3",
               *("--expected=%s=@%s" % (o, folder / (o + ".npy")) for o in outputs))
    if chosen.returncode or said.returncode or done.returncode or is_one != (not changes):
        wrong += 1
        print("%s: %s\n%s%s%s" % (name, "one kernel" if is_one else "not one kernel",
                                  chosen.stderr[-500:], said.stderr, done.stderr))
print("%d of %d are what they say" % (len(CASES) - wrong, len(CASES)))
sys.exit(wrong != 0)
