# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every diagnostic is expected by some test, but for those that tell of a bug.

usage: codes.py ROOT

A lit test expects one by error[CODE], a planted fault by "finds CODE", a unit
test by HD_CODE.
"""

import pathlib
import re
import sys

OWNED = re.compile(r"HD_DIAGNOSTIC\((E\d{4}), (?!INTERNAL)")


def main():
    root = pathlib.Path(sys.argv[1])
    table = (root / "lib/Support/Diagnostics.def").read_text()
    tests = "".join(
        path.read_text(errors="replace")
        for folder, suffixes in (("test", ".hir .test"), ("unittests", ".c"))
        for path in sorted((root / folder).rglob("*"))
        if path.suffix and path.suffix in suffixes.split())
    codes = OWNED.findall(table)
    missing = [code for code in codes
               if "error[%s]" % code not in tests
               and "finds %s" % code not in tests
               and "HD_%s" % code not in tests]
    print("%d codes, without a test: %s" % (len(codes), missing or "none"))
    return 1 if missing or not codes else 0


if __name__ == "__main__":
    sys.exit(main())
