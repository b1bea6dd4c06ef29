# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assembles a PTX file with ptxas where one is present, and counts it.

usage: ptxas_check.py COUNT-FILE FILE.ptx ARCH [--clean]

--clean: a warning (that it serializes wgmma, say: C7510) or a spilled register
is a failure, too.
Kernels are assembled as they are on a GPU: as for a linker, and where that is
slow (C7504: setmaxnreg is ignored; C7509: wgmma waits) as a whole program.

Each call appends one line, `assembled` or `skipped`, to COUNT-FILE, so that
the end of a test run can say how many PTX files were really checked.
"""

import re
import shutil
import subprocess
import sys


def main():
    count_file, ptx, arch = sys.argv[1:4]
    ptxas = shutil.which("ptxas")
    if ptxas:
        command = [ptxas, "-v", "-arch=" + arch, "-o", "/dev/null", ptx]
        for more in ["-c"], []:
            done = subprocess.run(command + more, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if not re.search(r"\(C75\d\d\) Potential Performance Loss", done.stdout):
                break
        faults = [line for line in done.stdout.splitlines()
                  if "warning" in line or "C75" in line or
                  re.search(r"\b[1-9]\d* bytes spill", line)]
        if done.returncode or ("--clean" in sys.argv and faults):
            print(done.stdout)
            sys.exit(1)
    with open(count_file, "a") as file:
        file.write("assembled\n" if ptxas else "skipped\n")


if __name__ == "__main__":
    main()
