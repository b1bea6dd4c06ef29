// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plan for a graph whose anchors are scheduled. A reshape moves nothing:
// both values are one tensor of the plan. Groups that compute the same share
// their kernels.
#include "Fusion/Fuse.h"
#include "Fusion/Join.h"
#include "Fusion/Views.h"
#include "IR/Library.h"
#include "Schedule/Build.h"
#include "Support/Hash.h"

#include <string.h>
// An arena serves uthash as well as the heap.
#define uthash_malloc(size) hd_arena_alloc(arena, size)
#define uthash_free(pointer, size) ((void)(pointer), (void)(size))
#include <uthash.h>

// A group that was joined, and others like it.
typedef struct recipe {
  const char *key;
  const hd_node_t *const *nodes; // That it was made for.
  const char *why;               // It could not be.
  hd_joined_t joined;
  UT_hash_handle hh;
} recipe_t;

typedef struct planner {
  hd_module_t *module;
  hd_arena_t *arena;
  const hd_graph_t *graph;
  hd_scheduler_t *scheduler;
  hd_fusion_t *fusion;
  bool explain;
  hd_ptr_map_t tensors; // Values to tensors of the plan.
  hd_ptr_map_t viewed;  // Nodes that cost nothing: their operands are views.
  hd_ptr_map_t views;   // Tensors to what they are views of, REF.
  hd_ptr_map_t kept;    // Values that are read outside of their group.
  HD_VEC(const hd_var_t *) params;
  hd_stmt_list_t body;
  recipe_t *recipes;
} planner_t;

bool hd_planned_output(const hd_graph_t *graph, size_t i) {
  const hd_value_t *value = graph->outputs.data[i];
  bool found = false;
  for (size_t k = 0; k < graph->inputs.size; k++)
    found |= graph->inputs.data[k] == value;
  for (size_t k = 0; k < graph->constants.size; k++)
    found |= graph->constants.data[k] == value;
  for (size_t k = 0; k < i; k++)
    found |= graph->outputs.data[k] == value;
  return !found;
}

// --- Tensors of the plan ---

static void add_param(planner_t *p, const hd_value_t *value,
                      hd_direction_t direction) {
  hd_tensor_type_t type = hd_scheduled_type(value);
  hd_var_t *var = hd_scheduled_tensor(p->arena, value->name, &type);
  var->loc = value->loc;
  var->direction = direction;
  hd_vec_push(p->arena, &p->params, (const hd_var_t *)var);
  hd_ptr_map_set(p->arena, &p->tensors, value, var);
}

static const hd_var_t *workspace(planner_t *p, const char *name,
                                 const hd_tensor_type_t *type) {
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_DECLARE, (hd_loc_t){0, 0});
  stmt->u.declare.var = hd_scheduled_tensor(p->arena, name, type);
  hd_stmt_list_push(p->arena, &p->body, stmt);
  return stmt->u.declare.var;
}

// Of a value that a node gives or takes: a parameter, or a workspace.
static const hd_var_t *tensor_for(planner_t *p, const hd_value_t *value) {
  const hd_var_t *var = hd_ptr_map_get(&p->tensors, value);
  if (var)
    return var;
  hd_tensor_type_t type = hd_scheduled_type(value);
  var = workspace(p, value->name, &type);
  hd_ptr_map_set(p->arena, &p->tensors, value, var);
  return var;
}

static void put_launch(planner_t *p, const hd_func_t *kernel,
                       const hd_expr_t *const *args, uint32_t count,
                       hd_loc_t loc) {
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_LAUNCH, loc);
  stmt->u.launch.kernel = kernel;
  stmt->u.launch.num_args = count;
  stmt->u.launch.args = args;
  hd_stmt_list_push(p->arena, &p->body, stmt);
}

// --- A node alone ---

// Tensors that a schedule declares are declared once more for each node.
static const hd_var_t *declare_again(hd_rewriter_t *rewriter,
                                     const hd_var_t *var) {
  hd_var_t *copy = HD_ARENA_NEW(rewriter->arena, hd_var_t);
  *copy = *var;
  return copy;
}

// A tensor for each parameter of the node's schedule.
static void tensors_of(planner_t *p, const hd_node_t *node,
                       const hd_var_t **tensors) {
  for (uint32_t i = 0; i < node->num_inputs; i++)
    tensors[i] = tensor_for(p, node->inputs[i]);
  for (uint32_t i = 0; i < node->num_outputs; i++) {
    const hd_var_t *param = node->schedule->params[node->num_inputs + i];
    hd_tensor_type_t type = {(hd_scalar_t)param->type.scalar, 0, {0}};
    if (!node->outputs[i]) {
      type.rank = param->tensor->rank;
      for (unsigned k = 0; k < type.rank; k++)
        hd_expr_fold_int(param->tensor->shape[k], &type.shape[k]);
    }
    tensors[node->num_inputs + i] = node->outputs[i]
                                        ? tensor_for(p, node->outputs[i])
                                        : workspace(p, "unused", &type);
  }
}

static bool plan_schedule(planner_t *p, const hd_node_t *node,
                          const hd_var_t *const *tensors) {
  const hd_func_t *schedule = node->schedule;
  if (schedule->kind == HD_FUNC_KERNEL) {
    const hd_expr_t **args =
        HD_ARENA_ARRAY(p->arena, const hd_expr_t *, schedule->num_params + 1);
    for (uint32_t i = 0; i < schedule->num_params; i++)
      args[i] = hd_expr_var(p->arena, tensors[i]);
    put_launch(p, schedule, args, schedule->num_params, node->loc);
    return true;
  }
  hd_rewriter_t rewriter = {.arena = p->arena, .declare = declare_again};
  for (uint32_t i = 0; i < schedule->num_params; i++)
    hd_rewriter_map(&rewriter, schedule->params[i], tensors[i]);
  hd_rewrite_into(&rewriter, schedule->body, &p->body);
  hd_rewriter_fini(&rewriter);
  return true;
}

// The task that copies: of tensors of one shape, whichever.
static bool plan_copy(planner_t *p, const hd_node_t *reshape) {
  hd_node_t *node = HD_ARENA_NEW(p->arena, hd_node_t);
  *node = *reshape;
  node->op = "copy";
  node->task = hd_library_task(p->module->context, "copy");
  const hd_node_t *scheduled =
      node->task ? hd_node_schedule(p->module, p->scheduler, node) : NULL;
  const hd_var_t *tensors[] = {hd_ptr_map_get(&p->tensors, node->inputs[0]),
                               hd_ptr_map_get(&p->tensors, node->outputs[0])};
  return scheduled && plan_schedule(p, scheduled, tensors);
}

static bool plan_node(planner_t *p, const hd_node_t *node) {
  if (hd_ptr_map_get(&p->viewed, node))
    return true;
  if (hd_node_is_reshape(node)) {
    const hd_var_t *from = tensor_for(p, node->inputs[0]);
    const hd_var_t *to = hd_ptr_map_get(&p->tensors, node->outputs[0]);
    if (to && to != from)
      return plan_copy(p, node);
    hd_ptr_map_set(p->arena, &p->tensors, node->outputs[0], from);
    return true;
  }
  if (!node->schedule)
    node = hd_node_schedule(p->module, p->scheduler, node);
  if (!node)
    return false;
  const hd_var_t **tensors = HD_ARENA_ARRAY(p->arena, const hd_var_t *,
                                            node->schedule->num_params + 1);
  tensors_of(p, node, tensors);
  return plan_schedule(p, node, tensors);
}

// --- Groups ---

static bool is_kept(void *argument, const hd_value_t *value) {
  return hd_ptr_map_get(&((planner_t *)argument)->kept, value);
}

// Where a value comes from, seen from a group: node and output, or the first
// node and input that read it.
typedef struct position {
  size_t node;
  uint32_t index;
  bool is_output, found;
} position_t;

static position_t find_position(const hd_node_t *const *nodes, size_t count,
                                const hd_value_t *value) {
  for (size_t i = 0; i < count; i++) {
    for (uint32_t k = 0; k < nodes[i]->num_outputs; k++)
      if (nodes[i]->outputs[k] == value)
        return (position_t){i, k, true, true};
    for (uint32_t k = 0; k < nodes[i]->num_inputs; k++)
      if (nodes[i]->inputs[k] == value)
        return (position_t){i, k, false, true};
  }
  return (position_t){0};
}

static const hd_value_t *at_position(const hd_node_t *const *nodes,
                                     position_t at) {
  return at.is_output ? nodes[at.node]->outputs[at.index]
                      : nodes[at.node]->inputs[at.index];
}

// Everything that decides the kernels of a group.
static void group_key(planner_t *p, const hd_node_t *const *nodes, size_t count,
                      hd_buffer_t *key) {
  for (size_t i = 0; i < count; i++) {
    const hd_node_t *node = nodes[i];
    hd_node_key(key, node);
    if (node->anchor)
      hd_buffer_printf(key, " anchor %p", (const void *)node->schedule);
    for (uint32_t k = 0; k < node->num_inputs; k++) {
      position_t at = find_position(nodes, count, node->inputs[k]);
      hd_buffer_printf(key, " %zu%c%u", at.node, at.is_output ? 'o' : 'i',
                       at.index);
      hd_group_literal_key(p->fusion, node->inputs[k], key);
    }
    for (uint32_t k = 0; k < node->num_outputs; k++)
      hd_buffer_printf(key, " %c",
                       !node->outputs[k]              ? '_'
                       : is_kept(p, node->outputs[k]) ? 'k'
                                                      : '-');
    hd_buffer_printf(key, ";");
  }
}

static recipe_t *find_recipe(planner_t *p, const hd_node_t *const *nodes,
                             size_t count) {
  hd_arena_t *arena = p->arena;
  hd_buffer_t key = {0};
  group_key(p, nodes, count, &key);
  const char *text = hd_buffer_text(&key);
  recipe_t *recipe;
  HASH_FIND_STR(p->recipes, text, recipe);
  if (!recipe) {
    recipe = HD_ARENA_NEW(arena, recipe_t);
    recipe->key = hd_arena_printf(arena, "%s", text);
    recipe->nodes = nodes;
    recipe->why =
        hd_group_join(p->fusion, nodes, count, is_kept, p, &recipe->joined);
    HASH_ADD_KEYPTR(hh, p->recipes, recipe->key, strlen(recipe->key), recipe);
  }
  hd_buffer_fini(&key);
  return recipe;
}

static const hd_expr_t *place_arg(planner_t *p, const recipe_t *recipe,
                                  const hd_node_t *const *nodes, size_t count,
                                  const hd_joined_arg_t *arg,
                                  const hd_ptr_map_t *workspaces) {
  if (arg->expr)
    return arg->expr;
  if (arg->workspace)
    return hd_expr_var(p->arena, hd_ptr_map_get(workspaces, arg->workspace));
  position_t at = find_position(recipe->nodes, count, arg->value);
  return hd_expr_var(p->arena, tensor_for(p, at_position(nodes, at)));
}

static void plan_recipe(planner_t *p, const recipe_t *recipe,
                        const hd_node_t *const *nodes, size_t count) {
  hd_ptr_map_t workspaces = {0};
  const hd_joined_t *joined = &recipe->joined;
  for (size_t i = 0; i < joined->workspaces.size; i++) {
    const hd_var_t *var = joined->workspaces.data[i];
    hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_DECLARE, (hd_loc_t){0, 0});
    hd_var_t *copy = HD_ARENA_NEW(p->arena, hd_var_t);
    *copy = *var;
    stmt->u.declare.var = copy;
    hd_stmt_list_push(p->arena, &p->body, stmt);
    hd_ptr_map_set(p->arena, &workspaces, var, copy);
  }
  for (size_t i = 0; i < joined->launches.size; i++) {
    const hd_joined_launch_t *launch = &joined->launches.data[i];
    uint32_t num_args = launch->kernel->num_params;
    const hd_expr_t **args =
        HD_ARENA_ARRAY(p->arena, const hd_expr_t *, num_args + 1);
    for (uint32_t k = 0; k < num_args; k++)
      args[k] =
          place_arg(p, recipe, nodes, count, &launch->args[k], &workspaces);
    put_launch(p, launch->kernel, args, num_args, nodes[count - 1]->loc);
  }
}

static bool plan_group(planner_t *p, const hd_node_t *const *nodes,
                       size_t count) {
  const recipe_t *recipe = find_recipe(p, nodes, count);
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
  for (size_t i = 0; i < count; i++)
    if (!plan_node(p, nodes[i]))
      return false;
  return true;
}

// --- The graph ---

// Values that are read by another group, or come out.
static void find_kept(planner_t *p) {
  const hd_graph_t *graph = p->graph;
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    for (uint32_t k = 0; k < node->num_inputs; k++) {
      const hd_node_t *giver =
          hd_ptr_map_get(&p->fusion->givers, node->inputs[k]);
      if (giver && (giver->group != node->group || !node->group))
        hd_ptr_map_set(p->arena, &p->kept, node->inputs[k], giver);
    }
  }
  for (size_t i = 0; i < graph->outputs.size; i++)
    hd_ptr_map_set(p->arena, &p->kept, graph->outputs.data[i], graph);
}

// What a reshape makes of a value that comes out is given in its place.
static void place_reshaped_outputs(planner_t *p) {
  for (size_t i = p->graph->nodes.size; i-- > 0;) {
    const hd_node_t *node = p->graph->nodes.data[i];
    if (!hd_node_is_reshape(node) || node->group)
      continue;
    const hd_var_t *to = hd_ptr_map_get(&p->tensors, node->outputs[0]);
    bool given = hd_ptr_map_get(&p->fusion->givers, node->inputs[0]);
    if (to && given && !hd_ptr_map_get(&p->tensors, node->inputs[0]))
      hd_ptr_map_set(p->arena, &p->tensors, node->inputs[0], to);
  }
}

// --- Views ---

// The value whose tensor a value lies in, where a node gives it and nothing has
// settled where that tensor is; else NULL.
static const hd_value_t *free_root(planner_t *p, const hd_value_t *value) {
  for (;;) {
    const hd_node_t *giver = hd_ptr_map_get(&p->fusion->givers, value);
    if (!giver || hd_ptr_map_get(&p->tensors, value))
      return NULL;
    if (!hd_node_is_reshape(giver) || giver->group)
      return value;
    value = giver->inputs[0];
  }
}

static void declare_view(planner_t *p, const hd_value_t *value,
                         const hd_var_t *base, int64_t offset) {
  const hd_expr_t *outer = hd_ptr_map_get(&p->views, base);
  if (outer) {
    base = outer->u.var;
    offset += outer->operands[0]->u.i;
  }
  hd_tensor_type_t type = hd_scheduled_type(value);
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_DECLARE, (hd_loc_t){0, 0});
  stmt->u.declare.var = hd_scheduled_tensor(p->arena, value->name, &type);
  stmt->u.declare.init = hd_expr_access_linear(
      p->arena, HD_EXPR_REF, base, 1,
      hd_expr_int(p->arena, hd_type(offset > INT32_MAX ? HD_I64 : HD_I32),
                  offset));
  hd_stmt_list_push(p->arena, &p->body, stmt);
  hd_ptr_map_set(p->arena, &p->tensors, value, stmt->u.declare.var);
  hd_ptr_map_set(p->arena, &p->views, stmt->u.declare.var,
                 stmt->u.declare.init);
}

// Operands of concatenations are stored in the result.
static void place_operands(planner_t *p, const hd_node_t *node) {
  int64_t offsets[HD_MAX_PARTS];
  const hd_value_t *roots[HD_MAX_PARTS];
  if (node->group || node->schedule ||
      !hd_node_concatenates(p->module->context, node, offsets))
    return;
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    roots[i] = free_root(p, node->inputs[i]);
    for (uint32_t k = 0; k < i; k++)
      if (roots[k] == roots[i])
        return;
    if (!roots[i])
      return;
  }
  const hd_var_t *whole = tensor_for(p, node->outputs[0]);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    declare_view(p, roots[i], whole, offsets[i]);
  hd_ptr_map_set(p->arena, &p->viewed, node, node);
}

static bool plan_nodes(planner_t *p) {
  const hd_graph_t *graph = p->graph;
  for (size_t i = 0; i < graph->nodes.size;) {
    size_t end = i + 1;
    uint32_t group = graph->nodes.data[i]->group;
    while (group && end < graph->nodes.size &&
           graph->nodes.data[end]->group == group)
      end++;
    hd_budget_check(&p->module->context->budget);
    bool ok = group ? plan_group(p, &graph->nodes.data[i], end - i)
                    : plan_node(p, graph->nodes.data[i]);
    if (!ok)
      return false;
    i = end;
  }
  return true;
}

const hd_func_t *hd_graph_apply_fusion(hd_module_t *module,
                                       hd_scheduler_t *scheduler,
                                       const hd_graph_t *graph, bool explain) {
  planner_t p = {.module = module,
                 .arena = &module->arena,
                 .graph = graph,
                 .scheduler = scheduler,
                 .explain = explain};
  if (!hd_graph_check_tasks(module, graph))
    return NULL;
  p.fusion = hd_fusion_create(module, scheduler, graph);
  for (size_t i = 0; i < graph->inputs.size; i++)
    add_param(&p, graph->inputs.data[i], HD_DIR_IN);
  for (size_t i = 0; i < graph->constants.size; i++)
    add_param(&p, graph->constants.data[i], HD_DIR_IN);
  for (size_t i = 0; i < graph->outputs.size; i++)
    if (hd_planned_output(graph, i))
      add_param(&p, graph->outputs.data[i], HD_DIR_OUT);
  find_kept(&p);
  place_reshaped_outputs(&p);
  // Backwards: a result that is an operand is placed before its own operands.
  for (size_t i = graph->nodes.size; i-- > 0;)
    place_operands(&p, graph->nodes.data[i]);
  return plan_nodes(&p)
             ? hd_b_plan(module, graph->name ? graph->name : "main", graph->loc,
                         p.params.data, p.params.size, &p.body)
             : NULL;
}

// Of an unfused graph a concatenation is a kernel, too.
static const hd_graph_t *schedule_rest(hd_module_t *module,
                                       hd_scheduler_t *scheduler,
                                       const hd_graph_t *graph) {
  hd_graph_t *made = HD_ARENA_NEW(&module->arena, hd_graph_t);
  *made = *graph;
  memset(&made->nodes, 0, sizeof(made->nodes));
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    if (node->task && !node->group && !node->schedule)
      node = hd_node_schedule(module, scheduler, node);
    if (!node)
      return NULL;
    hd_vec_push(&module->arena, &made->nodes, node);
  }
  return made;
}

const hd_func_t *hd_graph_compile(hd_module_t *module, const hd_graph_t *graph,
                                  const hd_fuse_options_t *options) {
  if (!hd_graph_check_tasks(module, graph))
    return NULL;
  if (!options->unfused)
    graph = hd_graph_fuse(module, graph, options->explain);
  hd_scheduler_t *scheduler = hd_scheduler_create(module, &module->arena);
  if (graph)
    graph = hd_graph_schedule_anchors(module, scheduler, graph);
  if (graph && options->unfused)
    graph = schedule_rest(module, scheduler, graph);
  return graph
             ? hd_graph_apply_fusion(module, scheduler, graph, options->explain)
             : NULL;
}
