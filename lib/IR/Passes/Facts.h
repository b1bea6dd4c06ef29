// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known about values at a place of a program: ranges, divisors, and
// conditions that hold. A pass walks a function with a hd_facts_t beside it: it
// tells of lets, loops and conditions on its way in, and takes them back on its
// way out. Answers speak of mathematical integers: a range is right for the
// value as it is after any wrap.
#ifndef HIDET_IR_PASSES_FACTS_H
#define HIDET_IR_PASSES_FACTS_H

#include "IR/Effects.h"
#include "IR/Range.h"

typedef struct hd_facts hd_facts_t;

// func gives the ranges of parameters and builtins (its launch clauses). All
// memory comes from arena.
hd_facts_t *hd_facts_create(hd_arena_t *arena, const hd_func_t *func);
hd_arena_t *hd_facts_arena(const hd_facts_t *facts);

typedef struct hd_facts_mark {
  size_t atoms, linears, conditions;
} hd_facts_mark_t;

// Assumptions made after a mark are forgotten by the reset to it.
hd_facts_mark_t hd_facts_mark(const hd_facts_t *facts);
void hd_facts_reset(hd_facts_t *facts, hd_facts_mark_t mark);

// The same facts but for conditions: what a place would be known by if nothing
// had been tested on the way to it. Lives in the facts' arena, and only until
// the next let or loop is told of.
hd_facts_t *hd_facts_unconditional(const hd_facts_t *facts);

// From here on var is value.
void hd_facts_let(hd_facts_t *facts, const hd_var_t *var,
                  const hd_expr_t *value);
// Inside the body of a loop. step may be NULL.
void hd_facts_loop(hd_facts_t *facts, const hd_var_t *var,
                   const hd_expr_t *first, const hd_expr_t *limit,
                   const hd_expr_t *step);
// From here on the condition is known to be `holds`.
void hd_facts_assume(hd_facts_t *facts, const hd_expr_t *condition, bool holds);

// The values that an integer or bool may take.
hd_range_t hd_facts_range(hd_facts_t *facts, const hd_expr_t *e);
// A number that divides every value that e takes; 0 where e is always 0.
int64_t hd_facts_divisor(hd_facts_t *facts, const hd_expr_t *e);
bool hd_facts_nonnegative(hd_facts_t *facts, const hd_expr_t *e);
// The one value that e can take.
bool hd_facts_constant(hd_facts_t *facts, const hd_expr_t *e, int64_t *value);
// 1: the condition holds; 0: it does not; -1: not known.
int hd_facts_decide(hd_facts_t *facts, const hd_expr_t *condition);
// What a let stands for, where the expression means the same here as there
// (it reads no memory); NULL otherwise.
const hd_expr_t *hd_facts_value(hd_facts_t *facts, const hd_var_t *var);

#endif
