// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of making scans of loops share (ScanLoops.c: which loops, and
// what their nodes become; ScanNodes.c: the nodes that take their place).
#ifndef HIDET_FUSION_LOOPS_SCANSTATE_H
#define HIDET_FUSION_LOOPS_SCANSTATE_H

#include "Fusion/Fuse.h"
#include "IR/Graph/Loop.h"
#include "Schedule/Terms/Terms.h"

// What a value of the body is outside of the loop: one for all turns, or a
// slice for each.
typedef struct hd_scan_outer {
  const hd_value_t *value;
  bool turned;
} hd_scan_outer_t;

typedef HD_VEC(const hd_node_t *) hd_scan_nodes_t;

typedef struct hd_scanner {
  hd_module_t *module;
  hd_arena_t *arena;
  hd_scheduler_t *scheduler;
  hd_key_map_t names, tasks;
  hd_graph_t *made;
  bool explain, changed;
  // The loop at hand.
  hd_fusion_t *fusion; // Of its body.
  const hd_node_t *node;
  hd_loop_t loop;
  hd_ptr_map_t states; // Values of the body to the states they know, uint64_t.
  hd_ptr_map_t outer;  // Values of the body to hd_scan_outer_t.
  hd_ptr_map_t wanted; // Those that are needed of every turn.
  double bytes;        // Of the states that are kept for all turns.
  hd_scan_nodes_t nodes; // That take the loop's place.
  hd_values_t constants;
} hd_scanner_t;

void hd_scan_set_outer(hd_scanner_t *scanner, const hd_value_t *value,
                       const hd_value_t *outside, bool turned);
// A new value of so many slices like a value of the body; 0: one, for all
// turns.
const hd_value_t *hd_scan_value(hd_scanner_t *scanner, const hd_value_t *like,
                                int64_t steps);
void hd_scan_put_reshape(hd_scanner_t *scanner, const hd_value_t *from,
                         const hd_value_t *to);
void hd_scan_put_copy(hd_scanner_t *scanner, const hd_value_t *from,
                      const hd_value_t *to);
// A node of a task that is made here, with reshapes around it where its tensors
// have other shapes than the values.
void hd_scan_put_task(hd_scanner_t *scanner, const hd_task_t *flat,
                      const char *name, const hd_value_t *const *inputs,
                      const hd_value_t *const *outputs);

#endif
