// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HIDET_GRAPH_EXPAND_LOWER_CONTROLFLOW_H
#define HIDET_GRAPH_EXPAND_LOWER_CONTROLFLOW_H

#include "Graph/Expand/Lower/Lower.h"

// That are walked.
enum { HD_MAX_TURNS = 1000000 };

// What a bool of one element holds; false where it is not known yet.
bool hd_lower_truth(hd_lowering_t *l, const hd_value_t *value, bool *truth);
// An i64 of rank 0.
const hd_value_t *hd_lower_index(hd_lowering_t *l, int64_t index);
// Element i along an axis, which goes away.
const hd_value_t *hd_lower_take(hd_lowering_t *l, const hd_value_t *x,
                                int64_t axis, int64_t i);
// With an axis of size 1 more.
const hd_value_t *hd_lower_insert_axis(hd_lowering_t *l, const hd_value_t *x,
                                       int64_t axis);
// Tensors of one shape along a new axis; at least one.
const hd_value_t *hd_lower_stack(hd_lowering_t *l,
                                 const hd_value_t *const *items, size_t count,
                                 int64_t axis);
// A walk of turns: states go from one to the next, results of each are kept.
typedef struct hd_turns {
  const hd_graph_t *body;
  uint32_t num_states, num_results;
  const hd_value_t **states;
  HD_VEC(const hd_value_t *) results; // Of each turn after the other.
} hd_turns_t;

// A graph attribute; NULL, reported, where it is missing.
const hd_graph_t *hd_lower_body(hd_lowering_t *l, const char *name);

// The values as the node's outputs, those that somebody wants.
bool hd_lower_set_outputs(hd_lowering_t *l, const hd_value_t *const *values,
                          size_t count);
// The body's graph in place, with these inputs; outputs has room for what it
// gives.
bool hd_lower_turn(hd_lowering_t *l, hd_turns_t *t,
                   const hd_value_t *const *inputs, uint32_t num_inputs,
                   const hd_value_t **outputs);
void hd_lower_keep_results(hd_lowering_t *l, hd_turns_t *t,
                           const hd_value_t *const *results);
// Result i of all turns, along a new axis; reversed: the last one first.
// declared: what the body says of it, for where there was no turn.
const hd_value_t *hd_lower_stack_results(hd_lowering_t *l, const hd_turns_t *t,
                                         uint32_t i, int64_t axis,
                                         bool reversed,
                                         const hd_value_t *declared);

#endif
