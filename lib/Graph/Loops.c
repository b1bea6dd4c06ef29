// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Graph/Loops.h"
#include "Graph/Names.h"
#include "IR/Text/Library.h"
#include "Support/Map.h"

#include <string.h>

typedef HD_VEC(const hd_node_t *) nodes_t;
typedef HD_VEC(const hd_value_t *) values_t;

// --- Names ---

// A value of the same type under a name of its own; no constant.
static const hd_value_t *value_like(hd_arena_t *arena, hd_key_map_t *names,
                                    const hd_value_t *value) {
  hd_value_t *copy = HD_ARENA_COPY(arena, hd_value_t, value);
  copy->name = hd_name_unique(arena, names, value->name);
  copy->constant = NULL;
  return copy;
}

// --- Results ---

static const hd_node_t *copy_node(hd_module_t *module, const hd_value_t *from,
                                  const hd_value_t *to) {
  return hd_node_between(&module->arena, "copy",
                         hd_library_task(module->context, "copy"), from, to,
                         NULL, from->loc);
}

const hd_graph_t *hd_graph_outputs_apart(hd_module_t *module,
                                         const hd_graph_t *body) {
  hd_arena_t *arena = &module->arena;
  hd_ptr_map_t free = {0}; // What nodes give, until it is a result.
  hd_key_map_t names = {0};
  hd_graph_t *made = HD_ARENA_COPY(arena, hd_graph_t, body);
  bool changed = false;
  memset(&made->outputs, 0, sizeof made->outputs);
  memset(&made->nodes, 0, sizeof made->nodes);
  hd_names_take(arena, &names, body);
  for (size_t i = 0; i < body->nodes.size; i++) {
    const hd_node_t *node = body->nodes.data[i];
    hd_vec_push(arena, &made->nodes, node);
    for (uint32_t k = 0; k < node->num_outputs; k++)
      if (node->outputs[k])
        hd_ptr_map_set(arena, &free, node->outputs[k], node);
  }
  for (size_t i = 0; i < body->outputs.size; i++) {
    const hd_value_t *value = body->outputs.data[i];
    if (!hd_ptr_map_get(&free, value)) {
      const hd_value_t *copy = value_like(arena, &names, value);
      hd_vec_push(arena, &made->nodes, copy_node(module, value, copy));
      value = copy;
      changed = true;
    }
    hd_ptr_map_set(arena, &free, value, NULL);
    hd_vec_push(arena, &made->outputs, value);
  }
  return changed ? made : body;
}

// --- What does not depend on the turn ---

typedef struct hoister {
  hd_module_t *module;
  hd_arena_t *arena;
  hd_key_map_t names;   // Of the graph around.
  hd_key_map_t inner;   // Of the body.
  hd_ptr_map_t outside; // Values of the body that are there before the loop:
                        // what they are there.
  hd_ptr_map_t inside;  // Those that are inputs of the body by now: these.
  nodes_t before;       // What the loop's node comes after.
  values_t operands;    // More of the loop's.
  hd_graph_t *body;
} hoister_t;

static bool is_same_in_turns(const hoister_t *h, const hd_node_t *node) {
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (!node->inputs[i] || !hd_ptr_map_get(&h->outside, node->inputs[i]))
      return false;
  return !node->group;
}

// A node with other values in the place of its own.
static hd_node_t *with_values(hoister_t *h, const hd_node_t *node,
                              const hd_ptr_map_t *values) {
  hd_node_t *copy = HD_ARENA_COPY(h->arena, hd_node_t, node);
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(h->arena, const hd_value_t *, node->num_inputs + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    const hd_value_t *other = hd_ptr_map_get(values, node->inputs[i]);
    inputs[i] = other ? other : node->inputs[i];
  }
  copy->inputs = inputs;
  return copy;
}

static void hoist_node(hoister_t *h, const hd_node_t *node) {
  hd_node_t *copy = with_values(h, node, &h->outside);
  const hd_value_t **outputs =
      HD_ARENA_ARRAY(h->arena, const hd_value_t *, node->num_outputs + 1);
  for (uint32_t i = 0; i < node->num_outputs; i++) {
    if (!node->outputs[i])
      continue;
    outputs[i] = value_like(h->arena, &h->names, node->outputs[i]);
    hd_ptr_map_set(h->arena, &h->outside, node->outputs[i], outputs[i]);
  }
  copy->outputs = outputs;
  hd_vec_push(h->arena, &h->before, (const hd_node_t *)copy);
}

// What a node that stays reads of what was taken out comes in; a constant is
// still there.
static void bring_in(hoister_t *h, const hd_value_t *value) {
  const hd_value_t *outside = hd_ptr_map_get(&h->outside, value);
  if (!outside || hd_ptr_map_get(&h->inside, value))
    return;
  const hd_value_t *input =
      value->constant ? value : value_like(h->arena, &h->inner, value);
  hd_ptr_map_set(h->arena, &h->inside, value, input);
  if (value->constant) {
    hd_vec_push(h->arena, &h->body->constants, value);
    return;
  }
  hd_vec_push(h->arena, &h->operands, outside);
  hd_vec_push(h->arena, &h->body->inputs, input);
}

// What there is before the loop: its operands that are whole, and constants.
static void find_outside(hoister_t *h, const hd_node_t *node,
                         const hd_loop_t *loop) {
  const hd_graph_t *body = loop->body;
  for (uint32_t i = loop->states + loop->scanned; i < node->num_inputs; i++)
    hd_ptr_map_set(h->arena, &h->outside, body->inputs.data[loop->counts + i],
                   node->inputs[i]);
  for (size_t i = 0; i < body->constants.size; i++)
    hd_ptr_map_set(h->arena, &h->outside, body->constants.data[i],
                   body->constants.data[i]);
}

// A constant that is read outside stands there, too, under a name of its own.
static void use_constants(hoister_t *h, hd_graph_t *graph,
                          const hd_node_t *node) {
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    const hd_value_t *constant = node->inputs[i];
    if (!constant->constant ||
        hd_ptr_map_get(&h->outside, constant) != constant)
      continue;
    hd_value_t *copy = HD_ARENA_COPY(h->arena, hd_value_t, constant);
    copy->name = hd_name_unique(h->arena, &h->names, constant->name);
    hd_ptr_map_set(h->arena, &h->outside, constant, copy);
    hd_vec_push(h->arena, &graph->constants, (const hd_value_t *)copy);
  }
}

// The body without the nodes that were taken out, and with inputs that some
// node reads.
static void rebuild_body(hoister_t *h, const hd_loop_t *loop,
                         const nodes_t *kept) {
  const hd_graph_t *body = loop->body;
  h->body = HD_ARENA_COPY(h->arena, hd_graph_t, body);
  memset(&h->body->inputs, 0, sizeof h->body->inputs);
  memset(&h->body->constants, 0, sizeof h->body->constants);
  memset(&h->body->nodes, 0, sizeof h->body->nodes);
  memset(&h->body->outputs, 0, sizeof h->body->outputs);
  for (size_t i = 0; i < loop->counts + loop->states + loop->scanned; i++)
    hd_vec_push(h->arena, &h->body->inputs, body->inputs.data[i]);
  for (size_t i = 0; i < kept->size; i++) {
    for (uint32_t k = 0; k < kept->data[i]->num_inputs; k++)
      bring_in(h, kept->data[i]->inputs[k]);
    hd_vec_push(h->arena, &h->body->nodes,
                (const hd_node_t *)with_values(h, kept->data[i], &h->inside));
  }
  for (size_t i = 0; i < body->outputs.size; i++) {
    const hd_value_t *value = body->outputs.data[i];
    bring_in(h, value);
    const hd_value_t *input = hd_ptr_map_get(&h->inside, value);
    hd_vec_push(h->arena, &h->body->outputs, input ? input : value);
  }
}

// The loop after what could be taken out of it, which is in h->before.
static const hd_node_t *hoist_loop(hoister_t *h, hd_graph_t *graph,
                                   const hd_node_t *node) {
  hd_loop_t loop = hd_node_loop(node);
  nodes_t kept = {0};
  h->inner = (hd_key_map_t){0};
  h->outside = h->inside = (hd_ptr_map_t){0};
  h->operands = (values_t){0};
  hd_names_take(h->arena, &h->inner, loop.body);
  find_outside(h, node, &loop);
  for (size_t i = 0; i < loop.body->nodes.size; i++) {
    const hd_node_t *inner = loop.body->nodes.data[i];
    if (!is_same_in_turns(h, inner)) {
      hd_vec_push(h->arena, &kept, inner);
      continue;
    }
    use_constants(h, graph, inner);
    hoist_node(h, inner);
  }
  if (kept.size == loop.body->nodes.size)
    return node;
  for (uint32_t i = 0; i < loop.states + loop.scanned; i++)
    hd_vec_push(h->arena, &h->operands, node->inputs[i]);
  rebuild_body(h, &loop, &kept);
  hd_node_t *made = hd_loop_with_body(h->arena, node, h->body);
  made->inputs = h->operands.data;
  made->num_inputs = (uint32_t)h->operands.size;
  return made;
}

const hd_graph_t *hd_graph_hoist(hd_module_t *module, const hd_graph_t *graph) {
  hoister_t h = {.module = module, .arena = &module->arena};
  hd_graph_t *made = HD_ARENA_NEW(h.arena, hd_graph_t);
  bool changed = false, any = false;
  for (size_t i = 0; i < graph->nodes.size; i++)
    any |= hd_node_is_loop(graph->nodes.data[i]);
  if (!any)
    return graph;
  *made = *graph;
  memset(&made->nodes, 0, sizeof made->nodes);
  memset(&made->constants, 0, sizeof made->constants);
  for (size_t i = 0; i < graph->constants.size; i++)
    hd_vec_push(h.arena, &made->constants, graph->constants.data[i]);
  hd_names_take(h.arena, &h.names, graph);
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i], *version = node;
    h.before.size = 0;
    if (hd_node_is_loop(node))
      version = hoist_loop(&h, made, node);
    changed |= version != node;
    for (size_t k = 0; k < h.before.size; k++)
      hd_vec_push(h.arena, &made->nodes, h.before.data[k]);
    hd_vec_push(h.arena, &made->nodes, version);
  }
  return changed ? made : graph;
}
