# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runner of ONNX's tests finds what it is for: a hidet-run made of a few
lines of shell ends in every way, and lists of expected failures are wrong.

usage: test_suite.py ONNX_SUITE.py      exits 77 where there is no onnx
"""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

if not importlib.util.find_spec("onnx"):
    sys.exit(77)

SUITE = pathlib.Path(sys.argv.pop(1))
TESTS = "node/test_(abs|acos|ceil|cos|cosh|erf|det_2d|exp)$"
ALL_TESTS = TESTS.replace("erf", "erf|floor")
TOOL = """#!/bin/sh
case "$*" in
*/test_abs/*) exit 0;;
*/test_acos/*) echo "error[E0001]: Acos is not supported"; exit 4;;
*/test_ceil/*) echo "error[E0001]: something is not supported"; exit 4;;
*/test_cos/*) echo "error: y differs"; exit 1;;
*/test_cosh/*) kill -SEGV $$;;
*/test_erf/*) echo "error: internal"; exit 70;;
*/test_floor/*) sleep 60;;
*/test_det_2d/*) echo "error: no such file"; exit 2;;
esac
"""
ENDS = {"acos": "4", "ceil": "unnamed", "cos": "1", "cosh": "crash",
        "erf": "crash", "det_2d": "2"}


class Suite(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        tool = self.folder / "hidet-run"
        tool.write_text(TOOL)
        tool.chmod(0o755)
        self.list = self.folder / "list.txt"

    def run_suite(self, rows, *options, device="ref", tests=TESTS):
        """The exit code and the lines printed."""
        if rows is not None:
            self.list.write_text("# a comment\n" + "".join(
                "node/test_%s %s a reason\n" % row for row in rows.items()))
        done = subprocess.run(
            [sys.executable, SUITE, "--tools=%s" % self.folder, "--limit=2",
             "--expected=%s" % self.list, "--filter=" + tests,
             "--device=" + device, *options], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout.splitlines()

    def test_all_as_listed(self):
        code, lines = self.run_suite(ENDS | {"floor": "timeout"},
                                     tests=ALL_TESTS)
        self.assertEqual(0, code, lines)
        self.assertRegex(lines[-1], "^2 passed, 0 failed, 7 failed as expec")
        total = [line for line in lines if line.startswith("all (9)")]
        self.assertEqual([["all", "(9)", "2", "1", "1", "2", "1", "2"]],
                         [line.split() for line in total])

    def fails_with(self, rows, said, device="ref"):
        code, lines = self.run_suite(rows, device=device)
        self.assertEqual(1, code)
        self.assertTrue(any(said in line for line in lines), lines)

    def test_a_new_failure(self):
        rows = {name: end for name, end in ENDS.items() if name != "cos"}
        self.fails_with(rows, "node/test_cos: wrong: y differs")

    def test_a_new_pass(self):
        self.fails_with(ENDS | {"exp": "4"},
                        "node/test_exp: passes, and is listed as 4")

    def test_another_ending(self):
        self.fails_with(ENDS | {"cos": "4"},
                        "node/test_cos: wrong, not 4 as listed")

    def test_of_one_device(self):
        rows = ENDS | {"cos": "ref:4 sim:1"}
        self.fails_with(rows, "node/test_cos: wrong, not 4 as listed")
        self.assertEqual(0, self.run_suite(rows, device="sim")[0])
        self.assertEqual(0, self.run_suite(rows, device="cuda")[0])

    def test_a_name_that_is_no_test(self):
        self.fails_with(ENDS | {"nonsense": "4"}, "there is no such test")

    def test_what_it_writes_is_what_it_expects(self):
        for device in "ref", "sim":
            code, lines = self.run_suite({} if device == "ref" else None,
                                         "--write-expected", device=device)
            self.assertEqual(1, code)  # Of the wrong answer alone.
            self.assertRegex(lines[-1], "^2 passed, 1 failed, 5 failed as")
        rows = [line for line in self.list.read_text().splitlines()
                if not line.startswith("#")]
        self.assertIn("node/test_acos 4 Acos is not supported", rows)
        self.assertIn("node/test_cos 1 TODO y differs", rows)
        self.assertEqual(len(ENDS), len(rows))

    def test_results_by_operator(self):
        results = self.folder / "results.txt"
        self.run_suite(ENDS, "--write-results=%s" % results)
        rows = [line for line in results.read_text().splitlines()
                if not line.startswith("#")]
        self.assertEqual(["onnx.Abs 1 1", "onnx.Acos 0 1", "onnx.Ceil 0 1",
                          "onnx.Cos 0 1", "onnx.Cosh 0 1", "onnx.Det 0 1",
                          "onnx.Erf 0 1", "onnx.Exp 1 1"], rows)


if __name__ == "__main__":
    unittest.main()
