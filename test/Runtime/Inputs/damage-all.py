# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changes a byte in the middle of each file of a folder and of those in it.

Usage: damage-all.py FOLDER
"""

import pathlib
import sys

files = [p for p in pathlib.Path(sys.argv[1]).rglob("*") if p.is_file()]
assert files, sys.argv
for path in files:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
