# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs each kernel and plan of a file under --sanitize and looks at the findings.

usage: sanitize.py FILE

Before a kernel or plan stands either of
  // right                  it runs without a finding
  // finds CODE "text"      an error of that code and text is found; where the
                            order decides which one, CODE|CODE
and lines in it that end in `// named` must be pointed at. Each is run at five
seeds, with late and with early copies. Kernels without such a line are parts of
plans and not run by themselves.
"""

import re
import subprocess
import sys

SEEDS = range(5)
EXPECTATION = re.compile(r'// (right|finds (E\d+(?:\|E\d+)*) "(.*)")$')
ITEM = re.compile(r"(kernel|plan) (\w+)")


INPUT = re.compile(r"\bin(?:out)? (\w+):")


class Case:
    def __init__(self, name, code, text):
        self.name, self.code, self.text = name, code, text
        self.named = []   # the lines to be pointed at
        self.inputs = []  # the parameters that need values


def cases_of(path):
    expected, cases, case = None, [], None
    with open(path) as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            found = EXPECTATION.match(line)
            item = ITEM.match(line)
            if found:
                expected = found
            elif item:
                case = None
                if expected:
                    case = Case(item[2], expected[2], expected[3])
                    cases.append(case)
                expected = None
            elif case and line.endswith("// named"):
                case.named.append(number)
            if case:
                case.inputs += INPUT.findall(line)
    return cases


def run(path, case, options):
    command = ["hidet-run", "--device=sim", "--sanitize",
               "--entry=" + case.name] + options + [path]
    command += ["--input=%s=zeros" % name for name in case.inputs]
    result = subprocess.run(command, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, timeout=300)
    return command, result.returncode, result.stdout


def fault(path, case, code, said):
    """What is wrong with a run, or None."""
    if case.code is None:
        if code != 0 or "error[" in said:
            return "expected no finding and exit 0, got exit %d" % code
        return None
    if code != 3:
        return "expected exit 3, got %d" % code
    line = re.compile(r"error\[(?:%s)\]: .*" % case.code + re.escape(case.text))
    if not line.search(said):
        return "no error[%s] that says: %s" % (case.code, case.text)
    for number in case.named:
        if "%s:%d:" % (path, number) not in said:
            return "line %d is not pointed at" % number
    return None


def main():
    path = sys.argv[1]
    cases = cases_of(path)
    if not cases:
        sys.exit("no kernel with an expectation in " + path)
    failed = False
    for case in cases:
        for seed in SEEDS:
            for when in ("latest", "earliest"):
                command, code, said = run(
                    path, case, ["--seed=%d" % seed, "--async=" + when])
                what = fault(path, case, code, said)
                if what:
                    failed = True
                    print("%s: %s\n%s\n%s" % (case.name, what,
                                              " ".join(command), said))
                    break
            if failed:
                break
    print("%d kernels" % len(cases))
    sys.exit(failed)


if __name__ == "__main__":
    main()
