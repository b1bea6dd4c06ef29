# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of wgmma against numpy: each combination of types, operands from
shared memory in each layout that the hardware reads and from registers.

usage: wgmma.py FOLDER

One kernel for each, on the simulator, of 64 rows, n columns and 2 steps of k,
with late or early effects or under --sanitize in turn. Elements are small
integers, which every type holds, so the sums are exact.
"""

import os
import subprocess
import sys

import numpy as np

LOCAL = ("spatial(4, 1) * repeat(1, %d) * repeat(2, 1) * spatial(8, 4) "
         "* repeat(1, 2)")
BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "f8e4m3": 1, "f8e5m2": 1, "i8": 1,
         "u8": 1}
OPTIONS = ("--async=latest", "--async=earliest", "--sanitize")
F8 = ["f8e4m3", "f8e5m2"]
TYPES = ([("f16", "f16", "f32"), ("f16", "f16", "f16"), ("bf16", "bf16", "f32"),
          ("tf32", "tf32", "f32")]
         + [(a, b, c) for a in F8 for b in F8 for c in ("f32", "f16")]
         + [(a, b, "i32") for a in ("i8", "u8") for b in ("i8", "u8")])


def bits_of(kind, x):
    """The elements' bits, as numpy has them, of small integers."""
    if kind == "f16":
        return x.astype(np.float16)
    if kind == "bf16":
        return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if kind == "tf32":  # What the low 13 bits hold does not matter.
        return (x.astype(np.float32).view(np.uint32) | 0x1abc).view(np.float32)
    if kind == "f8e5m2":  # The upper byte of f16.
        return (x.astype(np.float16).view(np.uint16) >> 8).astype(np.uint8)
    if kind == "f8e4m3":  # 1.mmm * 2^(e - 7), from f32's 23 bits.
        bits = x.astype(np.float32).view(np.uint32)
        code = ((bits >> 20 & 0x7ff) - (120 << 3)) & 0x7f
        return np.where(x == 0, 0, code | (bits >> 24 & 0x80)).astype(np.uint8)
    return x.astype(np.int8 if kind == "i8" else np.uint8)


def declare(name, kind, extent, depth, major, swizzle, begin):
    """A matrix in shared memory: its declaration and the place of (x, k). It
    begins at that row of the tensor, where that is swizzled."""
    line = 16 // BYTES[kind]
    if swizzle == 0:
        shape = [extent, depth] if major == "k_major" else [depth, extent]
        place = "x, k" if major == "k_major" else "k, x"
        text = "layout(tile(8, %d)) align(128)" % line
    elif major == "k_major":
        width = swizzle // BYTES[kind]
        shape = [-(-depth // width), begin + extent, width]
        place = "k / %d, x + %d, k %% %d" % (width, begin, width)
        text = "layout(row, swizzle(%d)) align(1024)" % swizzle
    else:
        width = swizzle // BYTES[kind]
        shape = [-(-extent // width), begin + depth, width]
        place = "x / %d, k + %d, x %% %d" % (width, begin, width)
        text = "layout(row, swizzle(%d)) align(1024)" % swizzle
    dims = ", ".join(map(str, shape))
    return "shared %s: %s[%s] %s" % (name, kind, dims, text), place


def at(name, place, x, k):
    return "%s[%s]" % (name, place.replace("x", "(%s)" % x).replace(
        "k", "(%s)" % k))


def kernel(a, b, c, n, majors, swizzles, in_registers, begins=(0, 0)):
    step = 32 // BYTES[a]
    depth = 2 * step
    local = LOCAL % (n // 8)
    major_a, major_b = majors
    lines = ["kernel product(in a: %s[64, %d], in b: %s[%d, %d], "
             "out c: %s[64, %d]) grid(1) block(128) {"
             % (a, depth, b, n, depth, c, n)]
    text, place_a = declare("sa", a, 64, depth, major_a, swizzles[0], begins[0])
    if not in_registers:
        lines.append(text)
    text, place_b = declare("sb", b, n, depth, major_b, swizzles[1], begins[1])
    lines.append(text)
    if not in_registers:
        lines += ["for x in 0..64 {", "if thread < %d {" % depth,
                  at("sa", place_a, "x", "thread") + " = a[x, thread]", "}",
                  "}"]
    lines += ["for x in 0..%d {" % n, "if thread < %d {" % depth,
              at("sb", place_b, "x", "thread") + " = b[x, thread]", "}", "}",
              "fence_proxy_async()", "barrier()",
              "register sum: %s[64, %d] layout(local(%s))" % (c, n, local)]
    if in_registers:
        width = 4 // BYTES[a]
        lines += ["register ra: %s[2, %d]" % (a, 4 * width),
                  "for s in 0..2 unroll {", "for i in 0..%d unroll {" % (4 * width),
                  "ra[s, i] = a[warp * 16 + lane / 4 + 8 * (i / %d %% 2), "
                  "s * %d + %d * (lane %% 4) + %d * (i / %d) + i %% %d]"
                  % (width, step, width, 4 * width, 2 * width, width),
                  "}", "}"]
    lines.append("wgmma_fence()")
    names = []
    if BYTES[a] == 2:
        names = [major_b] if in_registers else [major_a, major_b]
    lines.append("for s in 0..2 unroll {")
    first = ("ra@[s * %d]" % (16 // BYTES[a]) if in_registers
             else at("sa", place_a, "0", "s * %d" % step))
    lines.append("wgmma_m64k%d(%d, sum@[0], %s, %s, s > 0%s)" % (
        step, n, first, at("sb", place_b, "0", "s * %d" % step),
        "".join(", " + name for name in names)))
    lines += ["}", "wgmma_commit()", "wgmma_wait(0, %d, sum@[0])" % n,
              "for i, j in %s on thread unroll {" % local,
              "c[i, j] = sum[i, j]", "}", "}"]
    return "\n".join(lines) + "\n", depth


def check(folder, number, case):
    a, b, c, n = case[:4]
    text, depth = kernel(*case)
    rng = np.random.default_rng(number)
    low = 0 if "u8" in (a, b) else -4
    x = rng.integers(low, 5, (64, depth))
    y = rng.integers(low, 5, (n, depth))
    expected = x @ y.T
    kinds = {"f32": np.float32, "f16": np.float16, "i32": np.int32}
    path = os.path.join(folder, "product%d" % number)
    with open(path + ".hir", "w") as file:
        file.write(text)
    np.save(path + ".a.npy", bits_of(a, x))
    np.save(path + ".b.npy", bits_of(b, y))
    np.save(path + ".c.npy", expected.astype(kinds[c]))
    for option in OPTIONS[number % 3:number % 3 + 1]:
        command = ["hidet-run", "--device=sim", option, path + ".hir",
                   "--input=a=@%s.a.npy" % path, "--input=b=@%s.b.npy" % path,
                   "--expected=c=@%s.c.npy" % path, "--rtol=0", "--atol=0"]
        result = subprocess.run(command, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)
        if result.returncode != 0:
            print("%s\n%s" % (" ".join(command), result.stdout))
            return False
    return True


def cases():
    for a, b, c in TYPES:
        for in_registers in (False, True):
            for swizzle in (0, 32, 64, 128):
                yield a, b, c, 64, ("k_major", "k_major"), (swizzle,) * 2, \
                    in_registers
    for a, c in (("f16", "f32"), ("bf16", "f32"), ("f16", "f16")):
        for majors in (("mn_major", "k_major"), ("k_major", "mn_major"),
                       ("mn_major", "mn_major")):
            for swizzle in (0, 32, 64, 128):
                yield a, a, c, 128, majors, (swizzle,) * 2, False
    for n in (8, 24, 192, 256):
        yield "f16", "f16", "f32", n, ("k_major", "k_major"), (128, 128), False
        yield "bf16", "bf16", "f32", n, ("k_major", "k_major"), (32, 64), True
    for swizzle in (32, 64, 128):
        for begins in ((1, 0), (7, 3), (0, 13), (10, 6)):
            for kind, c in (("f16", "f32"), ("tf32", "f32"), ("i8", "i32")):
                yield kind, kind, c, 64, ("k_major", "k_major"), \
                    (swizzle,) * 2, False, begins
            yield "f16", "f16", "f32", 64, ("mn_major", "mn_major"), \
                (swizzle,) * 2, False, begins


def main():
    folder, count, bad = sys.argv[1], 0, 0
    for number, case in enumerate(cases()):
        count += 1
        bad += not check(folder, number, case)
        if bad == 3:
            break
    print("%d products, %d wrong" % (count, bad))
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
