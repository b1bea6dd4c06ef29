// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small constants of a graph that changes: what is in them, and nodes that are
// computed when they are put.
#include "Graph/Reference/Reference.h"
#include "Graph/Rewrite/RewriteState.h"

#include <string.h>

// More elements than that are computed where the rest is.
enum { MAX_FOLDED = 4096 };

const hd_host_tensor_t *hd_rw_known(hd_rw_graph_t *g, hd_rw_value_t *value,
                                    bool *failed) {
  if (value->asked || value->def || !value->constant)
    return value->known;
  value->asked = true;
  if (hd_tensor_type_count(&value->type) > MAX_FOLDED)
    return NULL;
  value->known = hd_constant_load(g->module, value->value);
  *failed |= !value->known;
  return value->known;
}

hd_rw_value_t *hd_rw_constant(hd_rw_graph_t *g, const char *base,
                              const hd_host_tensor_t *data) {
  hd_tensor_type_t type = hd_tensor_type_of(data);
  hd_value_t *value = hd_rw_value_make(g, base, &type);
  hd_constant_t *constant = HD_ARENA_NEW(g->arena, hd_constant_t);
  constant->tensor = data;
  value->constant = constant;
  return hd_rw_enter_constant(g, value, &type);
}

// The same elements under another shape, wherever they are.
static hd_rw_value_t *reshape_constant(hd_rw_graph_t *g, const char *base,
                                       const hd_rw_value_t *x,
                                       const hd_tensor_type_t *type) {
  hd_value_t *value = hd_rw_value_make(g, base, type);
  hd_constant_t *constant =
      HD_ARENA_COPY(g->arena, hd_constant_t, x->value->constant);
  if (constant->tensor) {
    hd_host_tensor_t *view =
        HD_ARENA_COPY(g->arena, hd_host_tensor_t, constant->tensor);
    view->rank = type->rank;
    memcpy(view->shape, type->shape, type->rank * sizeof(int64_t));
    constant->tensor = view;
  }
  value->constant = constant;
  return hd_rw_enter_constant(g, value, type);
}

static bool are_known(hd_rw_graph_t *g, const hd_node_t *node,
                      hd_rw_value_t *const *inputs,
                      const hd_tensor_type_t *types,
                      const hd_host_tensor_t **data, bool *failed) {
  if (!node->num_inputs)
    return false;
  hd_tensor_type_t *from =
      HD_ARENA_ARRAY(g->arena, hd_tensor_type_t, node->num_inputs);
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    if (inputs[i]->def || !inputs[i]->constant)
      return false;
    from[i] = inputs[i]->type;
  }
  if (!hd_task_is_small(from, node->num_inputs, types, node->num_outputs))
    return false;
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (!(data[i] = hd_rw_known(g, inputs[i], failed)))
      return false;
  return true;
}

bool hd_rw_evaluate(hd_rw_graph_t *g, const hd_node_t *node,
                    const hd_host_tensor_t *const *data, const char *base,
                    hd_rw_value_t **outputs) {
  hd_context_t *context = g->module->context;
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(g->arena, hd_tensor_type_t, node->num_inputs + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    types[i] = hd_tensor_type_of(data[i]);
  const hd_task_binding_t *binding =
      hd_task_bind(context, g->arena, node->task, types, node->num_inputs,
                   node->attributes, node->num_attributes, node->loc, NULL);
  hd_host_tensor_t *const *made =
      binding ? hd_task_fold(context, g->arena, binding, data, node->loc)
              : NULL;
  for (uint32_t i = 0; made && i < node->num_outputs; i++)
    outputs[i] = hd_rw_constant(g, base, made[i]);
  return made != NULL;
}

bool hd_rw_fold(hd_rw_graph_t *g, const hd_node_t *node,
                hd_rw_value_t *const *inputs, const hd_tensor_type_t *types,
                const char *base, hd_rw_value_t **outputs) {
  bool failed = false;
  if (hd_node_is_reshape(node)) {
    if (inputs[0]->constant && !inputs[0]->def)
      outputs[0] = reshape_constant(g, base, inputs[0], &types[0]);
    return true;
  }
  if (!node->task) // A loop.
    return true;
  const hd_host_tensor_t **data =
      HD_ARENA_ARRAY(g->arena, const hd_host_tensor_t *, node->num_inputs + 1);
  if (!are_known(g, node, inputs, types, data, &failed))
    return !failed;
  return hd_rw_evaluate(g, node, data, base, outputs);
}
