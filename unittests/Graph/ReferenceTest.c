// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tasks are computed as they are written: against numbers worked out by hand,
// and against loops that know nothing of tasks.
#include "TaskHelp.h"

#include "Graph/Reference/Reference.h"
#include "Support/Float.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 8 };

// A task, its operands and its results.
typedef struct run {
  hd_context_t context;
  const hd_task_binding_t *binding;
  hd_host_tensor_t inputs[MOST], outputs[MOST];
  unsigned num_inputs;
} run_t;

static void begin(run_t *run, const hd_test_case_t *test) {
  *run = (run_t){0};
  hd_context_init(&run->context);
  run->binding = hd_test_bind(&run->context, test);
  if (!run->binding) {
    hd_buffer_t said = {0};
    hd_diagnostics_print(&run->context.diags, false, &said);
    fail_msg("%s\n%s", test->task, hd_buffer_text(&said));
  }
  for (const char *at = test->inputs; *at; at += strspn(at, " ")) {
    hd_tensor_type_t type = hd_test_type(at);
    at += strcspn(at, "]") + 1;
    hd_host_tensor_t *tensor = &run->inputs[run->num_inputs++];
    assert_true(hd_host_tensor_init(tensor, &run->context.diags, NULL, "input",
                                    type.type, type.shape, type.rank));
    hd_host_tensor_fill_random(tensor, 1, run->num_inputs);
  }
}

static bool evaluate(run_t *run) {
  const hd_host_tensor_t *inputs[MOST];
  for (unsigned i = 0; i < run->num_inputs; i++)
    inputs[i] = &run->inputs[i];
  return hd_task_evaluate(&run->context, run->binding, inputs, run->outputs,
                          (hd_loc_t){0});
}

static void compute(run_t *run) {
  if (evaluate(run))
    return;
  hd_buffer_t said = {0};
  hd_diagnostics_print(&run->context.diags, false, &said);
  fail_msg("%s", hd_buffer_text(&said));
}

static void end(run_t *run) {
  for (unsigned i = 0; i < MOST; i++) {
    hd_host_tensor_fini(&run->inputs[i]);
    hd_host_tensor_fini(&run->outputs[i]);
  }
  hd_context_fini(&run->context);
}

static void set(run_t *run, unsigned input, const double *values) {
  hd_host_tensor_t *tensor = &run->inputs[input];
  for (int64_t i = 0; i < tensor->count; i++)
    hd_host_tensor_set(tensor, i, values[i]);
}
#define SET(run, input, ...)                                                   \
  do {                                                                         \
    const double values_[] = {__VA_ARGS__};                                    \
    assert_int_equal(sizeof values_ / sizeof values_[0],                       \
                     (run)->inputs[input].count);                              \
    set(run, input, values_);                                                  \
  } while (0)

// The output is exactly this; a NaN is a NaN.
static void expect(const run_t *run, unsigned output, size_t count,
                   const double *values) {
  const hd_host_tensor_t *tensor = &run->outputs[output];
  assert_int_equal(tensor->count, count);
  for (size_t i = 0; i < count; i++) {
    double found = hd_host_tensor_get(tensor, (int64_t)i);
    if (found != values[i] && !(isnan(found) && isnan(values[i])))
      fail_msg("output %u, element %zu: %.17g, not %.17g", output, i, found,
               values[i]);
  }
}
#define EXPECT(run, output, ...)                                               \
  do {                                                                         \
    const double values_[] = {__VA_ARGS__};                                    \
    expect(run, output, sizeof values_ / sizeof values_[0], values_);          \
  } while (0)

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
    run_t run;
    begin(&run, &(hd_test_case_t){matmul, inputs, {0}});
    compute(&run);
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
    end(&run);
  }
}

static void products_round_to_their_type(void **state) {
  (void)state;
  run_t run;
  begin(&run, &(hd_test_case_t){matmul, "f16[1, 3] f16[3, 1]", {0}});
  SET(&run, 0, 1, 0x1p-11, 0x1p-12);
  SET(&run, 1, 1, 1, 1);
  compute(&run); // In f32 the sum is exact; above the middle, so up.
  EXPECT(&run, 0, 1 + 0x1p-10);
  end(&run);
  // In f16 each step is rounded: to even, twice.
  begin(&run,
        &(hd_test_case_t){
            "task t(a: f16[n]) -> c: f16[] {\n  c[] = sum(p: n) a[p]\n}\n",
            "f16[3]",
            {0}});
  SET(&run, 0, 1, 0x1p-11, 0x1p-12);
  compute(&run);
  EXPECT(&run, 0, 1);
  end(&run);
}

static void windows_stick_out(void **state) {
  (void)state;
  run_t run;
  static const int64_t strides[] = {2, 1}, pads[] = {1, 2};
  begin(&run,
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
  compute(&run);
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
  end(&run);
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
    run_t run;
    static const int shape[] = {3, 5, 170};
    begin(&run, &(hd_test_case_t){
                    softmax, "f32[3, 5, 170]", {hd_test_int("s", axis)}});
    compute(&run);
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
    end(&run);
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
  run_t run;
  begin(&run, &(hd_test_case_t){argmax, "i32[2, 4]", {0}});
  SET(&run, 0, 3, -7, 3, 2, -9, -8, -8, -10);
  compute(&run);
  EXPECT(&run, 0, 3, -8);
  EXPECT(&run, 1, 0, 1);
  end(&run);
  begin(&run, &(hd_test_case_t){argmax, "f64[0]", {0}});
  compute(&run);
  EXPECT(&run, 0, 0);
  EXPECT(&run, 1, -1);
  end(&run);
  // Long rows, and short ones.
  static const char *const inputs[] = {"f32[2, 1000]", "f32[1000, 2]"};
  for (int n = 0; n < 2; n++) {
    begin(&run, &(hd_test_case_t){argmax, inputs[n], {0}});
    compute(&run);
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
    end(&run);
  }
}

// What stands inside of a combination is computed for each.
static void combinations_may_reduce(void **state) {
  (void)state;
  run_t run;
  begin(&run, &(hd_test_case_t){"task t(x: T[n]) -> y: T[] {\n"
                                "  monoid twice(v: T)(w) from (T(0))\n"
                                "    = (sum(p: 2) (v + w))\n"
                                "  y[] = twice(i: n) (x[i])\n}\n",
                                "i32[3]",
                                {0}});
  SET(&run, 0, 1, 2, 3);
  compute(&run);
  EXPECT(&run, 0, 2 * (2 * (2 * 1 + 2) + 3)); // ((0 + 1) 2 + 2) 2 ...
  end(&run);
}

static void every_monoid_reduces(void **state) {
  (void)state;
  run_t run;
  begin(&run,
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
  compute(&run);
  EXPECT(&run, 0, 44, 2, 205);
  EXPECT(&run, 1, 1000000 % 256, 0, 1200 % 256);
  EXPECT(&run, 2, 100, 1, 200);
  EXPECT(&run, 3, 100, 0, 2);
  EXPECT(&run, 4, 1, 0, 1);
  EXPECT(&run, 5, 1, 0, 1);
  end(&run);
  // Of nothing: the identities.
  begin(&run, &(hd_test_case_t){
                  "task t(x: T[n], z: bool[n]) -> a: T[], b: T[], c: T[],\n"
                  "  d: T[], e: bool[], f: bool[] {\n"
                  "  a[] = sum(p: n) x[p]\n  b[] = prod(p: n) x[p]\n"
                  "  c[] = max(p: n) x[p]\n  d[] = min(p: n) x[p]\n"
                  "  e[] = any(p: n) z[p]\n  f[] = all(p: n) z[p]\n}\n",
                  "i8[0] bool[0]",
                  {0}});
  compute(&run);
  for (unsigned i = 0; i < 6; i++)
    EXPECT(&run, i, ((double[]){0, 1, -128, 127, 0, 1})[i]);
  end(&run);
  // The number where one is NaN.
  begin(&run, &(hd_test_case_t){"task t(x: f32[n]) -> c: f32[], d: f32[] {\n"
                                "  c[] = max(p: n) x[p]\n"
                                "  d[] = min(p: n) x[p]\n}\n",
                                "f32[3]",
                                {0}});
  SET(&run, 0, NAN, 2, NAN);
  compute(&run);
  EXPECT(&run, 0, 2);
  EXPECT(&run, 1, 2);
  end(&run);
}

static const char scans[] = "task scans(x: T[m, n]) -> a: T[m, n], b: T[m, n], "
                            "c: T[m, n], d: T[m, n],\n"
                            "  e: T[m, n] {\n"
                            "  a[i, j] = scan sum(p: n to j) x[i, p]\n"
                            "  b[i, j] = scan sum(p: n before j) x[i, p]\n"
                            "  c[i, j] = scan sum(p: n from j) x[i, p]\n"
                            "  d[i, j] = scan sum(p: n after j) x[i, p]\n"
                            "  e[i, j] = scan sum(p: m to i) x[p, j]\n}\n";

static void scans_have_four_parts(void **state) {
  (void)state;
  run_t run;
  begin(&run, &(hd_test_case_t){scans, "i32[2, 4]", {0}});
  SET(&run, 0, 1, 2, 3, 4, -1, 10, 100, 1000);
  compute(&run);
  EXPECT(&run, 0, 1, 3, 6, 10, -1, 9, 109, 1109);
  EXPECT(&run, 1, 0, 1, 3, 6, 0, -1, 9, 109);
  EXPECT(&run, 2, 10, 9, 7, 4, 1109, 1110, 1100, 1000);
  EXPECT(&run, 3, 9, 7, 4, 0, 1110, 1100, 1000, 0);
  EXPECT(&run, 4, 1, 2, 3, 4, 0, 12, 103, 1004);
  end(&run);
  begin(&run, &(hd_test_case_t){scans, "f64[300, 301]", {0}});
  hd_host_tensor_fill(&run.inputs[0], 1);
  compute(&run);
  for (int i = 0; i < 300; i++)
    for (int j = 0; j < 301; j++) {
      double expected[] = {j + 1, j, 301 - j, 300 - j, i + 1};
      for (int n = 0; n < 5; n++)
        assert_true(hd_host_tensor_get(&run.outputs[n], i * 301 + j) ==
                    expected[n]);
    }
  end(&run);
  // A body that varies with what is around it; a position that is computed; a
  // tuple.
  begin(
      &run,
      &(hd_test_case_t){
          "task t(x: i64[n], at: i64[n]) -> a: i64[n], b: i64[n], c: i64[n],\n"
          "  d: i64[n] {\n"
          "  a[i] = scan sum(p: n to i) x[p] * x[i]\n"
          "  b[i] = scan max(p: n before at[i]) x[p]\n"
          "  monoid last(v: i64, i: i64)(w, j) from (0, -1) =\n"
          "    (j < 0 ? v : w, j < 0 ? i : j)\n"
          "  c[i], d[i] = scan last(p: n from i) (x[p], p)\n}\n",
          "i64[4] i64[4]",
          {0}});
  SET(&run, 0, 1, 2, 3, 4);
  SET(&run, 1, 2, -5, 99, 1);
  compute(&run);
  EXPECT(&run, 0, 1, 6, 18, 40);
  assert_true(hd_host_tensor_get_int(&run.outputs[1], 0) == 2);
  assert_true(hd_host_tensor_get_int(&run.outputs[1], 1) == INT64_MIN);
  assert_true(hd_host_tensor_get_int(&run.outputs[1], 2) == 4);
  assert_true(hd_host_tensor_get_int(&run.outputs[1], 3) == 1);
  EXPECT(&run, 2, 4, 4, 4, 4);
  EXPECT(&run, 3, 3, 3, 3, 3);
  end(&run);
}

static void scatters_combine(void **state) {
  (void)state;
  run_t run;
  begin(&run,
        &(hd_test_case_t){
            "task t(g: f32[k, m], at: i32[k], z: f32[n, m]) ->\n"
            "  a: f32[n, m], b: f32[n, m], c: f32[n, m], d: f32[n],\n"
            "  e: f32[n] {\n"
            "  scatter sum(i: k, j: m) a[i64(at[i]), j] else drop = g[i, j]\n"
            "    onto z\n"
            "  scatter first(i: k, j: m) b[i64(at[i]), j] else drop = g[i, j]\n"
            "    onto z\n"
            "  scatter last(i: k, j: m) c[i64(at[i]), j] else drop = g[i, j]\n"
            "    onto z\n"
            "  scatter max(i: k) d[i64(at[i])] else drop = g[i, 0]\n"
            "  monoid same(v: f32)(w) from (7.0) = (v * 10.0 + w)\n"
            "  scatter same(i: k) e[i64(at[i])] else drop = g[i, 1]\n}\n",
            "f32[4, 2] i32[4] f32[3, 2]",
            {0}});
  SET(&run, 0, 1, 2, 3, 4, 5, 6, 7, 8);
  SET(&run, 1, 2, 0, 2, -1);
  SET(&run, 2, 10, 20, 30, 40, 50, 60);
  compute(&run);
  EXPECT(&run, 0, 13, 24, 30, 40, 56, 68);
  EXPECT(&run, 1, 3, 4, 30, 40, 1, 2);
  EXPECT(&run, 2, 3, 4, 30, 40, 5, 6);
  EXPECT(&run, 3, 3, -INFINITY, 5);
  EXPECT(&run, 4, 74, 7, 726);
  end(&run);
}

static void gathers_look_where_data_says(void **state) {
  (void)state;
  run_t run;
  static const char gather[] =
      "task gather(x: T[n, m], index: i32[k]) -> y: T[k, m], z: T[k, m]\n"
      "  where T in any {\n"
      "  z[i, j] = x[i64(index[i]) + 5, j] else x[0, j]\n"
      "  y[i, j] = x[index[i] < 0 ? i64(index[i]) + n : i64(index[i]), j]\n}\n";
  begin(&run, &(hd_test_case_t){gather, "u16[3, 2] i32[2]", {0}});
  SET(&run, 0, 1, 2, 3, 4, 65535, 6);
  SET(&run, 1, -1, 1);
  compute(&run);
  EXPECT(&run, 0, 65535, 6, 3, 4);
  EXPECT(&run, 1, 1, 2, 1, 2);
  end(&run);
  begin(&run, &(hd_test_case_t){gather, "bool[3, 2] i32[2]", {0}});
  SET(&run, 0, 1, 0, 0, 0, 0, 1);
  SET(&run, 1, 2, -4);
  assert_false(evaluate(&run));
  assert_int_equal(run.context.diags.first->code, HD_E1103);
  assert_string_equal(
      run.context.diags.first->message,
      "gather: 'x' is read at [-1, 0], outside of its shape [3, 2]");
  assert_null(run.outputs[0].data);
  end(&run);
}

static void only_what_is_needed_is_read(void **state) {
  (void)state;
  run_t run;
  // Each access would be outside where it is not asked for.
  begin(
      &run,
      &(hd_test_case_t){
          "task t(x: f32[n]) -> a: f32[n], b: bool[n], c: f32[n], d: f32[n] {\n"
          "  a[i] = i > 0 ? x[i - 1] : -1.0\n"
          "  b[i] = i + 1 < n && x[i + 1] > 2.0 || i == 0 && x[i] == 1.0\n"
          "  c[i] = x[i + 2] else x[n - 1 - i] else x[n]\n"
          "  d[i] = n > 100 ? x[i + 100] : sum(p: n) (p > i ? x[p - 1] : 0)\n"
          "}\n",
          "f32[4]",
          {0}});
  SET(&run, 0, 1, 2, 3, 4);
  compute(&run);
  EXPECT(&run, 0, -1, 1, 2, 3);
  EXPECT(&run, 1, 1, 1, 1, 0);
  EXPECT(&run, 2, 3, 4, 2, 1);
  EXPECT(&run, 3, 6, 5, 3, 0);
  end(&run);
  begin(&run, &(hd_test_case_t){"task t(x: f32[n]) -> a: f32[n] {\n"
                                "  a[i] = x[i] > 1.0 ? x[i + 1] : 0\n}\n",
                                "f32[3]",
                                {0}});
  SET(&run, 0, 1, 2, 3);
  assert_false(evaluate(&run));
  assert_string_equal(run.context.diags.first->message,
                      "t: 'x' is read at [3], outside of its shape [3]");
  end(&run);
}

static const char cast[] = "task cast(x: T[n]) -> y: U[n]\n"
                           "  where T in any, U in any {\n"
                           "  y[i] = U(x[i])\n}\n";

static void check_cast(const char *from, hd_scalar_t to, const double *in,
                       const double *out, size_t count) {
  run_t run;
  char inputs[40];
  snprintf(inputs, sizeof inputs, "%s[%zu]", from, count);
  begin(&run, &(hd_test_case_t){cast, inputs, {hd_test_type_of("U", to)}});
  set(&run, 0, in);
  compute(&run);
  expect(&run, 0, count, out);
  end(&run);
}

static void casts_saturate_and_wrap(void **state) {
  (void)state;
  static const double in[] = {-1e30, -129, -2.9, -0.5, 0.9,
                              7.5,   300,  1e30, NAN,  INFINITY};
  check_cast("f32", HD_I8, in,
             (double[]){-128, -128, -2, 0, 0, 7, 127, 127, 0, 127}, 10);
  check_cast("f64", HD_U8, in, (double[]){0, 0, 0, 0, 0, 7, 255, 255, 0, 255},
             10);
  check_cast("f32", HD_I4, in, (double[]){-8, -8, -2, 0, 0, 7, 7, 7, 0, 7}, 10);
  check_cast("f32", HD_U2, in, (double[]){0, 0, 0, 0, 0, 3, 3, 3, 0, 3}, 10);
  check_cast("f32", HD_BOOL, in, (double[]){1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 10);
  check_cast("f32", HD_U64, (double[]){-1, 0x1p63, 1e30},
             (double[]){0, 0x1p63, 0x1p64}, 3);
  check_cast("f64", HD_I64, (double[]){-1e300, 0x1p62, 1e30, 0x1p63},
             (double[]){-0x1p63, 0x1p62, 0x1p63, 0x1p63}, 4);
  static const double ints[] = {-129, -9, -1, 8, 15, 255, 256, 40000};
  check_cast("i32", HD_I8, ints, (double[]){127, -9, -1, 8, 15, -1, 0, 64}, 8);
  check_cast("i32", HD_U8, ints, (double[]){127, 247, 255, 8, 15, 255, 0, 64},
             8);
  check_cast("i32", HD_I4, ints, (double[]){-1, 7, -1, -8, -1, -1, 0, 0}, 8);
  check_cast("i32", HD_U4, ints, (double[]){15, 7, 15, 8, 15, 15, 0, 0}, 8);
  check_cast("i32", HD_I2, ints, (double[]){-1, -1, -1, 0, -1, -1, 0, 0}, 8);
  check_cast("i32", HD_BOOL, ints, (double[]){1, 1, 1, 1, 1, 1, 1, 1}, 8);
  check_cast("i16", HD_U64, (double[]){-1, 5}, (double[]){0x1p64, 5}, 2);
  check_cast("u64", HD_F32, (double[]){0x1p63, 3}, (double[]){0x1p63, 3}, 2);
  static const double reals[] = {0.1, 1e6, -1e6, 449, 0x1p-20, NAN};
  check_cast(
      "f64", HD_F16, reals,
      (double[]){0.0999755859375, INFINITY, -INFINITY, 449, 0x1p-20, NAN}, 6);
  check_cast("f64", HD_BF16, reals,
             (double[]){0.10009765625, 999424, -999424, 448, 0x1p-20, NAN}, 6);
  check_cast("f32", HD_F8E4M3, reals,
             (double[]){0.1015625, 448, -448, 448, 0, NAN}, 6);
  check_cast("f32", HD_F4E2M1, reals, (double[]){0, 6, -6, 6, 0, 6}, 6);
  check_cast("f8e4m3", HD_F32, (double[]){0.1015625, -448},
             (double[]){0.1015625, -448}, 2);
  check_cast("i4", HD_F16, (double[]){-8, 7}, (double[]){-8, 7}, 2);
  check_cast("bool", HD_BF16, (double[]){1, 0}, (double[]){1, 0}, 2);
}

static void check_binary(const char *type, const char *op, double x, double y,
                         double expected) {
  run_t run;
  char task[200], inputs[60];
  snprintf(task, sizeof task,
           "task t(x: %s[n], y: %s[n]) -> z: %s[n] {\n  z[i] = %s\n}\n", type,
           type, type, op);
  snprintf(inputs, sizeof inputs, "%s[3] %s[3]", type, type);
  begin(&run, &(hd_test_case_t){task, inputs, {0}});
  hd_host_tensor_fill(&run.inputs[0], x);
  hd_host_tensor_fill(&run.inputs[1], y);
  compute(&run);
  EXPECT(&run, 0, expected, expected, expected);
  end(&run);
}

// What is not in memory is rounded as well: f8e8m0 has powers of two from
// 2^-127 on, and NaN for what is below 0; f4e2m1 has no NaN.
static void narrow_values_are_rounded(void **state) {
  (void)state;
  run_t run;
  begin(&run, &(hd_test_case_t){"task t(x: f32[n]) -> y: f32[n], z: f32[n] {\n"
                                "  y[i] = f32(f8e8m0(x[i]))\n"
                                "  z[i] = f32(f4e2m1(x[i]))\n}\n",
                                "f32[5]",
                                {0}});
  SET(&run, 0, -3, 0.3, 5, 0, NAN);
  compute(&run);
  EXPECT(&run, 0, NAN, 0.25, 4, 0x1p-127, NAN);
  EXPECT(&run, 1, -3, 0.5, 4, 0, 6);
  end(&run);
}

static void arithmetic_wraps_and_rounds(void **state) {
  (void)state;
  check_binary("i4", "x[i] + y[i]", 7, 1, -8);
  check_binary("i4", "x[i] * y[0]", 5, 5, -7);
  check_binary("u4", "x[0] - y[i]", 3, 5, 14);
  check_binary("i2", "-x[i] + y[i] - y[i]", -2, 0, -2);
  check_binary("i8", "x[i] / y[i]", -128, -1, -128);
  check_binary("i8", "x[i] % y[i]", -7, 3, -1);
  check_binary("i32", "x[i] / y[i]", -7, 2, -3);
  check_binary("i32", "x[i] / y[i]", 7, 0, 0);
  check_binary("u8", "x[i] / y[i]", 250, 7, 35);
  check_binary("u8", "~x[i] ^ y[i]", 250, 1, 4);
  check_binary("u8", "max(x[i], y[i])", 250, 7, 250);
  check_binary("u64", "max(x[i], y[i])", 0x1p63, 7, 0x1p63);
  check_binary("u64", "x[i] / y[i]", 0x1p63, 2, 0x1p62);
  check_binary("i16", "x[i] << y[i]", 3, 15, -32768);
  check_binary("i16", "x[i] >> y[i]", -3, 20, -1);
  check_binary("u16", "x[i] >> y[i]", 65535, 12, 15);
  check_binary("f16", "x[i] + y[i]", 2048, 1, 2048);
  check_binary("f16", "x[i] * y[i]", 60000, 2, INFINITY);
  check_binary("bf16", "x[i] + y[0]", 256, 1, 256);
  check_binary("f8e4m3", "x[i] * y[i]", 448, 2, 448);
  check_binary("f8e5m2", "x[i] + y[i]", 8, 1, 8);
  check_binary("f4e2m1", "x[i] + y[i]", 4, 0.5, 4);
  check_binary("f32", "x[i] + y[i]", 0x1p24, 1, 0x1p24);
  check_binary("f64", "x[i] + y[i]", 0x1p24, 1, 0x1p24 + 1);
  check_binary("f32", "min(x[i], y[i])", NAN, 3, 3);
  check_binary("f64", "max(x[0], y[i])", 3, NAN, 3);
  check_binary("f32", "x[i] / y[i]", 1, 0, INFINITY);
  check_binary("f32", "fma(x[i], y[i], -1.0)", 1 + 0x1p-12, 1 - 0x1p-12,
               -0x1p-24);
  check_binary("f32", "rsqrt(x[i]) + atan2(y[0], x[i])", 4, 0, 0.5);
  check_binary("f16", "exp(x[i])", 1, 0, 2.71875);
  check_binary("f64", "pow(x[i], y[i])", 2, 0.5, sqrt(2));
  check_binary("f32", "round_even(x[i]) + trunc(y[i])", 2.5, -1.5, 1);
}

// IEEE 754's tables, those of the OCP for 8 bits, and of bf16.
static void types_have_limits(void **state) {
  (void)state;
  static const struct {
    const char *type;
    double largest, smallest;
  } limits[] = {{"f64", DBL_MAX, DBL_MIN},
                {"f32", FLT_MAX, FLT_MIN},
                {"f16", 65504, 0x1p-14},
                {"bf16", 0x1.fep127, 0x1p-126},
                {"f8e4m3", 448, 0x1p-6},
                {"f8e5m2", 57344, 0x1p-14},
                {"f8e4m3fnuz", 240, 0x1p-7},
                {"f8e5m2fnuz", 57344, 0x1p-15},
                {"f4e2m1", 6, 1},
                {"i8", 127, 1},
                {"u8", 255, 1},
                {"i4", 7, 1},
                {"i32", 2147483647, 1}};
  for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
    run_t run;
    char text[200];
    snprintf(text, sizeof text,
             "task t(x: T[]) -> a: f64[], b: f64[] {\n"
             "  a[] = f64(largest(T))\n  b[] = f64(smallest(%s))\n}\n",
             limits[i].type);
    snprintf(text + strlen(text) + 1, 20, "%s[]", limits[i].type);
    begin(&run, &(hd_test_case_t){text, text + strlen(text) + 1, {0}});
    compute(&run);
    EXPECT(&run, 0, limits[i].largest);
    EXPECT(&run, 1, limits[i].smallest);
    end(&run);
  }
}

static void shapes_and_attributes_are_numbers(void **state) {
  (void)state;
  run_t run;
  static const int64_t by[] = {10, 100};
  begin(&run, &(hd_test_case_t){
                  "task t(x: f32[..s], by: i64 over s, scale: f16) ->\n"
                  "  y: i64[..s], z: f32[..s] {\n"
                  "  l[..i: s, j: 2] = j\n"
                  "  y[..i] = sum(j: 2) l[..(i * 1), j] + 1\n"
                  "  z[..i] = x[..(s - 1 - i)] * f32(scale)\n}\n",
                  "f32[2, 3]",
                  {hd_test_ints("by", 2, by), hd_test_float("scale", 0.5)}});
  SET(&run, 0, 1, 2, 3, 4, 5, 6);
  compute(&run);
  EXPECT(&run, 0, 2, 2, 2, 2, 2, 2);
  EXPECT(&run, 1, 3, 2.5, 2, 1.5, 1, 0.5);
  end(&run);
  static const int64_t shape[] = {2, 1, 3};
  begin(&run, &(hd_test_case_t){"task expand(x: T[..s], shape: i64 over t) ->\n"
                                "  y: T[..broadcast(s, t)] where T in any {\n"
                                "  y[..i] = x[..i]\n}\n",
                                "u4[2, 1]",
                                {hd_test_ints("shape", 3, shape)}});
  SET(&run, 0, 7, 9);
  compute(&run);
  EXPECT(&run, 0, 7, 7, 7, 9, 9, 9, 7, 7, 7, 9, 9, 9);
  end(&run);
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
  run_t run;
  begin(&run, &(hd_test_case_t){nonzero, "f32[6]", {0}});
  SET(&run, 0, 0, 3, NAN, -0.0, 0, 1);
  compute(&run);
  EXPECT(&run, 0, 1, 2, 5);
  end(&run);
  begin(&run, &(hd_test_case_t){nonzero, "f32[6]", {0}});
  hd_host_tensor_fill(&run.inputs[0], 0);
  compute(&run);
  assert_int_equal(run.outputs[0].count, 0);
  assert_non_null(run.outputs[0].data);
  end(&run);
  begin(&run, &(hd_test_case_t){"task t(x: i64[]) -> y: i64[count <= 3] {\n"
                                "  size count = x[]\n  y[i] = i\n}\n",
                                "i64[]",
                                {0}});
  SET(&run, 0, 4);
  assert_false(evaluate(&run));
  assert_string_equal(run.context.diags.first->message,
                      "t: size 'count' is 4, outside of 0 .. 3");
  end(&run);
}

static void interrupted(void *argument) { compute(argument); }

static void budgets_are_kept(void **state) {
  (void)state;
  static run_t run;
  static const char task[] = "task t(n: i64) -> y: f32[] {\n"
                             "  y[] = sum(p: n, q: n) sin(f32(p * q))\n}\n";
  begin(&run, &(hd_test_case_t){task, "", {hd_test_int("n", 10000000)}});
  run.context.budget.deadline_ns = hd_clock_ns() + 20000000;
  assert_int_equal(hd_budget_guard(&run.context.budget, interrupted, &run),
                   HD_EXHAUSTED_TIME);
  assert_null(run.outputs[0].data);
  run.context.budget.deadline_ns = 0;
  end(&run);
  // A local tensor that does not fit.
  begin(&run, &(hd_test_case_t){"task t(n: i64) -> y: f32[] {\n"
                                "  l[i: n, j: n] = 1.0\n  y[] = l[0, 0]\n}\n",
                                "",
                                {hd_test_int("n", 1 << 20)}});
  run.context.budget.bytes_limit = 1 << 24;
  assert_false(evaluate(&run));
  assert_int_equal(run.context.diags.first->code, HD_E0901);
  end(&run);
}

HD_UNIT_TESTS(cmocka_unit_test(products),
              cmocka_unit_test(products_round_to_their_type),
              cmocka_unit_test(windows_stick_out),
              cmocka_unit_test(softmax_along_any_axis),
              cmocka_unit_test(tuples_are_reduced),
              cmocka_unit_test(combinations_may_reduce),
              cmocka_unit_test(every_monoid_reduces),
              cmocka_unit_test(scans_have_four_parts),
              cmocka_unit_test(scatters_combine),
              cmocka_unit_test(gathers_look_where_data_says),
              cmocka_unit_test(only_what_is_needed_is_read),
              cmocka_unit_test(casts_saturate_and_wrap),
              cmocka_unit_test(narrow_values_are_rounded),
              cmocka_unit_test(arithmetic_wraps_and_rounds),
              cmocka_unit_test(types_have_limits),
              cmocka_unit_test(shapes_and_attributes_are_numbers),
              cmocka_unit_test(data_decides_sizes),
              cmocka_unit_test(budgets_are_kept))
