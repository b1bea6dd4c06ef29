// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integer expressions as sums (IR/Linear.h) whose atoms are expressions. What
// is known of them, where a function there asks, is a hd_facts_t.
#ifndef HIDET_IR_PASSES_LINEAREXPR_H
#define HIDET_IR_PASSES_LINEAREXPR_H

#include "IR/Linear.h"
#include "IR/Passes/Facts.h"

typedef enum hd_linear_mode {
  HD_LINEAR_SHALLOW, // Products of a sum and a constant are atoms' multiples.
  HD_LINEAR_DEEP,    // They are multiplied out.
  HD_LINEAR_ONCE,    // And lets are replaced by what they stand for,
  HD_LINEAR_EXPAND,  // and the lets in that.
} hd_linear_mode_t;

// False where e is no integer, has effects, or has too many terms. Shifts right
// and masks of values that are not negative appear as divisions and remainders.
// out->is_final: a mode further down the list gives the same sum.
bool hd_linear_of(hd_facts_t *facts, const hd_expr_t *e, hd_linear_mode_t mode,
                  hd_linear_t *out);
// An expression as it is.
void hd_linear_of_atom(const hd_expr_t *atom, hd_linear_t *out);
// Whether the sum, which is exact, is proven to be at least 0, by a condition,
// too.
bool hd_facts_nonnegative_sum(hd_facts_t *facts, const hd_linear_t *sum);
// The sum as an expression: terms in their order, the constant last.
const hd_expr_t *hd_linear_build(hd_facts_t *facts, hd_arena_t *arena,
                                 const hd_linear_t *sum);

// a / c and a % c for a >= 0 and c > 0; shifts and masks for powers of two.
const hd_expr_t *hd_build_div(hd_arena_t *arena, const hd_expr_t *a, int64_t c);
const hd_expr_t *hd_build_mod(hd_arena_t *arena, const hd_expr_t *a, int64_t c);

#endif
