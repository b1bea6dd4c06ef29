// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HIDET_GRAPH_EXPAND_LOWER_CONTROLLOOP_H
#define HIDET_GRAPH_EXPAND_LOWER_CONTROLLOOP_H

#include "Graph/Expand/Lowering.h"

// A Loop or a Scan whose number of turns is known.
typedef struct hd_control_loop {
  const hd_graph_t *body;
  int64_t steps;
  // Of a Loop: a constant, true. Then the body takes the turn's number and the
  // condition first, and gives the condition first.
  const hd_value_t *condition;
  uint32_t num_states, num_slices, num_results;
  const hd_value_t *const *states, *const *wholes; // Scanned along axis 0.
} hd_control_loop_t;

typedef enum hd_control {
  HD_CONTROL_DONE,
  HD_CONTROL_FAILED, // Reported.
  HD_CONTROL_TURNS,  // Nothing was put: it is to be walked turn by turn.
} hd_control_t;

// Puts it as one loop, where its body asks for nothing but shapes and its
// states keep their types. outputs: the states after the last turn, then the
// results, stacked along a new first axis.
hd_control_t hd_lower_control_loop(hd_lowering_t *l, const hd_control_loop_t *c,
                                   const hd_value_t **outputs);

#endif
