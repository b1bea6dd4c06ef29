// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of the math library as MPFR and the C library compute them,
// and how far a result is from them.
#ifndef HIDET_UNITTESTS_MATH_REFERENCES_H
#define HIDET_UNITTESTS_MATH_REFERENCES_H

#include <math.h>
#include <mpfr.h>
#include <stdbool.h>

enum { PRECISION = 140 };

// Of two arguments; y is ignored where a function has one.
typedef void (*exact_t)(mpfr_t result, const mpfr_t x, const mpfr_t y);
typedef double (*quick_t)(double x, double y);

typedef struct reference {
  const char *name;
  unsigned arguments;
  exact_t exact;
  quick_t quick; // Within a few units of f64's last place.
  // Units in the last place that are promised; 0: not for that type.
  double f32, f64;
  bool half; // There for f16 and bf16.
} reference_t;

#define EXACT_1(name, call)                                                    \
  static void exact_##name(mpfr_t r, const mpfr_t x, const mpfr_t y) {         \
    (void)y;                                                                   \
    call;                                                                      \
  }
#define QUICK_1(name, value)                                                   \
  static double quick_##name(double x, double y) {                             \
    (void)y;                                                                   \
    return value;                                                              \
  }
#define LIBRARY(name)                                                          \
  EXACT_1(name, mpfr_##name(r, x, MPFR_RNDN))                                  \
  QUICK_1(name, name(x))

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
QUICK_1(rsqrt, 1 / sqrt(x))

// 1 / (1 + e^-x).
static void exact_sigmoid(mpfr_t r, const mpfr_t x, const mpfr_t y) {
  (void)y;
  mpfr_neg(r, x, MPFR_RNDN);
  mpfr_exp(r, r, MPFR_RNDN);
  mpfr_add_ui(r, r, 1, MPFR_RNDN);
  mpfr_ui_div(r, 1, r, MPFR_RNDN);
}
QUICK_1(sigmoid, 1 / (1 + exp(-x)))

static void exact_silu(mpfr_t r, const mpfr_t x, const mpfr_t y) {
  if (mpfr_inf_p(x) && mpfr_sgn(x) < 0) {
    mpfr_set_ui(r, 0, MPFR_RNDN);
    return;
  }
  exact_sigmoid(r, x, y);
  mpfr_mul(r, r, x, MPFR_RNDN);
}
QUICK_1(silu, x == -INFINITY ? 0 : x / (1 + exp(-x)))

static void exact_softplus(mpfr_t r, const mpfr_t x, const mpfr_t y) {
  (void)y;
  mpfr_exp(r, x, MPFR_RNDN);
  mpfr_log1p(r, r, MPFR_RNDN);
}
QUICK_1(softplus, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))

static void exact_pow(mpfr_t r, const mpfr_t x, const mpfr_t y) {
  mpfr_pow(r, x, y, MPFR_RNDN);
}
static double quick_pow(double x, double y) { return pow(x, y); }

// atan2(y, x), the first argument of the function being y.
static void exact_atan2(mpfr_t r, const mpfr_t x, const mpfr_t y) {
  mpfr_atan2(r, x, y, MPFR_RNDN);
}
static double quick_atan2(double x, double y) { return atan2(x, y); }

// clang-format off
static const reference_t references[] = {
    // name, arguments, exact, quick, f32, f64, half
    {"exp",      1, exact_exp,      quick_exp,      1.0, 1.0, true},
    {"exp2",     1, exact_exp2,     quick_exp2,     1.0, 1.0, true},
    {"expm1",    1, exact_expm1,    quick_expm1,    2.0, 0,   true},
    {"log",      1, exact_log,      quick_log,      1.0, 1.0, true},
    {"log2",     1, exact_log2,     quick_log2,     1.6, 1.5, true},
    {"log10",    1, exact_log10,    quick_log10,    1.7, 0,   true},
    {"log1p",    1, exact_log1p,    quick_log1p,    1.5, 0,   true},
    {"rsqrt",    1, exact_rsqrt,    quick_rsqrt,    1.5, 1.5, true},
    {"sigmoid",  1, exact_sigmoid,  quick_sigmoid,  1.5, 1.5, true},
    {"silu",     1, exact_silu,     quick_silu,     2.5, 0,   true},
    {"softplus", 1, exact_softplus, quick_softplus, 2.0, 0,   true},
    {"sinh",     1, exact_sinh,     quick_sinh,     2.0, 0,   true},
    {"cosh",     1, exact_cosh,     quick_cosh,     1.5, 0,   true},
    {"tanh",     1, exact_tanh,     quick_tanh,     1.7, 2.0, true},
    {"erf",      1, exact_erf,      quick_erf,      1.5, 1.5, true},
    {"sin",      1, exact_sin,      quick_sin,      1.6, 1.5, true},
    {"cos",      1, exact_cos,      quick_cos,      1.6, 1.5, true},
    {"tan",      1, exact_tan,      quick_tan,      2.0, 0,   true},
    {"asin",     1, exact_asin,     quick_asin,     2.0, 0,   true},
    {"acos",     1, exact_acos,     quick_acos,     1.5, 0,   true},
    {"atan",     1, exact_atan,     quick_atan,     1.5, 0,   true},
    {"pow",      2, exact_pow,      quick_pow,      1.5, 0,   false},
    {"atan2",    2, exact_atan2,    quick_atan2,    1.5, 0,   false},
};
// clang-format on
enum { NUM_REFERENCES = sizeof references / sizeof references[0] };

// A floating type: bits of the significand, exponents of the least normal and
// of the largest number.
typedef struct format {
  const char *name;
  unsigned bytes;
  int digits, least, greatest;
} format_t;

static const format_t f32_format = {"f32", 4, 24, -126, 127};
static const format_t f64_format = {"f64", 8, 53, -1022, 1023};
static const format_t f16_format = {"f16", 2, 11, -14, 15};
static const format_t bf16_format = {"bf16", 2, 8, -126, 127};

// What the type makes of numbers of and past 2^(greatest + 1): infinity, which
// is as good as any result that would round to it.
static double ulp_special(double got, double want, const format_t *f) {
  if (isnan(got) || isnan(want))
    return isnan(got) && isnan(want) ? 0 : INFINITY;
  double over = ldexp(1, f->greatest + 1 > 1023 ? 1023 : f->greatest + 1);
  double step = ldexp(1, f->greatest + 1 - f->digits);
  if (isinf(got) && isinf(want))
    return signbit(got) == signbit(want) ? 0 : INFINITY;
  if (isinf(got) && f->greatest < 1023) {
    double excess = (over - fabs(want)) / step;
    return signbit(got) != signbit(want) ? INFINITY : excess > 0 ? excess : 0;
  }
  if (got == 0 && want == 0)
    return signbit(got) == signbit(want) ? 0 : INFINITY;
  return INFINITY;
}

static double last_place(double want, const format_t *f) {
  int exponent;
  frexp(want, &exponent);
  exponent = exponent - 1 < f->least ? f->least : exponent - 1;
  return ldexp(1, exponent - f->digits + 1);
}

// |got - want| in units of want's last place, where want is far more precise
// than the type. A wrong sign of zero, NaN or infinity counts as infinite.
static double ulp_quick(double got, double want, const format_t *f) {
  if (isnan(got) || isnan(want) || isinf(got) || (got == 0 && want == 0))
    return ulp_special(got, want, f);
  if (isinf(want))
    return INFINITY;
  return fabs(got - want) / last_place(want, f);
}

// The same against MPFR.
static double ulp_exact(double got, double x, double y, const reference_t *row,
                        const format_t *f) {
  mpfr_t a, b, r, d;
  mpfr_inits2(PRECISION, a, b, r, d, (mpfr_ptr)0);
  mpfr_set_d(a, x, MPFR_RNDN);
  mpfr_set_d(b, y, MPFR_RNDN);
  row->exact(r, a, b);
  double want = mpfr_get_d(r, MPFR_RNDN), error;
  if (isnan(got) || isnan(want) || isinf(got) || isinf(want) ||
      (got == 0 && want == 0)) {
    error = ulp_special(got, want, f);
  } else {
    mpfr_sub_d(d, r, got, MPFR_RNDN);
    error = fabs(mpfr_get_d(d, MPFR_RNDN)) / last_place(want, f);
    // A quotient that underflows, of f64 subnormals.
    if (want != 0 && fabs(want) < 1e-290) {
      mpfr_mul_2ui(d, d, 1074, MPFR_RNDN);
      error = fabs(mpfr_get_d(d, MPFR_RNDN)) / ldexp(last_place(want, f), 1074);
    }
  }
  mpfr_clears(a, b, r, d, (mpfr_ptr)0);
  return error;
}

#endif
