// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts share that have blocks past an extent leave early (Trim.c: the
// launches of a plan, TrimStores.c: when nothing that a block computes is
// needed, TrimPast.c: what it still has to store then).
#ifndef HIDET_FUSION_TRIM_TRIMSTATE_H
#define HIDET_FUSION_TRIM_TRIMSTATE_H

#include "Fusion/Trim/Need.h"
#include "Fusion/Trim/Spread.h"
#include "IR/Rewrite.h"

// Conditions that a store holds under: of an if around it, or the opposite of
// its condition.
typedef struct hd_trim_guard {
  const hd_expr_t *condition;
  bool holds;
  const struct hd_trim_guard *outer;
} hd_trim_guard_t;

// A kernel as one launch of it runs.
typedef struct hd_trim {
  hd_arena_t *arena;
  const hd_func_t *kernel; // Without calls.
  // For each parameter: what is needed of it (NULL: all), and whether it is an
  // input of the plan that no launch writes.
  const hd_need_t *const *needs;
  const bool *constant;
  bool poisons; // What is not needed is made NaN.
  // The parameter that an extent's vector is.
  const hd_var_t *(*vector)(void *argument, const hd_value_t *input);
  void *argument;

  hd_spreads_t spreads;
  hd_ptr_map_t lets;   // Names, and registers that hold an extent, to
                       // their values.
  hd_ptr_map_t others; // Registers that hold something else, to themselves.
  hd_ptr_map_t places; // Those before all effects: their number, from 1 on.
  const hd_trim_guard_t *guards; // Around the statement at hand.
  const hd_stmt_t *walk; // A loop over tiles, as all with its header; or NULL.
  const hd_stmt_t *within; // That, or another one, around it.
  bool leading;            // Nothing but names has come.

  // What is found. A block, or a turn of the walk, is past where all of these
  // hold.
  HD_VEC(const hd_expr_t *) conditions;
  hd_ptr_map_t kept; // Stores that are done there, too: of which constant.
  const char *why;   // It cannot be told; NULL: it can.
} hd_trim_t;

// Finds when nothing is needed.
void hd_trim_look(hd_trim_t *trim);
// Whether a loop walks over the same tiles as the one that was found.
bool hd_trim_is_walk(const hd_trim_t *trim, const hd_stmt_t *loop);

// What of some statements still has to be done then, with names of its own; of
// size 0 where that is nothing. Sets why where it cannot be taken apart.
hd_block_t hd_trim_past(hd_trim_t *trim, hd_block_t block);

#endif
