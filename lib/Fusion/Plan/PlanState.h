// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the planner share (Plan.c: the graph and what it gives,
// PlanNode.c: nodes alone, PlanGroup.c: groups, PlanLoop.c: loops).
#ifndef HIDET_FUSION_PLAN_PLANSTATE_H
#define HIDET_FUSION_PLAN_PLANSTATE_H

#include "Fusion/Fuse.h"
#include "IR/Rewrite.h"
#include "Support/Map.h"

typedef struct hd_plan_recipe hd_plan_recipe_t;

typedef struct hd_planner {
  hd_module_t *module;
  hd_arena_t *arena;
  const hd_graph_t *graph;
  hd_scheduler_t *scheduler;
  hd_fusion_t *fusion;
  bool explain;
  bool only_pieces;     // Views are row-major.
  hd_ptr_map_t tensors; // Values to tensors of the plan.
  hd_ptr_map_t viewed;  // Nodes that cost nothing: their operands are views.
  hd_ptr_map_t *views;  // Tensors to what they are views of, REF; of a loop the
                        // graph's around it, too.
  HD_VEC(const hd_var_t *) params;
  hd_stmt_list_t body;
  hd_key_map_t recipes; // Of groups, by what they compute.
} hd_planner_t;

// --- PlanNode.c ---

// Of a value that a node gives or takes: a parameter, or a workspace.
const hd_var_t *hd_planner_tensor(hd_planner_t *planner,
                                  const hd_value_t *value);
// args live as long as the plan. What is returned may be changed.
hd_stmt_t *hd_planner_launch(hd_planner_t *planner, const hd_func_t *kernel,
                             const hd_expr_t *const *args, hd_loc_t loc);
// A node by the launches of its schedule. False after an error.
bool hd_planner_node(hd_planner_t *planner, const hd_node_t *node);

// A tensor of its own like another: a schedule's workspace, or a parameter of
// it for what it stores and nobody reads.
const hd_var_t *hd_planner_declare(hd_planner_t *planner, const hd_var_t *like);
// A tensor that is given by no value.
const hd_var_t *hd_planner_workspace(hd_planner_t *planner, const char *name,
                                     const hd_tensor_type_t *type);
// A tensor of a value's type that lies in another one, no view, from an offset
// in elements on.
const hd_var_t *hd_planner_view(hd_planner_t *planner, const hd_value_t *value,
                                const hd_var_t *base, const hd_expr_t *offset);
// A launch that copies, between tensors of that value's type. False after an
// error.
bool hd_planner_copy(hd_planner_t *planner, const hd_value_t *like,
                     const hd_var_t *from, const hd_var_t *to);

// --- PlanLoop.c ---

// A loop, by launches in a loop. False after an error.
bool hd_planner_loop(hd_planner_t *planner, const hd_node_t *node);

// --- Plan.c ---

// All nodes of the planner's graph, whose values that come in and out have
// their tensors. False after an error.
bool hd_planner_nodes(hd_planner_t *planner);

// --- PlanExplain.c ---

// A remark: which kernels count nodes, one group or one of them, have become,
// whose launches are the planner's statements from `first` on.
void hd_planner_explain(const hd_planner_t *planner,
                        const hd_node_t *const *nodes, size_t count,
                        uint32_t first);

// --- PlanRows.c ---

// Launches that are given views of rows get kernels that know of the rows.
// False where a parameter's shape has no such rows.
bool hd_planner_fit(hd_planner_t *planner);

// --- Trim.c ---

// Has blocks that compute nothing that is needed leave early, in a graph that
// reads extents (Need.h): launches get kernels that do.
void hd_planner_trim(hd_planner_t *planner);

// --- PlanGroup.c ---

// The nodes of a group as one kernel, or one by one where they cannot be
// joined. False after an error.
bool hd_planner_group(hd_planner_t *planner, const hd_node_t *const *nodes,
                      size_t count);

#endif
