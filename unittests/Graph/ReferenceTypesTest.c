// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What numbers of each type are, in tasks: conversions, narrow results,
// integers that wrap, limits.
#include "ReferenceHelp.h"

#include "Support/Float.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static const char cast[] = "task cast(x: T[n]) -> y: U[n]\n"
                           "  where T in any, U in any {\n"
                           "  y[i] = U(x[i])\n}\n";

static void check_cast(const char *from, hd_scalar_t to, const double *in,
                       const double *out, size_t count) {
  hd_reference_run_t run;
  char inputs[40];
  snprintf(inputs, sizeof inputs, "%s[%zu]", from, count);
  hd_reference_begin(
      &run, &(hd_test_case_t){cast, inputs, {hd_test_type_of("U", to)}});
  hd_reference_set(&run, 0, in);
  hd_reference_compute(&run);
  hd_reference_expect(&run, 0, count, out);
  hd_reference_end(&run);
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
  hd_reference_run_t run;
  char task[200], inputs[60];
  snprintf(task, sizeof task,
           "task t(x: %s[n], y: %s[n]) -> z: %s[n] {\n  z[i] = %s\n}\n", type,
           type, type, op);
  snprintf(inputs, sizeof inputs, "%s[3] %s[3]", type, type);
  hd_reference_begin(&run, &(hd_test_case_t){task, inputs, {0}});
  hd_host_tensor_fill(&run.inputs[0], x);
  hd_host_tensor_fill(&run.inputs[1], y);
  hd_reference_compute(&run);
  EXPECT(&run, 0, expected, expected, expected);
  hd_reference_end(&run);
}

// What is not in memory is rounded as well: f8e8m0 has powers of two from
// 2^-127 on, and NaN for what is below 0; f4e2m1 has no NaN.
static void narrow_values_are_rounded(void **state) {
  (void)state;
  hd_reference_run_t run;
  hd_reference_begin(
      &run, &(hd_test_case_t){"task t(x: f32[n]) -> y: f32[n], z: f32[n] {\n"
                              "  y[i] = f32(f8e8m0(x[i]))\n"
                              "  z[i] = f32(f4e2m1(x[i]))\n}\n",
                              "f32[5]",
                              {0}});
  SET(&run, 0, -3, 0.3, 5, 0, NAN);
  hd_reference_compute(&run);
  EXPECT(&run, 0, NAN, 0.25, 4, 0x1p-127, NAN);
  EXPECT(&run, 1, -3, 0.5, 4, 0, 6);
  hd_reference_end(&run);
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
    hd_reference_run_t run;
    char text[200];
    snprintf(text, sizeof text,
             "task t(x: T[]) -> a: f64[], b: f64[] {\n"
             "  a[] = f64(largest(T))\n  b[] = f64(smallest(%s))\n}\n",
             limits[i].type);
    snprintf(text + strlen(text) + 1, 20, "%s[]", limits[i].type);
    hd_reference_begin(&run,
                       &(hd_test_case_t){text, text + strlen(text) + 1, {0}});
    hd_reference_compute(&run);
    EXPECT(&run, 0, limits[i].largest);
    EXPECT(&run, 1, limits[i].smallest);
    hd_reference_end(&run);
  }
}

HD_UNIT_TESTS(cmocka_unit_test(casts_saturate_and_wrap),
              cmocka_unit_test(narrow_values_are_rounded),
              cmocka_unit_test(arithmetic_wraps_and_rounds),
              cmocka_unit_test(types_have_limits))
