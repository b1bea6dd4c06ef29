// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of folding norms share (FoldNorms.c: which ones, FoldPrice.c:
// what they cost, FoldGraph.c: the graph that comes out).
#ifndef HIDET_FUSION_COMPOSE_FOLDSTATE_H
#define HIDET_FUSION_COMPOSE_FOLDSTATE_H

#include "Fusion/Group/Group.h"
#include "Schedule/Template/Candidates.h"

// A norm over the last axis, y = (x - mean) / deviation * scale + bias.
typedef struct hd_norm {
  const hd_node_t *node;
  const hd_value_t *x, *scale; // scale NULL: 1.
  const hd_value_t *bias;      // NULL: there is none, nor a mean.
  double epsilon;
  bool others; // Somebody reads it beside its products.
  // The product before leaves the statistics of so many neighbours each, and
  // where there is a mean these around theirs; 0: products find the statistics
  // of whole rows.
  int64_t part;
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
  hd_ptr_map_t order;   // Nodes to their numbers in the graph, uint32_t.
  hd_ptr_map_t givers;  // Values to the nodes that give them, made ones too.
  hd_ptr_map_t wide;    // Constants to what they are in f32.
  hd_ptr_map_t prices;  // Flat nodes to hd_candidates_t.
} hd_folder_t;

static inline int64_t hd_fold_count(const hd_value_t *value) {
  hd_tensor_type_t type = hd_scheduled_type(value);
  int64_t count = 1;
  for (unsigned i = 0; i < type.rank; i++)
    count *= type.shape[i];
  return count;
}

// --- FoldPrice.c ---

// The candidates for a node; none where no template of that form answers.
const hd_candidates_t *hd_fold_candidates(hd_folder_t *f, const hd_node_t *node,
                                          hd_form_kind_t kind);
// The microseconds that the best of them is expected to take; 0: there is none.
double hd_fold_price(hd_folder_t *f, const hd_node_t *node,
                     hd_form_kind_t kind);
// Those of the norm's own kernel, which reads and writes each element once.
double hd_fold_price_norm(hd_folder_t *f, const hd_norm_t *norm);
// The task that takes a product's place; asked: for what it finds of the rows.
const char *hd_fold_product(const hd_norm_t *norm, bool asked);
// What would take a product's place, as far as its price needs it.
const hd_node_t *hd_fold_probe(hd_folder_t *f, const hd_norm_t *norm,
                               const hd_node_t *product);

// --- FoldGraph.c ---

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
