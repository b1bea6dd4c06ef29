#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a dictionary for libFuzzer: the names in the tables of the language,
and the words and punctuation that its lexer and parsers know.

usage: dictionary.py ROOT
"""
import re
import sys
from pathlib import Path

# A word, a dotted one too, or one or two signs; messages are longer.
WORD = re.compile(r'"([a-z_][a-z0-9_.]*|[^\w\s"\\%]{1,2})"')
# What no table holds: numbers, a mapping's arrow, the marks of vector lanes.
MORE = ["0x1.8p3", "1e-3", "f32x4", "f16x2", "2147483647", "//"]
SOURCES = ["*.def", "Parse*.c", "Lexer.c", "Intrinsic.c"]


def words(root):
    found = set(MORE)
    for pattern in SOURCES:
        for path in (root / "lib" / "IR").rglob(pattern):
            if path.name != "Passes.def":
                found.update(WORD.findall(path.read_text()))
    # The simulator's functions stand in the tables but not in the language.
    return sorted(word for word in found if not word.startswith("hd_"))


def main():
    listed = words(Path(sys.argv[1]))
    for needed in ("kernel", "fma", "f32", "block.x", "+:", "acq_rel"):
        assert needed in listed, needed
    for word in listed:
        print(f'"{word}"')


if __name__ == "__main__":
    main()
