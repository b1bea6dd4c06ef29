// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fourier transforms, as sums over a table of angles, and the weights of the
// mel scale.
#include "Graph/Expand/Lower/Lower.h"

#include <math.h>
#include <string.h>

// The factors of angle i of length, divided by length where inverse: what the
// real and the imaginary part are multiplied by for each part of the result.
static const hd_value_t *turns(hd_lowering_t *l, int64_t length, bool inverse) {
  static const double pi = 3.14159265358979323846;
  int64_t shape[] = {length, 2, 2};
  hd_host_tensor_t *data;
  const hd_value_t *table = hd_lower_constant(l, HD_F64, shape, 3, &data);
  double sign = inverse ? 1 : -1, scale = inverse ? 1 / (double)length : 1;
  for (int64_t i = 0; table && i < length; i++) {
    double angle = 2 * pi * (double)i / (double)length;
    double c = cos(angle) * scale, s = sign * sin(angle) * scale;
    hd_host_tensor_set(data, 4 * i, c);
    hd_host_tensor_set(data, 4 * i + 1, -s);
    hd_host_tensor_set(data, 4 * i + 2, s);
    hd_host_tensor_set(data, 4 * i + 3, c);
  }
  return table;
}

// x: [p, n, q, c], of which n is transformed; to length, onesided the first
// half of the frequencies. NULL after errors.
static const hd_value_t *transform(hd_lowering_t *l, const hd_value_t *x,
                                   int64_t length, bool inverse,
                                   bool onesided) {
  int64_t n = hd_lower_size(x, 1), half = length / 2 + 1;
  const hd_value_t *inputs[] = {x, turns(l, length, inverse), NULL};
  if (!inputs[1])
    return NULL;
  hd_attributes_t list = {0};
  if (!inverse || !onesided) {
    hd_attributes_int(l, &list, "used", n < length ? n : length);
    hd_attributes_int(l, &list, "frequencies", onesided ? half : length);
    return hd_lower_task(l, "dft", inputs, 2, &list, NULL);
  }
  int64_t used = n < half ? n : half;
  hd_host_tensor_t *data;
  inputs[2] = hd_lower_constant(l, HD_F64, &used, 1, &data);
  for (int64_t k = 0; inputs[2] && k < used; k++)
    hd_host_tensor_set(data, k, k == 0 || 2 * k == length ? 1 : 2);
  return inputs[2] ? hd_lower_task(l, "dft_real", inputs, 3, NULL, NULL) : NULL;
}

// One integer of an input; otherwise where it is left out. False where it is
// not known yet.
static bool read_int(hd_lowering_t *l, uint32_t input, int64_t otherwise,
                     int64_t *value) {
  const hd_value_t *x = hd_lower_input(l, input);
  size_t count;
  *value = otherwise;
  if (!x)
    return true;
  const int64_t *data = hd_lower_data_ints(l, x, &count);
  if (data && count != 1)
    return hd_lower_invalid(l, "input %u has %zu elements", input, count);
  if (data)
    *value = data[0];
  return data != NULL;
}

// The axis is an attribute before version 20, then an input.
bool hd_onnx_dft(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  bool inverse = hd_lower_int(l, "inverse", 0) != 0;
  bool onesided = hd_lower_int(l, "onesided", 0) != 0;
  int64_t axis = hd_lower_int(l, "axis", 1), length;
  if (hd_lower_version(l) >= 20 && !read_int(l, 2, -2, &axis))
    return false;
  if (x->rank < 2 || !hd_lower_wrap_axis(l, x->rank, &axis) ||
      axis == x->rank - 1)
    return hd_lower_invalid(l, "axis %lld of a tensor of rank %d",
                            (long long)axis, x->rank);
  int64_t n = hd_lower_size(x, (int)axis), c = hd_lower_size(x, x->rank - 1);
  if (!read_int(l, 1, inverse && onesided ? 2 * (n - 1) : n, &length))
    return false;
  if (length < 1 || length > INT32_MAX || n < 1 || c < 1 || c > 2)
    return hd_lower_invalid(l, "a transform of length %lld", (long long)length);
  hd_tensor_type_t type = hd_lower_type(x);
  int64_t view[] = {hd_lower_product(x, 0, (int)axis), n,
                    hd_lower_product(x, (int)axis + 1, x->rank - 1), c};
  x = hd_lower_reshape(l, x, view, 4);
  const hd_value_t *y = x ? transform(l, x, length, inverse, onesided) : NULL;
  if (!y)
    return false;
  type.shape[axis] = hd_lower_size(y, 1);
  type.shape[type.rank - 1] = hd_lower_size(y, 3);
  y = hd_lower_reshape(l, y, type.shape, type.rank);
  return hd_lower_output(l, 0, y);
}

bool hd_onnx_stft(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  const hd_value_t *window = hd_lower_input(l, 2);
  bool onesided = hd_lower_int(l, "onesided", 1) != 0;
  int64_t stride, length, n;
  if (x->rank == 2) {
    int64_t shape[] = {hd_lower_size(x, 0), hd_lower_size(x, 1), 1};
    if (!(x = hd_lower_reshape(l, x, shape, 3)))
      return false;
  }
  if (x->rank != 3 || (window && window->rank != 1))
    return hd_lower_invalid(l, "a signal of rank %d", x->rank);
  n = hd_lower_size(x, 1);
  if (!read_int(l, 1, 1, &stride) ||
      !read_int(l, 3, window ? hd_lower_size(window, 0) : n, &length))
    return false;
  if (stride < 1 || length < 1 || length > n || length > INT32_MAX ||
      hd_lower_size(x, 2) > 2 || (window && hd_lower_size(window, 0) != length))
    return hd_lower_invalid(l,
                            "frames of %lld, %lld apart, of a signal of "
                            "%lld",
                            (long long)length, (long long)stride, (long long)n);
  if (!window) {
    window = hd_lower_scalar(l, x->type, 1);
    window = window ? hd_lower_expand(l, window, &length, 1) : NULL;
  }
  int64_t count = (n - length) / stride + 1;
  const hd_value_t *inputs[] = {x, window};
  hd_attributes_t list = {0};
  hd_attributes_int(l, &list, "stride", stride);
  hd_attributes_int(l, &list, "count", count);
  const hd_value_t *y =
      window ? hd_lower_task(l, "frames", inputs, 2, &list, NULL) : NULL;
  int64_t view[] = {hd_lower_size(x, 0) * count, length, 1,
                    hd_lower_size(x, 2)};
  y = y ? hd_lower_reshape(l, y, view, 4) : NULL;
  y = y ? transform(l, y, length, false, onesided) : NULL;
  int64_t shape[] = {hd_lower_size(x, 0), count,
                     onesided ? length / 2 + 1 : length, 2};
  y = y ? hd_lower_reshape(l, y, shape, 4) : NULL;
  return hd_lower_output(l, 0, y);
}

static void add_mel_bin(hd_host_tensor_t *data, int64_t bin, int64_t bins,
                        int64_t rows, const int64_t *edges) {
  int64_t low = edges[bin], centre = edges[bin + 1], high = edges[bin + 2];
  for (int64_t j = low; j <= centre && j < rows; j++)
    if (j >= 0)
      hd_host_tensor_set(
          data, j * bins + bin,
          low == centre ? 1 : (double)(j - low) / (double)(centre - low));
  for (int64_t j = centre; j < high && j < rows; j++)
    if (j >= 0)
      hd_host_tensor_set(data, j * bins + bin,
                         (double)(high - j) / (double)(high - centre));
}

bool hd_onnx_mel_weight_matrix(hd_lowering_t *l) {
  int64_t bins, length, rate;
  hd_scalar_t type = hd_lower_scalar_type(l, "output_datatype", HD_F32);
  if (!read_int(l, 0, 0, &bins) || !read_int(l, 1, 0, &length) ||
      !read_int(l, 2, 0, &rate) || type == HD_VOID)
    return false;
  const hd_host_tensor_t *low = hd_lower_data(l, hd_lower_input(l, 3));
  const hd_host_tensor_t *high =
      low ? hd_lower_data(l, hd_lower_input(l, 4)) : NULL;
  if (!high)
    return false;
  if (bins < 1 || length < 1 || rate < 1 || bins > INT32_MAX ||
      length > INT32_MAX || rate > INT32_MAX || low->count != 1 ||
      high->count != 1)
    return hd_lower_invalid(l,
                            "%lld bins of a transform of length %lld at "
                            "rate %lld",
                            (long long)bins, (long long)length,
                            (long long)rate);
  int64_t shape[] = {length / 2 + 1, bins};
  hd_host_tensor_t *data;
  const hd_value_t *y = hd_lower_constant(l, type, shape, 2, &data);
  int64_t *edges = HD_ARENA_ARRAY(hd_lower_arena(l), int64_t, bins + 2);
  double from = 2595 * log10(1 + hd_host_tensor_get(low, 0) / 700);
  double to = 2595 * log10(1 + hd_host_tensor_get(high, 0) / 700);
  for (int64_t i = 0; y && i < bins + 2; i++) {
    double mel = from + (double)i * ((to - from) / (double)(bins + 2));
    double edge = floor((double)(length + 1) * 700 * (pow(10, mel / 2595) - 1) /
                        (double)rate);
    if (!(fabs(edge) < 1e15))
      return hd_lower_invalid(l, "an edge at %g", edge);
    edges[i] = (int64_t)edge;
  }
  for (int64_t bin = 0; y && bin < bins; bin++)
    add_mel_bin(data, bin, bins, shape[0], edges);
  return hd_lower_output(l, 0, y);
}
