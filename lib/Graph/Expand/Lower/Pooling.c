// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pooling.
#include "Graph/Expand/Lower/Window.h"

#include <math.h>
#include <string.h>

// What no element is below.
static void add_least(hd_lowering_t *l, hd_scalar_t type,
                      hd_attributes_t *list) {
  hd_type_t t = hd_type(type);
  if (hd_type_is_float(t))
    hd_attributes_float(l, list, "least", -INFINITY);
  else
    hd_attributes_int(
        l, list, "least",
        hd_type_is_signed(t) ? -(INT64_C(1) << (hd_scalar_bits(type) - 1)) : 0);
}

// The numbers of an image's elements, the first axis the fastest where
// column_major.
static const hd_value_t *number_places(hd_lowering_t *l, const hd_window_t *w,
                                       bool column_major) {
  hd_host_tensor_t *data;
  const hd_value_t *places =
      hd_lower_constant(l, HD_I64, w->inputs, w->rank, &data);
  if (!places)
    return NULL;
  int64_t index[HD_MAX_RANK] = {0};
  for (int64_t i = 0; i < data->count; i++) {
    int64_t place = i;
    if (column_major) {
      place = 0;
      for (unsigned axis = w->rank; axis-- > 0;)
        place = place * w->inputs[axis] + index[axis];
    }
    hd_host_tensor_set_int(data, i, place);
    for (unsigned axis = w->rank; axis-- > 0;) {
      if (++index[axis] < w->inputs[axis])
        break;
      index[axis] = 0;
    }
  }
  return places;
}

static bool read_windows(hd_lowering_t *l, hd_window_t *w,
                         hd_attributes_t *list) {
  if (!hd_window_read(l, hd_lower_input(l, 0), NULL, w) ||
      !hd_window_place(l, w))
    return false;
  hd_window_trim(w);
  hd_window_attributes(l, w, list);
  hd_attributes_ints(l, list, "window", w->kernel, w->rank);
  return true;
}

bool hd_onnx_max_pool(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  hd_window_t w = {0};
  hd_attributes_t list = {0};
  if (!read_windows(l, &w, &list))
    return false;
  add_least(l, x->type, &list);
  if (!hd_lower_wants_output(l, 1)) {
    const hd_value_t *y = hd_lower_task(l, "max_pool", &x, 1, &list, NULL);
    return hd_lower_output(l, 0, y);
  }
  hd_attributes_int(l, &list, "images", hd_lower_product(x, 2, x->rank));
  const hd_value_t *inputs[] = {
      x, number_places(l, &w, hd_lower_int(l, "storage_order", 0) != 0)};
  const hd_value_t *outputs[2];
  return inputs[1] &&
         hd_lower_task(l, "max_pool_indices", inputs, 2, &list, outputs) &&
         hd_lower_output(l, 0, outputs[0]) && hd_lower_output(l, 1, outputs[1]);
}

// How many steps of k dilations from start lead below limit.
static int64_t count_steps(int64_t start, int64_t limit, int64_t dilation,
                           int64_t most) {
  if (start >= limit)
    return 0;
  int64_t steps = (limit - start - 1) / dilation + 1;
  return steps < most ? steps : most;
}

// How many elements the window's i-th place along an axis counts.
static int64_t count_places(const hd_window_t *w, unsigned axis, int64_t i,
                            bool with_padding) {
  int64_t kernel = w->kernel[axis], dilation = w->dilations[axis];
  int64_t start = i * w->strides[axis] - w->begin[axis];
  int64_t limit = w->inputs[axis] + (with_padding ? w->end[axis] : 0);
  int64_t count = count_steps(start, limit, dilation, kernel);
  if (!with_padding)
    count -= count_steps(start, 0, dilation, kernel);
  return count ? count : 1;
}

// What each element of a window counts for: 1 over how many there are.
static const hd_value_t *share_elements(hd_lowering_t *l, const hd_window_t *w,
                                        hd_scalar_t type, bool with_padding) {
  hd_host_tensor_t *data;
  const hd_value_t *shares =
      hd_lower_constant(l, type, w->sizes, w->rank, &data);
  if (!shares)
    return NULL;
  for (int64_t i = 0; i < data->count; i++)
    hd_host_tensor_set(data, i, 1);
  int64_t inner = 1;
  for (unsigned axis = w->rank; axis-- > 0; inner *= w->sizes[axis])
    for (int64_t place = 0; place < w->sizes[axis]; place++) {
      double count = (double)count_places(w, axis, place, with_padding);
      for (int64_t i = place * inner; i < data->count;
           i += w->sizes[axis] * inner)
        for (int64_t j = i; j < i + inner; j++)
          hd_host_tensor_set(data, j, hd_host_tensor_get(data, j) * count);
    }
  for (int64_t i = 0; i < data->count; i++)
    hd_host_tensor_set(data, i, 1 / hd_host_tensor_get(data, i));
  return shares;
}

bool hd_onnx_average_pool(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  hd_window_t w = {0};
  if (!hd_window_read(l, x, NULL, &w) || !hd_window_place(l, &w))
    return false;
  const hd_value_t *inputs[] = {
      x, share_elements(l, &w, hd_scalar_accumulator(x->type),
                        hd_lower_int(l, "count_include_pad", 0) != 0)};
  hd_attributes_t list = {0};
  hd_window_trim(&w);
  hd_attributes_ints(l, &list, "window", w.kernel, w.rank);
  hd_attributes_ints(l, &list, "strides", w.strides, w.rank);
  hd_attributes_ints(l, &list, "pads", w.begin, w.rank);
  hd_attributes_ints(l, &list, "dilations", w.dilations, w.rank);
  const hd_value_t *y =
      inputs[1] ? hd_lower_task(l, "average_pool", inputs, 2, &list, NULL)
                : NULL;
  return hd_lower_output(l, 0, y);
}

bool hd_onnx_lp_pool(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  hd_window_t w = {0};
  hd_attributes_t list = {0};
  if (!read_windows(l, &w, &list))
    return false;
  hd_attributes_float(l, &list, "p", (double)hd_lower_int(l, "p", 2));
  const hd_value_t *y = hd_lower_task(l, "lp_pool", &x, 1, &list, NULL);
  return hd_lower_output(l, 0, y);
}

// Over all axes behind batch and channels, which stay with size 1.
bool hd_onnx_global_pool(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  const char *task = hd_lower_argument(l);
  int64_t shape[HD_MAX_RANK];
  if (x->rank < 2)
    return hd_lower_invalid(l, "a tensor of rank %d has no channels", x->rank);
  for (int i = 0; i < x->rank; i++)
    shape[i] = i < 2 ? hd_lower_size(x, i) : 1;
  hd_attributes_t list = {0};
  if (strcmp(task, "global_average_pool") == 0)
    hd_attributes_int(l, &list, "count", hd_lower_product(x, 2, x->rank));
  else if (strcmp(task, "global_lp_pool") == 0)
    hd_attributes_float(l, &list, "p", (double)hd_lower_int(l, "p", 2));
  const hd_value_t *y = hd_lower_task(l, task, &x, 1, &list, NULL);
  y = y ? hd_lower_reshape(l, y, shape, (unsigned)x->rank) : NULL;
  return hd_lower_output(l, 0, y);
}

// at counts elements of a tensor of the shape that the attributes give; where a
// larger one is asked for (output_shape), zeros come behind it.
bool hd_onnx_max_unpool(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *at = hd_lower_input(l, 1);
  const hd_value_t *wanted = hd_lower_input(l, 2);
  hd_window_t w = {0};
  int64_t shape[HD_MAX_RANK], none[HD_MAX_RANK] = {0}, size = 1;
  size_t count;
  if (!hd_window_read(l, x, NULL, &w) || !hd_window_pads(l, &w))
    return false;
  const int64_t *sizes = wanted ? hd_lower_data_ints(l, wanted, &count) : NULL;
  if (wanted && !sizes)
    return false;
  if (wanted && count != (size_t)x->rank)
    return hd_lower_invalid(l, "output_shape has %zu entries", count);
  for (int i = 0; i < x->rank; i++) {
    shape[i] = hd_lower_size(x, i);
    if (i > 1)
      shape[i] = (shape[i] - 1) * w.strides[i - 2] + w.kernel[i - 2] -
                 w.begin[i - 2] - w.end[i - 2];
    if (sizes && sizes[i] < shape[i])
      return hd_lower_invalid(l, "output_shape is smaller than the result");
    if (shape[i] < 0)
      return hd_lower_invalid(l, "the padding is larger than the result");
    if (__builtin_mul_overflow(size, shape[i], &size))
      return hd_lower_invalid(l, "the result's sizes overflow");
  }
  int64_t flat = hd_lower_count(x);
  const hd_value_t *inputs[] = {hd_lower_reshape(l, x, &flat, 1),
                                hd_lower_reshape(l, at, &flat, 1)};
  hd_attributes_t list = {0};
  hd_attributes_int(l, &list, "size", size);
  const hd_value_t *y =
      inputs[0] && inputs[1]
          ? hd_lower_task(l, "max_unpool", inputs, 2, &list, NULL)
          : NULL;
  y = y ? hd_lower_reshape(l, y, shape, (unsigned)x->rank) : NULL;
  y = y && sizes ? hd_lower_pad(l, y, none, sizes, NULL) : y;
  return hd_lower_output(l, 0, y);
}
