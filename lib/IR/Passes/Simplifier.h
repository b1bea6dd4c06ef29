// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the files of pass simplify share. Simplify.c walks statements,
// SimplifyExpr.c has the rules for expressions, SimplifyCast.c those for
// conversions, SimplifyIndex.c those for sums, quotients and remainders.
#ifndef HIDET_IR_PASSES_SIMPLIFIER_H
#define HIDET_IR_PASSES_SIMPLIFIER_H

#include "IR/Passes/Facts.h"
#include "IR/Passes/LinearExpr.h"
#include "IR/Rewrite.h"
#include "Support/Map.h"

typedef struct hd_simplifier {
  hd_budget_t *budget;
  hd_arena_t *arena;   // Of the module: results.
  hd_arena_t *scratch; // Of the pass.
  hd_facts_t *facts;
  hd_ptr_map_t values; // Variables to the expressions that replace them.
  bool resolve;        // Accesses become linear: pass resolve-layouts.
  bool vectorize;      // Loops become accesses of vectors: pass vectorize.
  unsigned depth;      // Of loops around the place.
  hd_ptr_map_t levels; // Variables to hd_level_t's.
} hd_simplifier_t;

// e with variables replaced and all rules applied; e itself for no change.
const hd_expr_t *hd_simplify_expr(hd_simplifier_t *s, const hd_expr_t *e);
// The rules for one node whose operands are simplified.
const hd_expr_t *hd_simplify_node(hd_simplifier_t *s, const hd_expr_t *e);
// Those of conversions.
const hd_expr_t *hd_simplify_cast(hd_simplifier_t *s, const hd_expr_t *e);
// Those of min and max of floats.
const hd_expr_t *hd_simplify_clamp(hd_simplifier_t *s, const hd_expr_t *e);
// Those of + and - of a float that is a clamped integer, and a constant.
const hd_expr_t *hd_simplify_shifted(hd_simplifier_t *s, const hd_expr_t *e);
// Those of integer + - * / % << >> & ^.
const hd_expr_t *hd_simplify_index(hd_simplifier_t *s, const hd_expr_t *e);

// How often a variable changes: the depth of the loop that it changes with, 0
// for values of the launch; beyond HD_LEVEL_UNROLLED where that loop is
// unrolled, so that the value is a constant in each copy.
enum { HD_LEVEL_UNROLLED = 1000 };
void hd_simplify_set_level(hd_simplifier_t *s, const hd_var_t *var,
                           unsigned level);
unsigned hd_simplify_level(hd_simplifier_t *s, const hd_expr_t *e);

// The offset in its tensor's storage of an access at indices.
const hd_expr_t *hd_resolve_offset(hd_simplifier_t *s, const hd_var_t *tensor,
                                   const hd_expr_t *const *indices);
// An access as a linear one; a LOADELSE tests its indices.
const hd_expr_t *hd_resolve_access(hd_simplifier_t *s, const hd_expr_t *e);
// An intrinsic's matrix, whose indices are not simplified yet: as a linear one,
// without the layout's swizzle.
const hd_expr_t *hd_resolve_matrix(hd_simplifier_t *s, const hd_expr_t *e);

// A ?: whose tests x >= 0 && x < y are one comparison of unsigned numbers each.
const hd_expr_t *hd_resolve_select(hd_simplifier_t *s, const hd_expr_t *e);

// What takes the place of a loop goes to out; false, and nothing, where it
// stays.
bool hd_vectorize_loop(hd_simplifier_t *s, const hd_stmt_t *loop,
                       hd_stmt_list_t *out);

// Whether all of a loop would be one vector each: what it stores, what it loads
// (fixed: or elements that are the same each time), and its conditions. Of s,
// facts and memory are used.
bool hd_loop_is_vector(hd_simplifier_t *s, const hd_stmt_t *loop, bool fixed);

// The walk over a function that three passes share.
typedef enum hd_simplify_mode {
  HD_SIMPLIFY_ALONE,
  HD_SIMPLIFY_AND_VECTORIZE,
  HD_SIMPLIFY_AND_RESOLVE,
} hd_simplify_mode_t;
const hd_func_t *hd_simplify_func(hd_module_t *module, const hd_func_t *func,
                                  hd_simplify_mode_t mode);

// How much work an expression is, roughly in instructions.
unsigned hd_expr_cost(const hd_expr_t *e);

#endif
