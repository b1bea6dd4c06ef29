// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// If and Loop. What decides must be known, or the walk stops until it is.
// A Loop or a Scan becomes a loop where its turns differ in data alone; else it
// is walked, turn by turn.
#include "Graph/Expand/Lower/ControlFlow.h"
#include "Graph/Expand/Lower/ControlLoop.h"

#include "Support/Budget.h"

#include <string.h>

bool hd_lower_truth(hd_lowering_t *l, const hd_value_t *value, bool *truth) {
  const hd_host_tensor_t *data = hd_lower_data(l, value);
  if (!data)
    return false;
  if (data->count != 1)
    return hd_lower_invalid(l, "a condition of %lld elements",
                            (long long)data->count);
  *truth = hd_host_tensor_get_int(data, 0) != 0;
  return true;
}

const hd_value_t *hd_lower_index(hd_lowering_t *l, int64_t index) {
  hd_host_tensor_t *data;
  const hd_value_t *value = hd_lower_constant(l, HD_I64, NULL, 0, &data);
  if (value)
    hd_host_tensor_set_int(data, 0, index);
  return value;
}

const hd_value_t *hd_lower_take(hd_lowering_t *l, const hd_value_t *x,
                                int64_t axis, int64_t i) {
  int64_t start[HD_MAX_RANK] = {0}, size[HD_MAX_RANK], shape[HD_MAX_RANK];
  unsigned rank = 0;
  for (int n = 0; n < x->rank; n++) {
    size[n] = n == axis ? 1 : hd_lower_size(x, n);
    if (n != axis)
      shape[rank++] = size[n];
  }
  start[axis] = i;
  x = hd_lower_slice(l, x, start, size, NULL);
  return x ? hd_lower_reshape(l, x, shape, rank) : NULL;
}

const hd_value_t *hd_lower_insert_axis(hd_lowering_t *l, const hd_value_t *x,
                                       int64_t axis) {
  int64_t shape[HD_MAX_RANK + 1];
  for (int i = 0; i <= x->rank; i++)
    shape[i] = i == axis ? 1 : hd_lower_size(x, i - (i > axis));
  return hd_lower_reshape(l, x, shape, (unsigned)x->rank + 1);
}

const hd_value_t *hd_lower_stack(hd_lowering_t *l,
                                 const hd_value_t *const *items, size_t count,
                                 int64_t axis) {
  const hd_value_t **rows =
      HD_ARENA_ARRAY(hd_lower_arena(l), const hd_value_t *, count);
  for (size_t i = 0; i < count; i++) {
    if (items[i]->form != HD_HOLDS_TENSOR)
      return hd_lower_invalid(l, "what is no tensor is stacked"), NULL;
    if (!(rows[i] = hd_lower_insert_axis(l, items[i], axis)))
      return NULL;
  }
  return count == 1 ? rows[0] : hd_lower_concat(l, rows, count, axis);
}

// No turn was taken: as the graph declares it.
static const hd_value_t *stack_nothing(hd_lowering_t *l,
                                       const hd_value_t *declared) {
  int64_t shape[HD_MAX_RANK + 1] = {0};
  hd_host_tensor_t *data;
  if (declared->type == HD_VOID || declared->rank < 0)
    return hd_lower_unsupported(l, "no turn, and a result of unknown shape"),
           NULL;
  for (int i = 0; i < declared->rank; i++) {
    const hd_expr_t *size = declared->shape[i];
    shape[i + 1] = size && size->kind == HD_EXPR_CONST ? size->u.i : 0;
  }
  return hd_lower_constant(l, declared->type, shape,
                           (unsigned)declared->rank + 1, &data);
}

bool hd_lower_set_outputs(hd_lowering_t *l, const hd_value_t *const *values,
                          size_t count) {
  for (size_t i = 0; i < count; i++)
    if (hd_lower_wants_output(l, (uint32_t)i) &&
        !hd_lower_output(l, (uint32_t)i, values[i]))
      return false;
  return true;
}

const hd_graph_t *hd_lower_body(hd_lowering_t *l, const char *name) {
  const hd_attribute_t *a = hd_lower_attribute(l, name, HD_ATTRIBUTE_GRAPH);
  if (!a)
    hd_lower_invalid(l, "the attribute '%s' is missing", name);
  return a ? a->u.graph : NULL;
}

bool hd_onnx_if(hd_lowering_t *l) {
  bool truth;
  if (!hd_lower_truth(l, hd_lower_input(l, 0), &truth))
    return false;
  const hd_graph_t *graph =
      hd_lower_body(l, truth ? "then_branch" : "else_branch");
  if (!graph)
    return false;
  size_t count = graph->outputs.size;
  if (count != hd_lower_num_outputs(l))
    return hd_lower_invalid(l, "%u results of a branch that has %zu",
                            hd_lower_num_outputs(l), count);
  const hd_value_t **outputs =
      HD_ARENA_ARRAY(hd_lower_arena(l), const hd_value_t *, count + 1);
  return hd_lower_graph(l, graph, NULL, 0, outputs) &&
         hd_lower_set_outputs(l, outputs, count);
}

bool hd_lower_turn(hd_lowering_t *l, hd_turns_t *t,
                   const hd_value_t *const *inputs, uint32_t num_inputs,
                   const hd_value_t **outputs) {
  hd_budget_check(&hd_lower_context(l)->budget);
  return hd_lower_graph(l, t->body, inputs, num_inputs, outputs);
}

void hd_lower_keep_results(hd_lowering_t *l, hd_turns_t *t,
                           const hd_value_t *const *results) {
  for (uint32_t i = 0; i < t->num_results; i++)
    hd_vec_push(hd_lower_arena(l), &t->results, results[i]);
}

// Result i of all turns, along a new axis; reversed: the last one first.
const hd_value_t *hd_lower_stack_results(hd_lowering_t *l, const hd_turns_t *t,
                                         uint32_t i, int64_t axis,
                                         bool reversed,
                                         const hd_value_t *declared) {
  size_t turns = t->results.size / t->num_results;
  if (turns == 0)
    return stack_nothing(l, declared);
  const hd_value_t **items =
      HD_ARENA_ARRAY(hd_lower_arena(l), const hd_value_t *, turns);
  for (size_t turn = 0; turn < turns; turn++)
    items[reversed ? turns - 1 - turn : turn] =
        t->results.data[turn * t->num_results + i];
  return hd_lower_stack(l, items, turns, axis);
}

// As one loop. outputs: the states, then the results.
static hd_control_t loop_at_once(hd_lowering_t *l, const hd_turns_t *t,
                                 int64_t limit, const hd_value_t *condition,
                                 const hd_value_t **outputs) {
  const hd_host_tensor_t *data = hd_lower_find_data(l, condition);
  if (!data || data->count != 1 || !hd_host_tensor_get_int(data, 0))
    return HD_CONTROL_TURNS;
  hd_control_loop_t c = {.body = t->body,
                         .steps = limit,
                         .condition = condition,
                         .num_states = t->num_states,
                         .num_results = t->num_results,
                         .states = t->states};
  return hd_lower_control_loop(l, &c, outputs);
}

// The graph takes the turn's number, the condition and the states, and gives
// the condition, the states and results.
static bool loop(hd_lowering_t *l, hd_turns_t *t, int64_t limit,
                 const hd_value_t *condition) {
  uint32_t states = t->num_states;
  hd_arena_t *arena = hd_lower_arena(l);
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(arena, const hd_value_t *, states + 2);
  const hd_value_t **outputs =
      HD_ARENA_ARRAY(arena, const hd_value_t *, t->body->outputs.size);
  inputs[1] = condition;
  for (int64_t turn = 0; turn < limit; turn++) {
    bool goes_on = true;
    if (!hd_lower_truth(l, inputs[1], &goes_on))
      return false;
    if (!goes_on)
      return true;
    if (turn == HD_MAX_TURNS)
      return hd_lower_unsupported(l, "more than %d turns", HD_MAX_TURNS);
    inputs[0] = hd_lower_index(l, turn);
    memcpy(inputs + 2, t->states, states * sizeof *inputs);
    if (!inputs[0] || !hd_lower_turn(l, t, inputs, states + 2, outputs))
      return false;
    inputs[1] = outputs[0];
    memcpy(t->states, outputs + 1, states * sizeof *outputs);
    hd_lower_keep_results(l, t, outputs + 1 + states);
  }
  return true;
}

bool hd_onnx_loop(hd_lowering_t *l) {
  hd_turns_t t = {.body = hd_lower_body(l, "body"),
                  .num_states = hd_lower_num_inputs(l) < 2
                                    ? 0
                                    : hd_lower_num_inputs(l) - 2};
  if (!t.body)
    return false;
  size_t gives = t.body->outputs.size;
  if (t.body->inputs.size != t.num_states + 2 || gives < t.num_states + 1)
    return hd_lower_invalid(l,
                            "a body of %zu inputs and %zu outputs for %u "
                            "states",
                            t.body->inputs.size, gives, t.num_states);
  t.num_results = (uint32_t)gives - 1 - t.num_states;
  t.states = HD_ARENA_ARRAY(hd_lower_arena(l), const hd_value_t *, gives + 1);
  const hd_value_t **outputs =
      HD_ARENA_ARRAY(hd_lower_arena(l), const hd_value_t *, gives + 1);
  for (uint32_t i = 0; i < t.num_states; i++)
    if (!(t.states[i] = hd_lower_input(l, i + 2)))
      return hd_lower_invalid(l, "input %u is missing", i + 2);
  const hd_value_t *condition = hd_lower_input(l, 1);
  int64_t limit = INT64_MAX;
  if (hd_lower_input(l, 0)) {
    size_t count;
    const int64_t *data = hd_lower_data_ints(l, hd_lower_input(l, 0), &count);
    if (!data)
      return false;
    if (count != 1)
      return hd_lower_invalid(l, "a trip count of %zu elements", count);
    limit = data[0];
  }
  if (!condition) {
    hd_host_tensor_t *data;
    condition = hd_lower_constant(l, HD_BOOL, NULL, 0, &data);
    if (!condition)
      return false;
    hd_host_tensor_set_int(data, 0, 1);
  }
  hd_control_t done = loop_at_once(l, &t, limit, condition, outputs);
  if (done != HD_CONTROL_TURNS)
    return done == HD_CONTROL_DONE &&
           hd_lower_set_outputs(l, outputs, gives - 1);
  if (!loop(l, &t, limit, condition))
    return false;
  for (uint32_t i = 0; i < t.num_results; i++) {
    uint32_t at = t.num_states + i;
    if (!hd_lower_wants_output(l, at))
      continue;
    t.states[at] = hd_lower_stack_results(l, &t, i, 0, false,
                                          t.body->outputs.data[at + 1]);
    if (!t.states[at])
      return false;
  }
  return hd_lower_set_outputs(l, t.states, t.num_states + t.num_results);
}
