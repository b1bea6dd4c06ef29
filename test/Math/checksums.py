# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether the math library gives the same bits on every device.

usage: checksums.py [--tools=DIR] [--device=sim|cuda] [--write=FILE]
                    [--expected=FILE] [--blocks=N] [function:type...]

Evaluates each function on every f32, f16 and bf16 and on 2^32 patterns of f64
(those of two arguments with another for each), on the device, adds up a hash
of (argument, result) there and prints a digest of the sums. --expected compares with what --write kept from another device;
unittests/Math/MathTest.c says how far the same results are from the truth.
--blocks=N does N of 4096 equal parts.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

F32 = ("exp exp2 expm1 log log2 log10 log1p rsqrt sigmoid silu softplus gelu "
       "gelu_tanh sinh cosh tanh erf erfc sin cos tan asin acos atan").split()
F64 = "exp exp2 log log2 rsqrt sigmoid tanh erf sin cos".split()
HALVES = F32
# The second argument of those that have one.
SECOND = {"pow": "w", "atan2": "x * w"}

# One block takes 2^20 patterns.
KERNEL = """
kernel checksum(out sums: u32[{blocks}]) grid({blocks}) block(256)
{{
  shared total: u32[1]
  register sum: u32 = 0
  if thread == 0 {{
    total[0] = 0
  }}
  barrier()
  for i in 0..{rounds} {{
    let pattern = u32(block) * {stride} + u32(i * 256 + thread)
    {argument}
    let y = {call}
    {bits}
    let mixed = (bits ^ (pattern * 0x85ebca6b)) * 0xc2b2ae35
    sum += mixed ^ (mixed >> 15)
  }}
  atomic_add(total[0], sum)
  barrier()
  if thread == 0 {{
    sums[block] = total[0]
  }}
}}
"""

# The argument from a pattern; 32 bits from the result, all NaNs the same.
TYPES = {
    "f32": ("let x = bitcast(f32, pattern)",
            "let bits = y == y ? bitcast(u32, y) : 0x7fc00000"),
    "f16": ("let x = bitcast(f16, u16(pattern & 0xffff))",
            "let wide = f32(y)\n"
            "    let bits = wide == wide ? bitcast(u32, wide) : 0x7fc00000"),
    "bf16": ("let x = bitcast(bf16, u16(pattern & 0xffff))",
             "let wide = f32(y)\n"
             "    let bits = wide == wide ? bitcast(u32, wide) : 0x7fc00000"),
    # The high half varies slowly, the low half is scattered.
    "f64": ("let x = bitcast(f64, (u64(pattern) << 32) | "
            "u64(pattern * 0x9e3779b1))",
            "let raw = bitcast(u64, y)\n"
            "    let bits = y == y ? u32(raw & 0xffffffff) ^ u32(raw >> 32) "
            ": 0x7fc00000"),
}


def text(name, kind, blocks):
    argument, bits = TYPES[kind]
    call = name + "(x)"
    if name in SECOND:  # w is within +-8, scattered.
        argument += ("\n    let w = %s(bitcast(i32, pattern * 0x9e3779b1)) * "
                     "3.7252902984619141e-09" % kind)
        call = "%s(x, %s)" % (name, SECOND[name])
    if kind in ("f16", "bf16"):
        blocks, rounds, stride = 1, 256, 0
    else:
        rounds, stride = 4096, (4096 // blocks) << 20
    return KERNEL.format(call=call, blocks=blocks, rounds=rounds,
                         stride=stride, argument=argument, bits=bits)


def digest(tool, device, name, kind, blocks):
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "checksum.hir")
        sums = os.path.join(folder, "sums.npy")
        with open(source, "w") as file:
            file.write(text(name, kind, blocks))
        subprocess.run([tool, source, "--device=" + device, "-q",
                        "--output=sums=@" + sums], check=True)
        return hashlib.sha256(np.load(sums).tobytes()).hexdigest()[:16]


def rows(names):
    every = ([(n, "f32") for n in F32 + list(SECOND)] +
             [(n, "f64") for n in F64 + ["pow"]] +
             [(n, t) for t in ("f16", "bf16") for n in HALVES])
    return [tuple(n.split(":")) for n in names] or every


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default="")
    parser.add_argument("--device", default="sim")
    parser.add_argument("--write")
    parser.add_argument("--expected")
    parser.add_argument("--blocks", type=int, default=4096)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    tool = os.path.join(options.tools, "hidet-run")
    expected = {}
    if options.expected:
        with open(options.expected) as file:
            expected = json.load(file)
    if expected.pop("blocks", options.blocks) != options.blocks:
        sys.exit("%s was made with another --blocks" % options.expected)
    got, differ, unknown = {}, 0, 0
    for name, kind in rows(options.names):
        key = "%s:%s" % (name, kind)
        got[key] = digest(tool, options.device, name, kind, options.blocks)
        unknown += bool(options.expected) and key not in expected
        verdict = ""
        if key in expected:
            same = got[key] == expected[key]
            differ += not same
            verdict = "  same" if same else "  DIFFERS from " + expected[key]
        print("%-15s %s%s" % (key, got[key], verdict), flush=True)
    if options.write:
        with open(options.write, "w") as file:
            json.dump({"blocks": options.blocks, **got}, file, indent=1)
            file.write("\n")
    if unknown:
        print("%d are not in %s" % (unknown, options.expected))
    return 1 if differ or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
