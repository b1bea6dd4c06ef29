// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes that are kernels of their own, and the tensors of the plan.
#include "Fusion/Plan/PlanState.h"
#include "IR/Graph/Loop.h"
#include "IR/Text/Library.h"
#include "Schedule/Translate/Build.h"

// --- Tensors of the plan ---

const hd_var_t *hd_planner_declare(hd_planner_t *p, const hd_var_t *like) {
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_DECLARE, (hd_loc_t){0, 0});
  hd_var_t *var = HD_ARENA_COPY(p->arena, hd_var_t, like);
  var->direction = HD_DIR_NONE;
  stmt->u.declare.var = var;
  hd_stmt_list_push(p->arena, &p->body, stmt);
  return var;
}

const hd_var_t *hd_planner_workspace(hd_planner_t *p, const char *name,
                                     const hd_tensor_type_t *type) {
  return hd_planner_declare(p, hd_scheduled_tensor(p->arena, name, type));
}

const hd_var_t *hd_planner_tensor(hd_planner_t *p, const hd_value_t *value) {
  const hd_var_t *var = hd_ptr_map_get(&p->tensors, value);
  if (var)
    return var;
  hd_tensor_type_t type = hd_scheduled_type(value);
  var = hd_planner_workspace(p, value->name, &type);
  hd_ptr_map_set(p->arena, &p->tensors, value, var);
  return var;
}

hd_stmt_t *hd_planner_launch(hd_planner_t *p, const hd_func_t *kernel,
                             const hd_expr_t *const *args, hd_loc_t loc) {
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_LAUNCH, loc);
  stmt->u.launch.kernel = kernel;
  stmt->u.launch.num_args = kernel->num_params;
  stmt->u.launch.args = args;
  hd_stmt_list_push(p->arena, &p->body, stmt);
  return stmt;
}

// --- A node alone ---

// A tensor for each parameter of the node's schedule.
static void tensors_of(hd_planner_t *p, const hd_node_t *node,
                       const hd_var_t **tensors) {
  for (uint32_t i = 0; i < node->num_inputs; i++)
    tensors[i] = hd_planner_tensor(p, node->inputs[i]);
  for (uint32_t k = 0; k < node->num_outputs; k++) {
    uint32_t i = node->num_inputs + k;
    tensors[i] = node->outputs[k]
                     ? hd_planner_tensor(p, node->outputs[k])
                     : hd_planner_declare(p, node->schedule->params[i]);
  }
}

static bool plan_schedule(hd_planner_t *p, const hd_node_t *node,
                          const hd_var_t *const *tensors) {
  const hd_func_t *schedule = node->schedule;
  if (schedule->kind == HD_FUNC_KERNEL) {
    const hd_expr_t **args =
        HD_ARENA_ARRAY(p->arena, const hd_expr_t *, schedule->num_params + 1);
    for (uint32_t i = 0; i < schedule->num_params; i++)
      args[i] = hd_expr_var(p->arena, tensors[i]);
    hd_planner_launch(p, schedule, args, node->loc);
    return true;
  }
  hd_rewriter_t rewriter = {.arena = p->arena, .declare = hd_rewriter_copy_var};
  for (uint32_t i = 0; i < schedule->num_params; i++)
    hd_rewriter_map(&rewriter, schedule->params[i], tensors[i]);
  hd_rewrite_into(&rewriter, schedule->body, &p->body);
  return true;
}

bool hd_planner_copy(hd_planner_t *p, const hd_value_t *like,
                     const hd_var_t *from, const hd_var_t *to) {
  const hd_node_t *node = hd_node_between(
      p->arena, "copy", hd_library_task(p->module->context, "copy"), like, like,
      NULL, like->loc);
  const hd_node_t *scheduled =
      node->task ? hd_node_schedule(p->module, p->scheduler, node, NULL) : NULL;
  const hd_var_t *tensors[] = {from, to};
  return scheduled && plan_schedule(p, scheduled, tensors);
}

bool hd_planner_node(hd_planner_t *p, const hd_node_t *node) {
  if (hd_ptr_map_get(&p->viewed, node))
    return true;
  if (hd_node_is_loop(node))
    return hd_planner_loop(p, node);
  if (hd_node_is_reshape(node)) {
    const hd_var_t *from = hd_planner_tensor(p, node->inputs[0]);
    const hd_var_t *to = hd_ptr_map_get(&p->tensors, node->outputs[0]);
    if (to && to != from)
      return hd_planner_copy(p, node->inputs[0], from, to);
    hd_ptr_map_set(p->arena, &p->tensors, node->outputs[0], from);
    return true;
  }
  if (!node->schedule)
    node = hd_node_schedule(p->module, p->scheduler, node, NULL);
  if (!node)
    return false;
  const hd_var_t **tensors = HD_ARENA_ARRAY(p->arena, const hd_var_t *,
                                            node->schedule->num_params + 1);
  tensors_of(p, node, tensors);
  return plan_schedule(p, node, tensors);
}
