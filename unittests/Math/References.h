// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of the math library as MPFR and the C library compute them.
#ifndef HIDET_UNITTESTS_MATH_REFERENCES_H
#define HIDET_UNITTESTS_MATH_REFERENCES_H

#include <mpfr.h>
#include <stdbool.h>
#include <stdint.h>

// Bits that MPFR computes with.
enum { PRECISION = 128 };

// Of two arguments; y is ignored where a function has one.
typedef void (*exact_t)(mpfr_t result, const mpfr_t x, const mpfr_t y);
// result[i] of x[i], y[i], within a few units of f64's last place; of
// arguments that an f32 holds.
typedef void (*quick_t)(uint32_t n, const double *x, const double *y,
                        double *result);

typedef struct reference {
  const char *name;
  unsigned arguments;
  exact_t exact;
  quick_t quick;
  // Units in the last place that are promised; 0: not for that type.
  double f32, f64;
  double coarse; // Those of f32 that NAME_coarse promises; 0: there is none.
} reference_t;

extern const reference_t references[];
extern const unsigned num_references;

#endif
