// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an operator's function gives that is no node: lists, which exist during
// the walk alone, walks through graphs of attributes, what another operator
// would give.
#include "Graph/Expand/Expander.h"

static const hd_value_t *make_list(hd_lowering_t *l, hd_value_form_t form,
                                   const hd_value_t *const *items,
                                   size_t count) {
  hd_arena_t *arena = hd_lower_arena(l);
  hd_list_value_t *list = HD_ARENA_NEW(arena, hd_list_value_t);
  list->value = (hd_value_t){.name = hd_lower_value_name(l),
                             .loc = l->node->loc,
                             .form = form,
                             .rank = -1};
  list->count = count;
  list->items = HD_ARENA_ARRAY(arena, const hd_value_t *, count + 1);
  for (size_t i = 0; i < count; i++) {
    if (!items[i])
      return NULL;
    // So that lists nest twice at most.
    if (items[i]->form == HD_HOLDS_OPTIONAL ||
        (items[i]->form == HD_HOLDS_SEQUENCE && form == HD_HOLDS_SEQUENCE))
      return hd_lower_unsupported(l, "a sequence of what is no tensor, or an "
                                     "optional in another value"),
             NULL;
    list->items[i] = items[i];
  }
  return &list->value;
}

const hd_value_t *hd_lower_sequence(hd_lowering_t *l,
                                    const hd_value_t *const *items,
                                    size_t count) {
  return make_list(l, HD_HOLDS_SEQUENCE, items, count);
}

const hd_value_t *const *hd_lower_items(const hd_value_t *sequence,
                                        size_t *count) {
  const hd_list_value_t *list = (const hd_list_value_t *)sequence;
  *count = list->count;
  return list->items;
}

const hd_value_t *hd_lower_optional(hd_lowering_t *l, const hd_value_t *value) {
  return make_list(l, HD_HOLDS_OPTIONAL, &value, value ? 1 : 0);
}

const hd_value_t *hd_lower_held(const hd_value_t *optional, bool *present) {
  if (optional->form != HD_HOLDS_OPTIONAL) {
    *present = true;
    return optional;
  }
  const hd_list_value_t *list = (const hd_list_value_t *)optional;
  *present = list->count > 0;
  return list->count ? list->items[0] : NULL;
}

// The walk of this call: that of the last time where the function was called
// before. Its walks were made one after the other, and nothing after them: the
// node is the one at which the walk stopped.
static hd_walk_t *find_walk(hd_lowering_t *l, const hd_graph_t *graph) {
  hd_walk_t *walk = l->walk;
  unsigned call = l->calls++;
  size_t size = walk->children.size;
  const hd_walk_child_t *last = size ? &walk->children.data[size - 1] : NULL;
  if (last && last->node == l->index && call <= last->call)
    return walk->children.data[size - 1 - (last->call - call)].walk;
  hd_walk_child_t child = {l->index, call, hd_walk_make(l->x, graph, walk)};
  hd_vec_push(hd_lower_arena(l), &walk->children, child);
  return child.walk;
}

static bool walk_graph(hd_lowering_t *l, hd_walk_t *walk,
                       const hd_value_t *const *inputs, uint32_t num_inputs,
                       const hd_value_t **outputs) {
  hd_arena_t *arena = hd_lower_arena(l);
  const hd_graph_t *graph = walk->graph;
  if (num_inputs != graph->inputs.size)
    return hd_lower_invalid(l, "its graph has %zu inputs, and %u are given",
                            graph->inputs.size, num_inputs);
  for (uint32_t i = 0; i < num_inputs; i++)
    if (!hd_ptr_map_get(&walk->values, graph->inputs.data[i]))
      hd_ptr_map_set(arena, &walk->values, graph->inputs.data[i], inputs[i]);
  if (!hd_walk_run(l->x, walk))
    return false;
  for (size_t i = 0; i < graph->outputs.size; i++) {
    outputs[i] = hd_walk_find(walk, graph->outputs.data[i]);
    if (!outputs[i])
      return hd_lower_invalid(l, "output %zu of its graph is never given", i);
    if (outputs[i] == &hd_value_poison)
      return false; // Reported where it was.
  }
  return true;
}

bool hd_lower_graph(hd_lowering_t *l, const hd_graph_t *graph,
                    const hd_value_t *const *inputs, uint32_t num_inputs,
                    const hd_value_t **outputs) {
  return walk_graph(l, find_walk(l, graph), inputs, num_inputs, outputs);
}

static bool run_as(hd_lowering_t *l, const char *domain, const char *op,
                   int version, const hd_value_t **inputs, uint32_t num_inputs,
                   const hd_value_t **outputs) {
  hd_lowering_t other = *l;
  other.row = hd_operator_find(domain, op, version);
  if (!other.row)
    return hd_lower_unsupported(l, "version %d of %s", version, op);
  other.version = version;
  other.inputs = inputs;
  other.num_inputs = num_inputs;
  other.outputs = outputs;
  bool ok = other.row->lower(&other);
  l->calls = other.calls;
  l->broken = other.broken;
  return ok;
}

const hd_value_t *hd_lower_as(hd_lowering_t *l, const char *domain,
                              const char *op, int version,
                              const hd_value_t **inputs, uint32_t num_inputs) {
  const hd_value_t **outputs = HD_ARENA_ARRAY(
      hd_lower_arena(l), const hd_value_t *, l->node->num_outputs + 1);
  return run_as(l, domain, op, version, inputs, num_inputs, outputs)
             ? outputs[0]
             : NULL;
}

bool hd_lower_become(hd_lowering_t *l, const char *domain, const char *op,
                     int version, const hd_value_t **inputs,
                     uint32_t num_inputs) {
  return run_as(l, domain, op, version, inputs, num_inputs, l->outputs);
}

bool hd_lower_graph_once(hd_lowering_t *l, const hd_graph_t *graph,
                         const hd_value_t *const *inputs, uint32_t num_inputs,
                         const hd_value_t **outputs) {
  return walk_graph(l, hd_walk_make(l->x, graph, l->walk), inputs, num_inputs,
                    outputs);
}
