// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replacing the accesses to a kernel's parameters: every statement that loads
// may stand in, what is evaluated where it is needed alone, and what stands in
// the way.
#include "AccessHelp.h"
#include "IR/Passes/Passes.h"
#include "IR/Text/Printer.h"
#include "Support/File.h"

#include <stdio.h>
#include <string.h>

static void replaces_loads_and_stores(void **state) {
  (void)state;
  hd_access_expect_same(
      "kernel k(n: i32, m: i32, in x: f32[n, m], in y: f32[m],\n"
      "         out z: f32[n, m]) grid(n) block(32) {\n"
      "  if thread < m {\n"
      "    z[block, thread] = x[n - 1 - block, thread] * y[thread]\n"
      "  }\n"
      "}\n",
      3);
}

// Integers, in indices too, and elements of other types.
static void replaces_loads_in_indices(void **state) {
  (void)state;
  hd_access_expect_same(
      "kernel k(n: i32, in at: i64[n], in x: f16[16], out z: f16[n])\n"
      "  grid(ceildiv(n, 32)) block(32) {\n"
      "  let i = block * 32 + thread\n"
      "  if i < n {\n"
      "    z[i] = x[at[n - 1 - i] + 8]\n"
      "  }\n"
      "}\n",
      3);
}

static void replaces_in_every_statement(void **state) {
  (void)state;
  hd_access_expect_same(
      "kernel k(n: i32, m: i32, in x: i32[n], in w: u32[m], in f: f32[m],\n"
      "         out z: i32[64]) block(64) {\n"
      "  register s: i32 = x[thread % n] & 3\n"
      "  for i in x[0]..x[1] + 20 step (x[2] & 3) + 1 { s += x[i & 7] }\n"
      "  for i in within(repeat(9), x[thread & 7]) { s += i * x[i] }\n"
      "  for i in repeat(2) * spatial(16) on x[thread & 15] & 15 { s += i }\n"
      "  register i: i32 = 0\n"
      "  while i < 9 && f[i] < 0.5 {\n"
      "    i += 1\n"
      "    s += i32(w[i])\n"
      "  }\n"
      "  while x[i & 7] < 5 && i < 30 { i += 3 }\n"
      "  register j: i32 = 0\n"
      "  while x[j & 7] < 50 && j < 20 {\n"
      "    j += 1\n"
      "    if x[j & 7] % 3 == 0 { continue }\n"
      "    if f[j & 7] > 15 { break }\n"
      "    s += j\n"
      "  }\n"
      "  if f[thread & 7] > 0 || f[i & 7] < 0 {\n"
      "    s = -s\n"
      "  } else if f[thread & 3] > f[3] {\n"
      "    s += 100\n"
      "  }\n"
      "  assert f[0] < 100, \"small\"\n"
      "  z[(thread + x[3] + 64) & 63 ^ x[3] & 7 ^ x[3] & 7] = s + i\n"
      "}\n",
      4);
}

// What is out of bounds is not touched: the sanitizer looks.
static void evaluates_what_is_needed(void **state) {
  (void)state;
  hd_access_expect_same(
      "kernel k(n: i32, m: i32, in x: f32[n], in y: f32[m, n], in at: i32[n],\n"
      "         out z: f32[64], out c: i32[64]) block(64) {\n"
      "  let i = thread - 8\n"
      "  let inside = i >= 0 && i < n\n"
      "  register s: f32 = inside ? x[i] : 0\n"
      "  s += i > 0 && i < n && x[i - 1] > 0 ? 1 : 2\n"
      "  s += i < 0 || i >= n || x[i] > 0 ? 4 : 8\n"
      "  s += x[i] else 3\n"
      "  s += y[i / 4, i - 4] else (inside ? x[i] : 7)\n"
      "  s += inside ? y[0, i] + (i % 2 == 0 ? x[at[i] + 8] : y[1, i]) : 5\n"
      "  s += i > 0 ? x[n / i % n] : -1\n"
      "  z[thread] = s\n"
      "  c[thread] = inside && at[i] > 0 ? at[(at[i] + i) % n] : -1\n"
      "}\n",
      5);
}

// A register's value is that of the time when it was read.
static void keeps_the_order(void **state) {
  (void)state;
  hd_access_expect_same(
      "kernel k(n: i32, in x: i32[n], out z: i32[64]) block(32) {\n"
      "  shared s: i32[32]\n"
      "  s[thread] = thread\n"
      "  z[thread] = s[thread] * 100 + atomic_add(s[thread], 7) + x[thread]\n"
      "    + s[thread] * 1000 + x[s[thread] & 3]\n"
      "  z[32 + (s[thread] - x[s[thread]-thread-7] ^ s[thread] - x[0]) * 0\n"
      "    + thread] = atomic_exch(s[thread], thread + 7 + x[thread] * 0)\n"
      "      + s[thread] + (s[thread] > 0 ? atomic_add(s[thread], 0) : x[2])\n"
      "}\n",
      2);
  // What printf is given, too.
  hd_access_expect_same(
      "fn set(register t: i32[1], to: i32) -> i32 {\n"
      "  t[0] = to\n"
      "  return to\n"
      "}\n"
      "fn put(inout z: i32[32], a: i32) -> i32 {\n"
      "  z[thread] = a\n"
      "  return a\n"
      "}\n"
      "kernel k(in x: i32[32], inout z: i32[32]) block(32) {\n"
      "  register t: i32[1] = 0\n"
      "  printf(\"%d %d\\n\", set(t, thread), put(z, x[t[0]]))\n"
      "}\n",
      1);
}

static void replaces_vectors(void **state) {
  (void)state;
  hd_access_expect_same(
      "kernel k(n: i32, m: i32, in x: f32[m, 40], in y: f16[80],\n"
      "         in q: i4[64], out z: f32[32, 4], out v: f16[32, 8],\n"
      "         out u: i8[32, 2]) block(32) {\n"
      "  u[thread, 0 +: 2] = i8x2(q[thread * 2 +: 2])\n"
      "  let a = x[thread % m, thread % 10 * 4 +: 4]\n"
      "  let b = x[thread - 7, thread % 11 * 4 +: 4] else f32x4(1, 2, 3, 4)\n"
      "  z[thread, 0 +: 4] = a + b\n"
      "  v[thread, 0 +: 8] = thread > 3 && thread < 13\n"
      "    ? y[(thread - 3) * 8 +: 8] : y[0 +: 8]\n"
      "}\n",
      6);
}

// Lanes side by side become vectors again.
static void joins_lanes(void **state) {
  (void)state;
  hd_access_run_t run;
  hd_access_begin(&run,
                  "kernel k(in x: f32[256], in b: f32[300], out z: f32[256])\n"
                  "  block(64) {\n"
                  "  let i = thread * 4\n"
                  "  z[i +: 4] = x[i +: 4] + (b[i + 4 +: 4] else f32x4(0))\n"
                  "}\n",
                  NULL, NULL);
  hd_access_change(&run, "x b z", HD_HOOK_STRAIGHT);
  hd_pass_args_t args = {0};
  hd_module_t *made = hd_module_create(&run.context);
  hd_item_t item = {.kind = HD_ITEM_FUNC};
  item.u.func = (hd_func_t *)(uintptr_t)hd_pass_vectorize(
      made, hd_pass_simplify(made, run.changed, &args), &args);
  hd_vec_push(&made->arena, &made->items, item);
  hd_buffer_t out = {0};
  hd_module_print(made, &out);
  static const char *const vectors[] = {"= x_straight[", "= b_straight[",
                                        "z_straight["};
  for (size_t i = 0; i < 3; i++) { // One access, of four lanes.
    const char *access = strstr(hd_buffer_text(&out), vectors[i]);
    assert_non_null(access);
    assert_int_equal(strcspn(access, "+"), strcspn(access, "]") - 4);
    assert_int_equal(strncmp(strchr(access, '+'), "+: 4]", 5), 0);
    assert_null(strstr(access + 1, vectors[i]));
  }
  hd_buffer_fini(&out);
  hd_access_end(&run);
}

static void replaces_accesses_past_caches(void **state) {
  (void)state;
  hd_access_expect_same(
      "kernel k(n: i32, m: i32, in x: f32[n], in y: f32[48],\n"
      "         out z: f32[32], out v: f32[64]) block(32) {\n"
      "  prefetch_l2(x[thread])\n"
      "  z[thread] = load_cached(x[thread], cg)\n"
      "  store_cached(v[thread * 2 + 1],\n"
      "    load_cached(y[thread + 2], nc), cs)\n"
      "  if thread < 8 {\n"
      "    store_cached(v[thread * 4], load_cached(y[thread * 4], ca))\n"
      "  }\n"
      "}\n",
      4);
}

static void replaces_in_functions(void **state) {
  (void)state;
  hd_access_expect_same(
      "fn get(in x: f32[n], i: i32) -> f32 {\n"
      "  if i >= n { return 0 }\n"
      "  return x[i]\n"
      "}\n"
      "fn put(out z: f32[64], i: i32, x: f32) { z[i] = x }\n"
      "kernel k(n: i32, in x: f32[n], out z: f32[64]) block(64) {\n"
      "  let e = get(x, thread)\n"
      "  put(z, thread, e + 1)\n"
      "}\n",
      2);
}

// An expression stays one; names for indices do no harm.
static void keeps_expressions(void **state) {
  (void)state;
  static const int64_t sizes[] = {37};
  hd_access_run_t run;
  hd_access_begin(&run,
                  "kernel k(n: i32, in x: f32[n], out z: f32[64]) block(64) {\n"
                  "  z[thread] = thread > 0 && thread <= n\n"
                  "    ? x[thread - 1] : 1\n"
                  "}\n",
                  NULL, sizes);
  hd_access_change(&run, "x", HD_HOOK_EXPRESSION);
  assert_true(hd_access_has(
      &run, "  let at = thread - 1\n"
            "  z[thread] = thread > 0 && thread <= n ? x_mirrored[at] * 0.5 : "
            "1.0\n"));
  hd_access_change(&run, "x", HD_HOOK_NAMES);
  assert_true(hd_access_has(&run, "  register chosen: f32\n"
                                  "  if thread > 0 && thread <= n {\n"
                                  "    let at = thread - 1\n"
                                  "    let mirrored = x_mirrored[at]\n"
                                  "    chosen = mirrored * 0.5\n"
                                  "  } else {\n"
                                  "    chosen = 1.0\n"
                                  "  }\n"
                                  "  z[thread] = chosen\n"));
  hd_access_end(&run);
}

// --- Kernels that users wrote ---

typedef struct example {
  const char *file, *kernel;
  unsigned params; // Without an obstacle.
  int64_t sizes[5];
} example_t;

static void replaces_in_examples(void **state) {
  (void)state;
  static const example_t examples[] = {
      {"matmul_naive", NULL, 3, {17, 19, 23}},
      {"matmul_simt", NULL, 3, {5, 131, 17}},
      {"matmul_simt", NULL, 3, {3, 132, 8}},
      {"matmul_mma", NULL, 3, {37, 41, 19}},
      {"matmul_mma", NULL, 3, {64, 40, 72}},
      {"split_k", "multiply_slices", 3, {33, 35, 133}},
      {"split_k", "add_slices", 2, {5, 7}},
      {"softmax", NULL, 2, {3, 77}},
      {"layer_norm", NULL, 4, {2, 77}},
      {"reduce", NULL, 2, {3, 29, 37}},
      {"transpose", NULL, 2, {7, 139}},
      {"transpose", NULL, 2, {16, 8}},
      {"elementwise", NULL, 2, {4099}},
      {"depthwise_conv", NULL, 3, {3, 3, 17, 35}},
      {"histogram", NULL, 1, {4099}},
      {"prefix_sum", "scan_blocks", 3, {5003}},
      {"prefix_sum", "add_totals", 1, {5003}},
      {"dependent", "shift", 3, {1003}},
      {"matmul_wgmma", NULL, 1, {70, 72, 72}},
      {"matmul_f8", NULL, 1, {1, 8, 16}},
      {"matmul_tf32", NULL, 1, {65, 68, 36}},
      {"matmul_split", "partial_sums", 1, {65, 8, 72}},
      {"matmul_split", "add_parts", 2, {5, 8}},
      {"conv_wgmma", NULL, 1, {1, 3, 5, 8, 8}},
      {"copy_tma", NULL, 0, {65, 72}},
      {"rms_norm_cluster", NULL, 2, {3, 1237}},
  };
  for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
    const example_t *e = &examples[i];
    char path[512];
    snprintf(path, sizeof path, "%s/%s.hir", HIDET_EXAMPLES, e->file);
    hd_buffer_t text = {0};
    hd_access_run_t run;
    hd_diagnostics_t diags;
    hd_diagnostics_init(&diags);
    assert_true(hd_file_read(&diags, path, 0, &text));
    hd_diagnostics_fini(&diags);
    hd_access_begin(&run, hd_buffer_text(&text), e->kernel, e->sizes);
    unsigned params = hd_access_compare_all(&run);
    if (params != e->params)
      fail_msg("%s: %u parameters and not %u", e->file, params, e->params);
    hd_access_end(&run);
    hd_buffer_fini(&text);
  }
}

// --- What stands in the way ---

static const char *obstacle(hd_access_run_t *run, const char *name,
                            hd_access_kind_t kind) {
  const char *why =
      hd_access_obstacle(run->kernel, hd_access_param(run, name), kind);
  return why ? why : "";
}

static void names_obstacles(void **state) {
  (void)state;
  static const int64_t sizes[] = {37};
  hd_access_run_t run;
  hd_access_begin(
      &run,
      "fn loops(in p: f32[64]) -> f32 {\n"
      "  for i in 0..4 { if p[i] > 0 { return p[i] } }\n"
      "  return 0\n"
      "}\n"
      "kernel k(n: i32, in a: f32[64], in b: f32[64], in p: f32[64],\n"
      "         in l: f32[64], in t: f32[64, 64], out z: f32[64],\n"
      "         inout r: f32[64], inout h: i32[8], out y: f32[64],\n"
      "         in q: i4[64], out o: i4[64], in free: f32[64],\n"
      "         in e: i32[64],\n"
      "         map mt: t box(8, 32)) block(32) {\n"
      "  shared s: f32[64] align(128)\n"
      "  shared u: f32[8, 32] align(128)\n"
      "  shared bar: mbarrier[1]\n"
      "  cp_async(s[thread], a[thread], 4)\n"
      "  bulk_load(s[0], b[0], 128, bar[0])\n"
      "  tma_load(u[0, 0], mt, bar[0], 0, 0)\n"
      "  r[thread] += loops(p)\n"
      "  atomic_add(h[0], 1)\n"
      "  load s[thread] <- l[thread]\n"
      "  yield y[thread] <- free[thread]\n"
      "  yield y[e[thread]] <- 0\n"
      "  o[0 +: 2] = q[0 +: 2]\n"
      "  z[thread] = free[thread]\n"
      "}\n",
      NULL, sizes);
  hd_access_kind_t loads = HD_ACCESS_LOADS, stores = HD_ACCESS_STORES;
  assert_string_equal(obstacle(&run, "a", loads), "is copied asynchronously");
  assert_string_equal(obstacle(&run, "b", loads),
                      "is copied by the copy engine");
  assert_string_equal(obstacle(&run, "t", loads),
                      "is copied by the copy engine");
  assert_string_equal(obstacle(&run, "p", loads), "is passed to a function");
  assert_string_equal(obstacle(&run, "l", loads), "");
  assert_string_equal(obstacle(&run, "y", stores), "");
  assert_string_equal(obstacle(&run, "e", loads),
                      "says where a fusion point stores");
  assert_string_equal(obstacle(&run, "h", stores), "is accessed by atomics");
  assert_string_equal(obstacle(&run, "r", stores),
                      "is read back by the kernel");
  assert_string_equal(obstacle(&run, "r", loads),
                      "is written by the kernel, too");
  assert_string_equal(obstacle(&run, "o", stores),
                      "has elements smaller than a byte");
  assert_string_equal(obstacle(&run, "q", loads), "");
  assert_string_equal(obstacle(&run, "z", stores), "");
  assert_string_equal(obstacle(&run, "free", loads), "");
  hd_access_end(&run);
}

HD_UNIT_TESTS(cmocka_unit_test(replaces_loads_and_stores),
              cmocka_unit_test(replaces_loads_in_indices),
              cmocka_unit_test(replaces_in_every_statement),
              cmocka_unit_test(evaluates_what_is_needed),
              cmocka_unit_test(keeps_the_order),
              cmocka_unit_test(replaces_vectors), cmocka_unit_test(joins_lanes),
              cmocka_unit_test(replaces_accesses_past_caches),
              cmocka_unit_test(replaces_in_functions),
              cmocka_unit_test(keeps_expressions),
              cmocka_unit_test(replaces_in_examples),
              cmocka_unit_test(names_obstacles))
