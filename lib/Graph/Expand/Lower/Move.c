// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that bring elements to other places: slices, padding, repeating.
#include "Graph/Expand/Lower/Lower.h"

#include <stdlib.h>
#include <string.h>

// --- Tasks over every axis, where most axes are left as they are ---

// Axes that lie side by side and are moved as a whole, joined to one: fewer
// divisions for who computes the indices. moved[i]: axis i must stay by itself.
typedef struct joined {
  int rank;
  int64_t shape[HD_MAX_RANK];
  int first[HD_MAX_RANK]; // The first axis that each is made of.
} joined_t;

static joined_t join_axes(const hd_value_t *x, const bool *moved) {
  joined_t j = {.rank = 0};
  for (int i = 0; i < x->rank; i++) {
    if (i > 0 && !moved[i] && !moved[i - 1]) {
      j.shape[j.rank - 1] =
          hd_size_times(j.shape[j.rank - 1], hd_lower_size(x, i));
      continue;
    }
    j.first[j.rank] = i;
    j.shape[j.rank++] = hd_lower_size(x, i);
  }
  return j;
}

typedef struct list {
  const char *name;
  int64_t values[HD_MAX_RANK];
} list_t;

// A task over x with joined axes and an attribute for each list; the result
// has the shape.
static const hd_value_t *move(hd_lowering_t *l, const char *task,
                              const hd_value_t *x, const joined_t *j,
                              const hd_value_t *extra, const list_t *lists,
                              size_t num_lists, const int64_t *shape) {
  hd_attributes_t attributes = {0};
  for (size_t i = 0; i < num_lists; i++)
    hd_attributes_ints(l, &attributes, lists[i].name, lists[i].values,
                       (size_t)j->rank);
  const hd_value_t *inputs[] = {
      hd_lower_reshape(l, x, j->shape, (unsigned)j->rank), extra};
  const hd_value_t *y =
      inputs[0]
          ? hd_lower_task(l, task, inputs, extra ? 2 : 1, &attributes, NULL)
          : NULL;
  return y ? hd_lower_reshape(l, y, shape, (unsigned)x->rank) : NULL;
}

const hd_value_t *hd_lower_slice(hd_lowering_t *l, const hd_value_t *x,
                                 const int64_t *start, const int64_t *size,
                                 const int64_t *step) {
  bool moved[HD_MAX_RANK], any = false;
  for (int i = 0; i < x->rank; i++) {
    moved[i] = start[i] != 0 || size[i] != hd_lower_size(x, i) ||
               (step && step[i] != 1);
    any = any || moved[i];
  }
  if (!any)
    return x;
  joined_t j = join_axes(x, moved);
  list_t lists[] = {{.name = "start"}, {.name = "stride"}, {.name = "size"}};
  for (int i = 0; i < j.rank; i++) {
    int axis = j.first[i];
    lists[0].values[i] = start[axis];
    lists[1].values[i] = moved[axis] && step ? step[axis] : 1;
    lists[2].values[i] = moved[axis] ? size[axis] : j.shape[i];
  }
  return move(l, "slice", x, &j, NULL, lists, 3, size);
}

const hd_value_t *hd_lower_tile(hd_lowering_t *l, const hd_value_t *x,
                                const int64_t *repeats) {
  bool moved[HD_MAX_RANK], any = false;
  int64_t shape[HD_MAX_RANK];
  for (int i = 0; i < x->rank; i++) {
    moved[i] = repeats[i] != 1;
    any = any || moved[i];
    shape[i] = hd_lower_size(x, i) * repeats[i];
  }
  if (!any)
    return x;
  joined_t j = join_axes(x, moved);
  list_t list = {.name = "repeats"};
  for (int i = 0; i < j.rank; i++)
    list.values[i] = repeats[j.first[i]];
  return move(l, "tile", x, &j, NULL, &list, 1, shape);
}

static const hd_value_t *pad(hd_lowering_t *l, const char *task,
                             const hd_value_t *x, const int64_t *before,
                             const int64_t *size, const hd_value_t *value) {
  bool moved[HD_MAX_RANK], any = false;
  for (int i = 0; i < x->rank; i++) {
    moved[i] = before[i] != 0 || size[i] != hd_lower_size(x, i);
    any = any || moved[i];
  }
  if (!any)
    return x;
  joined_t j = join_axes(x, moved);
  list_t lists[] = {{.name = "before"}, {.name = "size"}};
  for (int i = 0; i < j.rank; i++) {
    int axis = j.first[i];
    lists[0].values[i] = before[axis];
    lists[1].values[i] = moved[axis] ? size[axis] : j.shape[i];
  }
  return move(l, task, x, &j, value, lists, 2, size);
}

const hd_value_t *hd_lower_pad(hd_lowering_t *l, const hd_value_t *x,
                               const int64_t *before, const int64_t *size,
                               const hd_value_t *value) {
  value = value ? value : hd_lower_scalar(l, x->type, 0);
  return value ? pad(l, "pad_constant", x, before, size, value) : NULL;
}

// --- Slice ---

typedef struct slice {
  const int64_t *starts, *ends, *steps;
  size_t count; // Of each.
} slice_t;

static bool read_list(hd_lowering_t *l, const char *name, uint32_t input,
                      const int64_t **values, size_t *count) {
  const hd_value_t *value =
      hd_lower_version(l) < 10 ? NULL : hd_lower_input(l, input);
  if (hd_lower_version(l) < 10)
    *values = hd_lower_ints(l, name, count);
  else
    *values = value ? hd_lower_data_ints(l, value, count) : NULL;
  return *values || !value;
}

static bool read_slice(hd_lowering_t *l, int rank, slice_t *s,
                       hd_axes_t *axes) {
  size_t ends, steps = 0;
  s->steps = NULL;
  const hd_value_t *which =
      hd_lower_version(l) < 10 ? NULL : hd_lower_input(l, 3);
  if (!read_list(l, "starts", 1, &s->starts, &s->count) ||
      !read_list(l, "ends", 2, &s->ends, &ends) ||
      (hd_lower_version(l) >= 10 &&
       !read_list(l, "steps", 4, &s->steps, &steps)) ||
      !hd_lower_axes(l, which, hd_lower_version(l) < 10 ? "axes" : "", rank,
                     axes))
    return false;
  if (!s->starts || !s->ends)
    return hd_lower_invalid(l, "'starts' or 'ends' is missing");
  if (ends != s->count || (s->steps && steps != s->count) ||
      (axes->given && axes->count != s->count) || s->count > (size_t)rank)
    return hd_lower_invalid(l, "%zu starts, %zu ends and %zu axes", s->count,
                            ends, axes->given ? axes->count : (size_t)rank);
  if (!axes->given)
    for (size_t i = 0; i < s->count; i++)
      axes->axes[i] = (int64_t)i;
  return true;
}

static int64_t clamp(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

// Negative places count from the end, those outside are brought in: a start
// before the first element to that one, whatever the step (numpy has nothing
// then; ONNX says so).
static void slice_axis(int64_t n, int64_t step, int64_t *start, int64_t end,
                       int64_t *size) {
  *start = *start < -n ? 0 : *start < 0 ? *start + n : *start;
  end = end < -n ? -1 : end < 0 ? end + n : end;
  *start = clamp(*start, 0, step > 0 ? n : n - 1);
  end = clamp(end, step > 0 ? 0 : -1, n);
  int64_t distance = step > 0 ? end - *start : *start - end;
  uint64_t by = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
  *size = distance <= 0 ? 0 : (int64_t)(((uint64_t)distance - 1) / by) + 1;
}

bool hd_onnx_slice(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  slice_t s;
  hd_axes_t axes;
  if (!read_slice(l, x->rank, &s, &axes))
    return false;
  int64_t start[HD_MAX_RANK] = {0}, step[HD_MAX_RANK];
  hd_tensor_type_t type = hd_lower_type(x);
  for (int i = 0; i < x->rank; i++)
    step[i] = 1;
  for (size_t i = 0; i < s.count; i++) {
    int64_t axis = axes.axes[i];
    step[axis] = s.steps ? s.steps[i] : 1;
    if (step[axis] == 0)
      return hd_lower_invalid(l, "a step of 0");
    start[axis] = s.starts[i];
    slice_axis(type.shape[axis], step[axis], &start[axis], s.ends[i],
               &type.shape[axis]);
    // One element needs no step, and a huge one none that overflows.
    if (type.shape[axis] <= 1)
      step[axis] = 1;
    if (type.shape[axis] == 0)
      start[axis] = 0;
  }
  return hd_lower_output(l, 0, hd_lower_slice(l, x, start, type.shape, step));
}

// --- Pad ---

// Where the sizes come from: attributes before version 11.
static bool read_pads(hd_lowering_t *l, const int64_t **pads, hd_axes_t *axes) {
  const hd_value_t *x = hd_lower_input(l, 0);
  size_t count = 0;
  *pads = hd_lower_version(l) < 11
              ? hd_lower_ints(l, "pads", &count)
              : hd_lower_data_ints(l, hd_lower_input(l, 1), &count);
  if (!*pads)
    return hd_lower_version(l) < 11 && hd_lower_invalid(l, "no 'pads'");
  if (!hd_lower_axes(l, hd_lower_version(l) < 18 ? NULL : hd_lower_input(l, 3),
                     "", x->rank, axes))
    return false;
  if (!axes->given) {
    axes->count = (size_t)x->rank;
    for (int i = 0; i < x->rank; i++)
      axes->axes[i] = i;
  }
  return count == 2 * axes->count ||
         hd_lower_invalid(l, "%zu pads for %zu axes", count, axes->count);
}

static const hd_value_t *pad_value(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  if (hd_lower_version(l) < 11)
    return hd_lower_scalar(l, x->type, hd_lower_float(l, "value", 0));
  const hd_value_t *value = hd_lower_input(l, 2);
  if (!value)
    return hd_lower_scalar(l, x->type, 0);
  if (hd_lower_count(value) == 1)
    return hd_lower_reshape(l, value, NULL, 0);
  hd_lower_invalid(l, "constant_value has %lld elements, not 1",
                   (long long)hd_lower_count(value));
  return NULL;
}

static int64_t cut(int64_t pad, int64_t n) {
  return pad >= 0 ? 0 : pad < -n ? n : -pad;
}

// What negative pads leave of x.
static const hd_value_t *crop(hd_lowering_t *l, const hd_value_t *x,
                              const hd_axes_t *axes, const int64_t *pads) {
  int64_t start[HD_MAX_RANK] = {0};
  hd_tensor_type_t type = hd_lower_type(x);
  bool any = false;
  for (size_t i = 0; i < axes->count; i++) {
    int64_t axis = axes->axes[i], n = type.shape[axis];
    int64_t left = n - cut(pads[i], n) - cut(pads[axes->count + i], n);
    any |= left != n;
    start[axis] = left > 0 ? cut(pads[i], n) : 0;
    type.shape[axis] = left > 0 ? left : 0;
  }
  return any ? hd_lower_slice(l, x, start, type.shape, NULL) : x;
}

bool hd_onnx_pad(hd_lowering_t *l) {
  static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
  const hd_value_t *x = hd_lower_input(l, 0), *value = NULL;
  const char *mode = hd_lower_string(l, "mode", "constant");
  int m = 0;
  while (m < 4 && strcmp(modes[m], mode) != 0)
    m++;
  if (m == 4 || (m == 3 && hd_lower_version(l) < 19))
    return hd_lower_invalid(l, "mode is '%s'", mode);
  const int64_t *pads;
  hd_axes_t axes;
  if (!read_pads(l, &pads, &axes) || (m == 0 && !(value = pad_value(l))))
    return false;
  int64_t before[HD_MAX_RANK] = {0};
  hd_tensor_type_t type = hd_lower_type(x);
  // What goes around is what is left.
  const hd_value_t *kept = m == 3 ? crop(l, x, &axes, pads) : x;
  if (!kept)
    return false;
  for (size_t i = 0; i < axes.count; i++) {
    int64_t axis = axes.axes[i], n = type.shape[axis], size;
    before[axis] = m == 3 && pads[i] < 0 ? 0 : pads[i];
    if (__builtin_add_overflow(n, pads[i], &size) ||
        __builtin_add_overflow(size, pads[axes.count + i], &size) || size < 0)
      return hd_lower_invalid(l,
                              "pads of %lld and %lld on axis %lld of size "
                              "%lld",
                              (long long)pads[i],
                              (long long)pads[axes.count + i], (long long)axis,
                              (long long)n);
    if (m != 0 && hd_lower_size(kept, (int)axis) == 0 && size > 0)
      return hd_lower_invalid(l, "axis %lld is empty: nothing to pad it with",
                              (long long)axis);
    type.shape[axis] = size;
  }
  const char *task = hd_arena_printf(hd_lower_arena(l), "pad_%s", mode);
  return hd_lower_output(l, 0, pad(l, task, kept, before, type.shape, value));
}

// --- Tile, Expand ---

bool hd_onnx_tile(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  size_t count;
  const int64_t *repeats = hd_lower_data_ints(l, hd_lower_input(l, 1), &count);
  if (!repeats)
    return false;
  if (count != (size_t)x->rank)
    return hd_lower_invalid(l, "%zu repeats for a tensor of rank %d", count,
                            x->rank);
  for (size_t i = 0; i < count; i++) {
    int64_t size;
    if (repeats[i] < 0 ||
        __builtin_mul_overflow(repeats[i], hd_lower_size(x, (int)i), &size))
      return hd_lower_invalid(l, "%lld repeats", (long long)repeats[i]);
  }
  return hd_lower_output(l, 0, hd_lower_tile(l, x, repeats));
}

// Broadcast both ways: where the shape wanted has 1, x's size stays.
bool hd_onnx_expand(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  size_t count;
  const int64_t *wanted = hd_lower_data_ints(l, hd_lower_input(l, 1), &count);
  if (!wanted)
    return false;
  int rank = (int)count > x->rank ? (int)count : x->rank;
  if (count > HD_MAX_RANK)
    return hd_lower_unsupported(l, "a tensor of rank %zu", count);
  int64_t shape[HD_MAX_RANK];
  for (int i = 0; i < rank; i++) {
    int at = i - (rank - x->rank), from = i - (rank - (int)count);
    int64_t have = at < 0 ? 1 : hd_lower_size(x, at);
    int64_t want = from < 0 ? 1 : wanted[from];
    if (want < 0 || (have != 1 && want != 1 && have != want))
      return hd_lower_invalid(l, "a size of %lld does not broadcast to %lld",
                              (long long)have, (long long)want);
    shape[i] = have == 1 ? want : have;
  }
  return hd_lower_output(l, 0, hd_lower_expand(l, x, shape, (unsigned)rank));
}

// --- ReverseSequence ---

bool hd_onnx_reverse_sequence(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  int64_t time = hd_lower_int(l, "time_axis", 0);
  int64_t batch = hd_lower_int(l, "batch_axis", 1);
  if (x->rank < 2 || (time != 0 && time != 1) || batch != 1 - time)
    return hd_lower_invalid(l,
                            "time_axis %lld and batch_axis %lld of a tensor "
                            "of rank %d",
                            (long long)time, (long long)batch, x->rank);
  hd_tensor_type_t type = hd_lower_type(x);
  int64_t shape[] = {type.shape[0], type.shape[1],
                     hd_lower_product(x, 2, x->rank)};
  const hd_value_t *inputs[] = {hd_lower_reshape(l, x, shape, 3),
                                hd_lower_input(l, 1)};
  const hd_value_t *y = inputs[0]
                            ? hd_lower_task(l,
                                            time == 0 ? "reverse_time_first"
                                                      : "reverse_batch_first",
                                            inputs, 2, NULL, NULL)
                            : NULL;
  return y &&
         hd_lower_output(l, 0, hd_lower_reshape(l, y, type.shape, type.rank));
}
