# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starts a command, sends it SIGINT after a second, and wants exit 130.

usage: interrupt.py COMMAND...
"""

import signal
import subprocess
import sys
import time

if __name__ == "__main__":
    process = subprocess.Popen(sys.argv[1:])
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    code = process.wait(timeout=60)
    if code != 130:
        print("exit %d, not 130" % code)
    sys.exit(code != 130)
