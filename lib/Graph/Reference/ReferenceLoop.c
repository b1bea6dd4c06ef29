// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops, turn by turn: every node of the body is evaluated, then what the turn
// has made is given back.
#include "Graph/Reference/Reference.h"
#include "IR/Graph/Loop.h"
#include "Support/Map.h"

#include <string.h>

// What a value of the body is in this turn.
typedef struct held {
  hd_host_tensor_t tensor;
  bool own; // Made in this turn.
} held_t;

typedef struct turns {
  hd_module_t *module;
  hd_arena_t arena;
  const hd_node_t *node;
  hd_loop_t loop;
  hd_ptr_map_t values; // Of the body: held_t.
  HD_VEC(held_t *) all;
  const hd_task_binding_t *
      *bindings; // Of the body's nodes, from the first turn.
  hd_host_tensor_t *states, *next;
  hd_host_tensor_t turn;
  hd_host_tensor_t *outputs;
  bool done; // The outputs have another owner.
} turns_t;

static hd_context_t *context_of(const turns_t *t) { return t->module->context; }

static held_t *held_of(turns_t *t, const hd_value_t *value) {
  held_t *held = hd_ptr_map_find(&t->values, value);
  if (held)
    return held;
  held = HD_ARENA_NEW(&t->arena, held_t);
  hd_ptr_map_set(&t->arena, &t->values, value, held);
  hd_vec_push(&t->arena, &t->all, held);
  return held;
}

static void end_turn(turns_t *t) {
  for (size_t i = 0; i < t->all.size; i++) {
    held_t *held = t->all.data[i];
    if (held->own)
      hd_host_tensor_fini(&held->tensor);
    held->own = false;
  }
}

static void end_turns(void *argument) {
  turns_t *t = argument;
  end_turn(t);
  for (uint32_t k = 0; k < t->loop.states; k++) {
    hd_host_tensor_fini(&t->states[k]);
    hd_host_tensor_fini(&t->next[k]);
  }
  hd_host_tensor_fini(&t->turn);
  for (uint32_t k = 0; !t->done && k < t->node->num_outputs; k++)
    hd_host_tensor_fini(&t->outputs[k]);
  hd_arena_fini(&t->arena);
}

static bool make_tensor(turns_t *t, hd_host_tensor_t *tensor, const char *name,
                        const hd_tensor_type_t *type) {
  hd_context_t *context = context_of(t);
  return hd_host_tensor_init(tensor, &context->diags, &context->budget, name,
                             type->type, type->shape, type->rank);
}

// Makes what lives on from turn to turn.
static bool begin(turns_t *t, const hd_host_tensor_t *const *inputs) {
  static const hd_tensor_type_t number = {.type = HD_I64};
  const hd_graph_t *body = t->loop.body;
  t->bindings = HD_ARENA_ARRAY(&t->arena, const hd_task_binding_t *,
                               body->nodes.size + 1);
  if (!make_tensor(t, &t->turn, "turn", &number))
    return false;
  for (uint32_t k = 0; k < t->loop.states; k++) {
    hd_tensor_type_t type = hd_tensor_type_of(inputs[k]);
    if (!make_tensor(t, &t->states[k], "state", &type) ||
        !make_tensor(t, &t->next[k], "state", &type))
      return false;
    memcpy(t->states[k].data, inputs[k]->data, inputs[k]->bytes);
  }
  for (size_t i = 0; i < body->constants.size; i++) {
    const hd_host_tensor_t *data =
        hd_constant_load(t->module, body->constants.data[i]);
    if (!data)
      return false;
    held_of(t, body->constants.data[i])->tensor = *data;
  }
  return true;
}

static hd_host_tensor_t slice_of(const turns_t *t,
                                 const hd_host_tensor_t *whole, int64_t turn) {
  hd_host_tensor_t slice = *whole;
  slice.rank--;
  memmove(slice.shape, whole->shape + 1, slice.rank * sizeof(slice.shape[0]));
  slice.count /= t->loop.steps;
  slice.bytes /= (size_t)t->loop.steps;
  slice.data += (size_t)turn * slice.bytes;
  return slice;
}

static void begin_turn(turns_t *t, const hd_host_tensor_t *const *inputs,
                       int64_t turn) {
  const hd_value_t *const *values = t->loop.body->inputs.data;
  hd_host_tensor_set_int(&t->turn, 0, turn);
  if (t->loop.counts)
    held_of(t, *values++)->tensor = t->turn;
  for (uint32_t i = 0; i < t->node->num_inputs; i++)
    held_of(t, values[i])->tensor = i < t->loop.states ? t->states[i]
                                    : i < t->loop.states + t->loop.scanned
                                        ? slice_of(t, inputs[i], turn)
                                        : *inputs[i];
}

static bool evaluate(turns_t *t, size_t index) {
  const hd_node_t *node = t->loop.body->nodes.data[index];
  const hd_host_tensor_t **inputs =
      HD_ARENA_ARRAY(&t->arena, const hd_host_tensor_t *, node->num_inputs + 1);
  hd_host_tensor_t *outputs =
      HD_ARENA_ARRAY(&t->arena, hd_host_tensor_t, node->num_outputs + 1);
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(&t->arena, hd_tensor_type_t, node->num_inputs + 1);
  held_t **held = HD_ARENA_ARRAY(&t->arena, held_t *, node->num_outputs + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    inputs[i] = &held_of(t, node->inputs[i])->tensor;
    types[i] = hd_tensor_type_of(inputs[i]);
  }
  for (uint32_t i = 0; i < node->num_outputs; i++)
    if (node->outputs[i])
      held[i] = held_of(t, node->outputs[i]);
  if (hd_node_is_reshape(node)) {
    held[0]->tensor = *inputs[0];
    held[0]->tensor.rank = (unsigned)node->outputs[0]->rank;
    for (int i = 0; i < node->outputs[0]->rank; i++)
      held[0]->tensor.shape[i] = node->outputs[0]->shape[i]->u.i;
    return true;
  }
  if (node->task && !t->bindings[index])
    t->bindings[index] = hd_task_bind(
        context_of(t), &t->arena, node->task, types, node->num_inputs,
        node->attributes, node->num_attributes, node->loc, node->op);
  bool ok = node->task ? t->bindings[index] &&
                             hd_task_evaluate(context_of(t), t->bindings[index],
                                              inputs, outputs, node->loc)
                       : hd_loop_evaluate(t->module, node, inputs, outputs);
  // Nothing here unwinds, so that all of them find their owner.
  for (uint32_t i = 0; ok && i < node->num_outputs; i++)
    if (held[i])
      *held[i] = (held_t){outputs[i], true};
    else
      hd_host_tensor_fini(&outputs[i]);
  return ok;
}

// Takes what the turn has made.
static bool take_results(turns_t *t, int64_t turn) {
  for (uint32_t k = 0; k < t->node->num_outputs; k++) {
    const hd_host_tensor_t *made =
        &held_of(t, t->loop.body->outputs.data[k])->tensor;
    if (k < t->loop.states) {
      memcpy(t->next[k].data, made->data, made->bytes);
      continue;
    }
    hd_tensor_type_t type = hd_tensor_type_of(made);
    memmove(type.shape + 1, type.shape, type.rank * sizeof(type.shape[0]));
    type.shape[0] = t->loop.steps;
    type.rank++;
    if (turn == 0 && !make_tensor(t, &t->outputs[k], "stacked", &type))
      return false;
    memcpy(t->outputs[k].data + (size_t)turn * made->bytes, made->data,
           made->bytes);
  }
  hd_host_tensor_t *states = t->states;
  t->states = t->next;
  t->next = states;
  return true;
}

static bool run_turns(turns_t *t, const hd_host_tensor_t *const *inputs) {
  if (!begin(t, inputs))
    return false;
  for (int64_t turn = 0; turn < t->loop.steps; turn++) {
    hd_budget_check(&context_of(t)->budget);
    begin_turn(t, inputs, turn);
    for (size_t i = 0; i < t->loop.body->nodes.size; i++)
      if (!evaluate(t, i))
        return false;
    if (!take_results(t, turn))
      return false;
    end_turn(t);
  }
  for (uint32_t k = 0; k < t->loop.states; k++) {
    t->outputs[k] = t->states[k];
    t->states[k] = (hd_host_tensor_t){0};
  }
  return true;
}

bool hd_loop_evaluate(hd_module_t *module, const hd_node_t *node,
                      const hd_host_tensor_t *const *inputs,
                      hd_host_tensor_t *outputs) {
  hd_budget_t *budget = &module->context->budget;
  turns_t t = {.module = module, .node = node, .outputs = outputs};
  hd_cleanup_t cleanup;
  memset(outputs, 0, sizeof(*outputs) * node->num_outputs);
  hd_arena_init(&t.arena, budget);
  hd_budget_defer(budget, &cleanup, end_turns, &t);
  hd_loop_t loop = hd_node_loop(node);
  t.states = HD_ARENA_ARRAY(&t.arena, hd_host_tensor_t, loop.states + 1);
  t.next = HD_ARENA_ARRAY(&t.arena, hd_host_tensor_t, loop.states + 1);
  t.loop = loop; // From here on there are states to end.
  t.done = run_turns(&t, inputs);
  hd_budget_clean(budget, &cleanup);
  return t.done;
}
