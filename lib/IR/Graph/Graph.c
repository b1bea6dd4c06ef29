// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Graph/Graph.h"

#include <assert.h>
#include <string.h>

const char *hd_value_axis_name(hd_arena_t *arena, const hd_value_t *value,
                               int axis) {
  return hd_arena_printf(arena, "%s_%d", hd_value_label(value), axis);
}

bool hd_value_is_concrete(const hd_value_t *value) {
  if (value->form != HD_HOLDS_TENSOR || value->type == HD_VOID ||
      value->rank < 0)
    return false;
  for (int i = 0; i < value->rank; i++)
    if (!value->shape[i] || !hd_expr_is_const(value->shape[i]))
      return false;
  return true;
}

const hd_attribute_t *hd_node_attribute(const hd_node_t *node,
                                        const char *name) {
  for (uint32_t i = 0; i < node->num_attributes; i++)
    if (strcmp(node->attributes[i]->name, name) == 0)
      return node->attributes[i];
  return NULL;
}

const char *hd_attribute_kind_name(hd_attribute_kind_t kind) {
  static const char *const names[] = {
      "an integer", "a float", "a string", "integers", "floats", "strings",
      "a tensor",   "a graph", "a type",   "a size",   "sizes",
  };
  static_assert(sizeof names / sizeof names[0] == HD_ATTRIBUTE_KINDS,
                "a name for each kind");
  return names[kind];
}

hd_value_t *hd_value_make(hd_arena_t *arena, const char *name, hd_scalar_t type,
                          const int64_t *shape, unsigned rank, hd_loc_t loc) {
  hd_value_t *value = HD_ARENA_NEW(arena, hd_value_t);
  const hd_expr_t **sizes = HD_ARENA_ARRAY(arena, const hd_expr_t *, rank + 1);
  for (unsigned i = 0; i < rank; i++)
    sizes[i] = hd_expr_int(arena, hd_type(HD_I64), shape[i]);
  *value = (hd_value_t){.name = name,
                        .loc = loc,
                        .type = type,
                        .rank = (int)rank,
                        .shape = sizes};
  return value;
}

hd_node_t *hd_node_between(hd_arena_t *arena, const char *op,
                           const hd_task_t *task, const hd_value_t *from,
                           const hd_value_t *to,
                           const hd_attribute_t *attribute, hd_loc_t loc) {
  hd_node_t *node = HD_ARENA_NEW(arena, hd_node_t);
  const hd_value_t **ends = HD_ARENA_ARRAY(arena, const hd_value_t *, 2);
  const hd_attribute_t **attributes =
      HD_ARENA_ARRAY(arena, const hd_attribute_t *, 1);
  ends[0] = from;
  ends[1] = to;
  attributes[0] = attribute;
  *node = (hd_node_t){.op = op,
                      .task = task,
                      .loc = loc,
                      .num_inputs = 1,
                      .inputs = &ends[0],
                      .num_outputs = 1,
                      .outputs = &ends[1],
                      .num_attributes = attribute ? 1 : 0,
                      .attributes = attributes};
  return node;
}

bool hd_node_is_reshape(const hd_node_t *node) {
  return !node->domain && !node->task && strcmp(node->op, "reshape") == 0;
}

bool hd_node_has_bool(const hd_node_t *node, const char *name) {
  for (size_t i = 0; node->task && i < node->task->inputs.size; i++) {
    const hd_task_value_t *value = node->task->inputs.data[i];
    if (value->kind == HD_VALUE_ATTRIBUTE && value->type.scalar == HD_BOOL &&
        strcmp(value->name, name) == 0)
      return true;
  }
  return false;
}

hd_scalar_t hd_node_float_type(const hd_node_t *node) {
  return node->domain ? HD_F32 : HD_F64;
}

static const hd_node_t *in_group(hd_arena_t *arena, const hd_node_t *node,
                                 uint32_t group) {
  if (node->group == group && (group || !node->anchor))
    return node;
  hd_node_t *copy = HD_ARENA_COPY(arena, hd_node_t, node);
  copy->group = group;
  copy->anchor = group && node->anchor;
  return copy;
}

void hd_graph_settle_groups(hd_arena_t *arena, hd_graph_t *graph) {
  const hd_node_t **nodes = graph->nodes.data;
  uint32_t groups = 0;
  for (size_t i = 0, end; i < graph->nodes.size; i = end) {
    bool anchored = false;
    uint32_t old = nodes[i]->group;
    for (end = i; end < graph->nodes.size && nodes[end]->group == old; end++)
      anchored |= old && nodes[end]->anchor;
    groups += anchored;
    for (size_t k = i; k < end; k++)
      nodes[k] = in_group(arena, nodes[k], anchored ? groups : 0);
  }
}

bool hd_graph_walk_constants(const hd_graph_t *graph,
                             bool (*visit)(void *argument,
                                           const hd_value_t *constant),
                             void *argument) {
  for (size_t i = 0; i < graph->constants.size; i++)
    if (!visit(argument, graph->constants.data[i]))
      return false;
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    for (uint32_t k = 0; k < node->num_attributes; k++) {
      const hd_attribute_t *a = node->attributes[k];
      if (a->kind == HD_ATTRIBUTE_TENSOR && !visit(argument, a->u.tensor))
        return false;
      if (a->kind == HD_ATTRIBUTE_GRAPH &&
          !hd_graph_walk_constants(a->u.graph, visit, argument))
        return false;
    }
  }
  return true;
}

hd_graph_t *hd_graph_without_nodes(hd_arena_t *arena, const hd_graph_t *graph) {
  hd_graph_t *made = HD_ARENA_COPY(arena, hd_graph_t, graph);
  memset(&made->nodes, 0, sizeof made->nodes);
  return made;
}
