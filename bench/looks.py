# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose shapes depend on what is in their inputs: what is compiled, how
long a run takes, and by how much the process and the device's memory grow over
the last half of the runs. Numbers found are drawn anew for each run, from none
to all; answers are numpy's.

usage: looks.py [--device=sim] [--runs=2000] [--seconds=10] [--json=FILE]
  --seconds: after which a model ends, runs or not

A numpy, and what python/hidet finds (HIDET_LIBRARY). Exits 1 where an answer
is another one.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

import hidet  # noqa: E402

ROWS = """
graph main(x: f32[{n}], w: f32[{n}, 64]) -> y, s {{
  i = onnx13.NonZero(x)
  t = onnx13.Transpose(i)
  rows = onnx13.GatherND(w, t)
  r = onnx13.Relu(rows)
  y = onnx13.Mul(r, r)
  s = onnx13.ReduceSum(y) {{ keepdims = 0 }}
}}
"""

BOXES = """
graph main(boxes: f32[1, 40, 4], scores: f32[1, 3, 40]) -> kept, b {
  const most: i64[1] = [12]
  const overlap: f32[1] = [0.5]
  const least: f32[1] = [0]
  const last: i64[1] = [2]
  const flat: i64[1] = [-1]
  const none: i64[1] = [0]
  kept = onnx13.NonMaxSuppression(boxes, scores, most, overlap, least)
  column = onnx13.Gather(kept, last) { axis = 1 }
  at = onnx13.Reshape(column, flat)
  all = onnx13.Squeeze(boxes, none)
  chosen = onnx13.Gather(all, at)
  b = onnx13.Add(chosen, chosen)
}
"""

TWICE = """
graph main(x: f32[48], w: f32[48]) -> v, s {
  i = onnx13.NonZero(x)
  it = onnx13.Transpose(i)
  a = onnx13.GatherND(w, it)
  const zero: f32[] = 0
  p = onnx13.Greater(a, zero)
  j = onnx13.NonZero(p)
  jt = onnx13.Transpose(j)
  v = onnx13.GatherND(a, jt)
  s = onnx13.ReduceSum(a) { keepdims = 0 }
}
"""


def mask(rng, n):
    x = numpy.zeros(n, numpy.float32)
    x[rng.permutation(n)[:rng.integers(0, n + 1)]] = 1
    return x


def numbers(rng, *shape):
    return rng.integers(-3, 4, shape).astype(numpy.float32)


def draw_rows(n):
    def draw(rng):
        x, w = mask(rng, n), numbers(rng, n, 64)
        y = numpy.maximum(w[x != 0], 0) ** 2
        return (x, w), (y, y.sum())
    return ROWS.format(n=n), draw


def draw_boxes(rng):
    low = numpy.arange(40, dtype=numpy.float32)[:, None] * [2, 0]
    boxes = numpy.concatenate([low, low + 1], 1).astype(numpy.float32)
    scores = rng.permutation(120).reshape(3, 40) - rng.integers(0, 121)
    kept = [(0, c, i) for c in range(3)
            for i in numpy.argsort(-scores[c])[:12] if scores[c, i] > 0]
    kept = numpy.array(kept, numpy.int64).reshape(-1, 3)
    return ((boxes[None], scores[None].astype(numpy.float32)),
            (kept, 2 * boxes[kept[:, 2]]))


def draw_twice(rng):
    x, w = mask(rng, 48), numbers(rng, 48)
    a = w[x != 0]
    return (x, w), (a[a > 0], a.sum())


MODELS = {
    "rows of 64": draw_rows(64),
    "rows of 4096": draw_rows(4096),
    "boxes": (BOXES, draw_boxes),
    "twice": (TWICE, draw_twice),
}


def host_kib():
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1])


def device_mib(device):
    if not device.startswith("cuda"):
        return 0
    text = subprocess.run(
        ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
        capture_output=True, text=True, check=True).stdout
    return int(text.split()[0])


def measure(name, text, draw, args):
    rng = numpy.random.default_rng(0)
    model = hidet.compile_text(text, device=args.device)
    wrong, times, marks = 0, [], []
    end = time.time() + args.seconds
    while len(times) < args.runs and time.time() < end:
        if len(times) % 100 == 0:
            marks.append((host_kib(), device_mib(args.device),
                          model.num_compiled))
        inputs, wanted = draw(rng)
        start = time.perf_counter()
        outputs = model(*inputs)
        times.append(time.perf_counter() - start)
        wrong += not all(numpy.array_equal(a, b)
                         for a, b in zip(outputs, wanted))
    marks.append((host_kib(), device_mib(args.device), model.num_compiled))
    half = sorted(times[len(times) // 2:])
    grown = [b - a for a, b in zip(marks[len(marks) // 2], marks[-1])]
    return {"name": name, "runs": len(times), "wrong": wrong,
            "compiled": model.num_compiled,
            "first_ms": round(times[0] * 1e3, 1),
            "median_us": round(half[len(half) // 2] * 1e6, 1),
            "p90_us": round(half[len(half) * 9 // 10] * 1e6, 1),
            "last_half": {"host_kib": grown[0], "device_mib": grown[1],
                          "compiled": grown[2]}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="sim")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--json")
    args = parser.parse_args()
    rows = []
    for name, (text, draw) in MODELS.items():
        rows.append(measure(name, text, draw, args))
        print(rows[-1], flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(
            {"device": args.device, "models": rows}, indent=1) + "\n")
    return int(any(row["wrong"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
