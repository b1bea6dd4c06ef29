# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a kernel that calls every intrinsic that a target has, with every type.

usage: intrinsics.py TABLE SM

TABLE is lib/IR/Intrinsics.def, SM the target's number (901: sm_90a). So a row
that is added to the table is tested without a change here.
"""

import re
import sys

ROW = re.compile(r'HD_INTRINSIC\(\s*(.*?)\)\s*(?://.*)?$')
TYPE = re.compile(r"([a-z]+\d+(?:e\dm\d)?|bool)(?:x(\d+))?$")


def rows(path):
    with open(path) as file:
        for line in file:
            match = ROW.match(line)
            if match:
                yield re.findall(r'"[^"]*"|[^\s,"]+', match.group(1))


def split(name):
    scalar, lanes = TYPE.match(name).groups()
    return scalar, int(lanes or 1)


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
            return "16" if "cp_async" in intrinsic and "wait" not in intrinsic else "1"
        if form in ("s:", "g:", "m:"):
            scalar, lanes = ("f32", 1) if name == "any" else split(name)
            tensor = f"shared_{scalar}" if form == "s:" else self.tensor("inout", scalar)
            if form == "s:":
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
            if parameter in ("order", "scope", "cache"):
                if name == "fence" and parameter == "order":
                    arguments.append("acq_rel")
                continue
            form, text = re.match(r"(#|[sgm]:|r[iow]:)?(.*)", parameter).groups()
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


def main():
    table, target = sys.argv[1], int(sys.argv[2])
    program, count = Program(), 0
    for row in rows(table):
        _, name, types, signature, _, least = [part.strip('"') for part in row[:6]]
        if int(least) <= target:
            count += 1
            for stands_for in types.split("|"):
                program.call(name, stands_for, signature)
    assert count > 80, "the table was not read"
    print(f"// {count} rows")
    program.print()


main()
