// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops. A body is a graph like another, made with the values of the first turn
// in hand; what it gives is computed here turn by turn, node by node, with the
// noise of each, so that what the compiler's evaluator makes of the loop is
// compared, too.
#include "Fuzz.h"

#include "IR/Graph/Loop.h"

#include <string.h>

fuzz_graph_t *fuzz_body(fuzz_graph_t *g) {
  fuzz_graph_t *body = HD_ARENA_NEW(&g->arena, fuzz_graph_t);
  body->context = g->context;
  hd_arena_init(&body->arena, &g->context->budget);
  body->random.state = random_bits(&g->random);
  memcpy(body->sizes, g->sizes, sizeof g->sizes);
  body->type = g->type;
  hd_vec_push(&g->arena, &g->bodies, body);
  return body;
}

// --- Turn by turn ---

static const hd_host_tensor_t *slice(fuzz_graph_t *g, const hd_host_tensor_t *x,
                                     int64_t turn) {
  hd_host_tensor_t *y =
      hd_host_tensor_make(&g->arena, x->type, x->shape + 1, x->rank - 1);
  memcpy(y->data, x->data + (size_t)turn * y->bytes, y->bytes);
  return y;
}

static hd_host_tensor_t *stack(fuzz_graph_t *g, const hd_host_tensor_t *x,
                               int64_t steps) {
  int64_t shape[HD_TENSOR_MAX_RANK] = {steps};
  memcpy(shape + 1, x->shape, x->rank * sizeof *shape);
  return hd_host_tensor_make(&g->arena, x->type, shape, x->rank + 1);
}

// What the leaves of the body are before the first turn, but for what is
// scanned.
static void begin(const fuzz_node_t *node,
                  const hd_host_tensor_t *const *inputs, random_t *random,
                  const hd_host_tensor_t **now) {
  const fuzz_graph_t *body = node->body;
  for (size_t i = 0; i < body->values.size; i++) {
    const fuzz_value_t *v = body->values.data[i];
    now[i] = random ? v->noisy[random_bits(random) % FUZZ_NOISY] : v->data;
    for (uint32_t k = 0; k < node->node.num_inputs; k++)
      if (node->params[k] == v)
        now[i] = inputs[k];
  }
}

static const hd_host_tensor_t **place(const fuzz_graph_t *body,
                                      const hd_host_tensor_t **now,
                                      const fuzz_value_t *v) {
  size_t i = 0;
  while (body->values.data[i] != v)
    i++;
  return &now[i];
}

bool fuzz_evaluate_loop(const fuzz_node_t *node,
                        const hd_host_tensor_t *const *inputs,
                        hd_host_tensor_t **outputs, uint64_t seed) {
  fuzz_graph_t *body = node->body;
  hd_loop_t loop = hd_node_loop(&node->node);
  random_t random = {seed};
  const hd_host_tensor_t **now = HD_ARENA_ARRAY(
      &body->arena, const hd_host_tensor_t *, body->values.size + 1);
  begin(node, inputs, seed ? &random : NULL, now);
  for (int64_t turn = 0; turn < loop.steps; turn++) {
    const hd_host_tensor_t *made[FUZZ_MAX_INPUTS];
    for (uint32_t k = loop.states; k < loop.states + loop.scanned; k++)
      *place(body, now, node->params[k]) = slice(body, inputs[k], turn);
    if (!fuzz_evaluate_graph(body, now, seed ? &random : NULL))
      return false;
    for (size_t k = 0; k < body->outputs.size; k++)
      made[k] = *place(body, now, body->outputs.data[k]);
    for (size_t k = 0; k < body->outputs.size; k++) {
      if (k < loop.states) {
        *place(body, now, node->params[k]) = made[k];
        outputs[k] = HD_ARENA_COPY(&body->arena, hd_host_tensor_t, made[k]);
        continue;
      }
      if (turn == 0)
        outputs[k] = stack(body, made[k], loop.steps);
      memcpy(outputs[k]->data + (size_t)turn * made[k]->bytes, made[k]->data,
             made[k]->bytes);
    }
  }
  return true;
}

// --- The node ---

static const hd_attribute_t *attribute(fuzz_graph_t *g, const char *name,
                                       int64_t number) {
  hd_attribute_t *a = HD_ARENA_NEW(&g->arena, hd_attribute_t);
  *a = (hd_attribute_t){.name = name, .kind = HD_ATTRIBUTE_INT, .u.i = number};
  return a;
}

static const hd_graph_t *body_ir(fuzz_graph_t *g, const fuzz_node_t *node) {
  const fuzz_graph_t *body = node->body;
  hd_graph_t *graph = HD_ARENA_NEW(&g->arena, hd_graph_t);
  for (uint32_t k = 0; k < node->node.num_inputs; k++)
    hd_vec_push(&g->arena, &graph->inputs, node->params[k]->value);
  for (size_t i = 0; i < body->values.size; i++)
    if (body->values.data[i]->constant)
      hd_vec_push(&g->arena, &graph->constants, body->values.data[i]->value);
  for (size_t i = 0; i < body->nodes.size; i++)
    hd_vec_push(&g->arena, &graph->nodes, &body->nodes.data[i]->node);
  for (size_t i = 0; i < body->outputs.size; i++)
    hd_vec_push(&g->arena, &graph->outputs, body->outputs.data[i]->value);
  return graph;
}

fuzz_node_t *fuzz_loop(fuzz_graph_t *g, fuzz_graph_t *body,
                       fuzz_value_t *const *inner, fuzz_value_t *const *outer,
                       uint32_t states, uint32_t scanned, int64_t steps) {
  fuzz_value_t **params =
      HD_ARENA_ARRAY(&g->arena, fuzz_value_t *, FUZZ_MAX_INPUTS);
  fuzz_value_t *inputs[FUZZ_MAX_INPUTS];
  uint32_t count = states + scanned;
  memcpy(params, inner, count * sizeof *params);
  memcpy(inputs, outer, count * sizeof *inputs);
  for (size_t i = 0; i < body->values.size; i++) {
    fuzz_value_t *v = body->values.data[i];
    bool known = v->from || v->constant;
    for (uint32_t k = 0; k < states + scanned; k++)
      known |= inner[k] == v;
    if (known)
      continue;
    if (count == FUZZ_MAX_INPUTS)
      return NULL;
    inputs[count] = fuzz_leaf_of(g, v->data, false);
    params[count++] = v;
  }
  fuzz_node_t *node = fuzz_new_node(g, "loop", inputs, count);
  node->body = body;
  node->params = params;
  hd_attribute_t *graph = HD_ARENA_NEW(&g->arena, hd_attribute_t);
  *graph = (hd_attribute_t){.name = "body", .kind = HD_ATTRIBUTE_GRAPH};
  graph->u.graph = body_ir(g, node);
  const hd_attribute_t **list =
      HD_ARENA_ARRAY(&g->arena, const hd_attribute_t *, 4);
  list[0] = attribute(g, "steps", steps);
  list[1] = attribute(g, "states", states);
  list[2] = attribute(g, "scanned", scanned);
  list[3] = graph;
  node->node.attributes = list;
  node->node.num_attributes = 4;
  node->node.num_outputs = (uint32_t)body->outputs.size;
  return fuzz_take(g, node, (1u << body->outputs.size) - 1);
}
