// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels for tasks, against plain loops.
#include "ScheduleHelp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double at(const hd_host_tensor_t *tensor, int64_t i) {
  return hd_host_tensor_get(tensor, i);
}

static void broadcasts(void **state) {
  (void)state;
  hd_task_run_t run;
  hd_run_prepare(&run,
                 "task add(x: T[..s], y: T[..t]) -> z: T[..broadcast(s, t)]\n"
                 "  where T in float {\n"
                 "  z[..i] = x[..i] * 3 + y[..i]\n"
                 "}\n",
                 "f32[3, 1, 7] f32[5, 1]", "");
  hd_run_task(&run);
  double expected[3 * 5 * 7];
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 5; j++)
      for (int k = 0; k < 7; k++)
        expected[(i * 5 + j) * 7 + k] =
            at(&run.inputs[0], i * 7 + k) * 3 + at(&run.inputs[1], j);
  hd_expect_close(&run.outputs[0], expected, 1e-6);
  hd_run_end(&run);
}

static void transposes(void **state) {
  (void)state;
  hd_task_run_t run;
  hd_run_prepare(&run,
                 "task t(x: T[a, b, c]) -> y: T[c, a, b] {\n"
                 "  y[k, i, j] = x[i, j, k]\n"
                 "}\n",
                 "i8[5, 6, 300]", "");
  hd_run_task(&run);
  for (int i = 0; i < 5; i++)
    for (int j = 0; j < 6; j++)
      for (int k = 0; k < 300; k++)
        assert_true(at(&run.outputs[0], (k * 5 + i) * 6 + j) ==
                    at(&run.inputs[0], (i * 6 + j) * 300 + k));
  hd_run_end(&run);
}

static const char softmax_text[] =
    "task softmax(x: T[..s, n, ..t]) -> y: T[..s, n, ..t]\n"
    "  where T in float, A = acc(T) {\n"
    "  m[..i, ..j]    = max(p: n) x[..i, p, ..j]\n"
    "  e[..i, p, ..j] = exp(A(x[..i, p, ..j]) - A(m[..i, ..j]))\n"
    "  y[..i, p, ..j] = T(e[..i, p, ..j] / sum(q: n) e[..i, q, ..j])\n"
    "}\n";

static void check_softmax(const char *type, int a, int n, int b,
                          double tolerance) {
  hd_task_run_t run;
  char text[64];
  snprintf(text, sizeof text, "%s[%d, %d, %d]", type, a, n, b);
  hd_run_prepare(&run, softmax_text, text, "s=1");
  hd_run_task(&run);
  double *expected = calloc((size_t)(a * n * b), sizeof *expected);
  for (int i = 0; i < a; i++)
    for (int k = 0; k < b; k++) {
      double sum = 0;
      for (int p = 0; p < n; p++)
        sum += exp(at(&run.inputs[0], (i * n + p) * b + k));
      for (int p = 0; p < n; p++)
        expected[(i * n + p) * b + k] =
            exp(at(&run.inputs[0], (i * n + p) * b + k)) / sum;
    }
  hd_expect_close(&run.outputs[0], expected, tolerance);
  print_message("softmax %s: compile %.1f ms, run %.1f ms, %u kernels\n", text,
                run.compile_ms, run.run_ms, hd_run_kernels(&run));
  free(expected);
  hd_run_end(&run);
}

static void softmax(void **state) {
  (void)state;
  check_softmax("f32", 3, 10, 7, 1e-6);
  check_softmax("f16", 4, 33, 1, 1e-3);
  check_softmax("bf16", 2, 300, 3, 1e-2);
  check_softmax("f64", 12, 128, 1, 1e-12);
}

static void check_scan(int part, int a, int n, int c) {
  static const char *const parts[] = {"to", "before", "from", "after"};
  hd_task_run_t run;
  char text[256], inputs[64];
  snprintf(text, sizeof text,
           "task cumsum(x: T[..s, n, ..t]) -> y: T[..s, n, ..t] {\n"
           "  y[..i, j, ..k] = scan sum(p: n %s j) x[..i, p, ..k]\n"
           "}\n",
           parts[part]);
  snprintf(inputs, sizeof inputs, "i32[%d, %d, %d]", a, n, c);
  hd_run_prepare(&run, text, inputs, "s=1");
  hd_run_task(&run);
  for (int i = 0; i < a; i++)
    for (int k = 0; k < c; k++) {
      double sum = 0;
      for (int p = 0; p < n; p++) {
        int j = part < 2 ? p : n - 1 - p;
        double x = at(&run.inputs[0], (i * n + j) * c + k);
        double y = at(&run.outputs[0], (i * n + j) * c + k);
        assert_true(y == (part % 2 ? sum : sum + x));
        sum += x;
      }
    }
  hd_run_end(&run);
}

static void scans(void **state) {
  (void)state;
  for (int part = 0; part < 4; part++) {
    check_scan(part, 5, 9, 3);
    check_scan(part, 1, 5000, 2); // In chunks.
    check_scan(part, 2, 4096, 1);
  }
}

// Indices that lie outside, too, and several values for one element.
static void scatter(const char *how, const char *type, int64_t n) {
  hd_task_run_t run;
  char text[256], inputs[64];
  snprintf(text, sizeof text,
           "task put(z: T[k, m], at: i64[n], x: T[n, m]) -> y: T[k, m] {\n"
           "  scatter %s(i: n, j: m) y[at[i], j] else drop = x[i, j]\n"
           "    onto z\n"
           "}\n",
           how);
  snprintf(inputs, sizeof inputs, "%s[6, 3] i64[%d] %s[%d, 3]", type, (int)n,
           type, (int)n);
  hd_run_prepare(&run, text, inputs, "");
  hd_run_task(&run);
  double expected[6 * 3];
  bool met[6] = {false};
  for (int i = 0; i < 18; i++)
    expected[i] = at(&run.inputs[0], i);
  for (int64_t i = 0; i < n; i++) {
    int64_t to = hd_host_tensor_get_int(&run.inputs[1], i);
    if (to < 0 || to >= 6 || (met[to] && how[0] == 'f'))
      continue;
    met[to] = true;
    for (int64_t j = 0; j < 3; j++) {
      double value = at(&run.inputs[2], i * 3 + j);
      double *place = &expected[to * 3 + j];
      *place = how[0] == 's'   ? *place + value
               : how[0] == 'm' ? fmax(*place, value)
                               : value;
    }
  }
  hd_expect_close(&run.outputs[0], expected, 1e-5);
  hd_run_end(&run);
}

static void scatters(void **state) {
  (void)state;
  scatter("sum", "f32", 50);
  scatter("first", "f32", 50);
  scatter("last", "i8", 50);
  scatter("sum", "i64", 4000); // By atomics.
  scatter("max", "i32", 4000);
  scatter("last", "f16", 4000); // By winners.
  scatter("first", "u8", 4000);
  scatter("max", "f64", 0);
  scatter("last", "i4", 50);
  scatter("max", "u2", 30);
}

static const char argmax_text[] =
    "task argmax(x: T[..s, n, ..t]) -> v: T[..s, ..t], at: i64[..s, ..t]\n"
    "  where T in float {\n"
    "  monoid best(a: T, i: i64)(b, j) from (-inf, 0) =\n"
    "    (b > a ? b : a, b > a ? j : i)\n"
    "  v[..i, ..j], at[..i, ..j] = best(p: n) (x[..i, p, ..j], p)\n"
    "}\n";

static void check_argmax(int64_t a, int64_t n, int64_t c) {
  hd_task_run_t run;
  char inputs[64];
  snprintf(inputs, sizeof inputs, "f32[%d, %d, %d]", (int)a, (int)n, (int)c);
  hd_run_prepare(&run, argmax_text, inputs, "s=1");
  hd_run_task(&run);
  for (int64_t i = 0; i < a; i++)
    for (int64_t j = 0; j < c; j++) {
      int64_t best = 0;
      for (int64_t p = 0; p < n; p++)
        if (at(&run.inputs[0], (i * n + p) * c + j) >
            at(&run.inputs[0], (i * n + best) * c + j))
          best = p;
      assert_true(hd_host_tensor_get_int(&run.outputs[1], i * c + j) == best);
      assert_true(at(&run.outputs[0], i * c + j) ==
                  at(&run.inputs[0], (i * n + best) * c + j));
    }
  hd_run_end(&run);
}

static void argmax(void **state) {
  (void)state;
  check_argmax(4, 37, 1);
  check_argmax(3, 5, 70);
  check_argmax(1, 5000, 2);
  check_argmax(1, 90001, 1);
  check_argmax(40, 300, 40);
}

// Only the first thread of a row has the sum, and others may not divide by what
// they have instead: theirs is 0 where it is.
static void divides_by_sums(void **state) {
  (void)state;
  hd_task_run_t run;
  hd_run_prepare(
      &run,
      "task part(x: i32[n, m]) -> y: i32[m] {\n"
      "  y[j] = 1000 / (sum(p: n) (x[p, j] * 0 + (p == 0 ? i32(7) : i32(0))))\n"
      "}\n",
      "i32[300, 40]", "");
  hd_run_task_checked(&run);
  for (int j = 0; j < 40; j++)
    assert_int_equal(hd_host_tensor_get_int(&run.outputs[0], j), 142);
  assert_true(hd_run_has(&run, "let slot")); // A kernel over rows.
  hd_run_end(&run);
}

static void gathers(void **state) {
  (void)state;
  hd_task_run_t run;
  hd_run_prepare(&run,
                 "task gather(x: T[n, m], at: I[k]) -> y: T[k, m]\n"
                 "  where T in any, I in {i32, i64} {\n"
                 "  y[i, j] = x[at[i] + 8, j]\n"
                 "}\n",
                 "bool[16, 5] i32[9]", "");
  hd_run_task(&run);
  for (int i = 0; i < 9; i++)
    for (int j = 0; j < 5; j++) {
      int64_t row = hd_host_tensor_get_int(&run.inputs[1], i) + 8;
      assert_true(at(&run.outputs[0], i * 5 + j) ==
                  at(&run.inputs[0], row * 5 + j));
    }
  hd_run_end(&run);
}

// Nothing is asserted of indices that conditions keep inside.
static void concatenates(void **state) {
  (void)state;
  hd_task_run_t run;
  hd_run_prepare(&run,
                 "task concat(x: T[a, b], y: T[c, b]) -> z: T[a + c, b] {\n"
                 "  z[i, j] = i < a ? x[i, j] : y[i - a, j]\n"
                 "}\n",
                 "u4[3, 5] u4[4, 5]", "");
  hd_run_task(&run);
  for (int i = 0; i < 35; i++)
    assert_true(at(&run.outputs[0], i) ==
                (i < 15 ? at(&run.inputs[0], i) : at(&run.inputs[1], i - 15)));
  assert_false(hd_run_has(&run, "assert"));
  hd_run_end(&run);
}

static const char matmul_text[] =
    "task matmul(a: T[..s, m, k], b: T[..t, k, n])\n"
    "  -> c: T[..broadcast(s, t), m, n] where A = acc(T) {\n"
    "  c[..i, x, y] = T(sum(p: k) A(a[..i, x, p]) * A(b[..i, p, y]))\n"
    "}\n";

static void check_matmul(const char *type, int batch, int m, int n, int k,
                         double tolerance) {
  hd_task_run_t run;
  char inputs[128];
  snprintf(inputs, sizeof inputs, "%s[%d, %d, %d] %s[%d, %d]", type, batch, m,
           k, type, k, n);
  hd_run_prepare(&run, matmul_text, inputs, "");
  hd_run_task(&run);
  double *expected = calloc((size_t)(batch * m * n), sizeof *expected);
  for (int b = 0; b < batch; b++)
    for (int i = 0; i < m; i++)
      for (int j = 0; j < n; j++)
        for (int p = 0; p < k; p++)
          expected[(b * m + i) * n + j] +=
              at(&run.inputs[0], (b * m + i) * k + p) *
              at(&run.inputs[1], p * n + j);
  hd_expect_close(&run.outputs[0], expected, tolerance);
  print_message("matmul %s: compile %.1f ms, run %.1f ms\n", inputs,
                run.compile_ms, run.run_ms);
  free(expected);
  hd_run_end(&run);
}

static void matmul(void **state) {
  (void)state;
  check_matmul("f32", 1, 65, 70, 33, 1e-5);
  check_matmul("f32", 3, 200, 130, 64, 1e-5);
  check_matmul("f16", 2, 40, 300, 17, 1e-3);
  check_matmul("f64", 1, 9, 8, 100, 1e-12);
  check_matmul("i32", 1, 64, 64, 64, 0);
  check_matmul("f32", 5, 3, 2, 50, 1e-5);
}

static const char conv_text[] =
    "task conv(x: T[n, c, ..s], w: T[o, c, ..k like s], strides: i64 over s,\n"
    "          pads: i64 over s, dilations: i64 over s, sizes: i64 over s)\n"
    "  -> y: T[n, o, ..sizes] where A = acc(T) {\n"
    "  y[b, f, ..i] = T(sum(p: c, ..q: k)\n"
    "    A(x[b, p, ..(i * strides + q * dilations - pads)] else 0)\n"
    "    * A(w[f, p, ..q]))\n"
    "}\n";

static void check_conv(int n, int c, int size, int o, int k, int stride,
                       int pad) {
  hd_task_run_t run;
  char inputs[128], attributes[128];
  int out = (size + 2 * pad - k) / stride + 1;
  snprintf(inputs, sizeof inputs, "f32[%d, %d, %d, %d] f32[%d, %d, %d, %d]", n,
           c, size, size, o, c, k, k);
  snprintf(attributes, sizeof attributes,
           "strides=[%d, %d] pads=[%d, %d] dilations=[1, 1] sizes=[%d, %d]",
           stride, stride, pad, pad, out, out);
  hd_run_prepare(&run, conv_text, inputs, attributes);
  hd_run_task(&run);
  double *expected = calloc((size_t)(n * o * out * out), sizeof *expected);
  const float *x = hd_f32(&run.inputs[0]), *w = hd_f32(&run.inputs[1]);
  for (int b = 0; b < n; b++)
    for (int f = 0; f < o; f++)
      for (int i = 0; i < out * out; i++)
        for (int p = 0; p < c; p++)
          for (int q = 0; q < k * k; q++) {
            int row = i / out * stride + q / k - pad;
            int column = i % out * stride + q % k - pad;
            if (row >= 0 && row < size && column >= 0 && column < size)
              expected[(b * o + f) * out * out + i] +=
                  (double)x[((b * c + p) * size + row) * size + column] *
                  (double)w[(f * c + p) * k * k + q];
          }
  hd_expect_close(&run.outputs[0], expected, 1e-5);
  print_message("conv %s: compile %.1f ms, run %.1f ms\n", inputs,
                run.compile_ms, run.run_ms);
  free(expected);
  hd_run_end(&run);
}

static void convolutions(void **state) {
  (void)state;
  check_conv(2, 3, 13, 10, 3, 2, 1);
  check_conv(1, 64, 14, 70, 3, 1, 1);
  check_conv(1, 3, 20, 64, 7, 2, 3);
  check_conv(1, 64, 56, 64, 3, 1, 1);
}

// Rows, columns and everything; the mean is a function of a reduction.
static void check_means(int a, int n, int c, bool all) {
  hd_task_run_t run;
  char inputs[64];
  snprintf(inputs, sizeof inputs, "f32[%d, %d, %d]", a, n, c);
  hd_run_prepare(&run,
                 all ? "task mean(x: T[..s]) -> y: T[] where T in float {\n"
                       "  y[] = (sum(..p: s) x[..p]) / 7 + 1\n"
                       "}\n"
                     : "task mean(x: T[..s, n, ..t]) -> y: T[..s, ..t]\n"
                       "  where T in float {\n"
                       "  y[..i, ..j] = (sum(p: n) x[..i, p, ..j]) / 7 + 1\n"
                       "}\n",
                 inputs, all ? "" : "s=1");
  hd_run_task(&run);
  double *expected = calloc((size_t)(a * c), sizeof *expected);
  for (int i = 0; i < a; i++)
    for (int p = 0; p < n; p++)
      for (int j = 0; j < c; j++)
        expected[all ? 0 : i * c + j] +=
            at(&run.inputs[0], (i * n + p) * c + j) / 7;
  for (int i = 0; i < a * c; i++)
    expected[i] += 1;
  hd_expect_close(&run.outputs[0], expected, 1e-5);
  print_message("mean %s: compile %.1f ms, run %.1f ms\n", inputs,
                run.compile_ms, run.run_ms);
  free(expected);
  hd_run_end(&run);
}

static void means(void **state) {
  (void)state;
  check_means(5, 300, 1, false);
  check_means(700, 100, 1, false);
  check_means(3, 1000, 1, false);
  check_means(2, 200, 37, false);
  check_means(40, 70, 500, false);
  check_means(1, 100003, 1, false); // In parts.
  check_means(3, 300, 200, true);
}

HD_UNIT_TESTS(cmocka_unit_test(broadcasts), cmocka_unit_test(transposes),
              cmocka_unit_test(softmax), cmocka_unit_test(scans),
              cmocka_unit_test(scatters), cmocka_unit_test(argmax),
              cmocka_unit_test(divides_by_sums), cmocka_unit_test(gathers),
              cmocka_unit_test(concatenates), cmocka_unit_test(matmul),
              cmocka_unit_test(convolutions), cmocka_unit_test(means))
