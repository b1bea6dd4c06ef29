// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that give a tensor's elements another shape, and those that say
// what its shape is.
#include "Graph/Expand/Lower/Lower.h"

#include <string.h>

static bool set_shape(hd_lowering_t *l, const int64_t *shape, unsigned rank) {
  const hd_value_t *y = hd_lower_reshape(l, hd_lower_input(l, 0), shape, rank);
  return hd_lower_output(l, 0, y);
}

// The size of the one entry that is -1: what is left of count elements.
static bool infer_size(hd_lowering_t *l, int64_t count, int64_t *shape,
                       size_t rank) {
  int64_t product = 1;
  size_t free = rank;
  for (size_t i = 0; i < rank; i++) {
    if (shape[i] == -1) {
      if (free < rank)
        return hd_lower_invalid(l, "-1 stands twice in the shape");
      free = i;
    } else if (shape[i] < 0 ||
               __builtin_mul_overflow(product, shape[i], &product)) {
      return hd_lower_invalid(l, "%lld is no size", (long long)shape[i]);
    }
  }
  if (free < rank) {
    if (product == 0 || count % product != 0)
      return hd_lower_invalid(l,
                              "%lld elements do not divide into rows of %lld",
                              (long long)count, (long long)product);
    shape[free] = count / product;
    return true;
  }
  if (product != count)
    return hd_lower_invalid(l, "%lld elements do not fill a shape of %lld",
                            (long long)count, (long long)product);
  return true;
}

bool hd_onnx_reshape(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  size_t rank;
  const int64_t *wanted = hd_lower_data_ints(l, hd_lower_input(l, 1), &rank);
  if (!wanted)
    return false;
  if (rank > HD_MAX_RANK)
    return hd_lower_unsupported(l, "a tensor of rank %zu", rank);
  bool allow_zero = hd_lower_int(l, "allowzero", 0) != 0;
  int64_t shape[HD_MAX_RANK];
  for (size_t i = 0; i < rank; i++) {
    shape[i] = wanted[i];
    if (wanted[i] != 0 || allow_zero)
      continue;
    if ((int)i >= x->rank)
      return hd_lower_invalid(
          l, "the shape copies axis %zu of a tensor of rank %d", i, x->rank);
    shape[i] = hd_lower_size(x, (int)i);
  }
  return infer_size(l, hd_lower_count(x), shape, rank) &&
         set_shape(l, shape, (unsigned)rank);
}

bool hd_onnx_flatten(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  int64_t axis = hd_lower_int(l, "axis", 1);
  if (axis != x->rank && !hd_lower_wrap_axis(l, x->rank, &axis))
    return false;
  int64_t shape[] = {hd_lower_product(x, 0, (int)axis),
                     hd_lower_product(x, (int)axis, x->rank)};
  return set_shape(l, shape, 2);
}

// Which axes: an attribute before version 13.
static const hd_value_t *axes_input(const hd_lowering_t *l) {
  return hd_lower_version(l) < 13 ? NULL : hd_lower_input(l, 1);
}

bool hd_onnx_squeeze(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  hd_axes_t axes;
  if (!hd_lower_axes(l, axes_input(l), "axes", x->rank, &axes))
    return false;
  int64_t shape[HD_MAX_RANK];
  unsigned rank = 0;
  for (int i = 0; i < x->rank; i++) {
    int64_t size = hd_lower_size(x, i);
    if (axes.given && axes.chosen[i] && size != 1)
      return hd_lower_invalid(l, "axis %d has %lld elements, not 1", i,
                              (long long)size);
    if (axes.given ? !axes.chosen[i] : size != 1)
      shape[rank++] = size;
  }
  return set_shape(l, shape, rank);
}

bool hd_onnx_unsqueeze(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *input = axes_input(l);
  size_t count = 0;
  if (input ? !hd_lower_data_ints(l, input, &count)
            : !hd_lower_ints(l, "axes", &count))
    return input ? false : hd_lower_invalid(l, "'axes' is missing");
  hd_axes_t axes;
  if (count > (size_t)(HD_MAX_RANK - x->rank))
    return hd_lower_unsupported(l, "a tensor of rank %zu", x->rank + count);
  int rank = x->rank + (int)count;
  if (!hd_lower_axes(l, input, "axes", rank, &axes))
    return false;
  int64_t shape[HD_MAX_RANK];
  for (int i = 0, from = 0; i < rank; i++)
    shape[i] = axes.chosen[i] ? 1 : hd_lower_size(x, from++);
  return set_shape(l, shape, (unsigned)rank);
}

// --- What the shape is ---

// A place among rank axes, negative ones counted from the end; within 0 ..
// rank.
static int64_t clamp_axis(int64_t axis, int rank) {
  axis = axis < 0 ? axis + rank : axis;
  return axis < 0 ? 0 : axis > rank ? rank : axis;
}

bool hd_onnx_shape(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  int64_t start = clamp_axis(hd_lower_int(l, "start", 0), x->rank);
  int64_t end = clamp_axis(hd_lower_int(l, "end", x->rank), x->rank);
  hd_tensor_type_t type = hd_lower_type(x);
  const hd_value_t *y = hd_lower_ints_constant(
      l, type.shape + start, end > start ? (size_t)(end - start) : 0);
  return hd_lower_output(l, 0, y);
}

bool hd_onnx_size(hd_lowering_t *l) {
  hd_host_tensor_t *data;
  const hd_value_t *y = hd_lower_constant(l, HD_I64, NULL, 0, &data);
  if (!y)
    return false;
  hd_host_tensor_set_int(data, 0, hd_lower_count(hd_lower_input(l, 0)));
  return hd_lower_output(l, 0, y);
}

// --- Other orders ---

bool hd_onnx_transpose(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  hd_axes_t axes;
  if (!hd_lower_axes(l, NULL, "perm", x->rank, &axes))
    return false;
  if (!axes.given)
    for (int i = 0; i < x->rank; i++)
      axes.axes[i] = x->rank - 1 - i;
  else if (axes.count != (size_t)x->rank)
    return hd_lower_invalid(l, "perm has %zu entries for a tensor of rank %d",
                            axes.count, x->rank);
  const hd_value_t *y = hd_lower_transpose(l, x, axes.axes);
  return hd_lower_output(l, 0, y);
}

// Cut into axes, those permuted, and joined to axes again.
static bool rearrange(hd_lowering_t *l, const int64_t cut[6],
                      const int64_t permutation[6], const int64_t joined[4]) {
  const hd_value_t *y = hd_lower_reshape(l, hd_lower_input(l, 0), cut, 6);
  y = y ? hd_lower_transpose(l, y, permutation) : NULL;
  y = y ? hd_lower_reshape(l, y, joined, 4) : NULL;
  return hd_lower_output(l, 0, y);
}

// The image of a node that trades channels for pixels.
static bool image_shape(hd_lowering_t *l, int64_t shape[4], int64_t *block) {
  const hd_value_t *x = hd_lower_input(l, 0);
  if (x->rank != 4)
    return hd_lower_invalid(l, "the input has rank %d, not 4", x->rank);
  *block = hd_lower_int(l, "blocksize", 0);
  memcpy(shape, hd_lower_type(x).shape, 4 * sizeof shape[0]);
  bool fits = *block >= 1 && *block <= UINT16_MAX;
  for (int i = 0; i < 4 && fits; i++)
    fits = hd_size_times(shape[i], *block * *block) < INT64_MAX;
  return fits || hd_lower_invalid(l, "a blocksize of %lld", (long long)*block);
}

bool hd_onnx_depth_to_space(hd_lowering_t *l) {
  int64_t s[4], b;
  if (!image_shape(l, s, &b))
    return false;
  if (s[1] % (b * b) != 0)
    return hd_lower_invalid(l,
                            "%lld channels do not divide into blocks of %lld",
                            (long long)s[1], (long long)(b * b));
  const char *mode = hd_lower_string(l, "mode", "DCR");
  int64_t depth = s[1] / (b * b), joined[] = {s[0], depth, s[2] * b, s[3] * b};
  if (strcmp(mode, "DCR") == 0)
    return rearrange(l, (int64_t[]){s[0], b, b, depth, s[2], s[3]},
                     (int64_t[]){0, 3, 4, 1, 5, 2}, joined);
  if (strcmp(mode, "CRD") == 0)
    return rearrange(l, (int64_t[]){s[0], depth, b, b, s[2], s[3]},
                     (int64_t[]){0, 1, 4, 2, 5, 3}, joined);
  return hd_lower_invalid(l, "mode is '%s', not 'DCR' or 'CRD'", mode);
}

bool hd_onnx_space_to_depth(hd_lowering_t *l) {
  int64_t s[4], b;
  if (!image_shape(l, s, &b))
    return false;
  if (s[2] % b != 0 || s[3] % b != 0)
    return hd_lower_invalid(l, "%lld x %lld pixels do not divide into blocks",
                            (long long)s[2], (long long)s[3]);
  return rearrange(l, (int64_t[]){s[0], s[1], s[2] / b, b, s[3] / b, b},
                   (int64_t[]){0, 3, 5, 1, 2, 4},
                   (int64_t[]){s[0], s[1] * b * b, s[2] / b, s[3] / b});
}

// Of each matrix, what is above or below a diagonal.
bool hd_onnx_trilu(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *diagonal = hd_lower_input(l, 1);
  if (x->rank < 2)
    return hd_lower_invalid(l, "the input has rank %d, below 2", x->rank);
  int64_t k = 0;
  if (diagonal) {
    size_t count;
    const int64_t *data = hd_lower_data_ints(l, diagonal, &count);
    if (!data)
      return false;
    if (count != 1)
      return hd_lower_invalid(l, "k has %zu elements, not 1", count);
    k = data[0];
  }
  int64_t shape[] = {hd_lower_product(x, 0, x->rank - 2),
                     hd_lower_size(x, x->rank - 2),
                     hd_lower_size(x, x->rank - 1)};
  hd_attributes_t attributes = {0};
  hd_attributes_int(l, &attributes, "k", k);
  hd_attributes_int(l, &attributes, "upper", hd_lower_int(l, "upper", 1) != 0);
  const hd_value_t *y = hd_lower_reshape(l, x, shape, 3);
  y = y ? hd_lower_task(l, "trilu", &y, 1, &attributes, NULL) : NULL;
  y = hd_lower_unfold(l, y, x, 0, hd_lower_size(x, 0));
  return hd_lower_output(l, 0, y);
}
