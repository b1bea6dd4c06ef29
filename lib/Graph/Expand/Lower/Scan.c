// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scan: a walk over slices of tensors, in either direction, or a loop.
#include "Graph/Expand/Lower/ControlFlow.h"
#include "Graph/Expand/Lower/ControlLoop.h"

#include "Support/Budget.h"

#include <string.h>

typedef struct scan {
  hd_turns_t turns;
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
  hd_turns_t *t = &s->turns;
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
  hd_turns_t *t = &s->turns;
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
  if (length > HD_MAX_TURNS)
    return hd_lower_unsupported(l, "more than %d turns", HD_MAX_TURNS);
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
    if (!hd_lower_turn(l, t, inputs, (uint32_t)takes, outputs))
      return false;
    hd_lower_keep_results(l, t, outputs + t->num_states);
  }
  for (uint32_t i = 0; i < t->num_results; i++) {
    const hd_value_t *declared = t->body->outputs.data[t->num_states + i];
    int64_t axis = s->result_axes[i];
    int rank = t->results.size ? t->results.data[i]->rank : declared->rank;
    if (!hd_lower_wrap_axis(l, rank + 1, &axis))
      return false;
    outputs[t->num_states + i] = hd_lower_stack_results(
        l, t, i, axis, s->result_directions[i] != 0, declared);
    if (!outputs[t->num_states + i])
      return false;
  }
  return true;
}

// Before version 9 everything has an axis for the batch in front, and each of
// it is scanned by itself.
static bool scan_batch(hd_lowering_t *l, scan_t *s,
                       const hd_value_t **outputs) {
  hd_turns_t *t = &s->turns;
  hd_arena_t *arena = hd_lower_arena(l);
  uint32_t takes = t->num_states + s->num_scanned;
  size_t gives = t->body->outputs.size;
  const hd_value_t *first = takes ? hd_lower_input(l, 1) : NULL;
  int64_t batch = first && first->rank > 0 ? hd_lower_size(first, 0) : 0;
  if (hd_lower_input(l, 0))
    return hd_lower_unsupported(l, "lengths of sequences");
  if (batch < 1 || batch > HD_MAX_TURNS)
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
  hd_turns_t *t = &s.turns;
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
         hd_lower_set_outputs(l, outputs, gives);
}
