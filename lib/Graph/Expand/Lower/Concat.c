// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors put behind each other, and taken apart.
#include "Graph/Expand/Lower/Lower.h"

static const hd_value_t *concat_few(hd_lowering_t *l,
                                    const hd_value_t *const *items,
                                    size_t count, int64_t axis) {
  if (count == 1)
    return items[0];
  const hd_value_t *inputs[4];
  int64_t size = 0;
  for (size_t i = 0; i < count; i++) {
    if (!(inputs[i] = hd_lower_around(l, items[i], axis)))
      return NULL;
    size += hd_lower_size(items[i], (int)axis);
  }
  const hd_value_t *y =
      hd_lower_task(l, "concat", inputs, (uint32_t)count, NULL, NULL);
  return hd_lower_unfold(l, y, items[0], axis, size);
}

// Four at a time, so that each element is moved log4(count) times.
const hd_value_t *hd_lower_concat(hd_lowering_t *l,
                                  const hd_value_t *const *items, size_t count,
                                  int64_t axis) {
  const hd_value_t **parts =
      HD_ARENA_ARRAY(hd_lower_arena(l), const hd_value_t *, count);
  for (size_t i = 0; i < count; i++)
    parts[i] = items[i];
  while (count > 1) {
    size_t groups = (count + 3) / 4;
    for (size_t g = 0; g < groups; g++) {
      size_t from = g * count / groups, to = (g + 1) * count / groups;
      if (!(parts[g] = concat_few(l, parts + from, to - from, axis)))
        return NULL;
    }
    count = groups;
  }
  return parts[0];
}

bool hd_onnx_concat(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  uint32_t count = hd_lower_num_inputs(l);
  int64_t axis, size = 0;
  if (!hd_lower_axis(l, "axis", 1, x->rank, &axis))
    return false;
  const hd_value_t **items =
      HD_ARENA_ARRAY(hd_lower_arena(l), const hd_value_t *, count);
  for (uint32_t i = 0; i < count; i++) {
    const hd_value_t *item = items[i] = hd_lower_input(l, i);
    bool fits = item && item->rank == x->rank && item->type == x->type;
    for (int n = 0; fits && n < x->rank; n++)
      fits = n == axis || hd_lower_size(item, n) == hd_lower_size(x, n);
    if (!fits ||
        __builtin_add_overflow(size, hd_lower_size(item, (int)axis), &size))
      return hd_lower_invalid(l, "input %u does not fit the first one", i);
  }
  return hd_lower_output(l, 0, hd_lower_concat(l, items, count, axis));
}

// The size of each part.
static const int64_t *split_sizes(hd_lowering_t *l, int64_t n,
                                  uint32_t outputs) {
  size_t count = 0;
  const hd_value_t *input =
      hd_lower_version(l) < 13 ? NULL : hd_lower_input(l, 1);
  const int64_t *given = input ? hd_lower_data_ints(l, input, &count)
                         : hd_lower_version(l) < 13
                             ? hd_lower_ints(l, "split", &count)
                             : NULL;
  if (input && !given)
    return NULL;
  if (given) {
    int64_t left = n;
    for (size_t i = 0; i < count; i++)
      left = given[i] < 0 || left < given[i] ? -1 : left - given[i];
    if (count == outputs && left == 0)
      return given;
    hd_lower_invalid(l,
                     "%zu parts for %u outputs do not make up an axis of "
                     "%lld",
                     count, outputs, (long long)n);
    return NULL;
  }
  bool uneven = hd_lower_version(l) >= 18;
  if (hd_lower_int(l, "num_outputs", outputs) != outputs ||
      (!uneven && n % outputs != 0)) {
    hd_lower_invalid(l, "an axis of %lld for %u outputs", (long long)n,
                     outputs);
    return NULL;
  }
  // Equal ones; what is missing is missing at the end.
  int64_t *sizes = HD_ARENA_ARRAY(hd_lower_arena(l), int64_t, outputs);
  int64_t chunk = (n + outputs - 1) / outputs, left = n;
  for (uint32_t i = 0; i < outputs; i++, left -= sizes[i - 1])
    sizes[i] = left < chunk ? left : chunk;
  return sizes;
}

bool hd_onnx_split(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  uint32_t outputs = hd_lower_num_outputs(l);
  int64_t axis;
  if (!hd_lower_axis(l, "axis", 0, x->rank, &axis))
    return false;
  const int64_t *sizes = split_sizes(l, hd_lower_size(x, (int)axis), outputs);
  if (!sizes)
    return false;
  int64_t start[HD_MAX_RANK] = {0};
  hd_tensor_type_t type = hd_lower_type(x);
  for (uint32_t i = 0; i < outputs; i++) {
    type.shape[axis] = sizes[i];
    if (hd_lower_wants_output(l, i) &&
        !hd_lower_output(l, i, hd_lower_slice(l, x, start, type.shape, NULL)))
      return false;
    start[axis] += sizes[i];
  }
  return true;
}
