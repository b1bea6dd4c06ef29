// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of composing pairs share (ComposePairs.c: which nodes become
// one, ComposePairsTask.c: their task).
#ifndef HIDET_FUSION_COMPOSEPAIRS_H
#define HIDET_FUSION_COMPOSEPAIRS_H

#include "Fusion/ComposeState.h"

// A task whose product's columns stand in pairs (Schedule/Pairs.h).
typedef struct hd_paired {
  hd_merged_t merged; // The last input is the matrix, whose value is NULL.
  // What computes the matrix, of constants; NULL: its columns stand in pairs as
  // they are, and it is an input like any.
  hd_merged_t packing;
} hd_paired_t;

// The task for a merged one, of one product whose columns are read in two
// places or of two products with the same first operand, and of what is made of
// both element by element. known: values of the graph that depend on constants
// alone. rows: the matrix is to have its neighbours along the sum. NULL, or why
// there is none.
const char *hd_pair_task(hd_arena_t *arena, const hd_merged_t *merged,
                         const hd_ptr_map_t *known, bool rows,
                         hd_paired_t *paired);

// Nodes that compute matrices, of one graph.
typedef struct hd_packer {
  hd_composer_t *c;
  hd_key_map_t tasks;  // Their tasks, by their texts.
  hd_ptr_map_t packed; // The nodes, by the matrix.
} hd_packer_t;

void hd_packer_begin(hd_packer_t *packer, hd_composer_t *composer);
// The value that a matrix will be; its task goes into the module.
const hd_value_t *hd_pack_columns(hd_packer_t *packer, hd_merged_t *packing,
                                  hd_loc_t loc);
// The graph, with these nodes before those that read them.
const hd_graph_t *hd_pack_graph(hd_packer_t *packer, const hd_graph_t *graph);

#endif
