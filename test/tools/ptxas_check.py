# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assembles a PTX file with ptxas where one is present, and counts it.

usage: ptxas_check.py COUNT-FILE FILE.ptx ARCH

Each call appends one line, `assembled` or `skipped`, to COUNT-FILE, so that
the end of a test run can say how many PTX files were really checked.
"""

import shutil
import subprocess
import sys


def main():
    count_file, ptx, arch = sys.argv[1:]
    ptxas = shutil.which("ptxas")
    if ptxas:
        subprocess.run([ptxas, "-arch=" + arch, "-o", "/dev/null", ptx],
                       check=True)
    with open(count_file, "a") as file:
        file.write("assembled\n" if ptxas else "skipped\n")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
