// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The graph that an expansion makes: nodes put once each, values with names of
// their own, and what a segment takes and leaves where the walk stops.

#include "Graph/Expand/Expander.h"

#include <string.h>

typedef struct put_node {
  uint64_t key; // Of what the node computes; equal keys are compared.
  const hd_node_t *node;
} put_node_t;

static const char *unique_name(hd_expander_t *x, const char *name) {
  return hd_name_unique(hd_expander_arena(x), &x->names, name);
}

hd_value_t *hd_segment_value(hd_expander_t *x, const char *name,
                             const hd_tensor_type_t *type) {
  return hd_value_make(hd_expander_arena(x), unique_name(x, name), type->type,
                       type->shape, type->rank, (hd_loc_t){0});
}

const hd_value_t *hd_segment_constant(hd_expander_t *x,
                                      const hd_value_t *constant) {
  hd_arena_t *arena = hd_expander_arena(x);
  const hd_value_t *entered = hd_ptr_map_get(&x->entered, constant);
  if (entered)
    return entered;
  const char *wanted = constant->name ? constant->name : "c";
  const char *name = unique_name(x, wanted);
  if (name != constant->name) {
    hd_value_t *copy = HD_ARENA_NEW(arena, hd_value_t);
    *copy = *constant; // With the same elements, loaded once.
    copy->name = name;
    entered = copy;
  } else {
    entered = constant;
  }
  hd_ptr_map_set(arena, &x->entered, constant, entered);
  return entered;
}

// Of values of those types: a reshape is known by its result's shape.
static bool nodes_equal(const hd_node_t *a, const hd_node_t *b,
                        const hd_tensor_type_t *types) {
  if (a->task != b->task || strcmp(a->op, b->op) != 0 || a->group != b->group ||
      a->anchor != b->anchor || a->schedule != b->schedule ||
      a->pin != b->pin || a->num_inputs != b->num_inputs ||
      a->num_outputs != b->num_outputs || !hd_attributes_equal(a, b) ||
      memcmp(a->inputs, b->inputs, a->num_inputs * sizeof(*a->inputs)) != 0)
    return false;
  for (uint32_t i = 0; i < a->num_outputs; i++) {
    hd_tensor_type_t type = hd_lower_type(a->outputs[i]);
    if (!hd_tensor_type_equal(&type, &types[i]))
      return false;
  }
  return true;
}

// Of all that nodes_equal() compares.
static uint64_t node_key(const hd_node_t *node, const hd_tensor_type_t *types) {
  uint64_t key =
      hd_hash((uint64_t)(uintptr_t)node->task, node->op, strlen(node->op));
  key = hd_hash(key + node->group, &node->schedule, sizeof(node->schedule));
  key = hd_hash(key, node->inputs, node->num_inputs * sizeof(*node->inputs));
  for (uint32_t i = 0; i < node->num_attributes; i++)
    key = hd_attribute_key(key, node->attributes[i]);
  for (uint32_t i = 0; i < node->num_outputs; i++)
    key = hd_hash(key + types[i].type, types[i].shape,
                  types[i].rank * sizeof(int64_t));
  return key;
}

// Whether its results are: of this segment, or left by earlier ones.
static bool is_there(const hd_expander_t *x, const hd_node_t *node) {
  for (uint32_t i = 0; i < node->num_outputs; i++)
    if (!hd_ptr_map_get(&x->put, node->outputs[i]) &&
        !hd_ptr_map_get(&x->left, node->outputs[i]))
      return false;
  return true;
}

const hd_node_t *hd_segment_put(hd_expander_t *x, const hd_node_t *node,
                                const hd_tensor_type_t *types,
                                const char *name) {
  hd_arena_t *arena = hd_expander_arena(x);
  uint64_t key = node_key(node, types);
  put_node_t *entry = hd_key_map_find(&x->nodes, &key, sizeof(key));
  if (entry && nodes_equal(entry->node, node, types) &&
      is_there(x, entry->node))
    return entry->node;
  hd_node_t *copy = HD_ARENA_COPY(arena, hd_node_t, node);
  const hd_value_t **outputs =
      HD_ARENA_ARRAY(arena, const hd_value_t *, node->num_outputs + 1);
  for (uint32_t i = 0; i < node->num_outputs; i++) {
    outputs[i] = hd_segment_value(x, name, &types[i]);
    hd_ptr_map_set(arena, &x->put, outputs[i], copy);
  }
  copy->outputs = outputs;
  hd_vec_push(arena, &x->segment->nodes, copy);
  if (!entry) {
    entry = HD_ARENA_NEW(arena, put_node_t);
    entry->key = key;
    hd_key_map_set(arena, &x->nodes, &entry->key, sizeof(key), entry);
  }
  entry->node = copy;
  return copy;
}

void hd_segment_begin(hd_expander_t *x) {
  hd_arena_t *arena = hd_expander_arena(x);
  x->segment = HD_ARENA_NEW(arena, hd_graph_t);
  x->segment->name = x->walk->graph->name;
  x->segment->loc = x->walk->graph->loc;
  x->put = (hd_ptr_map_t){0};
  x->used = (hd_ptr_map_t){0};
}

// Enters a value that the segment needs; what it does not give itself comes
// from outside.
static void enter_used(hd_expander_t *x, const hd_value_t *value) {
  hd_arena_t *arena = hd_expander_arena(x);
  if (!value || hd_ptr_map_get(&x->used, value))
    return;
  hd_ptr_map_set(arena, &x->used, value, value);
  if (hd_ptr_map_get(&x->put, value))
    return;
  if (value->constant)
    hd_vec_push(arena, &x->segment->constants, value);
  else
    hd_vec_push(arena, &x->segment->inputs, value);
}

void hd_segment_end(hd_expander_t *x) {
  hd_arena_t *arena = hd_expander_arena(x);
  hd_graph_t *segment = x->segment;
  for (size_t i = 0; i < segment->outputs.size; i++)
    enter_used(x, segment->outputs.data[i]);
  // Backwards, so that what needs a node has been seen before it.
  bool *needed = HD_ARENA_ARRAY(arena, bool, segment->nodes.size + 1);
  for (size_t i = segment->nodes.size; i-- > 0;) {
    const hd_node_t *node = segment->nodes.data[i];
    for (uint32_t k = 0; k < node->num_outputs; k++)
      needed[i] |= hd_ptr_map_get(&x->used, node->outputs[k]) != NULL;
    for (uint32_t k = 0; needed[i] && k < node->num_inputs; k++)
      enter_used(x, node->inputs[k]);
  }
  size_t kept = 0;
  for (size_t i = 0; i < segment->nodes.size; i++)
    if (needed[i])
      segment->nodes.data[kept++] = segment->nodes.data[i];
  segment->nodes.size = kept;
  hd_graph_settle_groups(arena, segment);
}

static void keep(hd_expander_t *x, const hd_value_t *value) {
  hd_arena_t *arena = hd_expander_arena(x);
  if (!value || value == &hd_value_poison)
    return;
  if (value->form != HD_HOLDS_TENSOR) {
    const hd_list_value_t *list = (const hd_list_value_t *)value;
    for (size_t i = 0; i < list->count; i++)
      keep(x, list->items[i]);
    return;
  }
  if (!hd_ptr_map_get(&x->put, value) || hd_ptr_map_get(&x->used, value))
    return;
  hd_ptr_map_set(arena, &x->used, value, value);
  hd_ptr_map_set(arena, &x->left, value, value);
  hd_vec_push(arena, &x->segment->outputs, value);
}

// What the nodes of a graph that is not walked yet read from a walk.
static void keep_read(hd_expander_t *x, const hd_walk_t *walk,
                      const hd_graph_t *graph, const bool *done) {
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    if (done && done[i])
      continue;
    for (uint32_t k = 0; k < node->num_inputs; k++)
      if (node->inputs[k])
        keep(x, hd_walk_find(walk, node->inputs[k]));
    for (uint32_t k = 0; k < node->num_attributes; k++)
      if (node->attributes[k]->kind == HD_ATTRIBUTE_GRAPH)
        keep_read(x, walk, node->attributes[k]->u.graph, NULL);
  }
  for (size_t i = 0; i < graph->outputs.size; i++)
    keep(x, hd_walk_find(walk, graph->outputs.data[i]));
}

static void keep_walk(hd_expander_t *x, const hd_walk_t *walk) {
  keep_read(x, walk, walk->graph, walk->done);
  for (size_t i = 0; i < walk->children.size; i++)
    if (!walk->done[walk->children.data[i].node])
      keep_walk(x, walk->children.data[i].walk);
}

void hd_segment_keep(hd_expander_t *x) {
  keep(x, x->wanted);
  keep_walk(x, x->walk);
}
