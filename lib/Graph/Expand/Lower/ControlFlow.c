// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// If, Loop and Scan. What decides must be known, or the walk stops until it is.
// A Loop or a Scan becomes a loop where its turns differ in data alone; else it
// is walked, turn by turn.
#include "Graph/Expand/Lower/ControlFlow.h"
#include "Graph/Expand/Lower/ControlLoop.h"

#include "Support/Budget.h"

#include <string.h>

enum { MAX_TURNS = 1000000 };

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

static bool set_outputs(hd_lowering_t *l, const hd_value_t *const *values,
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
         set_outputs(l, outputs, count);
}

// A walk of turns: states go from one to the next, results of each are kept.
typedef struct turns {
  const hd_graph_t *body;
  uint32_t num_states, num_results;
  const hd_value_t **states;
  HD_VEC(const hd_value_t *) results; // Of each turn after the other.
} turns_t;

static bool take_turn(hd_lowering_t *l, turns_t *t,
                      const hd_value_t *const *inputs, uint32_t num_inputs,
                      const hd_value_t **outputs) {
  hd_budget_check(&hd_lower_context(l)->budget);
  return hd_lower_graph(l, t->body, inputs, num_inputs, outputs);
}

static void keep_results(hd_lowering_t *l, turns_t *t,
                         const hd_value_t *const *results) {
  for (uint32_t i = 0; i < t->num_results; i++)
    hd_vec_push(hd_lower_arena(l), &t->results, results[i]);
}

// Result i of all turns, along a new axis; reversed: the last one first.
static const hd_value_t *stack_results(hd_lowering_t *l, const turns_t *t,
                                       uint32_t i, int64_t axis, bool reversed,
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
static hd_control_t loop_at_once(hd_lowering_t *l, const turns_t *t,
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
static bool loop(hd_lowering_t *l, turns_t *t, int64_t limit,
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
    if (turn == MAX_TURNS)
      return hd_lower_unsupported(l, "more than %d turns", MAX_TURNS);
    inputs[0] = hd_lower_index(l, turn);
    memcpy(inputs + 2, t->states, states * sizeof *inputs);
    if (!inputs[0] || !take_turn(l, t, inputs, states + 2, outputs))
      return false;
    inputs[1] = outputs[0];
    memcpy(t->states, outputs + 1, states * sizeof *outputs);
    keep_results(l, t, outputs + 1 + states);
  }
  return true;
}

bool hd_onnx_loop(hd_lowering_t *l) {
  turns_t t = {.body = hd_lower_body(l, "body"),
               .num_states =
                   hd_lower_num_inputs(l) < 2 ? 0 : hd_lower_num_inputs(l) - 2};
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
  const hd_value_t *condition =
      hd_lower_num_inputs(l) > 1 ? hd_lower_input(l, 1) : NULL;
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
    return done == HD_CONTROL_DONE && set_outputs(l, outputs, gives - 1);
  if (!loop(l, &t, limit, condition))
    return false;
  for (uint32_t i = 0; i < t.num_results; i++) {
    uint32_t at = t.num_states + i;
    if (!hd_lower_wants_output(l, at))
      continue;
    t.states[at] =
        stack_results(l, &t, i, 0, false, t.body->outputs.data[at + 1]);
    if (!t.states[at])
      return false;
  }
  return set_outputs(l, t.states, t.num_states + t.num_results);
}

typedef struct scan {
  turns_t turns;
  uint32_t num_scanned;
  const hd_value_t **scanned;
  int64_t *axes, *directions;               // Of what is scanned.
  int64_t *result_axes, *result_directions; // Of the results.
} scan_t;

static int64_t *scan_list(hd_lowering_t *l, const char *name, uint32_t count) {
  size_t given;
  const int64_t *list = hd_lower_ints(l, name, &given);
  int64_t *values = HD_ARENA_ARRAY(hd_lower_arena(l), int64_t, count + 1);
  if (list && given != count) {
    hd_lower_invalid(l, "%s has %zu entries, and not %u", name, given, count);
    return NULL;
  }
  for (uint32_t i = 0; i < count; i++)
    values[i] = list ? list[i] : 0;
  return values;
}

static bool scan_length(hd_lowering_t *l, scan_t *s, int64_t *length) {
  for (uint32_t i = 0; i < s->num_scanned; i++) {
    const hd_value_t *x = s->scanned[i];
    if (!hd_lower_wrap_axis(l, x->rank, &s->axes[i]))
      return false;
    int64_t size = hd_lower_size(x, (int)s->axes[i]);
    if (i > 0 && size != *length)
      return hd_lower_invalid(l, "inputs of %lld and %lld turns",
                              (long long)*length, (long long)size);
    *length = size;
  }
  return true;
}

// The axis that is scanned comes first, in the order of the turns; backwards:
// or goes back to its place.
static const hd_value_t *move_axis(hd_lowering_t *l, const hd_value_t *x,
                                   int64_t axis, bool backwards) {
  int64_t order[HD_MAX_RANK];
  for (int64_t i = 0; i < x->rank; i++)
    order[i] = backwards ? (i < axis    ? i + 1
                            : i == axis ? 0
                                        : i)
                         : (i == 0      ? axis
                            : i <= axis ? i - 1
                                        : i);
  return axis ? hd_lower_transpose(l, x, order) : x;
}

static const hd_value_t *reverse_first(hd_lowering_t *l, const hd_value_t *x,
                                       bool reversed) {
  int64_t start[HD_MAX_RANK] = {0}, size[HD_MAX_RANK], step[HD_MAX_RANK];
  for (int i = 0; i < x->rank; i++) {
    size[i] = hd_lower_size(x, i);
    step[i] = 1;
  }
  start[0] = size[0] - 1;
  step[0] = -1;
  return reversed ? hd_lower_slice(l, x, start, size, step) : x;
}

// As one loop.
static hd_control_t scan_at_once(hd_lowering_t *l, scan_t *s, int64_t length,
                                 const hd_value_t **outputs) {
  turns_t *t = &s->turns;
  const hd_value_t **wholes =
      HD_ARENA_ARRAY(hd_lower_arena(l), const hd_value_t *, s->num_scanned + 1);
  for (uint32_t i = 0; i < s->num_scanned; i++) {
    wholes[i] = move_axis(l, s->scanned[i], s->axes[i], false);
    wholes[i] =
        wholes[i] ? reverse_first(l, wholes[i], s->directions[i] != 0) : NULL;
    if (!wholes[i])
      return HD_CONTROL_FAILED;
  }
  hd_control_loop_t c = {.body = t->body,
                         .steps = length,
                         .num_states = t->num_states,
                         .num_slices = s->num_scanned,
                         .num_results = t->num_results,
                         .states = t->states,
                         .wholes = wholes};
  hd_control_t done = hd_lower_control_loop(l, &c, outputs);
  if (done != HD_CONTROL_DONE)
    return done;
  for (uint32_t i = 0; i < t->num_results; i++) {
    const hd_value_t **y = &outputs[t->num_states + i];
    int64_t axis = s->result_axes[i];
    if (!hd_lower_wrap_axis(l, (*y)->rank, &axis) ||
        !(*y = reverse_first(l, *y, s->result_directions[i] != 0)) ||
        !(*y = move_axis(l, *y, axis, true)))
      return HD_CONTROL_FAILED;
  }
  return HD_CONTROL_DONE;
}

// outputs: the states after the last turn, then the results.
static bool scan(hd_lowering_t *l, scan_t *s, const hd_value_t **outputs) {
  turns_t *t = &s->turns;
  hd_arena_t *arena = hd_lower_arena(l);
  size_t takes = t->body->inputs.size;
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(arena, const hd_value_t *, takes + 1);
  int64_t length = 0;
  if (!scan_length(l, s, &length))
    return false;
  hd_control_t done = scan_at_once(l, s, length, outputs);
  if (done != HD_CONTROL_TURNS)
    return done == HD_CONTROL_DONE;
  if (length > MAX_TURNS)
    return hd_lower_unsupported(l, "more than %d turns", MAX_TURNS);
  memcpy(outputs, t->states, t->num_states * sizeof *outputs);
  for (int64_t turn = 0; turn < length; turn++) {
    memcpy(inputs, outputs, t->num_states * sizeof *inputs);
    for (uint32_t i = 0; i < s->num_scanned; i++) {
      inputs[t->num_states + i] =
          hd_lower_take(l, s->scanned[i], s->axes[i],
                        s->directions[i] ? length - 1 - turn : turn);
      if (!inputs[t->num_states + i])
        return false;
    }
    if (!take_turn(l, t, inputs, (uint32_t)takes, outputs))
      return false;
    keep_results(l, t, outputs + t->num_states);
  }
  for (uint32_t i = 0; i < t->num_results; i++) {
    const hd_value_t *declared = t->body->outputs.data[t->num_states + i];
    int64_t axis = s->result_axes[i];
    int rank = t->results.size ? t->results.data[i]->rank : declared->rank;
    if (!hd_lower_wrap_axis(l, rank + 1, &axis))
      return false;
    outputs[t->num_states + i] =
        stack_results(l, t, i, axis, s->result_directions[i] != 0, declared);
    if (!outputs[t->num_states + i])
      return false;
  }
  return true;
}

// Before version 9 everything has an axis for the batch in front, and each of
// it is scanned by itself.
static bool scan_batch(hd_lowering_t *l, scan_t *s,
                       const hd_value_t **outputs) {
  turns_t *t = &s->turns;
  hd_arena_t *arena = hd_lower_arena(l);
  uint32_t takes = t->num_states + s->num_scanned;
  size_t gives = t->body->outputs.size;
  const hd_value_t *first = takes ? hd_lower_input(l, 1) : NULL;
  int64_t batch = first && first->rank > 0 ? hd_lower_size(first, 0) : 0;
  if (hd_lower_input(l, 0))
    return hd_lower_unsupported(l, "lengths of sequences");
  if (batch < 1 || batch > MAX_TURNS)
    return hd_lower_unsupported(l, "a batch of %lld", (long long)batch);
  const hd_value_t **all =
      HD_ARENA_ARRAY(arena, const hd_value_t *, (size_t)batch *gives + 1);
  for (int64_t b = 0; b < batch; b++) {
    for (uint32_t i = 0; i < takes; i++) {
      const hd_value_t *x = hd_lower_input(l, i + 1);
      if (!x || x->rank < 1 || hd_lower_size(x, 0) != batch)
        return hd_lower_invalid(l, "input %u has no batch of %lld", i + 1,
                                (long long)batch);
      if (!(x = hd_lower_take(l, x, 0, b)))
        return false;
      *(i < t->num_states ? &t->states[i] : &s->scanned[i - t->num_states]) = x;
    }
    t->results.size = 0;
    if (!scan(l, s, outputs))
      return false;
    for (size_t i = 0; i < gives; i++)
      all[i * (size_t)batch + (size_t)b] = outputs[i];
  }
  for (size_t i = 0; i < gives; i++)
    if (!(outputs[i] =
              hd_lower_stack(l, all + i * (size_t)batch, (size_t)batch, 0)))
      return false;
  return true;
}

bool hd_onnx_scan(hd_lowering_t *l) {
  scan_t s = {.turns.body = hd_lower_body(l, "body")};
  turns_t *t = &s.turns;
  bool old = hd_lower_version(l) < 9;
  uint32_t given = hd_lower_num_inputs(l);
  given -= old && given > 0;
  int64_t scanned = hd_lower_int(l, "num_scan_inputs", 0);
  if (!t->body)
    return false;
  size_t gives = t->body->outputs.size;
  if (scanned < 1 || scanned > given || t->body->inputs.size != given ||
      gives < given - (size_t)scanned)
    return hd_lower_invalid(l,
                            "a body of %zu inputs and %zu outputs for %u "
                            "inputs, %lld of them scanned",
                            t->body->inputs.size, gives, given,
                            (long long)scanned);
  hd_arena_t *arena = hd_lower_arena(l);
  s.num_scanned = (uint32_t)scanned;
  t->num_states = given - s.num_scanned;
  t->num_results = (uint32_t)gives - t->num_states;
  t->states = HD_ARENA_ARRAY(arena, const hd_value_t *, given + 1);
  s.scanned = HD_ARENA_ARRAY(arena, const hd_value_t *, given + 1);
  s.axes = scan_list(l, "scan_input_axes", s.num_scanned);
  s.directions =
      scan_list(l, old ? "directions" : "scan_input_directions", s.num_scanned);
  s.result_axes = scan_list(l, "scan_output_axes", t->num_results);
  s.result_directions = scan_list(l, "scan_output_directions", t->num_results);
  if (!s.axes || !s.directions || !s.result_axes || !s.result_directions)
    return false;
  const hd_value_t **outputs =
      HD_ARENA_ARRAY(arena, const hd_value_t *, gives + t->num_states + 1);
  for (uint32_t i = 0; !old && i < given; i++) {
    const hd_value_t *x = hd_lower_input(l, i);
    if (!x)
      return hd_lower_invalid(l, "input %u is missing", i);
    *(i < t->num_states ? &t->states[i] : &s.scanned[i - t->num_states]) = x;
  }
  return (old ? scan_batch(l, &s, outputs) : scan(l, &s, outputs)) &&
         set_outputs(l, outputs, gives);
}
