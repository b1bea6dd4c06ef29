# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps on the simulator against numpy: boxes that stick out on every
side, of one to five axes, swizzled or not; windows of im2col; stores and sums.

usage: tma.py FOLDER
"""

import itertools
import os
import subprocess
import sys

import numpy as np

OPTIONS = ("--async=latest", "--async=earliest", "--sanitize")
THREADS = 128


def box_of(x, start, box):
    """The box of x at start, zeros outside."""
    out = np.zeros(box, x.dtype)
    for at in itertools.product(*map(range, box)):
        place = tuple(s + i for s, i in zip(start, at))
        if all(0 <= p < size for p, size in zip(place, x.shape)):
            out[at] = x[place]
    return out


def put_box(x, start, values, add):
    out = x.copy()
    for at in itertools.product(*map(range, values.shape)):
        place = tuple(s + i for s, i in zip(start, at))
        if all(0 <= p < size for p, size in zip(place, x.shape)):
            out[place] = values[at] + (out[place] if add else 0)
    return out


def text(shape):
    return ", ".join(map(str, shape))


def tile_of(shape, kind, swizzle):
    layout = " layout(row, swizzle(%d))" % swizzle if swizzle else ""
    return "shared tile: %s[%s]%s align(1024)" % (kind, text(shape), layout)


def copy(shape, left, right):
    """left[box] = right[box], by all threads."""
    count, places = int(np.prod(shape)), []
    rest = "e"
    for size in reversed(shape):
        places.insert(0, "%s %% %d" % (rest, size))
        rest = "(%s / %d)" % (rest, size)
    lines = ["for round in 0..%d {" % -(-count // THREADS),
             "let e = round * %d + thread" % THREADS,
             "if e < %d {" % count,
             "%s = %s" % (left % ", ".join(places), right % ", ".join(places)),
             "}", "}"]
    return lines


INIT = ["shared full: mbarrier[1]", "if thread == 0 {",
        "mbarrier_init(full[0], 1)", "fence_mbarrier_init()",
        "mbarrier_arrive_expect(full[0], %d)"]
WAIT = ["}", "barrier()", "mbarrier_wait(full[0], 0)"]
STORE = ["fence_proxy_async()", "barrier()", "if thread == 0 {",
         "%s(tc, tile[%s], %s)", "bulk_commit()", "bulk_wait(0)", "}"]


def load_kernel(kind, shape, box, start, swizzle):
    bytes_all = int(np.prod(box)) * np.dtype(NUMPY[kind]).itemsize
    swizzled = " swizzle(%d)" % swizzle if swizzle else ""
    lines = ["kernel load(in a: %s[%s], out c: %s[%s], map ta: a box(%s)%s) "
             "grid(1) block(%d) {" % (kind, text(shape), kind, text(box),
                                      text(box), swizzled, THREADS),
             tile_of(box, kind, swizzle)]
    lines += [line % bytes_all if "%d" in line else line for line in INIT]
    lines.append("tma_load(tile[%s], ta, full[0], %s)"
                 % (text([0] * len(box)), text(start)))
    lines += WAIT + copy(box, "c[%s]", "tile[%s]") + ["}"]
    return lines


def store_kernel(kind, shape, box, start, swizzle, add):
    swizzled = " swizzle(%d)" % swizzle if swizzle else ""
    lines = ["kernel store(in a: %s[%s], inout c: %s[%s], map tc: c box(%s)%s) "
             "grid(1) block(%d) {" % (kind, text(box), kind, text(shape),
                                      text(box), swizzled, THREADS),
             tile_of(box, kind, swizzle)]
    lines += copy(box, "tile[%s]", "a[%s]")
    call = STORE[3] % ("tma_reduce_add" if add else "tma_store",
                       text([0] * len(box)), text(start))
    return lines + STORE[:3] + [call] + STORE[4:] + ["}"]


NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64,
         "i32": np.int32, "u32": np.uint32, "i8": np.int8, "i64": np.int64,
         "u64": np.uint64, "u8": np.uint8}


def values(rng, kind, shape):
    return rng.integers(0, 100, shape).astype(NUMPY[kind])


class Runner:
    def __init__(self, folder):
        self.folder, self.count, self.bad = folder, 0, 0

    def run(self, lines, inputs, expected):
        path = os.path.join(self.folder, "map%d" % self.count)
        option = OPTIONS[self.count % len(OPTIONS)]
        self.count += 1
        with open(path + ".hir", "w") as file:
            file.write("\n".join(lines) + "\n")
        command = ["hidet-run", "--device=sim", option, path + ".hir",
                   "--rtol=0", "--atol=0"]
        for name, value in inputs.items():
            np.save("%s.%s.npy" % (path, name), value)
            command.append("--input=%s=@%s.%s.npy" % (name, path, name))
        np.save(path + ".expected.npy", expected)
        command.append("--expected=c=@%s.expected.npy" % path)
        result = subprocess.run(command, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)
        if result.returncode != 0:
            self.bad += 1
            print(" ".join(command), result.stdout, sep="\n")


# The type, the tensor's shape, the box, where it starts, the swizzle.
BOXES = [
    ("f32", [200], [64], [150], 0),
    ("f64", [40], [16], [-3], 0),
    ("f16", [30, 72], [16, 64], [20, 40], 128),
    ("f16", [30, 72], [16, 64], [-5, -8], 128),
    ("f16", [30, 72], [8, 32], [3, 17], 64),
    ("i8", [30, 80], [9, 32], [25, 64], 32),
    ("f32", [30, 72], [20, 32], [12, 60], 128),
    ("i32", [10, 12], [7, 12], [-2, 5], 0),
    ("u8", [5, 9, 48], [2, 3, 32], [4, -1, 30], 0),
    ("f16", [4, 6, 64], [3, 4, 64], [-1, 4, -20], 128),
    ("f32", [3, 4, 5, 8], [2, 2, 3, 8], [2, -1, 3, 4], 32),
    ("i64", [2, 3, 4, 3, 4], [2, 2, 2, 2, 2], [1, -1, 3, 2, 3], 0),
    ("f16", [2, 3, 4, 3, 32], [1, 2, 3, 2, 32], [1, 2, -2, 2, 8], 64),
]
SUMS = [("f32", True), ("f64", True), ("f16", True), ("i32", True),
        ("u32", True), ("u64", True)]


def windows(runner, rng):
    """[n, h, w, c] by a window of r x s with padding, steps and dilation."""
    for shape, filters, pads, step, dilation, pixels, channels, swizzle in (
            ((2, 7, 9, 64), (3, 3), (1, 1), 1, 1, 32, 32, 64),
            ((3, 6, 5, 72), (3, 5), (1, 2), 2, 1, 16, 64, 128),
            ((2, 9, 8, 16), (2, 3), (0, 2), 1, 2, 24, 16, 32),
            ((1, 5, 6, 24), (1, 1), (0, 0), 1, 1, 16, 16, 0)):
        n, h, w, c = shape
        lower = [-p for p in pads]
        upper = [p - (f - 1) * dilation for p, f in zip(pads, filters)]
        heights, widths = ((size - 1 + up - low) // step + 1 for size, low, up
                           in zip((h, w), lower, upper))
        x = values(rng, "f16", shape)
        for first in (0, heights * widths - 3):
            r, s = filters[0] - 1, filters[1] // 2
            start_c = 0 if first == 0 else c - channels + 8
            expected = np.zeros((pixels, channels), np.float16)
            for pixel in range(pixels):
                image, rest = divmod(first + pixel, heights * widths)
                p, q = divmod(rest, widths)
                y = p * step + lower[0] + r * dilation
                z = q * step + lower[1] + s * dilation
                for channel in range(channels):
                    if (image < n and 0 <= y < h and 0 <= z < w
                            and start_c + channel < c):
                        expected[pixel, channel] = x[image, y, z,
                                                     start_c + channel]
            image, rest = divmod(first, heights * widths)
            p, q = divmod(rest, widths)
            swizzled = " swizzle(%d)" % swizzle if swizzle else ""
            lines = ["kernel window(in a: f16[%s], out c: f16[%d, %d], map ta: a "
                     "im2col(%d, %d, lower = [%s], upper = [%s], "
                     "step = [%d, %d])%s) "
                     "grid(1) block(%d) {"
                     % (text(shape), pixels, channels, pixels, channels,
                        text(lower), text(upper), step, step, swizzled, THREADS),
                     tile_of((pixels, channels), "f16", swizzle)]
            lines += [line % (pixels * channels * 2) if "%d" in line else line
                      for line in INIT]
            lines.append("tma_load_im2col(tile[0, 0], ta, full[0], %d, %d, %d, "
                         "%d, u16(%d), u16(%d))"
                         % (image, p * step + lower[0], q * step + lower[1],
                            start_c, r * dilation, s * dilation))
            lines += WAIT + copy((pixels, channels), "c[%s]", "tile[%s]") + ["}"]
            runner.run(lines, {"a": x}, expected)


def main():
    runner, rng = Runner(sys.argv[1]), np.random.default_rng(0)
    for kind, shape, box, start, swizzle in BOXES:
        x = values(rng, kind, shape)
        runner.run(load_kernel(kind, shape, box, start, swizzle), {"a": x},
                   box_of(x, start, box))
        y = values(rng, kind, box)
        runner.run(store_kernel(kind, shape, box, start, swizzle, False),
                   {"a": y, "c": x}, put_box(x, start, y, False))
    for kind, add in SUMS:
        x, y = values(rng, kind, [20, 24]), values(rng, kind, [8, 16])
        runner.run(store_kernel(kind, [20, 24], [8, 16], [15, 12], 0, add),
                   {"a": y, "c": x}, put_box(x, [15, 12], y, True))
    windows(runner, rng)
    print("%d copies, %d wrong" % (runner.count, runner.bad))
    sys.exit(runner.bad > 0)


if __name__ == "__main__":
    main()
