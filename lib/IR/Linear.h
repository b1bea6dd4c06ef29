// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums of multiples of atoms, constant + factor * atom + ..., and their
// quotients and remainders: the index algebra of the compiler. An atom is
// whatever is no sum itself, of an expression (IR/Passes/LinearExpr.h) or of a
// task's term (Schedule/Terms/Affine.h).
//
// A sum has a type. Modulo 2^bits of it the sum is always equal to what it was
// made of; it is the value itself where its range fits the type, since then
// nothing wraps (hd_linear_is_exact).
#ifndef HIDET_IR_LINEAR_H
#define HIDET_IR_LINEAR_H

#include "IR/Range.h"

enum { HD_LINEAR_MAX_TERMS = 12 };

// What a kind of atoms answers. known: what whoever asks knows of values.
typedef struct hd_linear_atoms {
  bool (*equal)(const void *a, const void *b);
  hd_range_t (*range)(void *known, const void *atom);
  // A number that divides it, 0 where it is 0. NULL: 1 of all.
  int64_t (*divisor)(void *known, const void *atom);
} hd_linear_atoms_t;

typedef struct hd_linear_term {
  union {
    const void *atom;
    const struct hd_expr *expr;
    const struct hd_term *term;
  };
  int64_t factor; // Never 0.
} hd_linear_term_t;

typedef struct hd_linear {
  const hd_linear_atoms_t *atoms;
  hd_type_t type;
  int64_t constant;
  unsigned size;
  bool is_final; // As hd_linear_of() says; of other sums it is not set.
  hd_linear_term_t terms[HD_LINEAR_MAX_TERMS];
} hd_linear_t;

// The value modulo 2^bits, as the signed number nearest to zero: as constants
// and factors are kept.
static inline int64_t hd_linear_wrap(hd_type_t type, int64_t value) {
  unsigned bits = hd_type_bits(type);
  if (bits >= 64)
    return value;
  unsigned shift = 64 - bits;
  return (int64_t)((uint64_t)value << shift) >> shift;
}
// A constant. What terms there are beyond its size is not set.
static inline void hd_linear_set(hd_linear_t *sum,
                                 const hd_linear_atoms_t *atoms, hd_type_t type,
                                 int64_t value) {
  sum->atoms = atoms;
  sum->type = type;
  sum->constant = value;
  sum->size = 0;
}
// Of the same type and kind.
static inline void hd_linear_set_like(hd_linear_t *sum, const hd_linear_t *like,
                                      int64_t value) {
  hd_linear_set(sum, like->atoms, like->type, value);
}
bool hd_linear_is_zero(const hd_linear_t *sum);

// sum += factor * atom, and factor * other. False where there are too many
// terms, where a factor is too large for ranges that never overflow, and where
// numbers with a sign would wrap: the sum would be right modulo 2^bits, but an
// index that overflows (which the sanitizer looks for) would no longer be one.
bool hd_linear_add_term(hd_linear_t *sum, const void *atom, int64_t factor);
bool hd_linear_add(hd_linear_t *sum, const hd_linear_t *other, int64_t factor);
// The same terms in the same order.
bool hd_linear_equal(const hd_linear_t *a, const hd_linear_t *b);

hd_range_t hd_linear_range(void *known, const hd_linear_t *sum);
bool hd_linear_is_exact(void *known, const hd_linear_t *sum);
// Whether the sum lies in 0 .. c - 1.
bool hd_linear_is_below(void *known, const hd_linear_t *sum, int64_t c);

// sum = c * quotient + rest for c > 0: quotient takes the terms whose factor is
// a multiple of c, and the constant of rest is in 0 .. c - 1.
void hd_linear_split(const hd_linear_t *sum, int64_t c, hd_linear_t *quotient,
                     hd_linear_t *rest);

// sum = c quotient + g outer + low, where g divides c, and what is not the
// quotient is exact and not negative. g outer is a multiple of some g' that
// divides c, with 0 <= low < g': of g, or by what is known of its atoms. So
//
//   sum / c = quotient + outer / (c / g)    sum % c = outer % (c / g) g + low
//
// Where g is c there is no outer.
typedef struct hd_linear_digits {
  int64_t g;
  hd_linear_t quotient, outer, low;
} hd_linear_digits_t;

// For an exact sum that is not negative, and c > 0. False where nothing is
// found: the quotient and low are 0, and g is 1.
bool hd_linear_divide(void *known, const hd_linear_t *sum, int64_t c,
                      hd_linear_digits_t *digits);

#endif
