# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command under growing limits on memory. Each run ends with exit 5 or
0, the first with 5, the last with 0: whichever step runs out, it leaves nothing
behind (AddressSanitizer, where it is built in, ends a run that leaks with
another code).

usage: limits.py COMMAND...
"""

import subprocess
import sys


def main():
    limit, codes = 1 << 10, []
    while not codes or codes[-1] == 5 and limit < 1 << 30:
        command = sys.argv[1:] + ["--max-mem=%d" % limit]
        result = subprocess.run(command, text=True, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)
        codes.append(result.returncode)
        if result.returncode not in (0, 5):
            print("exit %d of %s\n%s" % (result.returncode, " ".join(command),
                                         result.stderr), file=sys.stderr)
            return 1
        limit += limit // 5
    print(codes)
    return codes[0] != 5 or codes[-1] != 0


if __name__ == "__main__":
    sys.exit(main())
