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

// The range of an expression, as long as nothing else is known.
typedef struct hd_known_range {
  const hd_expr_t *of;
  uint64_t state;
  hd_range_t range;
} hd_known_range_t;

enum { HD_KNOWN_RANGES = 64 };

struct hd_facts {
  hd_arena_t *arena;
  hd_range_t builtins[HD_BUILTIN_COUNT];
  hd_ptr_map_t vars; // hd_var_fact_t
  int fuel;          // Nodes that a sum may still take: lets of lets grow fast.
  bool is_whole;     // What a sum took as an atom, another mode takes apart.
  HD_VEC(hd_atom_fact_t) atoms;
  HD_VEC(hd_linear_t) linears; // Exact sums that are not negative.
  HD_VEC(hd_condition_fact_t) conditions;
  // How often what ranges follow from has changed; and those found since, by
  // address, for each is asked for with every expression that it is part of.
  uint64_t state;
  hd_known_range_t *ranges;
};

void hd_facts_assume_atom(hd_facts_t *facts, hd_atom_fact_t fact);

// NULL where nothing was told of var.
hd_var_fact_t *hd_facts_find_var(const hd_facts_t *facts, const hd_var_t *var);

#endif
