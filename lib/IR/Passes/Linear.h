// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integer expressions as sums: constant + factor * atom + ... An atom is
// whatever is no sum itself. Modulo 2^bits of the type a sum is always equal to
// its expression; it is the value itself where its range fits the type, since
// then nothing wraps (hd_linear_is_exact).
#ifndef HIDET_IR_PASSES_LINEAR_H
#define HIDET_IR_PASSES_LINEAR_H

#include "IR/Passes/Facts.h"

enum { HD_LINEAR_MAX_TERMS = 12 };

typedef struct hd_linear_term {
  const hd_expr_t *atom;
  int64_t factor; // Never 0.
} hd_linear_term_t;

typedef struct hd_linear {
  hd_type_t type;
  int64_t constant;
  unsigned size;
  hd_linear_term_t terms[HD_LINEAR_MAX_TERMS];
} hd_linear_t;

typedef enum hd_linear_mode {
  HD_LINEAR_SHALLOW, // Products of a sum and a constant are atoms' multiples.
  HD_LINEAR_DEEP,    // They are multiplied out.
  HD_LINEAR_ONCE,    // And lets are replaced by what they stand for,
  HD_LINEAR_EXPAND,  // and the lets in that.
} hd_linear_mode_t;

// False where e is no integer, has effects, or has too many terms. Shifts right
// and masks of values that are not negative appear as divisions and remainders.
bool hd_linear_of(hd_facts_t *facts, const hd_expr_t *e, hd_linear_mode_t mode,
                  hd_linear_t *out);
// sum += factor * other; false where there are too many terms.
bool hd_linear_add(hd_linear_t *sum, const hd_linear_t *other, int64_t factor);
// The same terms in the same order.
bool hd_linear_equal(const hd_linear_t *a, const hd_linear_t *b);
// sum = c * quotient + rest for c > 0: quotient takes the terms whose factor is
// a multiple of c, and the constant of rest is in 0 .. c - 1.
void hd_linear_split(const hd_linear_t *sum, int64_t c, hd_linear_t *quotient,
                     hd_linear_t *rest);
// Whether the sum lies in 0 .. c - 1.
bool hd_linear_is_below(hd_facts_t *facts, const hd_linear_t *sum, int64_t c);
hd_range_t hd_linear_range(hd_facts_t *facts, const hd_linear_t *sum);
bool hd_linear_is_exact(hd_facts_t *facts, const hd_linear_t *sum);
// The sum as an expression: terms in their order, the constant last.
const hd_expr_t *hd_linear_build(hd_facts_t *facts, hd_arena_t *arena,
                                 const hd_linear_t *sum);

// a / c and a % c for a >= 0 and c > 0; shifts and masks for powers of two.
const hd_expr_t *hd_build_div(hd_arena_t *arena, const hd_expr_t *a, int64_t c);
const hd_expr_t *hd_build_mod(hd_arena_t *arena, const hd_expr_t *a, int64_t c);

#endif
