// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Choosing candidates from outside: what there is to choose in a graph, as
// text, and what was chosen. Somebody who measures (lib/Tune) or who has
// measured is asked by hd_schedule_options_t.choose, once for a graph.
#ifndef HIDET_FUSION_FORM_CHOOSE_H
#define HIDET_FUSION_FORM_CHOOSE_H

#include "Fusion/Fuse.h"
#include "Schedule/Product/Product.h"

// Groups that compute the same, of which templates can make a kernel.
typedef struct hd_tunable {
  // The group alone, as a graph that can be run: what launches before it give
  // comes from a copy, what is there when a run begins (constants, inputs) is
  // an input. Names, numbers and order follow from what it computes alone, so
  // its text is what the group is known by.
  const hd_graph_t *graph;
  size_t anchor;    // Among the graph's nodes: where the choice is made.
  const char *text; // Of the graph.
  const char *name; // For messages: operator and name of the first anchor.
  hd_loc_t loc;     // Likewise.
  unsigned uses;    // So many groups; in loops, in all turns.
  hd_candidates_t candidates; // By what they are expected to take, one or more.
  // What is chosen; NULL: by what is expected. Lives as long as the module.
  const hd_pin_t *pin;
} hd_tunable_t;

typedef struct hd_tunables {
  HD_VEC(hd_tunable_t *) list; // By where they are met first.
} hd_tunables_t;

// The text of the group with a pin at its anchor.
void hd_tunable_print(hd_arena_t *arena, const hd_tunable_t *tunable,
                      const hd_pin_t *pin, hd_buffer_t *out);

// The graph, in groups, with what the context's schedules choose: the same
// where nobody is asked. NULL after an error.
const hd_graph_t *hd_graph_choose(hd_module_t *module,
                                  hd_scheduler_t *scheduler,
                                  const hd_graph_t *graph);

#endif
