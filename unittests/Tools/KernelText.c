// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random kernels: functions, and the kernel around statements.
#include "KernelGenerator.h"

// A function's statements over its parameters a and b.
static const char *inner(hd_maker_t *m, int count) {
  size_t names = m->names.size, arrays = m->arrays.size;
  hd_name_t a = {"a", HD_K_I32, INT32_MIN, INT32_MAX, false, false};
  hd_name_t b = {"b", HD_K_I32, INT32_MIN, INT32_MAX, false, false};
  m->in_fn = true;
  m->quiet++;
  hd_add_name(m, a);
  hd_add_name(m, b);
  const char *text = hd_statements(m, count, 1, false);
  text = hd_text(m, "%sreturn %s\n", text, hd_value(m, HD_K_I32, 2));
  m->in_fn = false;
  m->quiet--;
  m->names.size = names;
  m->arrays.size = arrays;
  return text;
}

static const char *functions_of(hd_maker_t *m) {
  const char *text = hd_text(
      m,
      "const primes: i32[8] = [2, 3, 5, 7, -11, 13, 17, 1000003]\n"
      "const bytes: u8[4, 3] = [0, 1, 255, 2, 254, 3, 4, 5, 6, 7, 8, 9]\n"
      "fn of(in t: i32[8], a: i32) -> i32 {\nreturn t[a]\n}\n"
      "fn pure(a: i32, b: i32) -> i32 {\n%s}\n"
      "fn early(a: i32, b: i32) -> i32 {\nif (a & %d) > %d {\n%s}\n%s}\n"
      "fn search(a: i32, b: i32) -> i32 {\nregister i: i32 = a & 7\n"
      "while true {\nif i <= 0 {\nbreak\n}\n"
      "if i * %d == (b & 15) {\nreturn i\n}\ni -= 1\n}\n"
      "return b\n}\n"
      "fn look(in x: i32[n, 16], a: i32) -> i32 {\n"
      "return x[(a & 31) %% n, a >> 5 & 15] + (x[a, %d] else a)\n}\n",
      inner(m, hd_pick(m, 0, 3)), hd_pick(m, 1, 15), hd_pick(m, 0, 4),
      inner(m, 1), inner(m, hd_pick(m, 0, 2)), hd_pick(m, 1, 5),
      hd_pick(m, 0, 17));
  text = hd_text(
      m,
      "%sfn peek(register t: i32[4], a: i32) -> i32 {\n"
      "return t[%d] + a * t[%d]\n}\n"
      "fn bump(register t: i32[4], a: i32) -> i32 {\nt[%d] = a\n"
      "if a > %d {\nreturn t[1]\n}\nt[%d] += 3\nreturn t[%d] ^ a\n}\n"
      "fn put(inout y: i32[2, 64, 16], a: i32, b: i32) -> i32 {\n"
      "y[block, thread, a & 15] = b\nreturn b + y[block, thread, %d]\n}\n"
      "fn act(inout y: i32[p, q, 16], register t: i32[r], a: i32) {\n"
      "if a > %d {\ny[block, thread, %d] = t[%d]\n"
      "printf(\"%%d %%d act\\n\", block, thread)\nreturn\n}\n"
      "t[%d] += a\n}\n"
      "fn smooth(x: f32) -> f32 {\nif x > %d.5 {\nreturn x - 1.0\n}\n"
      "return x * 0.5\n}\n",
      text, hd_pick(m, 0, 3), hd_pick(m, 0, 3), hd_pick(m, 0, 3),
      hd_pick(m, -5, 50), hd_pick(m, 0, 3), hd_pick(m, 0, 3), hd_pick(m, 0, 15),
      hd_pick(m, -5, 20), hd_pick(m, 0, 15), hd_pick(m, 0, 3), hd_pick(m, 0, 3),
      hd_pick(m, 0, 9));
  for (size_t i = 0; i < m->tiles.size; i++) {
    hd_made_tile_t t = m->tiles.data[i];
    text = hd_text(m,
                   "%sfn get_%s(shared s: i32[64, %d]%s, a: i32, b: i32) -> "
                   "i32 {\nreturn s[a, b] * %d\n}\n",
                   text, t.text, t.columns, t.layout, hd_pick(m, 1, 3));
  }
  return text;
}

static void make_tiles(hd_maker_t *m) {
  static const char *const layouts[] = {
      "", " layout(column)", " layout(permute(1, 0))", " layout(tile(8, 2))",
      " layout(row, swizzle(2, 0, 3))"};
  for (int count = hd_pick(m, 0, 2); count > 0; count--) {
    hd_made_tile_t tile = {hd_new_name(m, "s"), layouts[hd_pick(m, 0, 4)],
                           hd_chance(m, 50) ? 4 : 8, true};
    hd_vec_push(m->arena, &m->tiles, tile);
  }
}

int64_t hd_random_size(uint64_t seed, bool second) {
  random_t random = {seed * 2 + second};
  return random_in(&random, 1, 40);
}

const char *hd_random_kernel(hd_arena_t *arena, uint64_t seed, bool reference) {
  hd_maker_t m = {.random = {seed}, .arena = arena, .reference = reference};
  make_tiles(&m);
  const char *functions = functions_of(&m), *head = "";
  for (size_t i = 0; i < m.tiles.size; i++) {
    hd_made_tile_t t = m.tiles.data[i];
    head = hd_text(&m,
                   "%sshared %s: i32[64, %d]%s\nfor c in 0..%d {\n%s[thread, "
                   "c] = thread * %d + c\n}\n",
                   head, t.text, t.columns, t.layout, t.columns, t.text,
                   hd_pick(&m, 1, 9));
  }
  if (hd_chance(&m, 70))
    head = hd_text(&m, "%s%s", head, hd_array(&m));
  const char *statements = hd_statements(&m, hd_pick(&m, 3, 9), 3, true);
  if (hd_chance(&m, 25)) // No barrier follows.
    statements = hd_text(&m, "%sif %s {\nreturn\n}\n", statements,
                         hd_value(&m, HD_K_BOOL, 2));
  const char *end = hd_observe(&m, 0, 0);
  return hd_text(&m,
                 "%skernel k(n: i32, m: i32, in x: i32[n, 16], in f: f32[64], "
                 "inout y: i32[2, 64, 16],\n  inout g: f32[2, 64, 8], inout "
                 "z: i32[2, 16, 16], inout h: i32[8])\n  grid(%d) block(%d)\n"
                 "{\n%s%s%s}\n",
                 functions, HD_RANDOM_BLOCKS, HD_RANDOM_THREADS, head,
                 statements, end);
}
