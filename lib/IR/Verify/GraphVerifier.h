// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the verifier of graphs share (VerifyGraph.c, VerifyNode.c,
// VerifyLoop.c, VerifyGroup.c).
#ifndef HIDET_IR_VERIFY_GRAPHVERIFIER_H
#define HIDET_IR_VERIFY_GRAPHVERIFIER_H

#include "IR/Graph/Graph.h"
#include "IR/Verify/VerifierState.h"

typedef struct hd_graph_verifier {
  hd_verifier_t v; // visible: the dimensions.
  const hd_graph_t *graph;
  hd_key_map_t names; // Values that have been given in graphs that go on.
} hd_graph_verifier_t;

// Whether a text is an identifier that may be declared.
bool hd_verify_is_name(const char *name);
// That a node names an operator, and of a task what it takes and gives.
void hd_verify_node(hd_graph_verifier_t *g, const hd_node_t *node);
void hd_verify_loop(hd_graph_verifier_t *g, const hd_node_t *node);
// That the graph's groups are groups, and that the schedules of its nodes take
// and give what those do.
void hd_verify_groups(hd_graph_verifier_t *g);

#endif
