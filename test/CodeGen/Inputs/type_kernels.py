# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints kernels that convert between all types and do all arithmetic on each.

usage: type_kernels.py TABLE, where TABLE is lib/IR/Scalars.def

One kernel for each type: every conversion from it, alone and in vectors, and
every operator that it has.
"""

import re
import sys

ROW = re.compile(r'HD_SCALAR\(\w+,\s*"(\w+)",\s*(\d+),\s*(\w+)')


def scalars(path):
    with open(path) as file:
        for match in ROW.finditer(file.read()):
            name, bits, kind = match.groups()
            if kind not in ("VOID", "OPAQUE"):
                yield name, int(bits), kind


def lanes_of(*bits):
    """Lanes of which each type fills whole bytes, 16 at most."""
    return [n for n in (1, 2, 4, 8, 16)
            if all(b * n % 8 == 0 and 8 <= b * n <= 128 and
                   (b * n & b * n - 1) == 0 for b in bits)]


def vector(name, lanes):
    return name if lanes == 1 else f"{name}x{lanes}"


def at(lanes):
    return f"[thread * {lanes} +: {lanes}]" if lanes > 1 else "[thread]"


def conversions(name, bits, every):
    for other, width, _ in every:
        for lanes in lanes_of(bits, width):
            yield (f"to_{other}{at(lanes)} = "
                   f"{vector(other, lanes)}(in_{name}{at(lanes)})")


def operators(name, bits, kind):
    integers = ("SIGNED", "UNSIGNED")
    binary = {"FLOAT": "+ - * /", "BOOL": "&& ||"}.get(
        kind, "+ - * / % << >> & | ^").split()
    for lanes in lanes_of(bits):
        a, b = (f"in_{name}[thread * {lanes} + {k}{f' +: {lanes}' if lanes > 1 else ''}]"
                for k in (0, 16))
        results = [f"{a} {op} {b}" for op in binary if lanes == 1 or kind != "BOOL"]
        if kind != "BOOL":
            results += [f"min({a}, {b})", f"max({a}, {b})", f"-{a}"]
        if kind in integers:
            results.append(f"~{a}")
        if kind == "BOOL" and lanes == 1:
            results.append(f"!{a}")
        for result in results:
            yield f"to_{name}{at(lanes)} = {result}"
        if lanes == 1 and kind != "BOOL":
            for op in "< <= > >= == !=".split():
                yield f"to_bool[thread] = {a} {op} {b}"
            yield f"to_{name}[thread] = {a} < {b} ? {a} : {b}" if bits >= 8 else \
                  f"to_i32[thread] = {a} < {b} ? 1 : 0"


def main():
    every = list(scalars(sys.argv[1]))
    assert len(every) > 20, "the table was not read"
    for name, bits, kind in every:
        outs = ", ".join(f"out to_{other}: {other}[4096]" for other, _, _ in every)
        print(f"kernel from_{name}(in in_{name}: {name}[4096], {outs}) grid(1) block(128) {{")
        lines = list(conversions(name, bits, every)) + list(operators(name, bits, kind))
        print("".join(f"  {line}\n" for line in lines) + "}")


main()
