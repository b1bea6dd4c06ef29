// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of matrices.
#include "Graph/Expand/Lower/Products.h"

#include <math.h>

const hd_value_t *hd_lower_matmul(hd_lowering_t *l, const hd_value_t *a,
                                  const hd_value_t *b, bool transpose_a,
                                  bool transpose_b) {
  const hd_value_t *inputs[] = {a, b};
  hd_attributes_t attributes = {0};
  if (transpose_a)
    hd_attributes_int(l, &attributes, "ta", 1);
  if (transpose_b)
    hd_attributes_int(l, &attributes, "tb", 1);
  return hd_lower_task(l, "matmul", inputs, 2, &attributes, NULL);
}

// numpy's rule: a vector is a row at the left, a column at the right, and the
// axis so made goes away again.
const hd_value_t *hd_lower_numpy_matmul(hd_lowering_t *l, const hd_value_t *a,
                                        const hd_value_t *b) {
  if (a->rank < 1 || b->rank < 1)
    return hd_lower_invalid(l, "a product of scalars"), NULL;
  bool row = a->rank == 1, column = b->rank == 1;
  if (row) {
    int64_t shape[] = {1, hd_lower_size(a, 0)};
    a = hd_lower_reshape(l, a, shape, 2);
  }
  if (column) {
    int64_t shape[] = {hd_lower_size(b, 0), 1};
    b = hd_lower_reshape(l, b, shape, 2);
  }
  const hd_value_t *c = a && b ? hd_lower_matmul(l, a, b, false, false) : NULL;
  if (!c || (!row && !column))
    return c;
  int64_t shape[HD_MAX_RANK];
  unsigned rank = 0;
  for (int i = 0; i < c->rank; i++) {
    bool made = (row && i == c->rank - 2) || (column && i == c->rank - 1);
    if (!made)
      shape[rank++] = hd_lower_size(c, i);
  }
  return hd_lower_reshape(l, c, shape, rank);
}

bool hd_onnx_matmul(hd_lowering_t *l) {
  const hd_value_t *y =
      hd_lower_numpy_matmul(l, hd_lower_input(l, 0), hd_lower_input(l, 1));
  return hd_lower_output(l, 0, y);
}

const hd_value_t *hd_lower_scale(hd_lowering_t *l, const hd_value_t *x,
                                 double factor) {
  if (factor == 1)
    return x;
  const hd_value_t *scale = hd_lower_scalar(l, x->type, factor);
  return scale ? hd_lower_binary(l, "mul", x, scale) : NULL;
}

// alpha * a * b + beta * c
bool hd_onnx_gemm(hd_lowering_t *l) {
  const hd_value_t *a = hd_lower_input(l, 0), *b = hd_lower_input(l, 1);
  const hd_value_t *c = hd_lower_input(l, 2);
  double alpha = hd_lower_float(l, "alpha", 1);
  double beta = hd_lower_float(l, "beta", 1);
  bool integers = !hd_type_is_float(hd_type(a->type));
  if (a->rank != 2 || b->rank != 2)
    return hd_lower_invalid(l, "matrices of rank %d and %d", a->rank, b->rank);
  if (integers && (alpha != floor(alpha) || beta != floor(beta)))
    return hd_lower_unsupported(l, "alpha or beta broken, of integers");
  const hd_value_t *y =
      hd_lower_matmul(l, a, b, hd_lower_int(l, "transA", 0) != 0,
                      hd_lower_int(l, "transB", 0) != 0);
  y = y ? hd_lower_scale(l, y, alpha) : NULL;
  if (y && c && beta != 0) {
    c = hd_lower_scale(l, c, beta);
    y = c ? hd_lower_binary(l, "add", y, c) : NULL;
  }
  return hd_lower_output(l, 0, y);
}
