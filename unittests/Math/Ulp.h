// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Floating types, and how far a result is from the truth in units of its last
// place. A NaN, infinity or zero in another value's place, or a zero of the
// wrong sign, is infinitely far; an infinity stands for what would round to it.
#ifndef HIDET_UNITTESTS_MATH_ULP_H
#define HIDET_UNITTESTS_MATH_ULP_H

#include <mpfr.h>
#include <stdint.h>

// Bits of the significand, exponents of the least normal and of the largest
// number.
typedef struct format {
  const char *name;
  unsigned bytes;
  int digits, least, greatest;
} format_t;

extern const format_t f64_format, f32_format, f16_format, bf16_format;

// The type's value at `at`.
double value_of(const format_t *f, const void *at);
// Of n values in a row.
void values_of(const format_t *f, uint32_t n, const void *data, double *values);

// Of want's last place; the least subnormal's where want is smaller.
double last_place(double want, const format_t *f);

// |got - want| in these units, where want is far more precise than the type.
double ulp_error(double got, double want, const format_t *f);
// The same of a result that is known beyond f64.
double ulp_error_exact(double got, const mpfr_t want, const format_t *f);

// errors[i] = ulp_error(got[i], want[i], f), quickly; of f32 and less.
void ulp_errors(uint32_t n, const double *got, const double *want,
                float *errors, const format_t *f);

#endif
