// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What Facts.c and Ranges.c share; for others there is Facts.h.
#ifndef HIDET_IR_PASSES_FACTSSTATE_H
#define HIDET_IR_PASSES_FACTSSTATE_H

#include "IR/Intrinsic.h"
#include "IR/Passes/Facts.h"
#include "IR/Passes/LinearExpr.h"
#include "IR/Rewrite.h"
#include "Support/Map.h"
#include "Support/Vec.h"

typedef struct hd_var_fact {
  const hd_expr_t *value; // Of a let, where it is stable.
  hd_range_t range;
  int64_t divisor;
} hd_var_fact_t;

// An expression that lies in a range, for as long as the assumption stands.
typedef struct hd_atom_fact {
  const hd_expr_t *atom;
  hd_range_t range;
  int64_t divisor;
} hd_atom_fact_t;

typedef struct hd_condition_fact {
  const hd_expr_t *condition;
  bool holds;
} hd_condition_fact_t;

struct hd_facts {
  hd_arena_t *arena;
  hd_range_t builtins[HD_BUILTIN_COUNT];
  hd_ptr_map_t vars; // hd_var_fact_t
  int fuel;          // Nodes that a sum may still take: lets of lets grow fast.
  HD_VEC(hd_atom_fact_t) atoms;
  HD_VEC(hd_linear_t) linears; // Exact sums that are not negative.
  HD_VEC(hd_condition_fact_t) conditions;
};

// NULL where nothing was told of var.
hd_var_fact_t *hd_facts_find_var(const hd_facts_t *facts, const hd_var_t *var);

#endif
