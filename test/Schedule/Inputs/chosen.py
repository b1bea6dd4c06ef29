# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows times matrices that an index chooses, of drawn sizes, as NumPy does them.

usage: chosen.py FOLDER COUNT SEED [HIDET-RUN OPTION...]

Each token is a row, or several, each with a matrix of its own; which is drawn from
all, from a few, or is one.
"""
import pathlib
import subprocess
import sys

import numpy


def text(kind, tokens, each, matrices, n, k):
    p = tokens * each
    body = ["g = gather_rows(w, at)", "v: %s[%d, %d, %d] = reshape(g)" % (kind, p, n, k)]
    rows = "x"
    if each > 1:
        body.append("u = expand(x) { sizes = [%d, %d, %d] }" % (tokens, each, k))
        rows = "u"
    body += ["r: %s[%d, %d, 1] = reshape(%s)" % (kind, p, k, rows),
             "y: %s[%d, %d, 1] = matmul(v, r)" % (kind, p, n)]
    return "graph main(x: %s[%d, 1, %d], w: %s[1, %d, %d], at: i64[1, %d]) -> y {\n  %s\n}\n" % (
        kind, tokens, k, kind, matrices, n * k, p, "\n  ".join(body))


def rounded(kind, values):
    """What a type holds of them, and the elements of a file."""
    if kind == "f16":
        narrow = values.astype(numpy.float16)
        return narrow.astype(numpy.float32), narrow
    if kind == "bf16":
        high = (values.view(numpy.uint32) >> 16).astype(numpy.uint16)
        return (high.astype(numpy.uint32) << 16).view(numpy.float32), high
    return values, values


def draw_case(draw):
    kind = str(draw.choice(["f16", "bf16", "f32"]))
    tokens, each = int(draw.integers(1, 4)), int(draw.choice([1, 2, 5]))
    matrices = int(draw.integers(2, 20))
    n, k = int(draw.integers(8, 90)), int(draw.integers(256, 400))
    among = int(draw.choice([1, min(matrices, 3), matrices]))
    chosen = draw.permutation(matrices)[:among]
    return kind, tokens, each, matrices, n, k, draw.choice(chosen, tokens * each)


def main():
    folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    draw = numpy.random.default_rng(seed)
    for number in range(count):
        kind, tokens, each, matrices, n, k, at = draw_case(draw)
        x, x_file = rounded(kind, draw.standard_normal((tokens, 1, k), numpy.float32))
        w, w_file = rounded(kind, draw.standard_normal((matrices, n, k), numpy.float32) / 8)
        rows = numpy.repeat(x[:, 0], each, axis=0)
        y = numpy.stack([w[m] @ row for m, row in zip(at, rows)])
        _, y_file = rounded(kind, y[..., None])
        path = folder / ("%d.hir" % number)
        path.write_text(text(kind, tokens, each, matrices, n, k))
        for name, data in (("x", x_file), ("w", w_file.reshape(1, matrices, -1)),
                           ("at", at.reshape(1, -1).astype(numpy.int64)), ("y", y_file)):
            numpy.save(folder / (name + ".npy"), data)
        command = ["hidet-run", str(path), "--target=sm_90a", "--no-cache",
                   "--rtol=2e-2", "--atol=2e-2"] + sys.argv[4:] + [
                       "--input=%s=@%s" % (name, folder / (name + ".npy")) for name in ("x", "w", "at")
                   ] + ["--expected=y=@%s" % (folder / "y.npy")]
        result = subprocess.run(command, text=True, capture_output=True)
        if result.returncode:
            sys.exit("%s\n%s%s" % (path.read_text(), result.stdout, result.stderr))


if __name__ == "__main__":
    main()
