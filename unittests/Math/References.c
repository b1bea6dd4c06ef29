// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the C library has no function for is put together from what it has, in
// a form that loses nothing: the test holds each to within 2^-20 units of f32
// from MPFR, where it looks.
#include "Math/References.h"

#include <math.h>

#define EXACT_1(name, call)                                                    \
  static void exact_##name(mpfr_t r, const mpfr_t x, const mpfr_t y) {         \
    (void)y;                                                                   \
    call;                                                                      \
  }
#define QUICK(name, value)                                                     \
  static void quick_##name(uint32_t n, const double *xs, const double *ys,     \
                           double *result) {                                   \
    (void)ys;                                                                  \
    for (uint32_t i = 0; i < n; i++) {                                         \
      double x = xs[i];                                                        \
      result[i] = value;                                                       \
    }                                                                          \
  }
#define QUICK_2(name, value)                                                   \
  static void quick_##name(uint32_t n, const double *xs, const double *ys,     \
                           double *result) {                                   \
    for (uint32_t i = 0; i < n; i++) {                                         \
      double x = xs[i], y = ys[i];                                             \
      result[i] = value;                                                       \
    }                                                                          \
  }
#define LIBRARY(name)                                                          \
  EXACT_1(name, mpfr_##name(r, x, MPFR_RNDN))                                  \
  QUICK(name, name(x))

LIBRARY(exp)
LIBRARY(exp2)
LIBRARY(expm1)
LIBRARY(log)
LIBRARY(log2)
LIBRARY(log10)
LIBRARY(log1p)
LIBRARY(sinh)
LIBRARY(cosh)
LIBRARY(tanh)
LIBRARY(erf)
LIBRARY(erfc)
LIBRARY(sin)
LIBRARY(cos)
LIBRARY(tan)
LIBRARY(asin)
LIBRARY(acos)
LIBRARY(atan)

static void exact_rsqrt(mpfr_t r, const mpfr_t x, const mpfr_t y) {
  (void)y;
  mpfr_rec_sqrt(r, x, MPFR_RNDN);
  if (mpfr_zero_p(x)) // IEEE 754 gives 1 / sqrt(-0) the sign of the zero.
    mpfr_setsign(r, r, mpfr_signbit(x), MPFR_RNDN);
}
QUICK(rsqrt, 1 / sqrt(x))

// 1 / (1 + e^-x).
static void exact_sigmoid(mpfr_t r, const mpfr_t x, const mpfr_t y) {
  (void)y;
  mpfr_neg(r, x, MPFR_RNDN);
  mpfr_exp(r, r, MPFR_RNDN);
  mpfr_add_ui(r, r, 1, MPFR_RNDN);
  mpfr_ui_div(r, 1, r, MPFR_RNDN);
}
QUICK(sigmoid, 1 / (1 + exp(-x)))

// Products x f(x) with f(-inf) = 0: the limit, which comes from below.
static bool at_minus_infinity(mpfr_t r, const mpfr_t x) {
  bool there = mpfr_inf_p(x) && mpfr_sgn(x) < 0;
  if (there)
    mpfr_set_zero(r, -1);
  return there;
}

static void exact_silu(mpfr_t r, const mpfr_t x, const mpfr_t y) {
  if (at_minus_infinity(r, x))
    return;
  exact_sigmoid(r, x, y);
  mpfr_mul(r, r, x, MPFR_RNDN);
}
QUICK(silu, x < -700 ? -0.0 : x / (1 + exp(-x)))

static void exact_softplus(mpfr_t r, const mpfr_t x, const mpfr_t y) {
  (void)y;
  bool positive = mpfr_sgn(x) > 0;
  mpfr_set(r, x, MPFR_RNDN);
  if (positive) // Or the exponential would leave MPFR's range.
    mpfr_neg(r, r, MPFR_RNDN);
  mpfr_exp(r, r, MPFR_RNDN);
  mpfr_log1p(r, r, MPFR_RNDN);
  if (positive)
    mpfr_add(r, r, x, MPFR_RNDN);
}
QUICK(softplus, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))

// x erfc(-x / sqrt(2)) / 2.
static void exact_gelu(mpfr_t r, const mpfr_t x, const mpfr_t y) {
  (void)y;
  if (at_minus_infinity(r, x))
    return;
  mpfr_sqrt_ui(r, 2, MPFR_RNDN);
  mpfr_div(r, x, r, MPFR_RNDN);
  mpfr_neg(r, r, MPFR_RNDN);
  mpfr_erfc(r, r, MPFR_RNDN);
  mpfr_mul(r, r, x, MPFR_RNDN);
  mpfr_div_2ui(r, r, 1, MPFR_RNDN);
}

// What rounding x / sqrt(2) lost is put back by erfc's derivative.
static double gelu(double x) {
  if (x < -50)
    return -0.0;
  if (x > 50)
    return x;
  double t = -x * M_SQRT1_2;
  double lost = fma(-x, M_SQRT1_2, -t) + x * 4.8336466567264567e-17;
  return 0.5 * x * (erfc(t) - M_2_SQRTPI * exp(-t * t) * lost);
}
QUICK(gelu, gelu(x))

// x / (1 + e^-z) with z = 2 sqrt(2 / pi) (x + 0.044715 x^3), which is
// x (1 + tanh(z / 2)) / 2.
static void exact_gelu_tanh(mpfr_t r, const mpfr_t x, const mpfr_t y) {
  (void)y;
  if (at_minus_infinity(r, x))
    return;
  mpfr_t z, constant;
  mpfr_inits2(PRECISION, z, constant, (mpfr_ptr)0);
  mpfr_sqr(z, x, MPFR_RNDN);
  mpfr_set_str(constant, "0.044715", 10, MPFR_RNDN);
  mpfr_mul(z, z, constant, MPFR_RNDN);
  mpfr_add_ui(z, z, 1, MPFR_RNDN);
  mpfr_mul(z, z, x, MPFR_RNDN);
  mpfr_const_pi(constant, MPFR_RNDN);
  mpfr_ui_div(constant, 8, constant, MPFR_RNDN);
  mpfr_sqrt(constant, constant, MPFR_RNDN);
  mpfr_mul(z, z, constant, MPFR_RNDN);
  exact_sigmoid(r, z, NULL);
  mpfr_mul(r, r, x, MPFR_RNDN);
  mpfr_clears(z, constant, (mpfr_ptr)0);
}

static double gelu_tanh(double x) {
  if (x < -50)
    return -0.0;
  if (x > 50)
    return x;
  long double wide = (long double)x;
  long double z =
      1.59576912160573071176L * wide * (1 + 0.044715L * wide * wide);
  double high = (double)z, low = (double)(z - (long double)high);
  if (high < -700)
    return -0.0;
  return x / (1 + exp(-high) * (1 - low));
}
QUICK(gelu_tanh, gelu_tanh(x))

static void exact_pow(mpfr_t r, const mpfr_t x, const mpfr_t y) {
  mpfr_pow(r, x, y, MPFR_RNDN);
}
QUICK_2(pow, pow(x, y))

// atan2(y, x), the first argument of the function being y.
static void exact_atan2(mpfr_t r, const mpfr_t x, const mpfr_t y) {
  mpfr_atan2(r, x, y, MPFR_RNDN);
}
QUICK_2(atan2, atan2(x, y))

// clang-format off
#define ROW(name, arguments, f32, f64, coarse)                                 \
  {#name, arguments, exact_##name, quick_##name, f32, f64, coarse}
const reference_t references[] = {
    ROW(exp,       1, 1.0, 1.0, 64),
    ROW(exp2,      1, 1.0, 1.0, 0),
    ROW(expm1,     1, 1.5, 0, 0),
    ROW(log,       1, 1.0, 1.0, 0),
    ROW(log2,      1, 1.6, 1.5, 0),
    ROW(log10,     1, 1.7, 0, 0),
    ROW(log1p,     1, 1.5, 0, 0),
    ROW(rsqrt,     1, 1.5, 1.5, 0),
    ROW(sigmoid,   1, 1.5, 1.5, 64),
    ROW(silu,      1, 1.8, 0, 0),
    ROW(softplus,  1, 1.7, 0, 0),
    ROW(gelu,      1, 1.9, 2.2, 2048),
    ROW(gelu_tanh, 1, 1.8, 0, 2048),
    ROW(sinh,      1, 1.8, 0, 0),
    ROW(cosh,      1, 1.5, 0, 0),
    ROW(tanh,      1, 1.6, 2.0, 64),
    ROW(erf,       1, 1.1, 1.5, 64),
    ROW(erfc,      1, 1.8, 0, 0),
    ROW(sin,       1, 1.6, 1.5, 0),
    ROW(cos,       1, 1.6, 1.5, 0),
    ROW(tan,       1, 2.0, 0, 0),
    ROW(asin,      1, 1.9, 0, 0),
    ROW(acos,      1, 1.5, 0, 0),
    ROW(atan,      1, 1.5, 0, 0),
    ROW(pow,       2, 1.6, 2.0, 0),
    ROW(atan2,     2, 1.5, 0, 0),
};
// clang-format on
const unsigned num_references = sizeof references / sizeof references[0];
