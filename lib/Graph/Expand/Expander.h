// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the expansion share: Expand.c (the walk), Segment.c (what
// it leaves), Lowering.c and LoweringPut.c (what the operators' functions are
// written in).
#ifndef HIDET_GRAPH_EXPAND_EXPANDER_H
#define HIDET_GRAPH_EXPAND_EXPANDER_H

#include "Graph/Expand/Expand.h"
#include "Graph/Expand/Lowering.h"
#include "Graph/Names.h"
#include "Support/Map.h"

typedef struct hd_walk hd_walk_t;

typedef struct hd_walk_child {
  size_t node;   // Whose attribute the graph is.
  unsigned call; // Of its function, from 0 on.
  hd_walk_t *walk;
} hd_walk_child_t;

// A graph on its way: the main one, a branch of an If, a turn of a Loop. Where
// the walk stops inside, it is found again when the node's function is called
// again, and goes on where it was.
struct hd_walk {
  const hd_graph_t *graph;
  hd_walk_t *outer;
  hd_ptr_map_t values; // For each value of the source, what it has become.
  bool *done;          // Nodes.
  hd_ptr_map_t found;  // For nodes hd_found_t.
  HD_VEC(hd_walk_child_t) children;
};

// What a node finds: the values for it, where it is known how many.
typedef struct hd_found {
  hd_find_t find;
  const hd_value_t **values; // NULL: it is not known yet.
} hd_found_t;

// Whether each task that a node put was evaluated at once, in order.
typedef struct hd_choices {
  HD_VEC(bool) folds;
} hd_choices_t;

typedef struct hd_views {
  HD_VEC(const hd_value_t *) values;
} hd_views_t;

struct hd_expander {
  hd_module_t *module;
  hd_arena_t *arena; // Of what is made.
  hd_walk_t *walk;
  const hd_value_t *wanted; // That the walk waits for,
  hd_found_t *finding;      // and what is to be found there; NULL: nothing.
  bool failed, looked;
  // For nodes of the source hd_choices_t; and whose these follow, or NULL.
  hd_ptr_map_t choices;
  const hd_expander_t *leader;
  bool keeps_reshapes; // To the same shape, too.
  hd_ptr_map_t inputs; // The data of the whole's inputs: looked at on demand.
  hd_ptr_map_t given;  // The data of what segments computed.
  hd_key_map_t names;
  hd_ptr_map_t entered; // The source's constants, as hd_segment_constant() has
                        // them.
  // The group of the source that is on its way, and its number in what is made:
  // each turn of a Loop has groups of its own.
  const hd_walk_t *group_walk;
  uint32_t source_group, group;
  hd_key_map_t nodes; // Put, by content: the same node is not put twice.
  hd_ptr_map_t views; // Of constants hd_views_t: reshaped once for each shape.
  hd_ptr_map_t left;  // Values that earlier segments gave: a node that is put
                      // again for one of them is that node.
  // The segment on its way:
  hd_graph_t *segment;
  hd_ptr_map_t put;  // Values that its nodes give: the node.
  hd_ptr_map_t used; // What it needs.
};

struct hd_lowering {
  hd_expander_t *x;
  hd_walk_t *walk;
  size_t index; // Of the node in the walk's graph.
  const hd_node_t *node;
  const hd_operator_row_t *row;
  // Those of the node, or of the operator that it is lowered as.
  int version;
  uint32_t num_inputs;
  const hd_value_t **inputs, **outputs;
  unsigned calls; // Of hd_lower_graph().
  bool broken;    // An attribute has a wrong kind.
};

// A sequence, or an optional that holds one value or none.
typedef struct hd_list_value {
  hd_value_t value;
  size_t count;
  const hd_value_t **items;
} hd_list_value_t;

// Stands for what could not be made; its users are left out without a word.
extern const hd_value_t hd_value_poison;

static inline hd_arena_t *hd_expander_arena(const hd_expander_t *x) {
  return x->arena;
}

// Expand.c
hd_walk_t *hd_walk_make(hd_expander_t *x, const hd_graph_t *graph,
                        hd_walk_t *outer);
// False where it stopped or failed.
bool hd_walk_run(hd_expander_t *x, hd_walk_t *walk);
// What a value of the source has become here; NULL: nothing yet.
const hd_value_t *hd_walk_find(const hd_walk_t *walk, const hd_value_t *value);
// Runs the row's function.
bool hd_lowering_run(hd_lowering_t *l);

// Segment.c
void hd_segment_begin(hd_expander_t *x);
// Takes what the nodes, and the outputs, need from outside; leaves out the
// nodes that nothing needs. outputs are settled.
void hd_segment_end(hd_expander_t *x);
// The outputs of a segment after which the walk goes on.
void hd_segment_keep(hd_expander_t *x);
// Puts a node, or finds the one that is there; outputs as hd_value_t of types.
const hd_node_t *hd_segment_put(hd_expander_t *x, const hd_node_t *node,
                                const hd_tensor_type_t *types,
                                const char *name);
// A constant of the source, under a name that no other value has: itself, as a
// rule.
const hd_value_t *hd_segment_constant(hd_expander_t *x,
                                      const hd_value_t *constant);
// A new value, not a constant, with a name like that one.
hd_value_t *hd_segment_value(hd_expander_t *x, const char *name,
                             const hd_tensor_type_t *type);

#endif
