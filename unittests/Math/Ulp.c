// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Math/Ulp.h"
#include "Support/Float.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

const format_t f64_format = {"f64", 8, 53, -1022, 1023};
const format_t f32_format = {"f32", 4, 24, -126, 127};
const format_t f16_format = {"f16", 2, 11, -14, 15};
const format_t bf16_format = {"bf16", 2, 8, -126, 127};

double value_of(const format_t *f, const void *at) {
  double wide;
  float single;
  uint16_t half;
  switch (f->bytes) {
  case 8:
    memcpy(&wide, at, sizeof wide);
    return wide;
  case 4:
    memcpy(&single, at, sizeof single);
    return (double)single;
  default:
    memcpy(&half, at, sizeof half);
    return (double)(f == &f16_format ? hd_f16_to_f32(half)
                                     : hd_bf16_to_f32(half));
  }
}

void values_of(const format_t *f, uint32_t n, const void *data,
               double *values) {
  const char *at = data;
  if (f->bytes == 4)
    for (uint32_t i = 0; i < n; i++) {
      float value;
      memcpy(&value, at + i * sizeof value, sizeof value);
      values[i] = (double)value;
    }
  else
    for (uint32_t i = 0; i < n; i++)
      values[i] = value_of(f, at + (size_t)i * f->bytes);
}

double last_place(double want, const format_t *f) {
  int exponent;
  frexp(want, &exponent);
  exponent = exponent - 1 < f->least ? f->least : exponent - 1;
  return ldexp(1, exponent - f->digits + 1);
}

// Whether the difference says how far they are.
static bool is_ordinary(double got, double want) {
  return isfinite(got) && isfinite(want) &&
         (got != 0 || signbit(got) == signbit(want));
}

static double special_error(double got, double want, const format_t *f) {
  if (isnan(got) || isnan(want))
    return isnan(got) && isnan(want) ? 0 : INFINITY;
  if (!isinf(got) || signbit(got) != signbit(want))
    return INFINITY;
  if (isinf(want))
    return 0;
  // What rounds to infinity lies half a unit below 2^(greatest + 1), or more.
  double step = ldexp(1, f->greatest + 1 - f->digits);
  double below = ldexp(1, f->greatest) - fabs(want) / 2;
  return below > 0 ? 2 * below / step : 0;
}

double ulp_error(double got, double want, const format_t *f) {
  if (!is_ordinary(got, want))
    return special_error(got, want, f);
  return fabs(got - want) / last_place(want, f);
}

double ulp_error_exact(double got, const mpfr_t want, const format_t *f) {
  double near = mpfr_get_d(want, MPFR_RNDN);
  if (!is_ordinary(got, near))
    return special_error(got, near, f);
  mpfr_t difference;
  mpfr_init2(difference, mpfr_get_prec(want));
  mpfr_sub_d(difference, want, got, MPFR_RNDN);
  int exponent;
  frexp(near, &exponent);
  if (near == 0 || exponent - 1 < f->least)
    exponent = f->least + 1;
  mpfr_mul_2si(difference, difference, f->digits - exponent, MPFR_RNDN);
  double error = fabs(mpfr_get_d(difference, MPFR_RNDN));
  mpfr_clear(difference);
  return error;
}

// 1 / last_place(want), from want's bits: a power of two.
static inline double inverse_place(double want, const format_t *f) {
  uint64_t bits;
  memcpy(&bits, &want, sizeof bits);
  int64_t exponent = (int64_t)(bits >> 52 & 0x7ff) - 1023;
  exponent = exponent < f->least ? f->least : exponent;
  bits = (uint64_t)(1023 - (exponent - f->digits + 1)) << 52;
  double inverse;
  memcpy(&inverse, &bits, sizeof inverse);
  return inverse;
}

void ulp_errors(uint32_t n, const double *got, const double *want,
                float *errors, const format_t *f) {
  const format_t format = *f; // In registers.
  bool all_ordinary = true;
  for (uint32_t i = 0; i < n; i++) {
    double error = fabs(got[i] - want[i]) * inverse_place(want[i], &format);
    // Not so: an infinity or NaN, or maybe a zero of the wrong sign.
    all_ordinary &= (error < 1e30) & (got[i] != 0);
    errors[i] = (float)error;
  }
  if (all_ordinary)
    return;
  for (uint32_t i = 0; i < n; i++)
    if (!(errors[i] < 1e30F) || got[i] == 0)
      errors[i] = (float)ulp_error(got[i], want[i], f);
}
