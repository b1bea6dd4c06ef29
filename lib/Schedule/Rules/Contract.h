// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the rule for sums of products share (Contract.c: the
// kernel, ContractFind.c: what is one, ContractCopy.c: its tiles in shared
// memory).
#ifndef HIDET_SCHEDULE_RULES_CONTRACT_H
#define HIDET_SCHEDULE_RULES_CONTRACT_H

#include "Schedule/Rules/Rules.h"

// Steps along k. Rows in shared memory are padded, which keeps the stores of
// threads that differ in k off each other's banks.
enum { HD_CONTRACT_STEP = 16, HD_CONTRACT_PADDING = 4, HD_MAX_SHARE = 64 };

// Some indices as one axis.
typedef struct hd_axis {
  const hd_index_t *indices[HD_MAX_RANK];
  unsigned count;
  int64_t size;
} hd_axis_t;

typedef struct hd_contraction {
  const hd_definition_t *d;
  hd_reduced_t reduced;
  const hd_term_t *sum;   // The reduction.
  const hd_term_t *a, *b; // What is multiplied.
  hd_axis_t batch, m, n, k;
  bool whole;                      // A step is along the last of k alone.
  int64_t bm, bn, tm, tn, threads; // Tiles of a block and of a thread.
} hd_contraction_t;

// A tile of one operand: rows along m or n.
typedef struct hd_operand_tile {
  const hd_term_t *term;
  const hd_axis_t *axis;
  const hd_var_t *shared; // [HD_CONTRACT_STEP, rows + HD_CONTRACT_PADDING]
  int64_t rows;
  const hd_expr_t *first; // Row of the tile.
  bool k_is_fast;         // Neighbouring threads differ in k.
} hd_operand_tile_t;

typedef struct hd_product {
  hd_kernel_draft_t draft;
  hd_contraction_t c;
  hd_operand_tile_t tiles[2];
} hd_product_t;

// What an axis' indices are at one place of a tile.
typedef struct hd_axis_place {
  const hd_expr_t *number; // In the tile,
  const hd_expr_t *at;     // and in the axis.
  const hd_expr_t *values[HD_MAX_RANK];
} hd_axis_place_t;

// The places, along the fast and the slow axis, of what a thread copies:
// element e of it lies at fast[e % num_fast], slow[e / num_fast].
typedef struct hd_share {
  unsigned num_fast, num_slow;
  const hd_expr_t *fast[HD_MAX_SHARE], *slow[HD_MAX_SHARE];
} hd_share_t;

// Rows are found before the loop over k, what lies along k in it.
typedef struct hd_tile_copy {
  hd_share_t share;
  unsigned num_rows;
  hd_axis_place_t rows[HD_MAX_SHARE];
} hd_tile_copy_t;

// --- ContractFind.c ---

// False where a definition is no sum of products, or a small one.
bool hd_contraction_find(hd_arena_t *arena, const hd_definition_t *d,
                         hd_contraction_t *c);
// The same, with a few rows or one.
bool hd_contraction_find_few(hd_arena_t *arena, const hd_definition_t *d,
                             hd_contraction_t *c);
int64_t hd_contraction_blocks(const hd_contraction_t *c);

// --- ContractCopy.c ---

void hd_place_find(hd_kernel_draft_t *draft, const hd_axis_t *axis,
                   const hd_expr_t *first, const hd_expr_t *number,
                   hd_axis_place_t *place);
// Binds the axis' indices to what they are there.
void hd_place_use(hd_kernel_draft_t *draft, const hd_axis_t *axis,
                  const hd_axis_place_t *place);
// at < size, where that is not so by the sizes; else NULL.
const hd_expr_t *hd_place_inside(hd_builder_t *b, const hd_axis_t *axis,
                                 const hd_axis_place_t *place, int64_t tile);
// Before the loop over k: finds the rows.
void hd_copy_begin(hd_product_t *k, hd_operand_tile_t *tile,
                   hd_tile_copy_t *copy);
// In it: the first of the step's k, for hd_copy_put().
const hd_expr_t *hd_copy_step(hd_product_t *k, const hd_expr_t *step);
void hd_copy_put(hd_product_t *k, const hd_operand_tile_t *tile,
                 const hd_tile_copy_t *copy, const hd_expr_t *first);

#endif
