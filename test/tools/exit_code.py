# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command and checks its exit code.

usage: exit_code.py CODE COMMAND...
"""

import subprocess
import sys

if __name__ == "__main__":
    want = int(sys.argv[1])
    code = subprocess.run(sys.argv[2:]).returncode
    if code != want:
        print("exit %d, not %d: %s" % (code, want, " ".join(sys.argv[2:])),
              file=sys.stderr)
    sys.exit(code != want)
