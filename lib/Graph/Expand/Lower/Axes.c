// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What many operators have in common: axes, and tensors seen as three axes
// around one.
#include "Graph/Expand/Lower/Lower.h"

#include "Graph/ONNX/Import.h"

bool hd_lower_wrap_axis(hd_lowering_t *l, int rank, int64_t *axis) {
  int64_t given = *axis;
  if (given < -rank || given >= rank)
    return hd_lower_invalid(l, "axis %lld of a tensor of rank %d",
                            (long long)given, rank);
  *axis = given < 0 ? given + rank : given;
  return true;
}

bool hd_lower_axes(hd_lowering_t *l, const hd_value_t *input,
                   const char *attribute, int rank, hd_axes_t *axes) {
  *axes = (hd_axes_t){.given = false};
  const int64_t *values = input ? hd_lower_data_ints(l, input, &axes->count)
                                : hd_lower_ints(l, attribute, &axes->count);
  if (!values)
    return !input;
  axes->given = true;
  if (axes->count > HD_MAX_RANK)
    return hd_lower_invalid(l, "%zu axes of a tensor of rank %d", axes->count,
                            rank);
  for (size_t i = 0; i < axes->count; i++) {
    axes->axes[i] = values[i];
    if (!hd_lower_wrap_axis(l, rank, &axes->axes[i]))
      return false;
    if (axes->chosen[axes->axes[i]])
      return hd_lower_invalid(l, "axis %lld is given twice",
                              (long long)axes->axes[i]);
    axes->chosen[axes->axes[i]] = true;
  }
  return true;
}

const hd_value_t *hd_lower_around(hd_lowering_t *l, const hd_value_t *x,
                                  int64_t axis) {
  int64_t shape[3] = {hd_lower_product(x, 0, (int)axis),
                      hd_lower_size(x, (int)axis),
                      hd_lower_product(x, (int)axis + 1, x->rank)};
  return hd_lower_reshape(l, x, shape, 3);
}

const hd_value_t *hd_lower_unfold(hd_lowering_t *l, const hd_value_t *y,
                                  const hd_value_t *like, int64_t axis,
                                  int64_t n) {
  if (!y)
    return NULL;
  hd_tensor_type_t type = hd_lower_type(like);
  type.shape[axis] = n;
  return hd_lower_reshape(l, y, type.shape, type.rank);
}

hd_scalar_t hd_lower_scalar_type(hd_lowering_t *l, const char *attribute,
                                 hd_scalar_t otherwise) {
  int64_t number = hd_lower_int(l, attribute, -1);
  if (number == -1)
    return otherwise;
  hd_scalar_t type =
      number == (int32_t)number ? hd_onnx_scalar((int32_t)number) : HD_VOID;
  if (type == HD_VOID)
    hd_lower_unsupported(l, "elements of type %s (%s = %lld)",
                         hd_onnx_type_name((int32_t)number), attribute,
                         (long long)number);
  return type;
}
