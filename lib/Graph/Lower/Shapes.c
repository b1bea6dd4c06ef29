// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that give a tensor's elements another shape, and those that say
// what its shape is.
#include "Graph/Lower/Lower.h"

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
  if (!infer_size(l, hd_lower_count(x), shape, rank))
    return false;
  const hd_value_t *y = hd_lower_reshape(l, x, shape, (unsigned)rank);
  return y && hd_lower_output(l, 0, y);
}
