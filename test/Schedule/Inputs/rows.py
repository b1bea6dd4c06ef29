# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of drawn shapes, types and tasks by drawn candidates of templates,
against NumPy: odd sizes, primes, 1s, alone and between their neighbours.

usage: rows.py FOLDER COUNT SEED [hidet-run's options...]
"""
import pathlib
import subprocess
import sys

import numpy

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = numpy.random.default_rng(seed)
ROWS = [1, 2, 3, 5, 8, 17, 32, 61, 130]
LENGTHS = [2, 7, 8, 24, 31, 64, 100, 197, 256, 333, 768, 1031, 2048]
LONG = [4096, 5003, 9000, 12344, 20008]
# The choices of the templates in lib/Schedule/templates. Those that a head
# refuses are drawn again.
TEMPLATES = {
    "rows_registers": {"WORKERS": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
                       "ROWS": [1, 2, 4, 8, 16, 32, 64, 128]},
    "rows_again": {"WORKERS": [32, 128, 256, 512, 1024]},
    "rows_shared": {"WORKERS": [128, 256, 512, 1024], "BLOCKS": [1, 2, 4, 8]},
    "rows_across": {"WORKERS": [1, 2, 4, 8, 16, 32, 64], "ROWS": [8, 16, 32, 128]},
}
TASKS = {
    "softmax": ("softmax(%s) { s = %d }", False),
    "log_softmax": ("log_softmax(%s) { s = %d }", False),
    "layer_norm": ("layer_norm(%s, g, b) { s = %d, epsilon = 1.0e-5, count = %d }", True),
    "rms_norm": ("rms_norm(%s) { s = %d, epsilon = 1.0e-5, count = %d }", True),
}
# A number for each row, of tensors [p, n, q]; integers among them.
NUMBERS = {"reduce_log_sum_exp": ["f16", "f32", "f64"], "reduce_sum": ["f32", "i32", "i64"],
           "reduce_max_integer": ["i8", "u8", "i16", "i32", "u32", "i64"]}


def expect(task, x, axis, g, b):
    if task in ("softmax", "log_softmax"):
        e = x - x.max(axis, keepdims=True)
        s = numpy.exp(e).sum(axis, keepdims=True)
        return numpy.exp(e) / s if task == "softmax" else e - numpy.log(s)
    if task == "rms_norm":
        return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    c = x - x.mean(-1, keepdims=True)
    return c / numpy.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * g + b


def reduced(task, x):
    if task == "reduce_log_sum_exp":
        top = x.max(1)
        return numpy.log(numpy.exp(x - top[:, None]).sum(1)) + top
    return x.max(1) if task == "reduce_max_integer" else x.sum(1)


def write_numbers(template, pins, shape):
    """A graph and its tensors for a task that makes a number of each row."""
    task = str(rng.choice(list(NUMBERS)))
    kind = str(rng.choice(NUMBERS[task]))
    shape = list(shape) if template == "rows_across" else [shape[-2], shape[-1], 1]
    dtype = numpy.dtype({"f16": "f2", "f32": "f4", "f64": "f8"}.get(
        kind, kind[0] + str(int(kind[1:]) // 8)))
    x = (rng.standard_normal(shape) if kind[0] == "f"
         else rng.integers(0 if kind[0] == "u" else -100, 100, shape)).astype(dtype)
    wide = x.astype(numpy.float64 if kind[0] == "f" else numpy.int64)
    sizes = ", ".join(map(str, shape))
    (folder / "rows.hir").write_text(
        "graph main(x: %s[%s]) -> y {\n  y: %s[%d, %d] = %s(x) with %s(%s)\n}\n" % (
            kind, sizes, kind, shape[0], shape[2], task, template, pins))
    numpy.save(folder / "rows_x.npy", x)
    numpy.save(folder / "rows_y.npy", reduced(task, wide).astype(dtype))
    return task, kind, shape, {"f16": 2e-3, "f32": 1e-4, "f64": 1e-9}.get(kind, 0)


def draw_shape(template):
    lengths = LONG if template in ("rows_shared", "rows_again") else LENGTHS
    m, n = int(rng.choice(ROWS)), int(rng.choice(lengths))
    if template == "rows_across":
        return [int(rng.choice([1, 2, 3])), int(rng.choice([7, 24, 64, 197])), m + 8], 1
    return ([m, n], 1) if rng.integers(2) else ([2, m, n], 2)


def write_vectors(template, pins, shape, axis):
    """A graph and its tensors for a task that makes elements of rows."""
    tasks = list(TASKS)[:2] if template == "rows_across" else list(TASKS)
    task = str(rng.choice(tasks))
    kind = str(rng.choice(["f16", "f16", "f32", "bf16", "f64"]))
    joined = bool(rng.integers(2))
    n = shape[axis]
    g, b = rng.standard_normal(n), rng.standard_normal(n)
    x = rng.standard_normal(shape)
    if kind in ("f16", "bf16"):  # Numbers that the types have.
        x, g, b = (numpy.round(v * 8) / 8 for v in (x, g, b))
    g, b = g.astype(numpy.float32), b.astype(numpy.float32)
    x = x.astype(numpy.float64 if kind == "f64" else numpy.float32)
    fed = x.astype(numpy.float64)
    text, counted = TASKS[task]
    type_of = lambda t, s: "%s[%s]" % (t, ", ".join(map(str, s)))
    lines = ["graph main(x: %s, g: f32[%d], b: f32[%d]) -> y {" % (
        type_of("f64" if kind == "f64" else "f32", shape), n, n)]
    # A prologue of its own, and an epilogue that turns the result round.
    if kind in ("f32", "f64"):
        lines.append("  xt: %s = relu(x)" % type_of(kind, shape))
        fed = numpy.maximum(fed, 0)
    else:
        lines.append("  xt: %s = cast(x) { U = %s }" % (type_of(kind, shape), kind))
    arguments = ("xt", axis, n) if counted else ("xt", axis)
    result = expect(task, fed, axis, g.astype(numpy.float64), b.astype(numpy.float64))
    lines.append("  t: %s = %s with %s(%s)" % (
        type_of(kind, shape), text % arguments, template, pins))
    if joined:
        order = [len(shape) - 1] + list(range(len(shape) - 1))
        lines.append("  r: %s = relu(t)" % type_of(kind, shape))
        lines.append("  y: %s = transpose(r) { order = [%s] }" % (
            type_of(kind, [shape[i] for i in order]), ", ".join(map(str, order))))
        result = numpy.maximum(result, 0).transpose(order)
    else:
        lines.append("  y: %s = neg(t)" % type_of(kind, shape))
        result = -result
    (folder / "rows.hir").write_text("\n".join(lines) + "\n}\n")
    for name, value in {"x": x, "g": g, "b": b}.items():
        numpy.save(folder / ("rows_%s.npy" % name), value)
    numpy.save(folder / "rows_y.npy", result.astype(
        {"f16": numpy.float16, "f64": numpy.float64}.get(kind, numpy.float32)))
    if kind == "bf16":  # Which NumPy does not know.
        text = (folder / "rows.hir").read_text().replace("-> y {", "-> w {")[:-2]
        (folder / "rows.hir").write_text(text + "  w: %s = cast(y) { U = f32 }\n}\n" % (
            type_of("f32", result.shape)))
    return task, kind, shape, {"f16": 2e-3, "bf16": 1.6e-2, "f32": 1e-4, "f64": 1e-9}[kind]


def attempt(number):
    """None where the head refuses the candidate, or the task is done otherwise."""
    template = str(rng.choice(list(TEMPLATES)))
    pins = ", ".join("%s = %d" % (name, rng.choice(values))
                     for name, values in TEMPLATES[template].items())
    shape, axis = draw_shape(template)
    is_number = bool(rng.integers(3) == 0)
    task, kind, shape, tolerance = (write_numbers(template, pins, shape) if is_number
                                    else write_vectors(template, pins, shape, axis))
    command = ["hidet-run", str(folder / "rows.hir"), "--rtol=%g" % tolerance,
               "--atol=%g" % tolerance, "--expected=@%s" % (folder / "rows_y.npy")]
    command += ["--input=%s=@%s" % (name, folder / ("rows_%s.npy" % name))
                for name in ("x" if is_number else "xgb")]
    done = subprocess.run(command + sys.argv[4:], text=True, capture_output=True)
    if ("holds for none of the candidates" in done.stderr
            or "nothing that it computes has the form" in done.stderr):
        return None
    if done.returncode:
        print("case %d of seed %d: %s %s of %s by %s(%s): exit %d\n%s%s" % (
            number, seed, task, kind, shape, template, pins, done.returncode,
            done.stdout, done.stderr))
    return done.returncode == 0


def case(number):
    while True:
        result = attempt(number)
        if result is not None:
            return result


right = sum(case(number) for number in range(count))
print("%d of %d as NumPy says" % (right, count))
sys.exit(right != count)
