// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Graph/Loop.h"

#include <string.h>

bool hd_node_is_loop(const hd_node_t *node) {
  return !node->domain && !node->task && strcmp(node->op, "loop") == 0;
}

hd_loop_t hd_node_loop(const hd_node_t *node) {
  const hd_graph_t *body = hd_node_attribute(node, "body")->u.graph;
  return (hd_loop_t){
      .body = body,
      .steps = hd_node_attribute(node, "steps")->u.i,
      .states = (uint32_t)hd_node_attribute(node, "states")->u.i,
      .scanned = (uint32_t)hd_node_attribute(node, "scanned")->u.i,
      .counts = (uint32_t)body->inputs.size - node->num_inputs,
  };
}

hd_node_t *hd_loop_with_body(hd_arena_t *arena, const hd_node_t *node,
                             const hd_graph_t *body) {
  hd_node_t *copy = HD_ARENA_COPY(arena, hd_node_t, node);
  const hd_attribute_t **attributes =
      HD_ARENA_ARRAY(arena, const hd_attribute_t *, node->num_attributes);
  for (uint32_t i = 0; i < node->num_attributes; i++) {
    attributes[i] = node->attributes[i];
    if (attributes[i]->kind != HD_ATTRIBUTE_GRAPH)
      continue;
    hd_attribute_t *a = HD_ARENA_COPY(arena, hd_attribute_t, attributes[i]);
    a->u.graph = body;
    attributes[i] = a;
  }
  copy->attributes = attributes;
  return copy;
}

const hd_graph_t *hd_graph_change_bodies(hd_arena_t *arena,
                                         const hd_graph_t *graph,
                                         hd_body_change_t change,
                                         void *argument) {
  hd_graph_t *made = NULL;
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    if (!hd_node_is_loop(node))
      continue;
    const hd_graph_t *body = hd_node_loop(node).body;
    const hd_graph_t *version = change(argument, body);
    if (!version)
      return NULL;
    if (version == body)
      continue;
    if (!made) {
      made = HD_ARENA_COPY(arena, hd_graph_t, graph);
      made->nodes.data =
          HD_ARENA_ARRAY(arena, const hd_node_t *, graph->nodes.size);
      made->nodes.capacity = graph->nodes.size;
      memcpy(made->nodes.data, graph->nodes.data,
             graph->nodes.size * sizeof(*graph->nodes.data));
    }
    made->nodes.data[i] = hd_loop_with_body(arena, node, version);
  }
  return made ? made : graph;
}
