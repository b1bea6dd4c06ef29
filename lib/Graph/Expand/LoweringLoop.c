// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops in the making. What is put between begin and end is the body's; what it
// reads of the graph around it becomes an operand of the loop.
#include "Graph/Expand/LoweringLoop.h"
#include "Graph/Expand/Expander.h"
#include "Graph/Expand/Lower/ControlFlow.h"

#include <string.h>

void hd_lower_loop_begin(hd_lowering_t *l, hd_lower_loop_t *loop,
                         int64_t steps) {
  hd_expander_t *x = l->x;
  *loop = (hd_lower_loop_t){.steps = steps};
  if (steps == 1)
    return;
  loop->segment = x->segment;
  loop->put = x->put;
  x->segment = HD_ARENA_NEW(hd_lower_arena(l), hd_graph_t);
  x->segment->loc = l->node->loc;
  x->put = (hd_ptr_map_t){0};
}

void hd_lower_loop_drop(hd_lowering_t *l, hd_lower_loop_t *loop) {
  if (!loop->segment)
    return;
  l->x->segment = loop->segment;
  l->x->put = loop->put;
  loop->segment = NULL;
}

static const hd_value_t *add_input(hd_lowering_t *l, hd_lower_values_t *outer,
                                   hd_lower_values_t *inner,
                                   const hd_value_t *value,
                                   const hd_tensor_type_t *type) {
  const hd_value_t *input = hd_segment_value(l->x, value->name, type);
  hd_vec_push(hd_lower_arena(l), outer, value);
  hd_vec_push(hd_lower_arena(l), inner, input);
  return input;
}

const hd_value_t *hd_lower_loop_state(hd_lowering_t *l, hd_lower_loop_t *loop,
                                      const hd_value_t *first) {
  hd_tensor_type_t type = hd_lower_type(first);
  loop->num_states++;
  return !loop->segment
             ? first
             : add_input(l, &loop->firsts, &loop->states, first, &type);
}

const hd_value_t *hd_lower_loop_slice(hd_lowering_t *l, hd_lower_loop_t *loop,
                                      const hd_value_t *whole) {
  hd_tensor_type_t type = hd_lower_type(whole);
  type.rank--;
  memmove(type.shape, type.shape + 1, type.rank * sizeof(type.shape[0]));
  return !loop->segment
             ? hd_lower_reshape(l, whole, type.shape, type.rank)
             : add_input(l, &loop->wholes, &loop->slices, whole, &type);
}

const hd_value_t *hd_lower_loop_turn(hd_lowering_t *l, hd_lower_loop_t *loop) {
  const hd_tensor_type_t type = {.type = HD_I64};
  if (!loop->turn)
    loop->turn = loop->segment ? hd_segment_value(l->x, "turn", &type)
                               : hd_lower_scalar(l, HD_I64, 0);
  return loop->turn;
}

// --- The end ---

typedef struct closing {
  hd_lowering_t *l;
  hd_arena_t *arena;
  hd_graph_t *body;
  hd_ptr_map_t needed; // Values.
  hd_ptr_map_t inside; // What values of the graph around are in the body.
  hd_lower_values_t operands, inputs; // Likewise, in order.
} closing_t;

// A number is worth knowing in the body.
static bool is_number(const hd_value_t *value) {
  return value->constant && hd_lower_count(value) == 1;
}

// What a value of the body, or of the graph around it, is in the body.
static const hd_value_t *bring_in(closing_t *c, const hd_value_t *value) {
  const hd_value_t *known = hd_ptr_map_get(&c->inside, value);
  if (known)
    return known;
  hd_tensor_type_t type = hd_lower_type(value);
  hd_value_t *input = hd_segment_value(c->l->x, value->name, &type);
  if (is_number(value)) {
    input->constant = value->constant;
    hd_vec_push(c->arena, &c->body->constants, (const hd_value_t *)input);
  } else {
    hd_vec_push(c->arena, &c->operands, value);
    hd_vec_push(c->arena, &c->inputs, (const hd_value_t *)input);
  }
  hd_ptr_map_set(c->arena, &c->inside, value, input);
  return input;
}

static void keep(closing_t *c, const hd_value_t *value) {
  hd_ptr_map_set(c->arena, &c->inside, value, value);
}

static const hd_node_t *inner_node(closing_t *c, const hd_node_t *node) {
  hd_node_t *copy = HD_ARENA_COPY(c->arena, hd_node_t, node);
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(c->arena, const hd_value_t *, node->num_inputs + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    inputs[i] = bring_in(c, node->inputs[i]);
  copy->inputs = inputs;
  return copy;
}

// Takes the nodes that the results need.
static void take_nodes(closing_t *c, const hd_graph_t *segment) {
  bool *needed = HD_ARENA_ARRAY(c->arena, bool, segment->nodes.size + 1);
  for (size_t i = segment->nodes.size; i-- > 0;) {
    const hd_node_t *node = segment->nodes.data[i];
    for (uint32_t k = 0; k < node->num_outputs; k++)
      needed[i] |= hd_ptr_map_get(&c->needed, node->outputs[k]) != NULL;
    for (uint32_t k = 0; needed[i] && k < node->num_inputs; k++)
      hd_ptr_map_set(c->arena, &c->needed, node->inputs[k], node);
  }
  for (size_t i = 0; i < segment->nodes.size; i++) {
    const hd_node_t *node = segment->nodes.data[i];
    for (uint32_t k = 0; needed[i] && k < node->num_outputs; k++)
      keep(c, node->outputs[k]);
  }
  for (size_t i = 0; i < segment->nodes.size; i++)
    if (needed[i])
      hd_vec_push(c->arena, &c->body->nodes,
                  inner_node(c, segment->nodes.data[i]));
}

static void push_all(closing_t *c, hd_lower_values_t *to,
                     const hd_lower_values_t *from) {
  for (size_t i = 0; i < from->size; i++)
    hd_vec_push(c->arena, to, from->data[i]);
}

static void push_inputs(closing_t *c, const hd_lower_values_t *values) {
  for (size_t i = 0; i < values->size; i++)
    hd_vec_push(c->arena, &c->body->inputs, values->data[i]);
}

// Puts the node; results: the states', then what is stacked.
static const hd_node_t *put_loop(closing_t *c, const hd_lower_loop_t *loop,
                                 size_t num_results) {
  hd_lowering_t *l = c->l;
  hd_node_t *node = HD_ARENA_NEW(c->arena, hd_node_t);
  hd_attributes_t attributes = {0};
  hd_lower_values_t inputs = {0};
  hd_attributes_int(l, &attributes, "steps", loop->steps);
  hd_attributes_int(l, &attributes, "states", (int64_t)loop->states.size);
  hd_attributes_int(l, &attributes, "scanned", (int64_t)loop->slices.size);
  hd_attributes_graph(l, &attributes, "body", c->body);
  push_all(c, &inputs, &loop->firsts);
  push_all(c, &inputs, &loop->wholes);
  push_all(c, &inputs, &c->operands);
  *node = (hd_node_t){.op = "loop",
                      .label = l->node->label,
                      .loc = l->node->loc,
                      .num_inputs = (uint32_t)inputs.size,
                      .inputs = inputs.data,
                      .num_outputs = (uint32_t)num_results,
                      .num_attributes = (uint32_t)attributes.size,
                      .attributes = attributes.data};
  const hd_value_t **outputs =
      HD_ARENA_ARRAY(c->arena, const hd_value_t *, num_results + 1);
  for (size_t i = 0; i < num_results; i++) {
    hd_tensor_type_t type = hd_lower_type(c->body->outputs.data[i]);
    if (i >= loop->states.size) {
      memmove(type.shape + 1, type.shape, type.rank * sizeof(type.shape[0]));
      type.shape[0] = loop->steps;
      type.rank++;
    }
    outputs[i] = hd_segment_value(l->x, hd_lower_value_name(l), &type);
    hd_ptr_map_set(c->arena, &l->x->put, outputs[i], node);
  }
  node->outputs = outputs;
  hd_vec_push(c->arena, &l->x->segment->nodes, (const hd_node_t *)node);
  return node;
}

// A loop of one turn is what its body is.
static bool end_alone(hd_lowering_t *l, const hd_lower_loop_t *loop,
                      const hd_value_t *const *results, size_t count,
                      const hd_value_t **outputs) {
  for (size_t i = 0; i < count; i++) {
    outputs[i] = i < loop->num_states ? results[i]
                                      : hd_lower_insert_axis(l, results[i], 0);
    if (!outputs[i])
      return false;
  }
  return true;
}

static bool check_results(hd_lowering_t *l, const hd_lower_loop_t *loop,
                          const hd_value_t *const *results, size_t count) {
  for (size_t i = loop->num_states; i < count; i++)
    if (results[i]->rank >= HD_MAX_RANK)
      return hd_lower_unsupported(l,
                                  "a tensor of rank %d: at most %d is "
                                  "supported",
                                  results[i]->rank + 1, HD_MAX_RANK);
  return true;
}

bool hd_lower_loop_end(hd_lowering_t *l, hd_lower_loop_t *loop,
                       const hd_value_t *const *results, size_t count,
                       const hd_value_t **outputs) {
  hd_expander_t *x = l->x;
  if (!check_results(l, loop, results, count))
    return false;
  if (!loop->segment)
    return end_alone(l, loop, results, count, outputs);
  closing_t c = {.l = l, .arena = hd_lower_arena(l)};
  hd_graph_t *made = c.body = HD_ARENA_NEW(c.arena, hd_graph_t);
  made->loc = l->node->loc;
  for (size_t i = 0; i < loop->states.size; i++)
    keep(&c, loop->states.data[i]);
  for (size_t i = 0; i < loop->slices.size; i++)
    keep(&c, loop->slices.data[i]);
  if (loop->turn)
    keep(&c, loop->turn);
  for (size_t i = 0; i < count; i++)
    hd_ptr_map_set(c.arena, &c.needed, results[i], loop);
  take_nodes(&c, x->segment);
  for (size_t i = 0; i < count; i++)
    hd_vec_push(c.arena, &made->outputs, bring_in(&c, results[i]));
  if (loop->turn && hd_ptr_map_get(&c.needed, loop->turn))
    hd_vec_push(c.arena, &made->inputs, loop->turn);
  push_inputs(&c, &loop->states);
  push_inputs(&c, &loop->slices);
  push_inputs(&c, &c.inputs);
  hd_graph_settle_groups(c.arena, made);
  hd_lower_loop_drop(l, loop);
  const hd_node_t *node = put_loop(&c, loop, count);
  for (size_t i = 0; i < count; i++)
    outputs[i] = node->outputs[i];
  return true;
}
