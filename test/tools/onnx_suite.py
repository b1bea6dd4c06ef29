# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs ONNX's own backend tests through hidet-run.

usage: onnx_suite.py [--tools=DIR] [--device=ref|sim|cuda] [--filter=REGEX]
                     [-j N] [--limit=SECONDS] [--json=FILE] [--option=OPTION]
                     [--expected=FILE] [--write-expected] [--list]
                     [--write-results=FILE]

Prints a table by operator, then what failed in a way that was not expected.
Expected failures are listed in test/Models/onnx_expected_failures.txt, a line
each: the test's name, how it ends, and why:

  node/test_bernoulli 4 its result is drawn at random
  node/test_xyz ref:4 sim:1 ...               where the devices differ

A test ends as hidet-run exits, or in `crash` (a signal, or exit 70), `timeout`,
or `unnamed` (exit 4 that names neither operator nor attribute of the model).
What is not listed passes. A new failure, a listed test that passes and one
that ends in another way make this program exit 1; the GPU is to end as the
simulator does. --write-results writes how many node tests of each operator
pass, for docs/OPERATORS.md. --write-expected rewrites the list from this run, but a wrong
answer is not expected before somebody says why: it is written with the reason
TODO, which does not count.
"""

import argparse
import collections
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

LIST = (pathlib.Path(__file__).resolve().parent.parent / "Models" /
        "onnx_expected_failures.txt")
# How a test ends, and in which column of the table that is counted.
COLUMNS = ("pass", "wrong", "unsupported", "crash", "timeout", "other")
ENDS = {"0": "pass", "1": "wrong", "4": "unsupported", "crash": "crash",
        "timeout": "timeout"}
PLAIN_COUNT = 1710  # of onnx 1.22.0's node tests; it checks is_plain
LISTED_DEVICES = ("ref", "sim")
PREFIX = re.compile(r".*?\berror(\[E\d+\])?: *")


def column(end):
    return ENDS.get(end, "other")


class Result:
    def __init__(self, case, end, said, report, seconds):
        self.case, self.end, self.said = case, end, said
        self.report, self.seconds = report, seconds

    def reason(self):
        """In a line: the first diagnostic, or the first thing said."""
        if self.end == "timeout":
            return "takes longer than %.0f s" % self.seconds
        lines = [line for line in self.said.splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line]
        line = (errors or lines or ["says nothing"])[0]
        return PREFIX.sub("", line, count=1).strip()[:160]


def ending(case, code, said):
    if code < 0 or code == 70:
        return "crash"
    if code == 4:
        words = set(re.findall(r"\w+", said))
        return "4" if words & set(case.words) else "unnamed"
    return str(code)


def run_case(case, options, scratch):
    report = os.path.join(scratch, case.name.replace("/", "-") + ".json")
    command = [os.path.join(options.tools, "hidet-run"),
               "--device=" + options.device, str(case.model), "-q",
               "--test-data=%s" % case.data, "--rtol=%g" % case.rtol,
               "--atol=%g" % case.atol, "--json=" + report, *options.option]
    start = time.monotonic()
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, errors="replace",
                              stderr=subprocess.STDOUT, timeout=options.limit)
        end, said = ending(case, done.returncode, done.stdout), done.stdout
    except subprocess.TimeoutExpired:
        end, said = "timeout", ""
    seconds = time.monotonic() - start
    data = None
    if options.json and os.path.exists(report):
        data = json.loads(pathlib.Path(report).read_text())
    return Result(case, end, said, data, seconds)


def run_all(cases, options, scratch):
    """One process each; the results in the order of the cases."""
    results = []
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        for result in pool.map(lambda c: run_case(c, options, scratch), cases):
            results.append(result)
            if sys.stderr.isatty():
                print("\r%d of %d" % (len(results), len(cases)), end="",
                      file=sys.stderr)
    if sys.stderr.isatty():
        print("\r" + " " * 20 + "\r", end="", file=sys.stderr)
    return results


def read_expected(path):
    """{name: ({device: end}, reason)}"""
    expected = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, *words = line.split(" ")
        ends = {}
        while words and words[0].startswith(("ref:", "sim:")):
            device, _, end = words.pop(0).partition(":")
            ends[device] = end
        if not ends and words:
            ends = dict.fromkeys(LISTED_DEVICES, words.pop(0))
        if not ends or not words:
            raise SystemExit("%s:%d: a name, how it ends, why" % (path, number))
        expected[name] = ends, " ".join(words)
    return expected


def write_expected(path, results, expected, device):
    """The list with this run's endings on `device`, the others' as before."""
    head = [line for line in path.read_text().splitlines()
            if line.startswith("#")] if path.exists() else []
    rows = dict(expected)
    for result in results:
        name = result.case.name
        ends, why = rows.get(name, ({}, ""))
        ends = dict(ends)
        if ends.get(device, "0") != result.end:
            ends[device] = result.end
            why = ("TODO " if result.end == "1" else "") + result.reason()
        ends = {key: end for key, end in ends.items() if end != "0"}
        rows[name] = ends, why
    lines = []
    for name, (ends, why) in sorted(rows.items()):
        if not ends:
            continue
        same = set(ends.values())
        how = (same.pop() if len(ends) == 2 and len(same) == 1 else
               " ".join("%s:%s" % item for item in sorted(ends.items())))
        lines.append("%s %s %s" % (name, how, why))
    path.write_text("\n".join(head + lines) + "\n")


def print_table(results):
    rows = collections.defaultdict(collections.Counter)
    for result in results:
        rows[result.case.row][column(result.end)] += 1
    print("%-28s" % "operator" + "".join("%12s" % c for c in COLUMNS))

    def line(name, counts):
        print("%-28s" % name +
              "".join("%12s" % (counts[c] or "") for c in COLUMNS))

    for name in sorted(rows, key=str.lower):
        line(name, rows[name])
    groups = collections.defaultdict(collections.Counter)
    for result in results:
        suite = result.case.suite
        if suite == "node":
            suite = "node tests: tensors" if result.case.plain else (
                "node tests: others")
        groups[suite][column(result.end)] += 1
    print()
    for name, counts in groups.items():
        line("%s (%d)" % (name, sum(counts.values())), counts)
    line("all (%d)" % len(results), sum(groups.values(),
                                        collections.Counter()))


def write_results(path, results):
    """A line for each operator that a node test of this run is of."""
    passed, total = collections.Counter(), collections.Counter()
    for result in results:
        if result.case.operator:
            total[result.case.operator] += 1
            passed[result.case.operator] += result.end == "0"
    lines = ["# ONNX's node tests by operator: how many pass, of how many. Made",
             "# by test/tools/onnx_suite.py --write-results, on the simulator."]
    lines += ["%s %d %d" % (name, passed[name], total[name])
              for name in sorted(total)]
    path.write_text("\n".join(lines) + "\n")


def surprises(results, expected, device):
    """Results that do not end as the list says, each with a line on it."""
    key = "sim" if device == "cuda" else device
    for result in results:
        ends, why = expected.get(result.case.name, ({}, ""))
        want = ends.get(key, "0")
        if result.end == want and (want == "0" or not why.startswith("TODO")):
            continue
        if result.end == "0":
            yield result, "passes, and is listed as %s" % want
        else:
            yield result, "%s%s: %s" % (
                column(result.end) if result.end in ENDS else
                "exit " + result.end,
                ", not %s as listed" % want if want not in ("0", result.end)
                else "",
                result.reason())


def save_json(path, results, options, seconds):
    data = {"device": options.device, "seconds": round(seconds, 1), "cases": [
        {"name": r.case.name, "row": r.case.row, "end": r.end,
         "plain": r.case.plain, "ms": round(1000 * r.seconds),
         "reason": "" if r.end == "0" else r.reason(), "report": r.report}
        for r in results]}
    pathlib.Path(path).write_text(json.dumps(data, indent=1))


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", default="")
    parser.add_argument("--device", default="ref")
    parser.add_argument("--filter", default="")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--json")
    parser.add_argument("--option", action="append", default=[],
                        help="given to hidet-run; repeatable")
    parser.add_argument("--expected", type=pathlib.Path, default=LIST)
    parser.add_argument("--write-expected", action="store_true")
    parser.add_argument("--write-results", type=pathlib.Path)
    parser.add_argument("--list", action="store_true", help="names alone")
    return parser.parse_args()


def main():
    options = parse_options()
    if not importlib.util.find_spec("onnx"):
        print("skipped: this Python has no package onnx")
        return 77
    from onnx_cases import all_cases
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        cases = all_cases(scratch)
        plain = sum(c.suite == "node" and c.plain for c in cases)
        if plain != PLAIN_COUNT:
            raise SystemExit("%d node tests of tensors, not %d: another onnx?"
                             % (plain, PLAIN_COUNT))
        names = {case.name for case in cases}
        cases = [c for c in cases if re.search(options.filter, c.name)]
        if options.list:
            print("\n".join("%s %s" % (c.name, c.row) for c in cases))
            return 0
        # Tests neither use nor fill the cache of whoever runs them.
        os.environ.setdefault("HIDET_CACHE_DIR", os.path.join(scratch, "cache"))
        results = run_all(cases, options, scratch)
    seconds = time.monotonic() - start
    expected = read_expected(options.expected)
    print_table(results)
    if options.json:
        save_json(options.json, results, options, seconds)
    if options.write_results:
        write_results(options.write_results, results)
    if options.write_expected:
        write_expected(options.expected, results, expected, options.device)
        expected = read_expected(options.expected)
    unknown = sorted(set(expected) - names)
    for name in unknown:
        print("%s: listed, but there is no such test" % name)
    found = list(surprises(results, expected, options.device))
    if found:
        print("\nNot as expected:")
    for result, said in found:
        print("%s: %s" % (result.case.name, said))
    passed = sum(result.end == "0" for result in results)
    listed = len(results) - passed - sum(r.end != "0" for r, _ in found)
    print("\n%d passed, %d failed, %d failed as expected (%s, %.0f s)" % (
        passed, len(found) + len(unknown), listed, options.device, seconds))
    return 1 if found or unknown or not results else 0


if __name__ == "__main__":
    sys.exit(main())
