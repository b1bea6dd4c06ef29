// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From tasks to kernels. The rule-based scheduler looks at a task's structure
// alone, not at its name: every task gets a kernel.
#ifndef HIDET_SCHEDULE_SCHEDULE_H
#define HIDET_SCHEDULE_SCHEDULE_H

#include "Graph/Binding.h"

// What is made: kernels go into the module as items, what runs them to a plan's
// body, in order.
typedef struct hd_scheduler hd_scheduler_t;

hd_scheduler_t *hd_scheduler_create(hd_module_t *module, hd_arena_t *arena);

// A workspace of the plan being made.
const hd_var_t *hd_scheduler_workspace(hd_scheduler_t *scheduler,
                                       const char *name,
                                       const hd_tensor_type_t *type);

// Makes the kernels that compute a bound task and their launches. tensors: the
// task's tensor inputs, then its outputs: parameters or workspaces of the plan,
// row-major, which may have another shape of as many elements. The same task
// bound the same way uses the kernels that are there. name begins the kernels'
// names. Reports at loc what it cannot schedule.
bool hd_schedule_task(hd_scheduler_t *scheduler,
                      const hd_task_binding_t *binding,
                      const hd_var_t *const *tensors, const char *name,
                      hd_loc_t loc);

// Adds the plan to the module.
hd_func_t *hd_scheduler_finish(hd_scheduler_t *scheduler, const char *name,
                               const hd_var_t *const *params,
                               uint32_t num_params);

// A plan, and its kernels, for a graph of tasks whose shapes are known
// (expanded): parameters are its inputs, its constants, then those of its
// outputs that hd_scheduled_output() names, each in the graph's order. NULL
// after an error.
const hd_func_t *hd_schedule_graph(hd_module_t *module,
                                   const hd_graph_t *graph);

// Whether output i is a parameter of the plan: it is not where it is an input
// or a constant itself, or was an output before.
bool hd_scheduled_output(const hd_graph_t *graph, size_t i);

#endif
