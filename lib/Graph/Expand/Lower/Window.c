// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Graph/Expand/Lower/Window.h"

#include <string.h>

// Numbers of attributes are kept small, so that products of two do not
// overflow.
static const int64_t largest = INT64_C(1) << 31;

bool hd_window_ints(hd_lowering_t *l, const char *name, int64_t least,
                    int64_t otherwise, unsigned rank, int64_t *values) {
  size_t count;
  const int64_t *given = hd_lower_ints(l, name, &count);
  if (given && count != rank)
    return hd_lower_invalid(l, "%s has %zu entries for %u axes", name, count,
                            rank);
  for (unsigned i = 0; i < rank; i++) {
    values[i] = given ? given[i] : otherwise;
    if (values[i] < least || values[i] > largest)
      return hd_lower_invalid(l, "%s has an entry %lld", name,
                              (long long)values[i]);
  }
  return true;
}

bool hd_window_read(hd_lowering_t *l, const hd_value_t *x,
                    const int64_t *kernel, hd_window_t *window) {
  if (x->rank < 3)
    return hd_lower_invalid(l, "a tensor of rank %d has no axes for a window",
                            x->rank);
  window->rank = (unsigned)x->rank - 2;
  for (unsigned i = 0; i < window->rank; i++)
    window->inputs[i] = hd_lower_size(x, (int)i + 2);
  size_t count;
  bool given = hd_lower_ints(l, "kernel_shape", &count) != NULL;
  if (!given && !kernel)
    return hd_lower_invalid(l, "kernel_shape is missing");
  if (!given)
    memcpy(window->kernel, kernel, window->rank * sizeof *kernel);
  else if (!hd_window_ints(l, "kernel_shape", 1, 1, window->rank,
                           window->kernel))
    return false;
  for (unsigned i = 0; given && kernel && i < window->rank; i++)
    if (kernel[i] != window->kernel[i])
      return hd_lower_invalid(l, "kernel_shape is not that of the weights");
  for (unsigned i = 0; i < window->rank; i++)
    if (window->kernel[i] < 1 || window->kernel[i] > largest)
      return hd_lower_invalid(l, "a kernel of size %lld",
                              (long long)window->kernel[i]);
  return hd_window_ints(l, "strides", 1, 1, window->rank, window->strides) &&
         hd_window_ints(l, "dilations", 1, 1, window->rank, window->dilations);
}

bool hd_window_pads(hd_lowering_t *l, hd_window_t *window) {
  int64_t pads[2 * HD_MAX_RANK];
  if (!hd_window_ints(l, "pads", 0, 0, 2 * window->rank, pads))
    return false;
  memcpy(window->begin, pads, window->rank * sizeof *pads);
  memcpy(window->end, pads + window->rank, window->rank * sizeof *pads);
  return true;
}

// As much padding as gives ceil(input / stride) places.
static void pad_same(hd_window_t *w, unsigned i, bool upper) {
  int64_t extent = (w->kernel[i] - 1) * w->dilations[i] + 1;
  int64_t places = (w->inputs[i] + w->strides[i] - 1) / w->strides[i];
  int64_t total = (places - 1) * w->strides[i] + extent - w->inputs[i];
  total = total > 0 ? total : 0;
  w->begin[i] = upper ? total / 2 : total - total / 2;
  w->end[i] = total - w->begin[i];
}

bool hd_window_place(hd_lowering_t *l, hd_window_t *w) {
  const char *auto_pad = hd_lower_string(l, "auto_pad", "NOTSET");
  bool upper = strcmp(auto_pad, "SAME_UPPER") == 0;
  bool same = upper || strcmp(auto_pad, "SAME_LOWER") == 0;
  bool valid = strcmp(auto_pad, "VALID") == 0;
  if (!same && !valid && strcmp(auto_pad, "NOTSET") != 0)
    return hd_lower_invalid(l, "auto_pad is '%s'", auto_pad);
  memset(w->begin, 0, sizeof w->begin);
  memset(w->end, 0, sizeof w->end);
  if (!same && !valid && !hd_window_pads(l, w))
    return false;
  bool ceil = hd_lower_int(l, "ceil_mode", 0) != 0;
  for (unsigned i = 0; i < w->rank; i++) {
    if (same)
      pad_same(w, i, upper);
    int64_t room = w->inputs[i] + w->begin[i] + w->end[i] -
                   ((w->kernel[i] - 1) * w->dilations[i] + 1);
    // A window that leaves the end is a place where places are rounded up.
    if (room < 0 && !(ceil && room > -w->strides[i]))
      return hd_lower_invalid(
          l,
          "a window of %lld (dilation %lld) does not fit into %lld elements "
          "and the padding",
          (long long)w->kernel[i], (long long)w->dilations[i],
          (long long)w->inputs[i]);
    w->sizes[i] = room < 0 ? 0 : room / w->strides[i] + 1;
    if (ceil && room % w->strides[i] != 0 &&
        w->sizes[i] * w->strides[i] < w->inputs[i] + w->begin[i])
      w->sizes[i]++; // None begins in the padding at the end.
  }
  return true;
}

void hd_window_trim(hd_window_t *w) {
  for (unsigned i = 0; i < w->rank; i++) {
    int64_t dilation = w->dilations[i];
    int64_t before = w->begin[i] - (w->sizes[i] - 1) * w->strides[i];
    int64_t reach = w->inputs[i] + w->begin[i];
    int64_t first = before > 0 ? before / dilation : 0;
    int64_t behind = reach > 0 ? (reach - 1) / dilation + 1 : 1;
    first = first < w->kernel[i] ? first : w->kernel[i] - 1;
    behind = behind < w->kernel[i] ? behind : w->kernel[i];
    w->kernel[i] = behind > first ? behind - first : 1;
    w->begin[i] -= first * dilation;
  }
}

void hd_window_attributes(hd_lowering_t *l, const hd_window_t *w,
                          hd_attributes_t *list) {
  hd_attributes_ints(l, list, "strides", w->strides, w->rank);
  hd_attributes_ints(l, list, "pads", w->begin, w->rank);
  hd_attributes_ints(l, list, "dilations", w->dilations, w->rank);
  hd_attributes_ints(l, list, "sizes", w->sizes, w->rank);
}
