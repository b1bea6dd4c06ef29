// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of composing pairs share (ComposePairs.c: which nodes become
// one, ComposePairsTask.c: their task).
#ifndef HIDET_FUSION_COMPOSE_COMPOSEPAIRS_H
#define HIDET_FUSION_COMPOSE_COMPOSEPAIRS_H

#include "Fusion/Compose/ComposeState.h"

#include "Schedule/Product/Product.h"

// How the columns of matrices come to stand in pairs.
typedef enum hd_packing {
  HD_PACK_PARTS,   // Each tensor that the matrices are made of by itself.
  HD_PACK_ROWS,    // One matrix of both, with its neighbours along the sum,
  HD_PACK_COLUMNS, // along the columns.
  HD_PACKINGS
} hd_packing_t;

// A task whose product's columns stand in pairs (Schedule/Product/Pairs.h).
typedef struct hd_paired {
  hd_merged_t merged; // Values of inputs that are computed of constants: NULL.
  // What computes them, in their order. None: the columns stand in pairs as
  // they are.
  HD_VEC(hd_merged_t) packings;
} hd_paired_t;

// The task for a merged one, of one product whose columns are read in two
// places or of two products with the same first operand, and of what is made of
// both element by element. known: values of the graph that depend on constants
// alone. NULL, or why there is none.
const char *hd_pair_task(hd_arena_t *arena, const hd_merged_t *merged,
                         const hd_ptr_map_t *known, hd_packing_t packing,
                         hd_paired_t *paired);

// --- Between ComposePairsTask.c and ComposePairsMatrix.c ---

// A task in the making.
typedef struct hd_pairer {
  hd_arena_t *arena;
  const hd_merged_t *from;
  const hd_ptr_map_t *known;
  hd_packing_t packing;
  hd_product_form_t forms[2]; // Of the products,
  unsigned count;             // so many,
  unsigned each;              // each of so many definitions: what rows are
                              // normalized by before it.
  const hd_definition_t *gate;
  int64_t n; // Pairs.
  hd_task_t *flat;
  const hd_task_value_t *t;
  bool seen[2], fits;
  hd_paired_t *paired;
  HD_VEC(const hd_task_value_t *) matrices; // Inputs that packings compute.
} hd_pairer_t;

// The matrix' element at z, p and a column, of those in pairs: by inputs that
// are added to the matrices, and what computes them to the packings. NULL, and
// why, where what it is made of is no constant.
const hd_term_t *hd_pair_matrix(hd_pairer_t *p,
                                const hd_index_t *const z_p_j[3],
                                const char **why);

// --- Terms ---

// What stands for indices; those that are not named stay.
typedef struct hd_pair_places {
  hd_arena_t *arena;
  const hd_index_t *from[4];
  const hd_term_t *to[4];
} hd_pair_places_t;

// For hd_flat_rewrite(), by hd_pair_places_t.
const hd_term_t *hd_pair_put_place(void *argument, const hd_term_t *term);
hd_definition_t *hd_pair_define(const hd_pairer_t *p,
                                const hd_task_value_t *target,
                                const hd_index_t *const *indices,
                                const hd_term_t *term);

// Nodes that compute matrices, of one graph.
typedef struct hd_packer {
  hd_composer_t *c;
  hd_key_map_t tasks; // Their tasks, by their texts.
} hd_packer_t;

void hd_packer_begin(hd_packer_t *packer, hd_composer_t *composer);
// The value that a matrix will be, whose node the composer puts before the one
// that reads it; its task goes into the module.
const hd_value_t *hd_pack_columns(hd_packer_t *packer, hd_merged_t *packing,
                                  hd_loc_t loc);

#endif
