# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Damages the file of a compiled model in place.

usage: damage.py FILE code|format

code: a bit in the middle of the code of its first kernel; format: the format's
number is another one.
"""

import struct
import sys

HEAD = struct.Struct("<8sIIQQII48sQ")
SECTION = struct.Struct("<IIQQQ")
CODE = 7


def main():
    path, what = sys.argv[1:]
    with open(path, "r+b") as file:
        data = bytearray(file.read())
        head = HEAD.unpack_from(data)
        if what == "code":
            for i in range(head[2]):
                kind, _, offset, size, _ = SECTION.unpack_from(
                    data, HEAD.size + i * SECTION.size)
                if kind == CODE:
                    data[offset + size // 2] ^= 1
                    break
        else:
            struct.pack_into("<I", data, 8, 999)
        file.seek(0)
        file.write(data)


if __name__ == "__main__":
    main()
