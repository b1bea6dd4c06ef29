# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Says at the end of a test run how many PTX files ptxas assembled.

usage: ptxas_count.py COUNT-FILE [--reset]

Where ptxas is present, a run in which none was assembled has tested nothing
and fails.
"""

import pathlib
import shutil
import sys


def main():
    count_file = pathlib.Path(sys.argv[1])
    if "--reset" in sys.argv:
        count_file.write_text("")
        return 0
    lines = count_file.read_text().splitlines()
    assembled, skipped = lines.count("assembled"), lines.count("skipped")
    print("ptxas: %d assembled, %d skipped" % (assembled, skipped))
    return 1 if shutil.which("ptxas") and assembled == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
