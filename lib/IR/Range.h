// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic on ranges of integers: of expressions (IR/Passes/Facts.h), and of
// the terms of tasks (Schedule/Terms/Affine.h, Schedule/Translate/Translate.h).
// Pure functions on mathematical integers: whoever asks says by a type's range
// whether a result may have wrapped.
#ifndef HIDET_IR_RANGE_H
#define HIDET_IR_RANGE_H

#include "IR/Expr.h"

// Wide enough for sums and products of any two integers of the language.
typedef __int128 hd_wide_t;

typedef struct hd_range {
  hd_wide_t least, greatest; // Inclusive.
} hd_range_t;

static inline bool hd_range_inside(hd_range_t inner, hd_range_t outer) {
  return inner.least >= outer.least && inner.greatest <= outer.greatest;
}

static inline hd_range_t hd_range_one(int64_t value) {
  return (hd_range_t){value, value};
}

// What the type holds; of a float, of what is no number: what an i64 holds.
extern const hd_range_t hd_scalar_ranges[HD_SCALAR_COUNT];
static inline hd_range_t hd_type_range(hd_type_t type) {
  return hd_scalar_ranges[type.scalar];
}
// The least range that holds both.
static inline hd_range_t hd_range_hull(hd_range_t a, hd_range_t b) {
  return (hd_range_t){a.least < b.least ? a.least : b.least,
                      a.greatest > b.greatest ? a.greatest : b.greatest};
}
// What is in both. Where nothing is, the facts contradict each other, and the
// place is never reached: any range will do, it is a.
static inline hd_range_t hd_range_meet(hd_range_t a, hd_range_t b) {
  hd_range_t both = {a.least > b.least ? a.least : b.least,
                     a.greatest < b.greatest ? a.greatest : b.greatest};
  return both.least <= both.greatest ? both : a;
}
// Of a binary operator's result, before any wrap; otherwise where there is no
// telling. Divisions are towards zero.
hd_range_t hd_range_operate(hd_expr_kind_t op, hd_range_t a, hd_range_t b,
                            hd_range_t otherwise);
// Of a comparison: 1 always, 0 never, -1 as it comes.
int hd_range_compare(hd_expr_kind_t op, hd_range_t a, hd_range_t b);
// The comparison that holds where this one does not.
hd_expr_kind_t hd_comparison_opposite(hd_expr_kind_t op);

#endif
