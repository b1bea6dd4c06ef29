// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Faults on purpose, to see what the comparison notices: a node computes
// something else, takes its inputs in another order or has another number
// among its attributes, or one element of a leaf is off.
#include "Fuzz.h"

#include "IR/Text/Library.h"

#include <string.h>

static const char *const swaps[][2] = {
    {"add", "sub"},
    {"mul", "add"},
    {"maximum", "minimum"},
    {"relu", "copy"},
    {"sigmoid", "tanh"},
    {"gelu", "gelu_tanh"},
    {"exp", "sinh"},
    {"reduce_sum", "reduce_mean"},
    {"reduce_max", "reduce_min"},
    {"softmax", "log_softmax"},
    {"less", "less_equal"},
    {"pad_edge", "pad_wrap"},
    {"cumsum", "cumsum_exclusive"},
};

static bool plant_operator(fuzz_graph_t *g, fuzz_node_t *node) {
  for (size_t i = 0; i < sizeof swaps / sizeof swaps[0]; i++)
    for (int k = 0; k < 2; k++)
      if (strcmp(node->node.op, swaps[i][k]) == 0) {
        node->node.op = swaps[i][1 - k];
        node->node.task = hd_library_task(g->context, node->node.op);
        return true;
      }
  return false;
}

static bool plant_order(fuzz_graph_t *g, fuzz_node_t *node) {
  if (node->node.num_inputs < 2 || node->inputs[0] == node->inputs[1])
    return false;
  hd_tensor_type_t a = fuzz_type_of(node->inputs[0]);
  hd_tensor_type_t b = fuzz_type_of(node->inputs[1]);
  if (memcmp(&a, &b, sizeof a) != 0)
    return false;
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(&g->arena, const hd_value_t *, node->node.num_inputs + 1);
  memcpy(inputs, node->node.inputs, node->node.num_inputs * sizeof *inputs);
  inputs[0] = node->node.inputs[1];
  inputs[1] = node->node.inputs[0];
  node->node.inputs = inputs;
  return true;
}

static bool plant_attribute(fuzz_graph_t *g, fuzz_node_t *node) {
  uint32_t count = node->node.num_attributes;
  if (count == 0)
    return false;
  int64_t at = fuzz_in(g, 0, count - 1);
  hd_attribute_t *a = HD_ARENA_NEW(&g->arena, hd_attribute_t);
  *a = *node->node.attributes[at];
  if (a->kind == HD_ATTRIBUTE_INTS && a->count) {
    int64_t *ints = HD_ARENA_ARRAY(&g->arena, int64_t, a->count);
    memcpy(ints, a->u.ints, a->count * sizeof *ints);
    ints[fuzz_in(g, 0, (int64_t)a->count - 1)] += fuzz_once_in(g, 2) ? 1 : -1;
    a->u.ints = ints;
  } else if (a->kind == HD_ATTRIBUTE_INT) {
    a->u.i += fuzz_once_in(g, 2) ? 1 : -1;
  } else if (a->kind == HD_ATTRIBUTE_FLOAT) {
    a->u.f = a->u.f * 1.01 + 0.001;
  } else {
    return false;
  }
  const hd_attribute_t **list =
      HD_ARENA_ARRAY(&g->arena, const hd_attribute_t *, count);
  memcpy(list, node->node.attributes, count * sizeof *list);
  list[at] = a;
  node->node.attributes = list;
  return true;
}

// By one part in a hundred of the greatest; of an integer by 1. In data of its
// own: what is expected remains.
static bool plant_element(fuzz_graph_t *g, fuzz_value_t *v) {
  if (v->from || v->data->count == 0)
    return false;
  hd_host_tensor_t *data = hd_host_tensor_make(&g->arena, v->data->type,
                                               v->data->shape, v->data->rank);
  memcpy(data->data, v->data->data, v->data->bytes);
  int64_t i = fuzz_in(g, 0, data->count - 1);
  if (fuzz_is_float(data->type))
    hd_host_tensor_set(data, i,
                       hd_host_tensor_get(data, i) + fuzz_scale(data) / 100);
  else
    hd_host_tensor_set_int(data, i, hd_host_tensor_get_int(data, i) ^ 1);
  v->data = data;
  if (v->constant)
    v->value->constant->tensor = data;
  return true;
}

bool fuzz_plant(fuzz_graph_t *g, fuzz_fault_t *fault) {
  for (int tries = 0; tries < 50; tries++) {
    fuzz_value_t *value =
        g->values.data[fuzz_in(g, 0, (int64_t)g->values.size - 1)];
    fuzz_node_t *node =
        g->nodes.data[fuzz_in(g, 0, (int64_t)g->nodes.size - 1)];
    bool planted = false;
    *fault = (fuzz_fault_t)fuzz_in(g, 0, FUZZ_FAULTS - 1);
    switch (*fault) {
    case FUZZ_FAULT_OPERATOR:
      planted = plant_operator(g, node);
      break;
    case FUZZ_FAULT_ORDER:
      planted = plant_order(g, node);
      break;
    case FUZZ_FAULT_ATTRIBUTE:
      planted = plant_attribute(g, node);
      break;
    case FUZZ_FAULT_ELEMENT:
      planted = plant_element(g, value);
      break;
    case FUZZ_FAULTS:
      break;
    }
    if (planted)
      return true;
  }
  return false;
}
