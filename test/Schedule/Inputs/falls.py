# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Templates of a product, of which some candidates do not do."""

import sys

KERNEL = """kernel tiles[T: type, O: type, ROWS: bool, BM: i32](
    z: i32, m: i32, n: i32, k: i32,
    in a: T[z, m, k], in b: T[z, ROWS ? n : k, ROWS ? k : n], out c: O[z, m, n])
  grid(ceildiv(n, 32), ceildiv(m, BM), z) block(16 * BM)%s
{
  %s
  for i, j in within(repeat(2, 1) * spatial(BM / 2, 32), m - block.y * BM, n - block.x * 32) on thread {
    register sum: f32 = 0
    for p in 0..k {
      if ROWS {
        sum += f32(a[block.z, block.y * BM + i, p]) * f32(b[block.z, block.x * 32 + j, p])
      } else {
        sum += f32(a[block.z, block.y * BM + i, p]) * f32(b[block.z, p, block.x * 32 + j])
      }
    }
    c[block.z, block.y * BM + i, block.x * 32 + j] = O(sum)
  }
}
template mine implements product(z, m, n, k) {
  kernel tiles[BM in {16, 8}]
  types {f16}
  requires n %% 32 == 0
  tile(BM, 32, 64) split(1) stages(2) threads(16 * BM) shared(0) rate(1024) issue(64)
  barrier(3200 / BM - 200)
}
"""

VARIANTS = {
    "threads": ("", ""),
    "asserts": ("", 'assert BM < 16, "16 rows are too many"'),
    "shared": ("", "shared room: f32[3072 * BM]\n  room[thread] = 0.0"),
    "cluster": (" cluster(BM / 8)", ""),
    "wrong": ("", "let x = nobody"),
}

for name, variant in VARIANTS.items():
    with open(f"{sys.argv[1]}/{name}.hir", "w") as file:
        file.write(KERNEL % variant)
