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
    "caller": ("", "look_at[BM]()"),
}

for name, variant in VARIANTS.items():
    with open(f"{sys.argv[1]}/{name}.hir", "w") as file:
        file.write(KERNEL % variant)

# What another file says.
for name, rows in ("check_bad", 16), ("check_good", 32):
    with open(f"{sys.argv[1]}/{name}.hir", "w") as file:
        file.write(
            "fn look_at[BM: i32]() {\n"
            f'  assert BM < {rows}, "{rows} rows are too many"\n'
            "}\n"
        )

# More candidates than are tried, each of which needs 192 KiB and more.
ROOM = "shared room: f32[49152 + P]\n  room[thread] = 0.0"


def family(count, name):
    """A template with so many candidates, by what they need."""
    text = KERNEL % ("", ROOM)
    values = ", ".join(str(i) for i in range(1, count + 1))
    return (
        text.replace("BM: i32](", "BM: i32, P: i32](")
        .replace("tiles", f"{name}_tiles")
        .replace("template mine", f"template {name}")
        .replace("[BM in {16, 8}]", f"[BM in {{16}}, P in {{{values}}}]")
        .replace("barrier(3200 / BM - 200)", "barrier(P)")
    )


with open(f"{sys.argv[1]}/hundred.hir", "w") as file:
    file.write(family(100, "mine"))
with open(f"{sys.argv[1]}/many.hir", "w") as file:
    for i in range(10):
        file.write(family(9, f"mine{i}"))
