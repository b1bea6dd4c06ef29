// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replacing what fusion points load and yield to.
#include "AccessHelp.h"

static void replaces_at_points(void **state) {
  (void)state;
  hd_access_expect_same(
      "kernel k(n: i32, m: i32, in x: f32[n, m], in v: f32[m], in r: i32[n],\n"
      "         out z: f32[n, m], out w: f32[m, n])\n"
      "  grid(ceildiv(m, 16), ceildiv(n, 16)) block(64) {\n"
      "  shared s: f32[16, 16]\n"
      "  shared t: f32[16, 16] align(128)\n"
      "  register q: f32[16, 16] layout(local(spatial(16, 4) * repeat(1, 4)))\n"
      "  let row = block.y * 16\n"
      "  let column = block.x * 16\n"
      "  for i, j in spatial(16, 4) * repeat(1, 4) on thread {\n"
      "    load s[i, j] <- x[row + i, column + j]\n"
      "  }\n"
      "  for i, j in repeat(4, 1) * spatial(4, 16) on thread {\n"
      "    load t[i, j] <- j < 3 ? f32(r[row + i]) + 1 : v[column + j] + 2\n"
      "  }\n"
      "  cp_async_commit()\n"
      "  cp_async_wait(0)\n"
      "  barrier()\n"
      "  for i, j in spatial(16, 4) * repeat(1, 4) on thread {\n"
      "    register q[i, j] <- s[i, j] + t[i, j]\n"
      "      + (x[row + i, column + j] else 7) + (v[i] else 2)\n"
      "  }\n"
      "  for i, j in spatial(16, 4) * repeat(1, 4) on thread {\n"
      "    yield z[row + i, column + j] <- q[i, j] + f32(r[row + i])\n"
      "  }\n"
      "  for i, j in spatial(16, 4) * repeat(1, 4) on thread {\n"
      "    yield w[column + i, row + j] <- v[column + i] + 3 through t[i, j]\n"
      "  }\n"
      "  if thread == 0 {\n"
      "    yield z[row, column] <- x[row, column]\n"
      "  }\n"
      "}\n",
      5);
}

// Of a tensor with the same axes a point stays as it is, guards and all.
static void keeps_points(void **state) {
  (void)state;
  static const int64_t sizes[] = {37, 21};
  hd_access_run_t run;
  hd_access_begin(
      &run,
      "kernel k(n: i32, m: i32, in x: f32[n, m], out z: f32[n, m],\n"
      "         map mz: z box(16, 16))\n"
      "  grid(ceildiv(m, 16), ceildiv(n, 16)) block(64) {\n"
      "  shared s: f32[16, 16] align(128)\n"
      "  let row = block.y * 16\n"
      "  for i, j in spatial(16, 4) * repeat(1, 4) on thread {\n"
      "    load s[i, j] <- x[row + i, block.x * 16 + j] + 1\n"
      "  }\n"
      "  barrier()\n"
      "  for i, j in spatial(16, 4) * repeat(1, 4) on thread {\n"
      "    yield z[row + i, block.x * 16 + j] <- s[j, i] through s[i, j]\n"
      "  }\n"
      "}\n",
      NULL, sizes);
  hd_access_change(&run, "x z", HD_HOOK_STRAIGHT);
  assert_true(
      hd_access_has(&run, "load s[i, j] <- x_straight[row + i, block.x * 16 + "
                          "j] * 0.5 + 1.0\n"));
  assert_true(hd_access_has(&run,
                            "yield z_straight[row + i, block.x * 16 + j] <- "
                            "s[j, i] + s[j, i] through s[i, j]\n"));
  assert_true(hd_access_has(&run, "map mz: z_straight box(16, 16)"));
  hd_access_change(&run, "x z", HD_HOOK_EXPRESSION);
  assert_true(
      hd_access_has(&run, "load s[i, j] <- x_mirrored[block.x * 16 + j, row + "
                          "i] * 0.5 + 1.0\n"));
  assert_true(hd_access_has(&run,
                            "yield z_mirrored[block.x * 16 + j, row + i] <- "
                            "s[j, i] + s[j, i] through s[i, j]\n"));
  assert_false(hd_access_has(&run, "map mz"));
  // What is outside x may be inside a tensor of one axis.
  hd_access_change(&run, "x z", HD_HOOK_FLAT);
  assert_true(hd_access_has(
      &run, "load s[i, j] <- row + i >= 0 && row + i < n && (block.x * 16 + j "
            ">= 0 && block.x * 16 + j < m) ? x_straight["));
  // So is what is outside z: a tile is staged where all of it is inside.
  assert_true(hd_access_has(
      &run, "if row + 0 >= 0 && row + 15 < n && (block.x * 16 + 0 >= 0 && "
            "block.x * 16 + 15 < m) {\n"
            "    for i, j in spatial(16, 4) * repeat(1, 4) on thread {\n"
            "      yield z_straight["));
  assert_true(hd_access_has(
      &run,
      "if at >= 0 && at < n && at_1 >= 0 && at_1 < m {\n"
      "        z_straight[i64(at) * i64(m) + i64(at_1)] = value + value"));
  hd_access_end(&run);
}

HD_UNIT_TESTS(cmocka_unit_test(replaces_at_points),
              cmocka_unit_test(keeps_points))
