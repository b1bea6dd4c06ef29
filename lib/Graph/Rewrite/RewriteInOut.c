// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Between a graph and one that changes: what is there in the beginning, and
// what is made of it in the end.
#include "Graph/Names.h"
#include "Graph/Rewrite/RewriteState.h"

#include <string.h>

static bool type_of(const hd_value_t *value, hd_tensor_type_t *type) {
  if (!hd_value_is_concrete(value))
    return false;
  *type =
      (hd_tensor_type_t){.type = value->type, .rank = (unsigned)value->rank};
  for (int i = 0; i < value->rank; i++)
    type->shape[i] = value->shape[i]->u.i;
  return true;
}

static bool not_expanded(hd_rw_graph_t *g, hd_loc_t loc, const char *name) {
  return hd_error(&g->module->context->diags, loc, HD_E1104, name,
                  "rewriting takes a graph of tasks with sizes that are "
                  "numbers: expand it first");
}

static hd_rw_value_t *enter_named(hd_rw_graph_t *g, const hd_value_t *value,
                                  const hd_tensor_type_t *type) {
  hd_rw_value_t *entered = value->constant
                               ? hd_rw_enter_constant(g, value, type)
                               : hd_rw_enter(g, value, type);
  hd_ptr_map_set(g->arena, &g->values, value, entered);
  hd_name_unique(g->arena, &g->names, value->name);
  return entered;
}

// Types of results that nobody has written follow from the task.
static const hd_tensor_type_t *result_types(hd_rw_graph_t *g,
                                            const hd_rw_node_t *node) {
  const hd_node_t *n = &node->node;
  hd_tensor_type_t *types = HD_ARENA_ARRAY(g->arena, hd_tensor_type_t,
                                           n->num_inputs + n->num_outputs + 1);
  bool concrete = true;
  for (uint32_t i = 0; i < n->num_outputs; i++)
    concrete &= n->outputs[i] && type_of(n->outputs[i], &types[i]);
  if (concrete || !n->task)
    return concrete ? types : NULL;
  for (uint32_t i = 0; i < n->num_inputs; i++)
    types[i] = node->inputs[i]->type;
  const hd_task_binding_t *binding =
      hd_task_bind(g->module->context, g->arena, n->task, types, n->num_inputs,
                   n->attributes, n->num_attributes, n->loc, NULL);
  return binding ? binding->outputs : NULL;
}

static bool enter_node(hd_rw_graph_t *g, const hd_node_t *n) {
  hd_rw_node_t *node = HD_ARENA_NEW(g->arena, hd_rw_node_t);
  bool constant = true;
  if (n->domain)
    return not_expanded(g, n->loc, n->op);
  node->node = *n;
  node->inputs = HD_ARENA_ARRAY(g->arena, hd_rw_value_t *, n->num_inputs + 1);
  node->outputs = HD_ARENA_ARRAY(g->arena, hd_rw_value_t *, n->num_outputs + 1);
  for (uint32_t i = 0; i < n->num_inputs; i++) {
    node->inputs[i] = hd_ptr_map_find(&g->values, n->inputs[i]);
    constant &= node->inputs[i]->constant;
    hd_rw_add_user(g, node->inputs[i], node);
  }
  unsigned errors = g->module->context->diags.num_errors;
  const hd_tensor_type_t *types = result_types(g, node);
  if (!types)
    return errors == g->module->context->diags.num_errors
               ? not_expanded(g, n->loc, n->op)
               : false;
  for (uint32_t i = 0; i < n->num_outputs; i++) {
    if (!n->outputs[i])
      continue;
    node->outputs[i] = enter_named(g, n->outputs[i], &types[i]);
    node->outputs[i]->def = node;
    node->outputs[i]->constant = constant;
  }
  hd_rw_insert(g, node, NULL);
  return true;
}

bool hd_rw_begin(hd_rw_graph_t *g, hd_module_t *module,
                 const hd_graph_t *graph) {
  *g = (hd_rw_graph_t){
      .module = module, .arena = &module->arena, .graph = graph};
  hd_tensor_type_t type;
  for (int constants = 0; constants < 2; constants++) {
    size_t count = constants ? graph->constants.size : graph->inputs.size;
    for (size_t i = 0; i < count; i++) {
      const hd_value_t *value =
          constants ? graph->constants.data[i] : graph->inputs.data[i];
      if (!type_of(value, &type))
        return not_expanded(g, value->loc, value->name);
      enter_named(g, value, &type);
    }
  }
  for (size_t i = 0; i < graph->nodes.size; i++)
    if (!enter_node(g, graph->nodes.data[i]))
      return false;
  for (size_t i = 0; i < graph->outputs.size; i++) {
    hd_rw_value_t *value = hd_ptr_map_find(&g->values, graph->outputs.data[i]);
    value->num_outputs++;
    hd_vec_push(g->arena, &g->outputs, value);
  }
  HD_VEC(hd_rw_node_t *) nodes = {0};
  for (hd_rw_node_t *node = g->first; node; node = node->next)
    hd_vec_push(g->arena, &nodes, node);
  while (nodes.size)
    hd_rw_drop(g, nodes.data[--nodes.size]);
  return true;
}

static const hd_node_t *finish_node(hd_rw_graph_t *g,
                                    const hd_rw_node_t *node) {
  hd_node_t *n = HD_ARENA_NEW(g->arena, hd_node_t);
  *n = node->node;
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(g->arena, const hd_value_t *, n->num_inputs + 1);
  const hd_value_t **outputs =
      HD_ARENA_ARRAY(g->arena, const hd_value_t *, n->num_outputs + 1);
  for (uint32_t i = 0; i < n->num_inputs; i++)
    inputs[i] = node->inputs[i]->value;
  for (uint32_t i = 0; i < n->num_outputs; i++)
    outputs[i] = node->outputs[i] ? node->outputs[i]->value : NULL;
  n->inputs = inputs;
  n->outputs = outputs;
  return n;
}

const hd_graph_t *hd_rw_finish(hd_rw_graph_t *g) {
  if (!g->changed)
    return g->graph;
  hd_rw_sort(g);
  hd_graph_t *graph = HD_ARENA_COPY(g->arena, hd_graph_t, g->graph);
  memset(&graph->outputs, 0, sizeof graph->outputs);
  memset(&graph->constants, 0, sizeof graph->constants);
  memset(&graph->nodes, 0, sizeof graph->nodes);
  for (size_t i = 0; i < g->constants.size; i++)
    if (hd_rw_is_used(g->constants.data[i]))
      hd_vec_push(g->arena, &graph->constants, g->constants.data[i]->value);
  for (const hd_rw_node_t *node = g->first; node; node = node->next)
    hd_vec_push(g->arena, &graph->nodes, finish_node(g, node));
  for (size_t i = 0; i < g->outputs.size; i++)
    hd_vec_push(g->arena, &graph->outputs, g->outputs.data[i]->value);
  hd_graph_settle_groups(g->arena, graph);
  return graph;
}
