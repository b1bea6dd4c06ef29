// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Convolutions.
#include "Graph/Expand/Lower/Window.h"

#include <string.h>

const hd_value_t *hd_lower_channel_bias(hd_lowering_t *l, const hd_value_t *x,
                                        const hd_value_t *bias) {
  if (!bias)
    return x;
  int64_t shape[HD_MAX_RANK] = {hd_lower_size(x, 1)};
  if (hd_lower_count(bias) != shape[0])
    return hd_lower_invalid(l, "a bias of %lld elements for %lld channels",
                            (long long)hd_lower_count(bias),
                            (long long)shape[0]),
           NULL;
  for (int i = 1; i < x->rank - 1; i++)
    shape[i] = 1;
  bias = hd_lower_reshape(l, bias, shape, (unsigned)x->rank - 1);
  return bias ? hd_lower_binary(l, "add", x, bias) : NULL;
}

// The sizes of the weights behind the first two axes.
static bool kernel_of(hd_lowering_t *l, const hd_value_t *x,
                      const hd_value_t *w, int64_t *kernel) {
  if (w->rank != x->rank)
    return hd_lower_invalid(l, "weights of rank %d for a tensor of rank %d",
                            w->rank, x->rank);
  for (int i = 2; i < w->rank; i++)
    kernel[i - 2] = hd_lower_size(w, i);
  return true;
}

static bool read_groups(hd_lowering_t *l, int64_t channels, int64_t *groups) {
  *groups = hd_lower_int(l, "group", 1);
  if (*groups < 1 || channels % *groups != 0)
    return hd_lower_invalid(l, "%lld channels in %lld groups",
                            (long long)channels, (long long)*groups);
  return true;
}

const hd_value_t *hd_lower_convolution(hd_lowering_t *l, const hd_value_t *x,
                                       const hd_value_t *w) {
  hd_window_t window = {0};
  int64_t kernel[HD_MAX_RANK], groups;
  if (!kernel_of(l, x, w, kernel) || !hd_window_read(l, x, kernel, &window) ||
      !hd_window_place(l, &window) ||
      !read_groups(l, hd_lower_size(x, 1), &groups))
    return NULL;
  int64_t taken = hd_lower_size(w, 1) * groups;
  if (taken != hd_lower_size(x, 1) || hd_lower_size(w, 0) % groups != 0)
    return hd_lower_invalid(
               l,
               "weights for %lld channels in %lld groups of %lld filters, "
               "where there are %lld channels",
               (long long)taken, (long long)groups,
               (long long)hd_lower_size(w, 0), (long long)hd_lower_size(x, 1)),
           NULL;
  hd_attributes_t attributes = {0};
  hd_window_attributes(l, &window, &attributes);
  if (groups > 1)
    hd_attributes_int(l, &attributes, "groups", groups);
  const hd_value_t *inputs[] = {x, w};
  return hd_lower_task(l, "conv", inputs, 2, &attributes, NULL);
}

bool hd_onnx_conv(hd_lowering_t *l) {
  const hd_value_t *y =
      hd_lower_convolution(l, hd_lower_input(l, 0), hd_lower_input(l, 1));
  y = y ? hd_lower_channel_bias(l, y, hd_lower_input(l, 2)) : NULL;
  return hd_lower_output(l, 0, y);
}

// The result's sizes are given, or follow from pads or auto_pad.
static bool place_transposed(hd_lowering_t *l, hd_window_t *w) {
  int64_t more[HD_MAX_RANK], wanted[HD_MAX_RANK];
  size_t count;
  const char *auto_pad = hd_lower_string(l, "auto_pad", "NOTSET");
  bool lower = strcmp(auto_pad, "SAME_LOWER") == 0;
  bool same = lower || strcmp(auto_pad, "SAME_UPPER") == 0;
  bool shaped = hd_lower_ints(l, "output_shape", &count) != NULL;
  if (!same && strcmp(auto_pad, "VALID") != 0 &&
      strcmp(auto_pad, "NOTSET") != 0)
    return hd_lower_invalid(l, "auto_pad is '%s'", auto_pad);
  if (!hd_window_ints(l, "output_padding", 0, 0, w->rank, more) ||
      !hd_window_pads(l, w))
    return false;
  if (shaped && count == w->rank + 2u) // With batch and channels, as some do.
    return hd_lower_unsupported(l, "output_shape with batch and channels");
  if (!hd_window_ints(l, "output_shape", 0, 0, w->rank, wanted))
    return false;
  for (unsigned i = 0; i < w->rank; i++) {
    int64_t extent = (w->kernel[i] - 1) * w->dilations[i] + 1, all;
    if (__builtin_mul_overflow(w->inputs[i] - 1, w->strides[i], &all) ||
        __builtin_add_overflow(all, more[i] + extent, &all))
      return hd_lower_invalid(l, "the result's sizes overflow");
    if (strcmp(auto_pad, "VALID") == 0)
      w->begin[i] = w->end[i] = 0;
    if (same || shaped) {
      // Padding alone is chosen: what is not there is not made up.
      int64_t same_size = w->inputs[i] * w->strides[i];
      int64_t size = shaped ? wanted[i] : all < same_size ? all : same_size;
      int64_t total = all > size ? all - size : 0;
      // Odd padding: more of it where auto_pad says.
      w->begin[i] = lower || !same ? total - total / 2 : total / 2;
      w->end[i] = total - w->begin[i];
      w->sizes[i] = size;
      continue;
    }
    w->sizes[i] = all - w->begin[i] - w->end[i];
    if (w->sizes[i] < 0)
      return hd_lower_invalid(l, "the padding is larger than the result");
  }
  return true;
}

static bool has_phases(const hd_window_t *w) {
  bool ok = true;
  for (unsigned i = 0; i < w->rank; i++)
    ok &= w->dilations[i] == 1 && w->kernel[i] % w->strides[i] == 0 &&
          w->begin[i] >= 0;
  return ok;
}

// By the task that reads nothing in vain, of weights with their channels last.
static const hd_value_t *by_phases(hd_lowering_t *l, const hd_value_t *x,
                                   const hd_value_t *w,
                                   const hd_window_t *window, int64_t groups) {
  int64_t order[HD_MAX_RANK], taps[HD_MAX_RANK];
  for (unsigned i = 0; i < window->rank; i++) {
    order[i] = i + 2;
    taps[i] = window->kernel[i] / window->strides[i];
  }
  order[window->rank] = 1;
  order[window->rank + 1] = 0;
  const hd_value_t *inputs[] = {x, hd_lower_transpose(l, w, order)};
  hd_attributes_t attributes = {0};
  hd_attributes_int(l, &attributes, "groups", groups);
  hd_attributes_ints(l, &attributes, "strides", window->strides, window->rank);
  hd_attributes_ints(l, &attributes, "pads", window->begin, window->rank);
  hd_attributes_ints(l, &attributes, "taps", taps, window->rank);
  hd_attributes_ints(l, &attributes, "sizes", window->sizes, window->rank);
  return inputs[1] ? hd_lower_task(l, "conv_transpose_phases", inputs, 2,
                                   &attributes, NULL)
                   : NULL;
}

static const hd_value_t *by_elements(hd_lowering_t *l,
                                     const hd_value_t *const *inputs,
                                     const hd_window_t *window,
                                     int64_t groups) {
  hd_attributes_t attributes = {0};
  hd_window_attributes(l, window, &attributes);
  hd_attributes_int(l, &attributes, "groups", groups);
  return hd_lower_task(l, "conv_transpose", inputs, 2, &attributes, NULL);
}

bool hd_onnx_conv_transpose(hd_lowering_t *l) {
  const hd_value_t *inputs[] = {hd_lower_input(l, 0), hd_lower_input(l, 1)};
  const hd_value_t *x = inputs[0], *w = inputs[1];
  hd_window_t window = {0};
  int64_t kernel[HD_MAX_RANK], groups;
  if (!kernel_of(l, x, w, kernel) || !hd_window_read(l, x, kernel, &window) ||
      !place_transposed(l, &window) ||
      !read_groups(l, hd_lower_size(x, 1), &groups))
    return false;
  if (hd_lower_size(w, 0) != hd_lower_size(x, 1))
    return hd_lower_invalid(l,
                            "weights for %lld channels, where there are "
                            "%lld",
                            (long long)hd_lower_size(w, 0),
                            (long long)hd_lower_size(x, 1));
  const hd_value_t *y = has_phases(&window)
                            ? by_phases(l, x, w, &window, groups)
                            : by_elements(l, inputs, &window, groups);
  y = y ? hd_lower_channel_bias(l, y, hd_lower_input(l, 2)) : NULL;
  return hd_lower_output(l, 0, y);
}

static const hd_value_t *ones(hd_lowering_t *l, hd_scalar_t type,
                              const int64_t *shape, unsigned rank) {
  const hd_value_t *one = hd_lower_scalar(l, type, 1);
  return one ? hd_lower_expand(l, one, shape, rank) : NULL;
}

// offset holds, for each of m groups and each element of the window, how far
// its row and its column are moved.
bool hd_onnx_conv_deform(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *w = hd_lower_input(l, 1);
  const hd_value_t *offset = hd_lower_input(l, 2), *mask = hd_lower_input(l, 4);
  hd_window_t window = {0};
  int64_t kernel[HD_MAX_RANK], groups;
  if (x->rank != 4)
    return hd_lower_unsupported(l, "a tensor of rank %d; only 4", x->rank);
  int64_t m = hd_lower_int(l, "offset_group", 1);
  if (m < 1 || hd_lower_size(x, 1) % m != 0)
    return hd_lower_invalid(l, "offset_group is %lld", (long long)m);
  if (!kernel_of(l, x, w, kernel) || !hd_window_read(l, x, kernel, &window) ||
      !hd_window_place(l, &window) ||
      !read_groups(l, hd_lower_size(x, 1), &groups))
    return false;
  int64_t n = hd_lower_size(x, 0);
  const int64_t *k = window.kernel, *s = window.sizes;
  int64_t offsets[] = {n, m, k[0], k[1], 2, s[0], s[1]};
  int64_t masks[] = {n, m, k[0], k[1], s[0], s[1]};
  if (offset->rank != 4 || hd_lower_size(offset, 0) != n ||
      hd_lower_size(offset, 1) != 2 * m * k[0] * k[1] ||
      hd_lower_size(offset, 2) != s[0] || hd_lower_size(offset, 3) != s[1])
    return hd_lower_invalid(
        l, "offsets are needed of shape [%lld, %lld, %lld, %lld]", (long long)n,
        (long long)(2 * m * k[0] * k[1]), (long long)s[0], (long long)s[1]);
  offset = hd_lower_reshape(l, offset, offsets, 7);
  mask =
      mask ? hd_lower_reshape(l, mask, masks, 6) : ones(l, x->type, masks, 6);
  if (!offset || !mask)
    return false;
  hd_attributes_t a = {0};
  hd_attributes_int(l, &a, "groups", groups);
  hd_attributes_int(l, &a, "strides_h", window.strides[0]);
  hd_attributes_int(l, &a, "strides_w", window.strides[1]);
  hd_attributes_int(l, &a, "pads_h", window.begin[0]);
  hd_attributes_int(l, &a, "pads_w", window.begin[1]);
  hd_attributes_int(l, &a, "dilations_h", window.dilations[0]);
  hd_attributes_int(l, &a, "dilations_w", window.dilations[1]);
  const hd_value_t *inputs[] = {x, w, offset, mask};
  const hd_value_t *y = hd_lower_task(l, "conv_deform", inputs, 4, &a, NULL);
  y = y ? hd_lower_channel_bias(l, y, hd_lower_input(l, 3)) : NULL;
  return hd_lower_output(l, 0, y);
}
