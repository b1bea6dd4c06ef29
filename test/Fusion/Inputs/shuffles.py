# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a graph of channel shuffles, one after the other: half of the channels
negated, joined with the others, and mixed.

usage: shuffles.py COUNT
"""
import sys

count = int(sys.argv[1])
print("graph main(x: f32[1, 116, 9]) -> x%d {\n"
      "  x0: f32[1, 116, 9] = relu(x)" % count)
for i in range(count):
    print("""  a{i}: f32[1, 58, 9] = slice(x{i}) {{ start = [0, 0, 0], stride = 1, size = [1, 58, 9] }}
  b{i}: f32[1, 58, 9] = slice(x{i}) {{ start = [0, 58, 0], stride = 1, size = [1, 58, 9] }}
  n{i}: f32[1, 58, 9] = neg(b{i})
  c{i}: f32[1, 116, 9] = concat(a{i}, n{i})
  r{i}: f32[2, 58, 9] = reshape(c{i})
  t{i}: f32[58, 2, 9] = transpose(r{i}) {{ order = [1, 0, 2] }}
  x{next}: f32[1, 116, 9] = reshape(t{i})""".format(i=i, next=i + 1))
print("}")
