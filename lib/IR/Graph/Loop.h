// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops of graphs: the node `loop`, whose body is a graph that sees nothing of
// the graph around it.
//
//   h, ys = loop(h0, xs, w) { steps = 10, states = 1, scanned = 1,
//     body = graph(h: f32[4], x: f32[4], w: f32[4, 4]) -> g, y { ... } }
//
// States go from turn to turn; of what is scanned the body gets one slice of
// the first axis after the other, of all else the whole. Its results that are
// no states are stacked along a new first axis.
#ifndef HIDET_IR_GRAPH_LOOP_H
#define HIDET_IR_GRAPH_LOOP_H

#include "IR/Graph/Graph.h"

typedef struct hd_loop {
  const hd_graph_t *body;
  int64_t steps; // 1 or more.
  // Of the node's inputs: states, then what is scanned, then the others. Of its
  // outputs: the states as the last turn leaves them, then what is stacked.
  uint32_t states, scanned;
  uint32_t counts; // 1: the body's first input, i64[], is the turn's number.
} hd_loop_t;

bool hd_node_is_loop(const hd_node_t *node);
// Of a node that is one, and has been verified.
hd_loop_t hd_node_loop(const hd_node_t *node);

// The same loop around another body. It may be changed.
hd_node_t *hd_loop_with_body(hd_arena_t *arena, const hd_node_t *node,
                             const hd_graph_t *body);

// What each pass over graphs does for loops: the graph with what `change` makes
// of each body in its place; change may give the same, and NULL after an error,
// which is then the result. The graph itself where nothing changes.
typedef const hd_graph_t *(*hd_body_change_t)(void *argument,
                                              const hd_graph_t *body);
const hd_graph_t *hd_graph_change_bodies(hd_arena_t *arena,
                                         const hd_graph_t *graph,
                                         hd_body_change_t change,
                                         void *argument);

#endif
