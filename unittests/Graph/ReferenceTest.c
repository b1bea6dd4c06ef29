// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tasks are computed as they are written: against numbers worked out by hand,
// and against loops that know nothing of tasks.
#include "Graph/Reference/Reference.h"
#include "ReferenceHelp.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const float *floats_of(const hd_host_tensor_t *tensor) {
  assert_int_equal(tensor->type, HD_F32);
  return (const float *)(const void *)tensor->data;
}

// Both compute in the same order and in the same type.
static void expect_floats(const hd_host_tensor_t *found, const float *expected,
                          int64_t count) {
  assert_int_equal(found->count, count);
  for (int64_t i = 0; i < count; i++)
    if (floats_of(found)[i] != expected[i])
      fail_msg("element %lld: %.9g, not %.9g", (long long)i,
               (double)floats_of(found)[i], (double)expected[i]);
}

static const char matmul[] =
    "task matmul(a: T[..s, m, k], b: T[..t, k, n]) ->\n"
    "  c: T[..broadcast(s, t), m, n] where T in float, A = acc(T) {\n"
    "  c[..i, x, y] = T(sum(p: k) A(a[..i, x, p]) * A(b[..i, p, y]))\n}\n";

static void products(void **state) {
  (void)state;
  static float expected[6 * 200 * 150];
  enum { S = 2, T = 3 };
  static const int sizes[][3] = {{5, 7, 150}, {200, 33, 3}, {1, 300, 2}};
  for (int n = 0; n < 3; n++) {
    int M = sizes[n][0], K = sizes[n][1], N = sizes[n][2];
    char inputs[100];
    snprintf(inputs, sizeof inputs, "f32[2, 1, %d, %d] f32[3, %d, %d]", M, K, K,
             N);
    hd_reference_run_t run;
    hd_reference_begin(&run, &(hd_test_case_t){matmul, inputs, {0}});
    hd_reference_compute(&run);
    const float *a = floats_of(&run.inputs[0]), *b = floats_of(&run.inputs[1]);
    for (int s = 0; s < S; s++)
      for (int t = 0; t < T; t++)
        for (int i = 0; i < M; i++)
          for (int j = 0; j < N; j++) {
            volatile float sum = 0;
            for (int p = 0; p < K; p++) {
              volatile float product =
                  a[(s * M + i) * K + p] * b[(t * K + p) * N + j];
              sum = sum + product;
            }
            expected[((s * T + t) * M + i) * N + j] = sum;
          }
    expect_floats(&run.outputs[0], expected, (int64_t)S * T * M * N);
    hd_reference_end(&run);
  }
}

static void products_round_to_their_type(void **state) {
  (void)state;
  hd_reference_run_t run;
  hd_reference_begin(&run,
                     &(hd_test_case_t){matmul, "f16[1, 3] f16[3, 1]", {0}});
  SET(&run, 0, 1, 0x1p-11, 0x1p-12);
  SET(&run, 1, 1, 1, 1);
  hd_reference_compute(
      &run); // In f32 the sum is exact; above the middle, so up.
  EXPECT(&run, 0, 1 + 0x1p-10);
  hd_reference_end(&run);
  // In f16 each step is rounded: to even, twice.
  hd_reference_begin(
      &run, &(hd_test_case_t){
                "task t(a: f16[n]) -> c: f16[] {\n  c[] = sum(p: n) a[p]\n}\n",
                "f16[3]",
                {0}});
  SET(&run, 0, 1, 0x1p-11, 0x1p-12);
  hd_reference_compute(&run);
  EXPECT(&run, 0, 1);
  hd_reference_end(&run);
}

static void windows_stick_out(void **state) {
  (void)state;
  hd_reference_run_t run;
  static const int64_t strides[] = {2, 1}, pads[] = {1, 2};
  hd_reference_begin(
      &run,
      &(hd_test_case_t){
          "task conv(x: T[b, c, ..s], w: T[o, c, ..k like s],\n"
          "  strides: i64 over s = 1, pads: i64 over s) ->\n"
          "  y: T[b, o, ..((s + 2 * pads - k) / strides + 1)]\n"
          "  where T in float {\n"
          "  y[n, f, ..i] = sum(p: c, ..q: k)\n"
          "    (x[n, p, ..(i * strides + q - pads)] else 0) * w[f, p, ..q]\n"
          "}\n",
          "f32[2, 3, 9, 140] f32[4, 3, 3, 2]",
          {hd_test_ints("strides", 2, strides),
           hd_test_ints("pads", 2, pads)}});
  hd_reference_compute(&run);
  enum { B = 2, C = 3, H = 9, W = 140, O = 4, KH = 3, KW = 2 };
  enum { OH = (H + 2 - KH) / 2 + 1, OW = W + 4 - KW + 1 };
  static float expected[B * O * OH * OW];
  const float *x = floats_of(&run.inputs[0]), *w = floats_of(&run.inputs[1]);
  for (int n = 0; n < B; n++)
    for (int f = 0; f < O; f++)
      for (int i = 0; i < OH; i++)
        for (int j = 0; j < OW; j++) {
          volatile float sum = 0;
          for (int p = 0; p < C; p++)
            for (int q = 0; q < KH; q++)
              for (int r = 0; r < KW; r++) {
                int h = i * 2 + q - 1, v = j + r - 2;
                bool inside = h >= 0 && h < H && v >= 0 && v < W;
                float at = inside ? x[((n * C + p) * H + h) * W + v] : 0;
                volatile float product =
                    at * w[((f * C + p) * KH + q) * KW + r];
                sum = sum + product;
              }
          expected[((n * O + f) * OH + i) * OW + j] = sum;
        }
  expect_floats(&run.outputs[0], expected, (int64_t)B * O * OH * OW);
  hd_reference_end(&run);
}

static void softmax_along_any_axis(void **state) {
  (void)state;
  static const char softmax[] =
      "task softmax(x: T[..s, n, ..t]) -> y: T[..s, n, ..t] where T in float "
      "{\n"
      "  m[..i, ..j]    = max(p: n) x[..i, p, ..j]\n"
      "  e[..i, p, ..j] = exp(x[..i, p, ..j] - m[..i, ..j])\n"
      "  y[..i, p, ..j] = e[..i, p, ..j] / sum(q: n) e[..i, q, ..j]\n}\n";
  for (int axis = 0; axis < 3; axis++) {
    hd_reference_run_t run;
    static const int shape[] = {3, 5, 170};
    hd_reference_begin(
        &run,
        &(hd_test_case_t){softmax, "f32[3, 5, 170]", {hd_test_int("s", axis)}});
    hd_reference_compute(&run);
    const float *x = floats_of(&run.inputs[0]);
    int inner = axis == 0 ? 850 : axis == 1 ? 170 : 1;
    int n = shape[axis], outer = 3 * 5 * 170 / n / inner;
    static float expected[3 * 5 * 170];
    for (int i = 0; i < outer; i++)
      for (int j = 0; j < inner; j++) {
        const float *row = x + i * n * inner + j;
        float most = -INFINITY;
        volatile float sum = 0;
        for (int p = 0; p < n; p++)
          most = row[p * inner] > most ? row[p * inner] : most;
        for (int p = 0; p < n; p++) {
          volatile float difference = row[p * inner] - most;
          sum = sum + (float)exp((double)difference);
        }
        for (int p = 0; p < n; p++) {
          volatile float difference = row[p * inner] - most;
          expected[i * n * inner + p * inner + j] =
              (float)exp((double)difference) / sum;
        }
      }
    expect_floats(&run.outputs[0], expected, 3 * 5 * 170);
    hd_reference_end(&run);
  }
}

static const char argmax[] =
    "task argmax(x: T[..r, n]) -> y: T[..r], at: i64[..r] where T in number {\n"
    "  monoid best(v: T, i: i64)(w, j) from (0, -1) =\n"
    "    (j < 0 ? v : i < 0 ? w : v >= w ? v : w,\n"
    "     j < 0 ? i : i < 0 ? j : v > w || v == w && i <= j ? i : j)\n"
    "  y[..s], at[..s] = best(p: n) (x[..s, p], p)\n}\n";

static void tuples_are_reduced(void **state) {
  (void)state;
  hd_reference_run_t run;
  hd_reference_begin(&run, &(hd_test_case_t){argmax, "i32[2, 4]", {0}});
  SET(&run, 0, 3, -7, 3, 2, -9, -8, -8, -10);
  hd_reference_compute(&run);
  EXPECT(&run, 0, 3, -8);
  EXPECT(&run, 1, 0, 1);
  hd_reference_end(&run);
  hd_reference_begin(&run, &(hd_test_case_t){argmax, "f64[0]", {0}});
  hd_reference_compute(&run);
  EXPECT(&run, 0, 0);
  EXPECT(&run, 1, -1);
  hd_reference_end(&run);
  // Long rows, and short ones.
  static const char *const inputs[] = {"f32[2, 1000]", "f32[1000, 2]"};
  for (int n = 0; n < 2; n++) {
    hd_reference_begin(&run, &(hd_test_case_t){argmax, inputs[n], {0}});
    hd_reference_compute(&run);
    int rows = n ? 1000 : 2, columns = n ? 2 : 1000;
    const float *x = floats_of(&run.inputs[0]);
    for (int i = 0; i < rows; i++) {
      int best = 0;
      for (int p = 1; p < columns; p++)
        if (x[i * columns + p] > x[i * columns + best])
          best = p;
      assert_int_equal(hd_host_tensor_get_int(&run.outputs[1], i), best);
      assert_true(floats_of(&run.outputs[0])[i] == x[i * columns + best]);
    }
    hd_reference_end(&run);
  }
}

// What stands inside of a combination is computed for each.
static void combinations_may_reduce(void **state) {
  (void)state;
  hd_reference_run_t run;
  hd_reference_begin(&run,
                     &(hd_test_case_t){"task t(x: T[n]) -> y: T[] {\n"
                                       "  monoid twice(v: T)(w) from (T(0))\n"
                                       "    = (sum(p: 2) (v + w))\n"
                                       "  y[] = twice(i: n) (x[i])\n}\n",
                                       "i32[3]",
                                       {0}});
  SET(&run, 0, 1, 2, 3);
  hd_reference_compute(&run);
  EXPECT(&run, 0, 2 * (2 * (2 * 1 + 2) + 3)); // ((0 + 1) 2 + 2) 2 ...
  hd_reference_end(&run);
}

static void every_monoid_reduces(void **state) {
  (void)state;
  hd_reference_run_t run;
  hd_reference_begin(
      &run,
      &(hd_test_case_t){"task t(x: T[m, n]) -> a: T[m], b: T[m], c: T[m],\n"
                        "  d: T[m], e: bool[m], f: bool[m] {\n"
                        "  a[i] = sum(p: n) x[i, p]\n"
                        "  b[i] = prod(p: n) x[i, p]\n"
                        "  c[i] = max(p: n) x[i, p]\n"
                        "  d[i] = min(p: n) x[i, p]\n"
                        "  e[i] = any(p: n) (x[i, p] > 1)\n"
                        "  f[i] = all(p: n) (x[i, p] > 1)\n}\n",
                        "u8[3, 3]",
                        {0}});
  SET(&run, 0, 100, 100, 100, 0, 1, 1, 2, 3, 200);
  hd_reference_compute(&run);
  EXPECT(&run, 0, 44, 2, 205);
  EXPECT(&run, 1, 1000000 % 256, 0, 1200 % 256);
  EXPECT(&run, 2, 100, 1, 200);
  EXPECT(&run, 3, 100, 0, 2);
  EXPECT(&run, 4, 1, 0, 1);
  EXPECT(&run, 5, 1, 0, 1);
  hd_reference_end(&run);
  // Of nothing: the identities.
  hd_reference_begin(
      &run, &(hd_test_case_t){
                "task t(x: T[n], z: bool[n]) -> a: T[], b: T[], c: T[],\n"
                "  d: T[], e: bool[], f: bool[] {\n"
                "  a[] = sum(p: n) x[p]\n  b[] = prod(p: n) x[p]\n"
                "  c[] = max(p: n) x[p]\n  d[] = min(p: n) x[p]\n"
                "  e[] = any(p: n) z[p]\n  f[] = all(p: n) z[p]\n}\n",
                "i8[0] bool[0]",
                {0}});
  hd_reference_compute(&run);
  for (unsigned i = 0; i < 6; i++)
    EXPECT(&run, i, ((double[]){0, 1, -128, 127, 0, 1})[i]);
  hd_reference_end(&run);
  // The number where one is NaN.
  hd_reference_begin(
      &run, &(hd_test_case_t){"task t(x: f32[n]) -> c: f32[], d: f32[] {\n"
                              "  c[] = max(p: n) x[p]\n"
                              "  d[] = min(p: n) x[p]\n}\n",
                              "f32[3]",
                              {0}});
  SET(&run, 0, NAN, 2, NAN);
  hd_reference_compute(&run);
  EXPECT(&run, 0, 2);
  EXPECT(&run, 1, 2);
  hd_reference_end(&run);
}

static void shapes_and_attributes_are_numbers(void **state) {
  (void)state;
  hd_reference_run_t run;
  static const int64_t by[] = {10, 100};
  hd_reference_begin(
      &run, &(hd_test_case_t){
                "task t(x: f32[..s], by: i64 over s, scale: f16) ->\n"
                "  y: i64[..s], z: f32[..s] {\n"
                "  l[..i: s, j: 2] = j\n"
                "  y[..i] = sum(j: 2) l[..(i * 1), j] + 1\n"
                "  z[..i] = x[..(s - 1 - i)] * f32(scale)\n}\n",
                "f32[2, 3]",
                {hd_test_ints("by", 2, by), hd_test_float("scale", 0.5)}});
  SET(&run, 0, 1, 2, 3, 4, 5, 6);
  hd_reference_compute(&run);
  EXPECT(&run, 0, 2, 2, 2, 2, 2, 2);
  EXPECT(&run, 1, 3, 2.5, 2, 1.5, 1, 0.5);
  hd_reference_end(&run);
  static const int64_t shape[] = {2, 1, 3};
  hd_reference_begin(
      &run, &(hd_test_case_t){"task expand(x: T[..s], shape: i64 over t) ->\n"
                              "  y: T[..broadcast(s, t)] where T in any {\n"
                              "  y[..i] = x[..i]\n}\n",
                              "u4[2, 1]",
                              {hd_test_ints("shape", 3, shape)}});
  SET(&run, 0, 7, 9);
  hd_reference_compute(&run);
  EXPECT(&run, 0, 7, 7, 7, 9, 9, 9, 7, 7, 7, 9, 9, 9);
  hd_reference_end(&run);
}

static const char nonzero[] =
    "task nonzero(x: T[n]) -> at: i64[count <= n] where T in number {\n"
    "  before[i: n] = scan sum(p: n before i) (x[p] != 0 ? 1 : 0)\n"
    "  size count = sum(p: n) (x[p] != 0 ? 1 : 0)\n"
    "  zero[i: count] = 0\n"
    "  scatter last(i: n) at[x[i] != 0 ? before[i] : n] else drop = i onto "
    "zero\n}\n";

static void data_decides_sizes(void **state) {
  (void)state;
  hd_reference_run_t run;
  hd_reference_begin(&run, &(hd_test_case_t){nonzero, "f32[6]", {0}});
  SET(&run, 0, 0, 3, NAN, -0.0, 0, 1);
  hd_reference_compute(&run);
  EXPECT(&run, 0, 1, 2, 5);
  hd_reference_end(&run);
  hd_reference_begin(&run, &(hd_test_case_t){nonzero, "f32[6]", {0}});
  hd_host_tensor_fill(&run.inputs[0], 0);
  hd_reference_compute(&run);
  assert_int_equal(run.outputs[0].count, 0);
  assert_non_null(run.outputs[0].data);
  hd_reference_end(&run);
  hd_reference_begin(
      &run, &(hd_test_case_t){"task t(x: i64[]) -> y: i64[count <= 3] {\n"
                              "  size count = x[]\n  y[i] = i\n}\n",
                              "i64[]",
                              {0}});
  SET(&run, 0, 4);
  assert_false(hd_reference_evaluate(&run));
  assert_string_equal(run.context.diags.first->message,
                      "t: size 'count' is 4, outside of 0 .. 3");
  hd_reference_end(&run);
}

static void interrupted(void *argument) { hd_reference_compute(argument); }

static void budgets_are_kept(void **state) {
  (void)state;
  static hd_reference_run_t run;
  static const char task[] = "task t(n: i64) -> y: f32[] {\n"
                             "  y[] = sum(p: n, q: n) sin(f32(p * q))\n}\n";
  hd_reference_begin(&run,
                     &(hd_test_case_t){task, "", {hd_test_int("n", 10000000)}});
  run.context.budget.deadline_ns = hd_clock_ns() + 20000000;
  assert_int_equal(hd_budget_guard(&run.context.budget, interrupted, &run),
                   HD_EXHAUSTED_TIME);
  assert_null(run.outputs[0].data);
  run.context.budget.deadline_ns = 0;
  hd_reference_end(&run);
  // A local tensor that does not fit.
  hd_reference_begin(
      &run, &(hd_test_case_t){"task t(n: i64) -> y: f32[] {\n"
                              "  l[i: n, j: n] = 1.0\n  y[] = l[0, 0]\n}\n",
                              "",
                              {hd_test_int("n", 1 << 20)}});
  run.context.budget.bytes_limit = 1 << 24;
  assert_false(hd_reference_evaluate(&run));
  assert_int_equal(run.context.diags.first->code, HD_E0901);
  hd_reference_end(&run);
}

// Moves a mean by an eighth; notes the order of what it is told.
static void move_mean(void *argument, const hd_definition_t *definition,
                      const hd_task_value_t *value, hd_host_tensor_t *tensor) {
  char *names = argument;
  assert_ptr_equal(definition->targets[0], value);
  strcat(names, value->name);
  if (strcmp(value->name, "m") == 0)
    hd_host_tensor_set(tensor, 0, hd_host_tensor_get(tensor, 0) + 0.125);
}

// Of equal values a mean that is off by 1/8 leaves -1/8 / sqrt(1/64 + 3/64).
static void what_is_told_may_be_moved(void **state) {
  (void)state;
  char names[16] = "";
  hd_reference_run_t run;
  hd_reference_begin(
      &run, &(hd_test_case_t){"task t(x: f32[n]) -> y: f32[n] {\n"
                              "  m[] = sum(p: n) x[p] / 4.0\n"
                              "  v[] = sum(p: n) (x[p] - m[]) * (x[p] - m[])\n"
                              "  y[i] = (x[i] - m[]) / sqrt(v[] / 4.0 + "
                              "0.015625 * 3.0)\n}\n",
                              "f32[4]",
                              {0}});
  SET(&run, 0, 3, 3, 3, 3);
  const hd_host_tensor_t *inputs[] = {&run.inputs[0]};
  assert_true(hd_task_evaluate_telling(&run.context, run.binding, inputs,
                                       run.outputs, (hd_loc_t){0}, move_mean,
                                       names));
  assert_string_equal(names, "mvy");
  EXPECT(&run, 0, -0.5, -0.5, -0.5, -0.5);
  hd_reference_end(&run);
}

HD_UNIT_TESTS(cmocka_unit_test(products),
              cmocka_unit_test(products_round_to_their_type),
              cmocka_unit_test(windows_stick_out),
              cmocka_unit_test(softmax_along_any_axis),
              cmocka_unit_test(tuples_are_reduced),
              cmocka_unit_test(combinations_may_reduce),
              cmocka_unit_test(every_monoid_reduces),
              cmocka_unit_test(shapes_and_attributes_are_numbers),
              cmocka_unit_test(data_decides_sizes),
              cmocka_unit_test(what_is_told_may_be_moved),
              cmocka_unit_test(budgets_are_kept))
