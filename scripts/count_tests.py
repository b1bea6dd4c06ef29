# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts the cases of a test run: ctest's tests, with lit's tests, cmocka's
functions and ONNX's tests counted one by one; of the latter, those that fail as
they are expected to are not counted.

usage: count_tests.py BUILD/test...

Reads ctest.xml (ctest --output-junit) and results.json (lit --output) there.
"""

import collections
import json
import pathlib
import re
import sys
import xml.etree.ElementTree

# cmocka's closing lines, such as "[  PASSED  ] 3 test(s)."
CMOCKA = re.compile(r"^\[ *(PASSED|FAILED|SKIPPED) *\] (\d+) test\(s\)", re.M)
# The closing line of test/tools/onnx_suite.py.
SUITE = re.compile(r"^(\d+) (passed), (\d+) (failed), \d+ failed as", re.M)
LIT = {"PASS": "passed", "XFAIL": "passed", "FLAKYPASS": "passed",
       "UNSUPPORTED": "skipped", "EXCLUDED": "skipped"}
JUNIT = {"run": "passed", "disabled": "skipped"}


def status_of(case):
    """What ctest itself says of a test. One that could not be run, for want of
    its program or of a fixture, has failed."""
    skipped = case.find("skipped")
    if skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return "skipped"
    return JUNIT.get(case.get("status"), "failed")


def count(folder):
    counts = collections.Counter()
    root = xml.etree.ElementTree.parse(folder / "ctest.xml").getroot()
    for case in root.iter("testcase"):
        lit = folder / "results.json"
        suite = SUITE.search(case.findtext("system-out") or "")
        cmocka = CMOCKA.findall(case.findtext("system-out") or "")
        ran = case.get("status") in ("run", "fail")
        if case.get("name") == "lit" and ran and lit.exists():
            for test in json.loads(lit.read_text())["tests"]:
                counts[LIT.get(test["code"], "failed")] += 1
        elif suite:
            for number, status in (suite.group(1, 2), suite.group(3, 4)):
                counts[status] += int(number)
        elif cmocka:
            for status, number in cmocka:
                counts[status.lower()] += int(number)
        else:
            counts[status_of(case)] += 1
    return counts


if __name__ == "__main__":
    counts = sum((count(pathlib.Path(folder)) for folder in sys.argv[1:]),
                 collections.Counter())
    print(", ".join("%d %s" % (counts[key], key)
                    for key in ("passed", "failed", "skipped")))
