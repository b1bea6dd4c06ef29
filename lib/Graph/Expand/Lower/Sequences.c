// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sequences and optionals: lists of values that exist during the walk alone.
#include "Graph/Expand/Lower/ControlFlow.h"

#include "Support/Budget.h"

#include <string.h>

static const hd_value_t *const *read_items(hd_lowering_t *l, uint32_t input,
                                           size_t *count) {
  static const hd_value_t *const none[1];
  const hd_value_t *value = hd_lower_input(l, input);
  if (!value || value->form != HD_HOLDS_SEQUENCE)
    return hd_lower_invalid(l, "input %u is no sequence", input), NULL;
  const hd_value_t *const *items = hd_lower_items(value, count);
  return items ? items : none;
}

// A position counted from the end where it is negative, below limit.
static bool read_position(hd_lowering_t *l, const hd_value_t *value,
                          size_t size, size_t limit, size_t *position) {
  size_t count;
  const int64_t *data = hd_lower_data_ints(l, value, &count);
  if (!data)
    return false;
  int64_t at = count == 1 ? data[0] : INT64_MIN;
  if (at < 0)
    at += (int64_t)size;
  if (at < 0 || at >= (int64_t)limit)
    return hd_lower_invalid(l, "no place in a sequence of %zu", size);
  *position = (size_t)at;
  return true;
}

static bool set_sequence(hd_lowering_t *l, const hd_value_t *const *items,
                         size_t count) {
  const hd_value_t *sequence = hd_lower_sequence(l, items, count);
  return hd_lower_output(l, 0, sequence);
}

bool hd_onnx_sequence_empty(hd_lowering_t *l) {
  return set_sequence(l, NULL, 0);
}

bool hd_onnx_sequence_construct(hd_lowering_t *l) {
  uint32_t count = hd_lower_num_inputs(l);
  const hd_value_t **items =
      HD_ARENA_ARRAY(hd_lower_arena(l), const hd_value_t *, count + 1);
  for (uint32_t i = 0; i < count; i++)
    if (!(items[i] = hd_lower_input(l, i)))
      return hd_lower_invalid(l, "input %u is missing", i);
  return set_sequence(l, items, count);
}

bool hd_onnx_sequence_insert(hd_lowering_t *l) {
  size_t count, at;
  const hd_value_t *const *items = read_items(l, 0, &count);
  if (!items)
    return false;
  at = count;
  if (hd_lower_input(l, 2) &&
      !read_position(l, hd_lower_input(l, 2), count, count + 1, &at))
    return false;
  const hd_value_t **more =
      HD_ARENA_ARRAY(hd_lower_arena(l), const hd_value_t *, count + 1);
  for (size_t i = 0; i < count; i++)
    more[i + (i >= at)] = items[i];
  more[at] = hd_lower_input(l, 1);
  return set_sequence(l, more, count + 1);
}

bool hd_onnx_sequence_erase(hd_lowering_t *l) {
  size_t count, at;
  const hd_value_t *const *items = read_items(l, 0, &count);
  if (!items)
    return false;
  if (count == 0)
    return hd_lower_invalid(l, "the sequence is empty");
  at = count - 1;
  if (hd_lower_input(l, 1) &&
      !read_position(l, hd_lower_input(l, 1), count, count, &at))
    return false;
  const hd_value_t **rest =
      HD_ARENA_ARRAY(hd_lower_arena(l), const hd_value_t *, count);
  for (size_t i = 0; i < count; i++)
    if (i != at)
      rest[i - (i > at)] = items[i];
  return set_sequence(l, rest, count - 1);
}

bool hd_onnx_sequence_at(hd_lowering_t *l) {
  size_t count, at;
  const hd_value_t *const *items = read_items(l, 0, &count);
  return items && read_position(l, hd_lower_input(l, 1), count, count, &at) &&
         hd_lower_output(l, 0, items[at]);
}

bool hd_onnx_sequence_length(hd_lowering_t *l) {
  size_t count;
  if (!read_items(l, 0, &count))
    return false;
  const hd_value_t *length = hd_lower_index(l, (int64_t)count);
  return hd_lower_output(l, 0, length);
}

bool hd_onnx_concat_from_sequence(hd_lowering_t *l) {
  size_t count;
  const hd_value_t *const *items = read_items(l, 0, &count);
  if (!items)
    return false;
  if (count == 0)
    return hd_lower_unsupported(l, "an empty sequence");
  bool stacks = hd_lower_int(l, "new_axis", 0) != 0;
  int64_t axis = hd_lower_int(l, "axis", 0);
  if (!hd_lower_wrap_axis(l, items[0]->rank + stacks, &axis))
    return false;
  const hd_value_t *y = stacks       ? hd_lower_stack(l, items, count, axis)
                        : count == 1 ? items[0]
                                     : hd_lower_concat(l, items, count, axis);
  return hd_lower_output(l, 0, y);
}

// Sizes of the parts along an axis: one number for all, a list, or each 1.
static bool read_parts(hd_lowering_t *l, int64_t size, int64_t **parts,
                       size_t *count) {
  const hd_value_t *split = hd_lower_input(l, 1);
  size_t given = 1;
  const int64_t one = 1, *data = &one;
  if (split && !(data = hd_lower_data_ints(l, split, &given)))
    return false;
  bool equal = !split || split->rank == 0;
  if (equal && (given != 1 || data[0] < 1))
    return hd_lower_invalid(l, "parts of %lld elements",
                            given ? (long long)data[0] : 0);
  *count = equal ? (size_t)(size / data[0] + (size % data[0] != 0)) : given;
  *parts = HD_ARENA_ARRAY(hd_lower_arena(l), int64_t, *count + 1);
  int64_t left = size;
  for (size_t i = 0; i < *count; i++) {
    int64_t part = equal ? data[0] : data[i];
    (*parts)[i] = equal && part > left ? left : part;
    if (part < 0 || (*parts)[i] > left)
      return hd_lower_invalid(l, "the parts do not add up to %lld",
                              (long long)size);
    left -= (*parts)[i];
  }
  return left == 0 || hd_lower_invalid(l, "the parts do not add up to %lld",
                                       (long long)size);
}

bool hd_onnx_split_to_sequence(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  int64_t axis, *parts, start[HD_MAX_RANK] = {0};
  size_t count;
  if (!hd_lower_axis(l, "axis", 0, x->rank, &axis) ||
      !read_parts(l, hd_lower_size(x, (int)axis), &parts, &count))
    return false;
  bool drops = !hd_lower_input(l, 1) && !hd_lower_int(l, "keepdims", 1);
  hd_tensor_type_t type = hd_lower_type(x);
  const hd_value_t **items =
      HD_ARENA_ARRAY(hd_lower_arena(l), const hd_value_t *, count + 1);
  for (size_t i = 0; i < count; i++) {
    type.shape[axis] = parts[i];
    items[i] = drops ? hd_lower_take(l, x, axis, (int64_t)i)
                     : hd_lower_slice(l, x, start, type.shape, NULL);
    if (!items[i])
      return false;
    start[axis] += parts[i];
  }
  return set_sequence(l, items, count);
}

// The body takes an item of each sequence, and tensors as they are.
bool hd_onnx_sequence_map(hd_lowering_t *l) {
  const hd_graph_t *body = hd_lower_body(l, "body");
  size_t count;
  if (!body || !read_items(l, 0, &count))
    return false;
  hd_arena_t *arena = hd_lower_arena(l);
  uint32_t takes = hd_lower_num_inputs(l);
  size_t gives = body->outputs.size;
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(arena, const hd_value_t *, takes + 1);
  const hd_value_t **outputs =
      HD_ARENA_ARRAY(arena, const hd_value_t *, gives + 1);
  const hd_value_t **all =
      HD_ARENA_ARRAY(arena, const hd_value_t *, gives *count + 1);
  for (size_t n = 0; n < count; n++) {
    hd_budget_check(&hd_lower_context(l)->budget);
    for (uint32_t i = 0; i < takes; i++) {
      inputs[i] = hd_lower_input(l, i);
      if (!inputs[i])
        return hd_lower_invalid(l, "input %u is missing", i);
      if (inputs[i]->form != HD_HOLDS_SEQUENCE)
        continue;
      size_t length;
      const hd_value_t *const *items = hd_lower_items(inputs[i], &length);
      if (length != count)
        return hd_lower_invalid(l, "sequences of %zu and %zu", count, length);
      inputs[i] = items[n];
    }
    if (!hd_lower_graph(l, body, inputs, takes, outputs))
      return false;
    for (size_t i = 0; i < gives; i++)
      all[i * count + n] = outputs[i];
  }
  for (uint32_t i = 0; i < gives; i++) {
    const hd_value_t *sequence = hd_lower_sequence(l, all + i * count, count);
    if (!sequence ||
        (hd_lower_wants_output(l, i) && !hd_lower_output(l, i, sequence)))
      return false;
  }
  return true;
}

bool hd_onnx_optional(hd_lowering_t *l) {
  const hd_value_t *y = hd_lower_optional(l, hd_lower_input(l, 0));
  return hd_lower_output(l, 0, y);
}

// From version 18 on what is no optional counts as one that holds it.
static const hd_value_t *held(hd_lowering_t *l, bool *present) {
  const hd_value_t *x = hd_lower_input(l, 0);
  *present = x != NULL;
  return x && x->form == HD_HOLDS_OPTIONAL ? hd_lower_held(x, present) : x;
}

bool hd_onnx_optional_get(hd_lowering_t *l) {
  bool present;
  const hd_value_t *value = held(l, &present);
  return present ? hd_lower_output(l, 0, value)
                 : hd_lower_invalid(l, "the optional holds nothing");
}

bool hd_onnx_optional_has(hd_lowering_t *l) {
  bool present;
  hd_host_tensor_t *data;
  held(l, &present);
  const hd_value_t *y = hd_lower_constant(l, HD_BOOL, NULL, 0, &data);
  if (y)
    hd_host_tensor_set_int(data, 0, present);
  return hd_lower_output(l, 0, y);
}
