// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements that are read or written where data, or a scan, says.
#include "ReferenceHelp.h"

#include <math.h>
#include <string.h>

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
  hd_reference_run_t run;
  hd_reference_begin(&run, &(hd_test_case_t){scans, "i32[2, 4]", {0}});
  SET(&run, 0, 1, 2, 3, 4, -1, 10, 100, 1000);
  hd_reference_compute(&run);
  EXPECT(&run, 0, 1, 3, 6, 10, -1, 9, 109, 1109);
  EXPECT(&run, 1, 0, 1, 3, 6, 0, -1, 9, 109);
  EXPECT(&run, 2, 10, 9, 7, 4, 1109, 1110, 1100, 1000);
  EXPECT(&run, 3, 9, 7, 4, 0, 1110, 1100, 1000, 0);
  EXPECT(&run, 4, 1, 2, 3, 4, 0, 12, 103, 1004);
  hd_reference_end(&run);
  hd_reference_begin(&run, &(hd_test_case_t){scans, "f64[300, 301]", {0}});
  hd_host_tensor_fill(&run.inputs[0], 1);
  hd_reference_compute(&run);
  for (int i = 0; i < 300; i++)
    for (int j = 0; j < 301; j++) {
      double expected[] = {j + 1, j, 301 - j, 300 - j, i + 1};
      for (int n = 0; n < 5; n++)
        assert_true(hd_host_tensor_get(&run.outputs[n], i * 301 + j) ==
                    expected[n]);
    }
  hd_reference_end(&run);
  // A body that varies with what is around it; a position that is computed; a
  // tuple.
  hd_reference_begin(
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
  hd_reference_compute(&run);
  EXPECT(&run, 0, 1, 6, 18, 40);
  assert_true(hd_host_tensor_get_int(&run.outputs[1], 0) == 2);
  assert_true(hd_host_tensor_get_int(&run.outputs[1], 1) == INT64_MIN);
  assert_true(hd_host_tensor_get_int(&run.outputs[1], 2) == 4);
  assert_true(hd_host_tensor_get_int(&run.outputs[1], 3) == 1);
  EXPECT(&run, 2, 4, 4, 4, 4);
  EXPECT(&run, 3, 3, 3, 3, 3);
  hd_reference_end(&run);
}

static void scatters_combine(void **state) {
  (void)state;
  hd_reference_run_t run;
  hd_reference_begin(
      &run,
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
  hd_reference_compute(&run);
  EXPECT(&run, 0, 13, 24, 30, 40, 56, 68);
  EXPECT(&run, 1, 3, 4, 30, 40, 1, 2);
  EXPECT(&run, 2, 3, 4, 30, 40, 5, 6);
  EXPECT(&run, 3, 3, -INFINITY, 5);
  EXPECT(&run, 4, 74, 7, 726);
  hd_reference_end(&run);
}

static void gathers_look_where_data_says(void **state) {
  (void)state;
  hd_reference_run_t run;
  static const char gather[] =
      "task gather(x: T[n, m], index: i32[k]) -> y: T[k, m], z: T[k, m]\n"
      "  where T in any {\n"
      "  z[i, j] = x[i64(index[i]) + 5, j] else x[0, j]\n"
      "  y[i, j] = x[index[i] < 0 ? i64(index[i]) + n : i64(index[i]), j]\n}\n";
  hd_reference_begin(&run, &(hd_test_case_t){gather, "u16[3, 2] i32[2]", {0}});
  SET(&run, 0, 1, 2, 3, 4, 65535, 6);
  SET(&run, 1, -1, 1);
  hd_reference_compute(&run);
  EXPECT(&run, 0, 65535, 6, 3, 4);
  EXPECT(&run, 1, 1, 2, 1, 2);
  hd_reference_end(&run);
  hd_reference_begin(&run, &(hd_test_case_t){gather, "bool[3, 2] i32[2]", {0}});
  SET(&run, 0, 1, 0, 0, 0, 0, 1);
  SET(&run, 1, 2, -4);
  assert_false(hd_reference_evaluate(&run));
  assert_int_equal(run.context.diags.first->code, HD_E0708);
  assert_string_equal(run.context.diags.first->message,
                      "assertion failed: gather: 'x' is read at [-1, 0], "
                      "outside of its shape [3, 2]");
  assert_null(run.outputs[0].data);
  hd_reference_end(&run);
}

static void only_what_is_needed_is_read(void **state) {
  (void)state;
  hd_reference_run_t run;
  // Each access would be outside where it is not asked for.
  hd_reference_begin(
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
  hd_reference_compute(&run);
  EXPECT(&run, 0, -1, 1, 2, 3);
  EXPECT(&run, 1, 1, 1, 1, 0);
  EXPECT(&run, 2, 3, 4, 2, 1);
  EXPECT(&run, 3, 6, 5, 3, 0);
  hd_reference_end(&run);
  hd_reference_begin(
      &run, &(hd_test_case_t){"task t(x: f32[n]) -> a: f32[n] {\n"
                              "  a[i] = x[i] > 1.0 ? x[i + 1] : 0\n}\n",
                              "f32[3]",
                              {0}});
  SET(&run, 0, 1, 2, 3);
  assert_false(hd_reference_evaluate(&run));
  assert_string_equal(run.context.diags.first->message,
                      "assertion failed: t: 'x' is read at [3], outside of its "
                      "shape [3]");
  hd_reference_end(&run);
}

HD_UNIT_TESTS(cmocka_unit_test(scans_have_four_parts),
              cmocka_unit_test(scatters_combine),
              cmocka_unit_test(gathers_look_where_data_says),
              cmocka_unit_test(only_what_is_needed_is_read))
