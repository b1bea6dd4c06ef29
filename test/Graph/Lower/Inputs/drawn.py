# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A drawn graph, by hidet-run, against what it should give."""
import subprocess
import sys

import numpy

NAMES = {"float32": "f32", "float16": "f16", "bool": "bool", "int64": "i64",
         "int32": "i32", "uint8": "u8"}


def check(folder, text, inputs, expected, tolerance, options, case):
    """text: the nodes, of which one gives y. Ends the program, with the graph and
    the case's name, where that is not as expected."""
    given = ", ".join("%s: %s%s" % (name, NAMES[str(x.dtype)], list(x.shape))
                      for name, x in inputs.items())
    text = "graph main(%s) -> y {\n  %s\n}\n" % (given, text)
    (folder / "a.hir").write_text(text)
    numpy.save(folder / "y.npy", expected)
    command = ["hidet-run", str(folder / "a.hir"), "-q", "--rtol=%g" % tolerance,
               "--atol=%g" % tolerance, "--expected=y=@%s" % (folder / "y.npy"),
               *options]
    for name, value in inputs.items():
        numpy.save(folder / (name + ".npy"), value)
        command.append("--input=%s=@%s" % (name, folder / (name + ".npy")))
    ran = subprocess.run(command, text=True, capture_output=True)
    if ran.returncode != 0:
        print(text, ran.stdout, ran.stderr)
        sys.exit(case)
