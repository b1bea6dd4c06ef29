// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops among what operators are lowered to (IR/Graph/Loop.h):
//
//   hd_lower_loop_t loop;
//   hd_lower_loop_begin(l, &loop, steps);
//   state = hd_lower_loop_state(l, &loop, first);
//   x = hd_lower_loop_slice(l, &loop, xs);
//   ... tasks, of these and of what was there before ...
//   hd_lower_loop_end(l, &loop, results, count, outputs)
//
// Between begin and end nothing may be asked for that is not known: then
// hd_lower_loop_drop() ends the loop, and nothing was put. A loop of one turn
// is put as it is.
#ifndef HIDET_GRAPH_EXPAND_LOWERINGLOOP_H
#define HIDET_GRAPH_EXPAND_LOWERINGLOOP_H

#include "Graph/Expand/Lowering.h"
#include "Support/Map.h"

typedef HD_VEC(const hd_value_t *) hd_lower_values_t;

typedef struct hd_lower_loop {
  int64_t steps;
  size_t num_states;
  hd_graph_t *segment;              // The one around; NULL: there is no loop.
  hd_ptr_map_t put;                 // Its own.
  hd_lower_values_t firsts, states; // Before the loop, and in it.
  hd_lower_values_t wholes, slices;
  const hd_value_t *turn; // i64[], where it was asked for.
} hd_lower_loop_t;

// steps: 1 or more.
void hd_lower_loop_begin(hd_lowering_t *l, hd_lower_loop_t *loop,
                         int64_t steps);
void hd_lower_loop_drop(hd_lowering_t *l, hd_lower_loop_t *loop);

// What a state is in a turn. All states are asked for before the first slice.
const hd_value_t *hd_lower_loop_state(hd_lowering_t *l, hd_lower_loop_t *loop,
                                      const hd_value_t *first);
// The turn's part of a tensor, along its first axis, of as many as steps.
const hd_value_t *hd_lower_loop_slice(hd_lowering_t *l, hd_lower_loop_t *loop,
                                      const hd_value_t *whole);
// The turn's number, from 0 on.
const hd_value_t *hd_lower_loop_turn(hd_lowering_t *l, hd_lower_loop_t *loop);

// results: what each state becomes, of the same types, then what is stacked.
// outputs: what the last turn makes of the states; results of all turns along a
// new first axis. False after an error.
bool hd_lower_loop_end(hd_lowering_t *l, hd_lower_loop_t *loop,
                       const hd_value_t *const *results, size_t count,
                       const hd_value_t **outputs);

#endif
