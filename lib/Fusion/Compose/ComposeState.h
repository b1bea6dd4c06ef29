// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of composing share (Compose.c: which nodes become one,
// ComposeGraph.c: the graph that comes out).
#ifndef HIDET_FUSION_COMPOSE_COMPOSESTATE_H
#define HIDET_FUSION_COMPOSE_COMPOSESTATE_H

#include "Fusion/Compose/Compose.h"
#include "Schedule/Terms/Merge.h"

typedef enum hd_compose_state {
  HD_COMPOSE_NOT_READ, // Does not depend on what is taken.
  HD_COMPOSE_TAKEN,
  HD_COMPOSE_WAITS,
  HD_COMPOSE_BARRED, // Depends on it, and stays outside.
} hd_compose_state_t;

typedef struct hd_composed_node {
  const hd_node_t *node;
  const hd_task_t *flat; // NULL: a reshape, or nothing to be composed.
  bool is_pointwise, reduces;
  uint32_t composite;       // Number + 1; 0: none.
  hd_compose_state_t state; // In the search at hand.
  bool is_done;             // Written.
} hd_composed_node_t;

typedef struct hd_composite {
  const char *name;  // Of what the members come to.
  uint32_t *members; // In the graph's order.
  size_t num_members;
  size_t lead; // The member whose name, label and place are the node's.
  HD_VEC(const hd_value_t *) outputs;
  hd_merged_t merged;
  const hd_task_t *task;
  const hd_pin_t *pin; // Of the node that is made; NULL: none.
  uint32_t seen;       // By the walk of this number.
} hd_composite_t;

// Whether a task is one kernel: NULL, or why not.
typedef struct hd_verdict {
  const char *why;
} hd_verdict_t;

typedef struct hd_composer {
  hd_module_t *module;
  hd_arena_t *arena;
  const hd_graph_t *graph;
  hd_composed_node_t *nodes;
  size_t num_nodes;
  hd_ptr_map_t givers;  // Values to hd_composed_node_t.
  hd_ptr_map_t readers; // Values to the numbers of nodes, hd_numbers_t.
  hd_ptr_map_t outputs; // Of the graph.
  HD_VEC(hd_composite_t *) composites;
  hd_key_map_t tasks; // Their texts to tasks.
  hd_key_map_t asked; // Texts of tasks to hd_verdict_t.
  hd_key_map_t names; // Of values.
  // Nodes of their own that composites read: by their values, hd_node_t.
  hd_ptr_map_t packed;
  hd_graph_t *made;
  // A search looks at the nodes from `low` to before `high`: no others have a
  // state, and no others are in a set.
  size_t low, high;
  bool *in;
  // Nodes that the set has copies of, each behind those that it reads: others
  // may read them where they are.
  hd_numbers_t copied;
  uint32_t walk;
  bool looks; // Nothing is made of what is found: it is no step.
} hd_composer_t;

// The node that gives a value; NULL: none does.
static inline hd_composed_node_t *hd_composer_giver(const hd_composer_t *c,
                                                    const hd_value_t *value) {
  hd_composed_node_t *const *box =
      value ? hd_ptr_map_get(&c->givers, value) : NULL;
  return box ? *box : NULL;
}

// Whether one node alone reads a value.
bool hd_composer_is_read_once(const hd_composer_t *composer,
                              const hd_value_t *value);
// Whether a node that is not `in`, or the graph's own reader, reads a value.
bool hd_composer_is_read_outside(const hd_composer_t *composer,
                                 const hd_value_t *value);
// What there is of the graph's nodes.
void hd_composer_look(hd_composer_t *composer, hd_fusion_t *fusion);
// The task of the nodes that are `in`, from `low` to before `high`. False where
// they cannot be one.
bool hd_composer_merge(hd_composer_t *composer, hd_arena_t *arena,
                       const char *name, hd_composite_t *out);
// The same of nodes with one result; constants of one element are numbers in
// the task then, and nothing in it is local that need not be.
bool hd_composer_merge_one(hd_composer_t *composer, hd_arena_t *arena,
                           const char *name, hd_composite_t *out);
// Constants of one element become numbers in the task, and are no inputs of it
// any more.
void hd_composer_put_numbers(hd_arena_t *arena, hd_merged_t *merged);
// Whether they are to become one: a step of the compilation.
bool hd_composer_asks(hd_composer_t *composer, const hd_composite_t *found);
void hd_composer_take(hd_composer_t *composer, hd_composite_t *found);

// The graph with its composites in the place of their nodes; their tasks are
// added to the module.
const hd_graph_t *hd_composer_graph(hd_composer_t *composer, bool explain);

#endif
