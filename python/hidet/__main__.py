# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The two tools: `python -m hidet opt ...`, `python -m hidet run ...`."""

from __future__ import annotations

import ctypes
import sys

from hidet._library import library

TOOLS = {"opt": "hidet_opt_main", "run": "hidet_run_main"}


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] not in TOOLS:
        print("usage: python -m hidet opt|run ...; --help behind it says more")
        return 2
    words = [f"hidet-{sys.argv[1]}", *sys.argv[2:]]
    given = (ctypes.c_char_p * (len(words) + 1))(*map(str.encode, words), None)
    return getattr(library(), TOOLS[sys.argv[1]])(len(words), given)


if __name__ == "__main__":
    sys.exit(main())
