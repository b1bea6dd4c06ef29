// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Graph/Prepare.h"

#include "Graph/Passes.h"
#include "Support/Map.h"

#include <string.h>

typedef struct split {
  hd_arena_t *arena;
  hd_graph_t *prepare, *rest;
  hd_ptr_map_t known;   // By hd_graph_known().
  hd_ptr_map_t used[2]; // What prepare and rest have already entered.
} split_t;

static bool is_prepared(const hd_ptr_map_t *known, const hd_node_t *node) {
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (!hd_ptr_map_get(known, node->inputs[i]))
      return false;
  return true;
}

hd_ptr_map_t hd_graph_known(hd_arena_t *arena, const hd_graph_t *graph) {
  hd_ptr_map_t known = {0};
  for (size_t i = 0; i < graph->constants.size; i++)
    hd_ptr_map_set(arena, &known, graph->constants.data[i], graph);
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    bool prepared = is_prepared(&known, node);
    for (uint32_t k = 0; prepared && k < node->num_outputs; k++)
      if (node->outputs[k])
        hd_ptr_map_set(arena, &known, node->outputs[k], node);
  }
  return known;
}

// Enters, once, what comes into one of the two from outside.
static void enter_used(split_t *s, bool rest, const hd_value_t *value) {
  hd_graph_t *graph = rest ? s->rest : s->prepare;
  bool prepared = !value->constant && hd_ptr_map_get(&s->known, value);
  if (hd_ptr_map_get(&s->used[rest], value))
    return;
  hd_ptr_map_set(s->arena, &s->used[rest], value, value);
  if (value->constant)
    hd_vec_push(s->arena, &graph->constants, value);
  if (prepared && rest) {
    hd_vec_push(s->arena, &s->prepare->outputs, value);
    hd_vec_push(s->arena, &s->rest->inputs, value);
  }
}

static void place(split_t *s, const hd_node_t *node) {
  bool rest = !is_prepared(&s->known, node);
  hd_graph_t *graph = rest ? s->rest : s->prepare;
  hd_vec_push(s->arena, &graph->nodes, node);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    enter_used(s, rest, node->inputs[i]);
}

static hd_graph_t *part(hd_arena_t *arena, const hd_graph_t *of) {
  hd_graph_t *graph = HD_ARENA_NEW(arena, hd_graph_t);
  graph->name = of->name;
  graph->loc = of->loc;
  return graph;
}

void hd_graph_split(hd_arena_t *arena, const hd_graph_t *graph,
                    const hd_graph_t **prepare, const hd_graph_t **rest) {
  split_t s = {.arena = arena,
               .prepare = part(arena, graph),
               .rest = part(arena, graph),
               .known = hd_graph_known(arena, graph)};
  for (size_t i = 0; i < graph->inputs.size; i++)
    hd_vec_push(arena, &s.rest->inputs, graph->inputs.data[i]);
  for (size_t i = 0; i < graph->nodes.size; i++)
    place(&s, graph->nodes.data[i]);
  for (size_t i = 0; i < graph->outputs.size; i++) {
    enter_used(&s, true, graph->outputs.data[i]);
    hd_vec_push(arena, &s.rest->outputs, graph->outputs.data[i]);
  }
  hd_graph_settle_groups(arena, s.prepare);
  hd_graph_settle_groups(arena, s.rest);
  *prepare = s.prepare;
  *rest = s.rest;
}

static bool gives_needed(const hd_ptr_map_t *needed, const hd_node_t *node) {
  for (uint32_t k = 0; k < node->num_outputs; k++)
    if (hd_ptr_map_get(needed, node->outputs[k]))
      return true;
  return false;
}

// needed: takes what outputs, and nodes that stay, read.
static void keep_needed(hd_arena_t *arena, hd_graph_t *graph,
                        hd_ptr_map_t *needed) {
  size_t first = graph->nodes.size;
  for (size_t i = 0; i < graph->outputs.size; i++)
    hd_ptr_map_set(arena, needed, graph->outputs.data[i], graph);
  for (size_t i = graph->nodes.size; i-- > 0;) {
    const hd_node_t *node = graph->nodes.data[i];
    if (!gives_needed(needed, node))
      continue;
    for (uint32_t k = 0; k < node->num_inputs; k++)
      if (node->inputs[k])
        hd_ptr_map_set(arena, needed, node->inputs[k], graph);
    graph->nodes.data[--first] = node;
  }
  if (first == 0)
    return;
  graph->nodes.data += first;
  graph->nodes.size -= first;
  graph->nodes.capacity -= first;
}

void hd_graph_drop_unread(hd_arena_t *arena, hd_graph_t *graph) {
  hd_ptr_map_t needed = {0};
  keep_needed(arena, graph, &needed);
}

const hd_graph_t *hd_graph_needed(hd_arena_t *arena, const hd_graph_t *graph) {
  hd_graph_t *part = hd_graph_without_nodes(arena, graph);
  hd_ptr_map_t needed = {0};
  memset(&part->constants, 0, sizeof part->constants);
  for (size_t i = 0; i < graph->nodes.size; i++)
    hd_vec_push(arena, &part->nodes, graph->nodes.data[i]);
  keep_needed(arena, part, &needed);
  for (size_t i = 0; i < graph->constants.size; i++)
    if (hd_ptr_map_get(&needed, graph->constants.data[i]))
      hd_vec_push(arena, &part->constants, graph->constants.data[i]);
  hd_graph_settle_groups(arena, part);
  return part;
}

static void enter(hd_arena_t *arena, hd_ptr_map_t *entered,
                  const hd_value_t *value, hd_graph_t *graph) {
  if (hd_ptr_map_get(entered, value))
    return;
  hd_ptr_map_set(arena, entered, value, value);
  hd_vec_push(arena, &graph->outputs, value);
}

const hd_graph_t *hd_graph_first(hd_arena_t *arena, const hd_graph_t *graph,
                                 size_t count) {
  hd_graph_t *first = HD_ARENA_NEW(arena, hd_graph_t);
  hd_ptr_map_t given = {0}, entered = {0};
  *first = *graph;
  memset(&first->outputs, 0, sizeof first->outputs);
  first->nodes.size = first->nodes.capacity = count;
  for (size_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < graph->nodes.data[i]->num_outputs; k++)
      if (graph->nodes.data[i]->outputs[k])
        hd_ptr_map_set(arena, &given, graph->nodes.data[i]->outputs[k], graph);
  for (size_t i = count; i < graph->nodes.size; i++)
    for (uint32_t k = 0; k < graph->nodes.data[i]->num_inputs; k++)
      if (hd_ptr_map_get(&given, graph->nodes.data[i]->inputs[k]))
        enter(arena, &entered, graph->nodes.data[i]->inputs[k], first);
  for (size_t i = 0; i < graph->outputs.size; i++)
    if (hd_ptr_map_get(&given, graph->outputs.data[i]))
      enter(arena, &entered, graph->outputs.data[i], first);
  return first;
}

const hd_graph_t *hd_graph_exposed(hd_arena_t *arena, const hd_graph_t *graph) {
  hd_graph_t *exposed = HD_ARENA_NEW(arena, hd_graph_t);
  hd_ptr_map_t entered = {0};
  *exposed = *graph;
  memset(&exposed->outputs, 0, sizeof exposed->outputs);
  for (size_t i = 0; i < graph->outputs.size; i++)
    enter(arena, &entered, graph->outputs.data[i], exposed);
  for (size_t i = 0; i < graph->nodes.size; i++)
    for (uint32_t k = 0; k < graph->nodes.data[i]->num_outputs; k++)
      if (graph->nodes.data[i]->outputs[k])
        enter(arena, &entered, graph->nodes.data[i]->outputs[k], exposed);
  return exposed;
}

static bool are_concrete(const hd_value_t *const *values, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (values[i] && !hd_value_is_concrete(values[i]))
      return false;
  return true;
}

// What becomes an input of the rest is declared with its type, and nodes of a
// standard's operators may leave inputs out.
static bool is_expanded(const hd_graph_t *graph) {
  bool expanded = are_concrete(graph->inputs.data, graph->inputs.size);
  for (size_t i = 0; expanded && i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    expanded = !node->domain && are_concrete(node->outputs, node->num_outputs);
  }
  return expanded;
}

bool hd_pass_prepare(hd_module_t *module, const hd_graph_t *graph,
                     const hd_pass_args_t *args, hd_item_t *version) {
  const hd_graph_t *prepare, *rest;
  (void)args;
  if (!is_expanded(graph))
    return hd_error(&module->context->diags, graph->loc, HD_E1104, graph->name,
                    "what depends on constants alone is taken out of a graph "
                    "of tasks with sizes that are numbers: expand it first");
  hd_graph_split(&module->arena, graph, &prepare, &rest);
  version->u.graph = rest;
  if (prepare->nodes.size == 0)
    return true;
  hd_graph_t *named = HD_ARENA_COPY(&module->arena, hd_graph_t, prepare);
  named->name = hd_module_fresh_name(
      &module->arena, module,
      hd_arena_printf(&module->arena, "%s_prepare", graph->name));
  hd_item_t item = {.kind = HD_ITEM_GRAPH, .u.graph = named};
  hd_vec_push(&module->arena, &module->items, item);
  return true;
}
