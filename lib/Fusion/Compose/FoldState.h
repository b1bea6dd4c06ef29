// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of folding norms share (FoldNorms.c: which ones, FoldGraph.c:
// the graph that comes out).
#ifndef HIDET_FUSION_COMPOSE_FOLDSTATE_H
#define HIDET_FUSION_COMPOSE_FOLDSTATE_H

#include "Fusion/Group/Group.h"

// A norm over the last axis, y = (x - mean) / deviation * scale + bias.
typedef struct hd_norm {
  const hd_node_t *node;
  const hd_value_t *x, *scale; // scale NULL: 1.
  const hd_value_t *bias;      // NULL: there is none, nor a mean.
  double epsilon;
  bool others; // Somebody reads it beside its products.
} hd_norm_t;

typedef HD_VEC(const hd_node_t *) hd_fold_nodes_t;

typedef struct hd_folder {
  hd_module_t *module;
  hd_arena_t *arena;
  const hd_graph_t *graph;
  bool rounds;          // Rows may be rounded before they are normalized.
  hd_fusion_t *fusion;  // Of the graph.
  hd_ptr_map_t known;   // Values that depend on constants alone.
  hd_ptr_map_t readers; // Values to hd_numbers_t, the nodes that read them.
  hd_ptr_map_t outputs; // Of the graph.
  hd_key_map_t names;   // Of values.
  hd_ptr_map_t givers;  // Values to the nodes that give them, made ones too.
  hd_ptr_map_t wide;    // Constants to what they are in f32.
  hd_ptr_map_t prices;  // Flat nodes to microseconds, double.
} hd_folder_t;

// Makes what takes the place of a norm's products and, where others read it, of
// the norm: f->givers has it. The products read it in another shape and rounded
// maybe; their other operand is a matrix that depends on constants alone. back:
// conversions of what was rounded to the type that the norm gave, which it need
// not have been.
void hd_fold_make(hd_folder_t *f, const hd_norm_t *norm,
                  const hd_fold_nodes_t *products, const hd_fold_nodes_t *back);
// The graph in which nodes stand where f->givers says that they give something,
// without what nobody reads.
const hd_graph_t *hd_fold_graph(hd_folder_t *f);

#endif
