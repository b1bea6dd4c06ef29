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

HD_UNIT_TESTS(cmocka_unit_test(broadcasts), cmocka_unit_test(transposes),
              cmocka_unit_test(softmax))
