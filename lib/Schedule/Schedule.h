// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From tasks to kernels. The rule-based scheduler looks at a task's structure
// alone, not at its name: every task gets a kernel. It works on one task at a
// time and knows nothing of its neighbours (lib/Fusion joins them afterwards).
#ifndef HIDET_SCHEDULE_SCHEDULE_H
#define HIDET_SCHEDULE_SCHEDULE_H

#include "Graph/Bind/Binding.h"
#include "Support/Buffer.h"

typedef struct hd_scheduler hd_scheduler_t;

// A node's task, made flat and brought into the form that the rules want.
// Nodes that compute the same, of inputs of the same types, share one.
typedef struct hd_flattened {
  const hd_task_binding_t *binding;
  hd_task_t *flat;
  const hd_pin_t *pin;                // The node's.
  struct hd_made_schedule *schedules; // By hd_scheduler_schedule().
  // By hd_flattened_attention().
  const struct hd_attention_form *attention;
  bool is_asked;
} hd_flattened_t;

// Kernels and plans that are made go into the module as items. The arena is the
// module's, or lives as long.
hd_scheduler_t *hd_scheduler_create(hd_module_t *module, hd_arena_t *arena);
hd_arena_t *hd_scheduler_arena(const hd_scheduler_t *scheduler);

// Of a task's node whose shapes are known. Reports what does not bind (E1103,
// E1104); then NULL.
hd_flattened_t *hd_scheduler_flatten(hd_scheduler_t *scheduler,
                                     const hd_node_t *node);
// The same for a binding; a new one each time.
hd_flattened_t *hd_scheduler_flatten_binding(hd_scheduler_t *scheduler,
                                             const hd_task_binding_t *binding,
                                             hd_loc_t loc);

// What will be put into a task's kernels.
typedef struct hd_surroundings {
  // A bit for each of the first 64 tensor inputs, which is set where a
  // computation will take the place of what is loaded, so that kernels have to
  // load it element by element.
  uint64_t computed;
  // Of them, those that are loaded from where elements of a table say.
  uint64_t gathered;
  // Bits of the widest element that is stored, where that may be another one
  // than the task's; 0: not known.
  unsigned leaving;
  // Of rows of so many neighbours of what a product stores something is made
  // there; 0: nothing is.
  int64_t neighbours;
} hd_surroundings_t;

// The plan that computes it: its parameters are the task's tensor inputs, then
// its outputs. Made once for the same surroundings. name begins the names of
// the kernels and of the plan. NULL after an error: a pin that cannot be kept
// (E0201, E0320), a template's kernel that cannot be made.
const hd_func_t *hd_scheduler_schedule(hd_scheduler_t *scheduler,
                                       hd_flattened_t *flattened,
                                       const hd_surroundings_t *around,
                                       const char *name, hd_loc_t loc);
// Whether it comes from there.
bool hd_scheduler_has_made(const hd_scheduler_t *scheduler,
                           const hd_func_t *schedule);

// A task's node, bound by the shapes of its inputs, which are known. Reports
// what does not bind (E1103); then NULL.
const hd_task_binding_t *hd_node_bind(hd_context_t *context, hd_arena_t *arena,
                                      const hd_node_t *node);

// Type and shape of a value, which are known.
hd_tensor_type_t hd_scheduled_type(const hd_value_t *value);
// Whether a flat task's tensor has its shape.
bool hd_scheduled_has_shape(const hd_value_t *value,
                            const hd_task_value_t *tensor);
// Its elements; a price's number, which may pass 2^53.
double hd_scheduled_count(const hd_value_t *value);
double hd_scheduled_bytes(const hd_value_t *value); // That they take, likewise.
// A tensor in global memory. An empty one has room for one element that
// nobody reads, see hd_shape_room().
hd_var_t *hd_scheduled_tensor(hd_arena_t *arena, const char *name,
                              const hd_tensor_type_t *type);

// Adds to a text what a node computes, its inputs and outputs left aside: two
// texts are equal where operator, attributes and the types of the inputs are.
void hd_node_key(hd_buffer_t *key, const hd_node_t *node);

#endif
