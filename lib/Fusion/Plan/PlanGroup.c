// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Groups of nodes that are one kernel. Groups that compute the same share it.
#include "Fusion/Join/Join.h"
#include "Fusion/Plan/PlanState.h"
#include "Schedule/Translate/Build.h"

#include <string.h>

// A group that was joined, and others like it.
struct hd_plan_recipe {
  hd_ptr_map_t positions; // Of the values of the nodes that it was made for.
  const char *why;        // It could not be.
  hd_joined_t joined;
};

// Where a value comes from, seen from a group: node and output, or the first
// node and input that read it.
typedef struct position {
  size_t node;
  uint32_t index;
  bool is_output;
  unsigned readers; // In the group.
} position_t;

static position_t *position_of(hd_planner_t *p, hd_ptr_map_t *positions,
                               const hd_value_t *value, position_t otherwise) {
  position_t *at = hd_ptr_map_find(positions, value);
  if (at)
    return at;
  at = HD_ARENA_NEW(p->arena, position_t);
  *at = otherwise;
  hd_ptr_map_set(p->arena, positions, value, at);
  return at;
}

// The positions of all values that a group reads or gives.
static void find_positions(hd_planner_t *p, const hd_node_t *const *nodes,
                           size_t count, hd_ptr_map_t *positions) {
  for (size_t i = 0; i < count; i++) {
    const hd_node_t *node = nodes[i];
    for (uint32_t k = 0; k < node->num_inputs; k++) {
      bool again = false;
      for (uint32_t n = 0; n < k; n++)
        again |= node->inputs[n] == node->inputs[k];
      position_t *at = position_of(p, positions, node->inputs[k],
                                   (position_t){i, k, false, 0});
      at->readers += !again;
    }
    for (uint32_t k = 0; k < node->num_outputs; k++)
      if (node->outputs[k])
        position_of(p, positions, node->outputs[k],
                    (position_t){i, k, true, 0});
  }
}

static const hd_value_t *at_position(const hd_node_t *const *nodes,
                                     const position_t *at) {
  return at->is_output ? nodes[at->node]->outputs[at->index]
                       : nodes[at->node]->inputs[at->index];
}

// Everything that decides the kernels of a group.
static void group_key(hd_planner_t *p, const hd_node_t *const *nodes,
                      size_t count, hd_buffer_t *key) {
  hd_ptr_map_t positions = {0};
  find_positions(p, nodes, count, &positions);
  for (size_t i = 0; i < count; i++) {
    const hd_node_t *node = nodes[i];
    hd_node_key(key, node);
    if (node->anchor)
      hd_buffer_printf(key, " anchor %p", (const void *)node->schedule);
    for (uint32_t k = 0; k < node->num_inputs; k++) {
      const position_t *at = hd_ptr_map_get(&positions, node->inputs[k]);
      hd_buffer_printf(key, " %zu%c%u", at->node, at->is_output ? 'o' : 'i',
                       at->index);
      hd_group_literal_key(p->fusion, node->inputs[k], key);
    }
    for (uint32_t k = 0; k < node->num_outputs; k++) {
      const hd_value_t *value = node->outputs[k];
      const position_t *at = value ? hd_ptr_map_get(&positions, value) : NULL;
      hd_buffer_printf(key, " %c",
                       !value ? '_'
                       : at->readers < hd_fusion_readers(p->fusion, value)
                           ? 'k'
                           : '-');
    }
    hd_buffer_printf(key, ";");
  }
}

static hd_plan_recipe_t *
find_recipe(hd_planner_t *p, const hd_node_t *const *nodes, size_t count) {
  hd_arena_t *arena = p->arena;
  hd_buffer_t key;
  hd_buffer_init_local(&key, arena->budget);
  group_key(p, nodes, count, &key);
  const char *text = hd_buffer_text(&key);
  hd_plan_recipe_t *recipe = hd_key_map_find_name(&p->recipes, text);
  if (!recipe) {
    recipe = HD_ARENA_NEW(arena, hd_plan_recipe_t);
    recipe->why = hd_group_join(p->fusion, nodes, count, &recipe->joined);
    find_positions(p, nodes, count, &recipe->positions);
    hd_key_map_set_name(arena, &p->recipes,
                        hd_arena_strndup(arena, text, key.size), recipe);
  }
  hd_buffer_fini(&key);
  return recipe;
}

static const hd_expr_t *place_arg(hd_planner_t *p,
                                  const hd_plan_recipe_t *recipe,
                                  const hd_node_t *const *nodes,
                                  const hd_joined_arg_t *arg,
                                  hd_ptr_map_t *workspaces) {
  if (arg->expr)
    return arg->expr;
  if (arg->workspace) {
    const hd_var_t *var = hd_ptr_map_get(workspaces, arg->workspace);
    if (!var) {
      var = hd_planner_declare(p, arg->workspace);
      hd_ptr_map_set(p->arena, workspaces, arg->workspace, var);
    }
    return hd_expr_var(p->arena, var);
  }
  const position_t *at = hd_ptr_map_get(&recipe->positions, arg->value);
  return hd_expr_var(p->arena, hd_planner_tensor(p, at_position(nodes, at)));
}

static void plan_recipe(hd_planner_t *p, const hd_plan_recipe_t *recipe,
                        const hd_node_t *const *nodes, size_t count) {
  hd_ptr_map_t workspaces = {0};
  const hd_joined_t *joined = &recipe->joined;
  for (size_t i = 0; i < joined->launches.size; i++) {
    const hd_joined_launch_t *launch = &joined->launches.data[i];
    uint32_t num_args = launch->kernel->num_params;
    const hd_expr_t **args =
        HD_ARENA_ARRAY(p->arena, const hd_expr_t *, num_args + 1);
    for (uint32_t k = 0; k < num_args; k++)
      args[k] = place_arg(p, recipe, nodes, &launch->args[k], &workspaces);
    hd_planner_launch(p, launch->kernel, args, nodes[count - 1]->loc)
        ->u.launch.programmatic = launch->programmatic;
  }
}

// An anchor whose schedule nobody has asked for gets one here.
static bool schedule_group(hd_planner_t *p, const hd_node_t **nodes,
                           size_t count) {
  for (size_t i = 0; i < count; i++)
    if (nodes[i]->anchor && !nodes[i]->schedule) {
      hd_members_t group = {p->fusion, nodes, count, i};
      nodes[i] = hd_node_schedule(p->module, p->scheduler, nodes[i], &group);
      if (!nodes[i])
        return false;
    }
  return true;
}

// The group's rows of neighbours (Group/GroupRows.c), where it has some.
static size_t find_rows(hd_planner_t *p, const hd_node_t *const *nodes,
                        size_t count) {
  hd_pointwise_t pointwise;
  size_t i = 0;
  while (i < count && (nodes[i]->anchor ||
                       !hd_fusion_pointwise(p->fusion, nodes[i], &pointwise)))
    i++;
  return i;
}

// Rows have a kernel of their own, behind that of the rest.
static bool plan_apart(hd_planner_t *p, const hd_node_t **nodes, size_t count,
                       size_t rows) {
  const hd_node_t *node = nodes[rows];
  memmove(&nodes[rows], &nodes[rows + 1],
          (count - rows - 1) * sizeof(nodes[0]));
  return hd_planner_group(p, nodes, count - 1) && hd_planner_node(p, node);
}

bool hd_planner_group(hd_planner_t *p, const hd_node_t *const *given,
                      size_t count) {
  const hd_node_t **nodes =
      HD_ARENA_ARRAY(p->arena, const hd_node_t *, count + 1);
  memcpy(nodes, given, count * sizeof(nodes[0]));
  if (!schedule_group(p, nodes, count))
    return false;
  const hd_plan_recipe_t *recipe = find_recipe(p, nodes, count);
  if (!recipe->why) {
    plan_recipe(p, recipe, nodes, count);
    return true;
  }
  if (p->explain)
    for (size_t i = 0; i < count; i++)
      if (nodes[i]->anchor)
        hd_remark(&p->module->context->diags, nodes[i]->loc,
                  "fuse: %s and its group are several kernels after all: %s",
                  nodes[i]->op, recipe->why);
  size_t rows = find_rows(p, nodes, count);
  if (rows < count)
    return plan_apart(p, nodes, count, rows);
  for (size_t i = 0; i < count; i++) {
    const hd_node_t *node = nodes[i];
    // What was made for its group need not do without it.
    if (node->anchor && hd_scheduler_has_made(p->scheduler, node->schedule) &&
        !(node = hd_node_schedule(p->module, p->scheduler, node, NULL)))
      return false;
    if (!hd_planner_node(p, node))
      return false;
  }
  return true;
}
