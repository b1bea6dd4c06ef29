// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A graph of tasks to a plan. A reshape moves nothing: both values are one
// tensor of the plan.
#include "Schedule/Schedule.h"

#include "IR/Library.h"
#include "Schedule/Build.h"
#include "Support/PtrMap.h"

typedef struct grapher {
  hd_module_t *module;
  hd_arena_t *arena;
  const hd_graph_t *graph;
  hd_scheduler_t *scheduler;
  hd_ptr_map_t tensors; // Values to tensors of the plan.
  HD_VEC(const hd_var_t *) params;
} grapher_t;

bool hd_scheduled_output(const hd_graph_t *graph, size_t i) {
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

static hd_tensor_type_t type_of(const hd_value_t *value) {
  hd_tensor_type_t type = {value->type, (unsigned)value->rank, {0}};
  for (unsigned i = 0; i < type.rank; i++)
    hd_expr_fold_int(value->shape[i], &type.shape[i]);
  return type;
}

static void add_param(grapher_t *g, const hd_value_t *value,
                      hd_direction_t direction) {
  hd_builder_t b = {.arena = g->arena, .loc = value->loc};
  hd_tensor_type_t type = type_of(value);
  for (unsigned i = 0; i < type.rank; i++)
    type.shape[i] = type.shape[i] ? type.shape[i] : 1;
  hd_var_t *var = hd_b_tensor(&b, HD_SCOPE_GLOBAL, value->name, type.type,
                              type.shape, type.rank, NULL);
  var->direction = direction;
  hd_vec_push(g->arena, &g->params, var);
  hd_ptr_map_set(g->arena, &g->tensors, value, var);
}

// The tensor of a value that a node gives: an output's parameter or a
// workspace.
static const hd_var_t *tensor_for(grapher_t *g, const hd_value_t *value) {
  const hd_var_t *var = hd_ptr_map_get(&g->tensors, value);
  if (var)
    return var;
  hd_tensor_type_t type = type_of(value);
  var = hd_scheduler_workspace(g->scheduler, value->name, &type);
  hd_ptr_map_set(g->arena, &g->tensors, value, var);
  return var;
}

static const hd_task_binding_t *bind(grapher_t *g, const hd_node_t *node) {
  hd_tensor_type_t *inputs =
      HD_ARENA_ARRAY(g->arena, hd_tensor_type_t, node->num_inputs + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    inputs[i] = type_of(node->inputs[i]);
  return hd_task_bind(g->module->context, g->arena, node->task, inputs,
                      node->num_inputs, node->attributes, node->num_attributes,
                      node->loc, node->label ? node->label : node->op);
}

// The task that copies: of tensors of one shape, whichever.
static bool schedule_copy(grapher_t *g, const hd_node_t *node) {
  const hd_task_t *copy = hd_library_task(g->module->context, "copy");
  hd_tensor_type_t type = type_of(node->outputs[0]);
  const hd_task_binding_t *binding =
      copy ? hd_task_bind(g->module->context, g->arena, copy, &type, 1, NULL, 0,
                          node->loc, node->op)
           : NULL;
  const hd_var_t *tensors[] = {hd_ptr_map_get(&g->tensors, node->inputs[0]),
                               hd_ptr_map_get(&g->tensors, node->outputs[0])};
  return binding &&
         hd_schedule_task(g->scheduler, binding, tensors, "copy", node->loc);
}

static bool schedule_node(grapher_t *g, const hd_node_t *node) {
  if (hd_node_is_reshape(node)) {
    // An output has a parameter of its own.
    if (hd_ptr_map_get(&g->tensors, node->outputs[0]))
      return schedule_copy(g, node);
    hd_ptr_map_set(g->arena, &g->tensors, node->outputs[0],
                   tensor_for(g, node->inputs[0]));
    return true;
  }
  const hd_task_binding_t *binding = bind(g, node);
  if (!binding)
    return false;
  uint32_t count = node->num_inputs + node->num_outputs;
  const hd_var_t **tensors =
      HD_ARENA_ARRAY(g->arena, const hd_var_t *, count + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    tensors[i] = tensor_for(g, node->inputs[i]);
  for (uint32_t i = 0; i < node->num_outputs; i++)
    tensors[node->num_inputs + i] =
        node->outputs[i] ? tensor_for(g, node->outputs[i])
                         : hd_scheduler_workspace(g->scheduler, "unused",
                                                  &binding->outputs[i]);
  return hd_schedule_task(g->scheduler, binding, tensors, node->op, node->loc);
}

// Whether every shape is known.
static bool check_values(grapher_t *g, const hd_value_t *const *values,
                         size_t count) {
  for (size_t i = 0; i < count; i++)
    if (values[i] && !hd_value_is_concrete(values[i]))
      return hd_error(&g->module->context->diags, values[i]->loc, HD_E1104,
                      values[i]->name,
                      "a tensor whose shape is not known cannot be scheduled; "
                      "--expand finds shapes");
  return true;
}

static bool check_graph(grapher_t *g) {
  const hd_graph_t *graph = g->graph;
  bool ok = check_values(g, graph->inputs.data, graph->inputs.size) &&
            check_values(g, graph->constants.data, graph->constants.size) &&
            check_values(g, graph->outputs.data, graph->outputs.size);
  for (size_t i = 0; ok && i < graph->nodes.size; i++)
    ok = check_values(g, graph->nodes.data[i]->outputs,
                      graph->nodes.data[i]->num_outputs);
  return ok;
}

const hd_func_t *hd_schedule_graph(hd_module_t *module,
                                   const hd_graph_t *graph) {
  grapher_t g = {.module = module, .arena = &module->arena, .graph = graph};
  if (!check_graph(&g))
    return NULL;
  g.scheduler = hd_scheduler_create(module, g.arena);
  for (size_t i = 0; i < graph->inputs.size; i++)
    add_param(&g, graph->inputs.data[i], HD_DIR_IN);
  for (size_t i = 0; i < graph->constants.size; i++)
    add_param(&g, graph->constants.data[i], HD_DIR_IN);
  for (size_t i = 0; i < graph->outputs.size; i++)
    if (hd_scheduled_output(graph, i))
      add_param(&g, graph->outputs.data[i], HD_DIR_OUT);
  for (size_t i = 0; i < graph->nodes.size; i++)
    if (!schedule_node(&g, graph->nodes.data[i]))
      return NULL;
  return hd_scheduler_finish(g.scheduler, graph->name ? graph->name : "main",
                             g.params.data, (uint32_t)g.params.size);
}
