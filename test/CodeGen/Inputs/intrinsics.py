# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a kernel that calls every intrinsic that a target has, with every type.

usage: intrinsics.py TABLE SM

TABLE is lib/IR/Intrinsics.def, SM the target's number (901: sm_90a). So a row
that is added to the table is tested without a change here. Rows with matrices
or tensor maps have a kernel each, with every policy and every major.
"""

import re
import sys

ROW = re.compile(r'HD_INTRINSIC\(\s*(.*?)\)\s*(?://.*)?$')
TYPE = re.compile(r"([a-z]+\d+(?:e\dm\d)?|bool|mbarrier)(?:x(\d+))?$")


def rows(path):
    with open(path) as file:
        for line in file:
            match = ROW.match(line)
            if match:
                yield re.findall(r'"[^"]*"|[^\s,"]+', match.group(1))


def split(name):
    scalar, lanes = TYPE.match(name).groups()
    return scalar, int(lanes or 1)


def constant(form):
    """The least that a #i32 may be, or 1 where that is 0."""
    least = re.search(r"\[(\d+)", form)
    return str(max(1, int(least.group(1)))) if least else "1"


class Program:
    def __init__(self):
        self.params, self.shared, self.registers = {}, set(), set()
        self.body, self.results = [], 0

    def tensor(self, direction, scalar):
        name = f"{direction}_{scalar}"
        self.params[name] = f"{direction} {name}: {scalar}[65536]"
        return name

    def argument(self, intrinsic, index, form, name):
        if form == "#":
            return "16" if "*" in name else constant(name)
        if form[:1] in ("s", "g", "m"):
            scalar, lanes = ("f32", 1) if name == "any" else split(name)
            tensor = f"shared_{scalar}" if form[0] == "s" else self.tensor("inout", scalar)
            if form[0] == "s":
                self.shared.add(scalar)
            return f"{tensor}[0 +: {lanes}]" if lanes > 1 else f"{tensor}[0]"
        scalar, lanes = split(name)
        if form:  # Registers read, and written.
            self.registers.add(scalar)
            return f"register_{scalar}[{32 if form == 'ri:' else 0}]"
        if intrinsic.startswith("barrier"):
            return ("1", "64")[index]
        tensor = self.tensor("in", scalar)
        return (f"{tensor}[thread * {lanes} +: {lanes}]" if lanes > 1
                else f"{tensor}[thread]")

    def call(self, name, stands_for, signature):
        result, parameters = re.match(r"(\w+)\((.*)\)", signature).groups()

        def instance(text):
            if not text.startswith("T"):
                return text
            return stands_for if text == "T" else split(stands_for)[0] + text[1:]

        arguments = []
        for index, parameter in enumerate(p for p in parameters.split(",") if p):
            if parameter in ("order", "scope", "cache", "policy", "major"):
                if name == "fence" and parameter == "order":
                    arguments.append("acq_rel")
                continue
            form, text = re.match(r"(#|[sgm][iow]:|r[iow]:)?(.*)", parameter).groups()
            arguments.append(self.argument(name, index, form or "", instance(text)))
        text = f"{name}({', '.join(arguments)})"
        if result != "void":
            scalar, lanes = split(instance(result))
            self.results += 1
            vector = f" +: {lanes}" if lanes > 1 else ""
            text = f"{self.tensor('out', scalar)}[{self.results * 16}{vector}] = {text}"
        self.body.append(text)

    def print(self):
        for scalar in sorted(self.registers):
            out = self.tensor("out", scalar)
            self.body.append(f"for i in 0..64 unroll {{\n    {out}[i] = "
                             f"register_{scalar}[i]\n  }}")
        print(f"kernel all({', '.join(self.params.values())}) grid(2) block(64) {{")
        for scalar in sorted(self.shared):
            print(f"  shared shared_{scalar}: {scalar}[64]")
        for scalar in sorted(self.registers):
            print(f"  register register_{scalar}: {scalar}[64] = {scalar}(1)")
        print("".join(f"  {line}\n" for line in self.body) + "}")


POLICIES = ("", "evict_first", "evict_last", "evict_normal")
BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "i8": 1, "u8": 1, "f8e4m3": 1, "f8e5m2": 1}


class Hopper:
    """A kernel that calls one row: maps, matrices, accumulators."""

    def __init__(self, number, name, stands_for, signature, variant):
        self.name, self.variant, self.stands_for = name, variant, stands_for
        self.forms = re.match(r"void\((.*)\)", signature).group(1).split(",")
        self.head, self.declared, self.after = [], [], []
        self.n = (8, 24, 64, 256)[variant % 4]
        self.majors = [("k_major", "mn_major")[variant >> bit & 1]
                       for bit in range(self.forms.count("major"))]
        arguments = [argument for index in range(len(self.forms))
                     if (argument := self.argument(index))]
        print(f"kernel hopper{number}({', '.join(['out o: f32[65536]'] + self.head)}) "
              "grid(2) block(128) cluster(2) {")
        lines = self.declared + [f"{name}({', '.join(arguments)})"] + self.after
        print("".join(f"  {line}\n" for line in lines) + "}")

    def axes(self, values):
        return "[" + ", ".join(values) + "]"

    def map(self):
        rank = self.forms.count("i32")
        inner = ["32"] * (rank - 1)
        tensor = f"inout g: f32{self.axes(inner + ['64'])}"
        if "im2col" in self.name:
            corner = self.axes(["-1"] * (rank - 2))
            shape = f"im2col(16, 32, lower = {corner}, upper = {corner})"
        else:
            shape = f"box({', '.join(['2'] * (rank - 1) + ['32'])})"
        self.head += [tensor, f"map m: g {shape} swizzle(128)"]
        return "m"

    def matrix(self, index, scalar):
        matrices = [i for i, form in enumerate(self.forms) if form.startswith("d:")]
        which = matrices.index(index)
        is_mn = which < len(self.majors) and self.majors[which] == "mn_major"
        extent, swizzle = (self.n if index == matrices[-1] else 64), 128 >> self.variant % 3
        line, name = swizzle // BYTES[scalar], f"matrix{index}"
        if self.variant % 5 == 4 or (is_mn and extent > line and extent % line):
            sizes = [64, extent] if is_mn else [extent, 64]
            layout = f"layout(tile(8, {16 // BYTES[scalar]}))"
        else:
            sizes = ([max(1, extent // line), 64] if is_mn else [1, extent]) + [line]
            layout = f"layout(row, swizzle({swizzle})) align({8 * swizzle})"
        self.declared.append(f"shared {name}: {scalar}{self.axes(map(str, sizes))} {layout}")
        return f"{name}[{', '.join('0' for _ in sizes)}]"

    def registers(self, form, index):
        scalar, count = re.match(r"r[iow]:(\w+?)x(n/2|\d+)$", form).groups()
        scalar = self.stands_for if scalar == "T" else scalar
        count = self.n // 2 if count == "n/2" else int(count)
        name = f"registers{index}"
        self.declared.append(f"register {name}: {scalar}[{count}] = {scalar}(o[thread])")
        self.after.append(f"for i in 0..{count} unroll {{\n    o[i * 128 + thread] = "
                          f"f32({name}[i])\n  }}")
        return f"{name}[0]"

    def argument(self, index):
        form = self.forms[index]
        if form.endswith("map"):
            return self.map()
        if form.startswith("d:"):
            return self.matrix(index, form[2:])
        if form[:3] in ("ri:", "rw:"):
            return self.registers(form, index)
        if re.match("s[iow]:any", form):
            self.declared.append("shared tile: f32[64, 32] layout(row, swizzle(128)) "
                                 "align(1024)")
            return "tile[0, 0]"
        if form == "sw:mbarrier":
            self.declared.append("shared barriers: mbarrier[2]")
            return "barriers[1]"
        if form == "major":
            return self.majors[self.forms[:index].count("major")]
        if form.startswith("#"):
            return str(self.n) if form[1] == "n" else constant(form)
        return { "i32": "8", "u16": "u16(3)",
                "bool": "thread >= 0",
                "policy": POLICIES[self.variant % 4]}[form]


def is_hopper(signature):
    return re.search(r"\bmap\b|d:|#n", signature)


def main():
    table, target = sys.argv[1], int(sys.argv[2])
    program, count, hopper = Program(), 0, 0
    for row in rows(table):
        _, name, types, signature, _, _, least = [part.strip('"') for part in row[:7]]
        if int(least) > target:
            continue
        count += 1
        for stands_for in types.split("|"):
            if not is_hopper(signature):
                program.call(name, stands_for, signature)
                continue
            for variant in range(4):
                Hopper(hopper, name, stands_for, signature, variant)
                hopper += 1
    assert count > 80, "the table was not read"
    print(f"// {count} rows")
    program.print()


main()
