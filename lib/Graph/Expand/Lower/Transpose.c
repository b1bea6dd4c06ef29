// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Transpositions, of as few axes as possible.
#include "Graph/Expand/Lower/Lower.h"

// Axes that stay neighbours are one; those of one element are none.
static const hd_value_t *transpose(hd_lowering_t *l, const hd_value_t *x,
                                   const int64_t *permutation) {
  int64_t from[HD_MAX_RANK] = {0}, last = -1;
  unsigned part[HD_MAX_RANK], order[HD_MAX_RANK], parts = 0;
  // In y's order, then numbered by x's.
  for (int i = 0; i < x->rank; i++) {
    int64_t axis = permutation[i];
    if (hd_lower_size(x, (int)axis) == 1)
      continue;
    bool follows = last >= 0 && axis > last;
    for (int64_t k = last + 1; follows && k < axis; k++)
      follows = hd_lower_size(x, (int)k) == 1;
    if (!follows)
      order[parts++] = (unsigned)axis;
    part[axis] = parts - 1;
    last = axis;
  }
  unsigned rank = 0, number[HD_MAX_RANK] = {0};
  for (int i = 0; i < x->rank; i++) {
    int64_t size = hd_lower_size(x, i);
    if (size == 1)
      continue;
    if (order[part[i]] == (unsigned)i) {
      number[part[i]] = rank;
      from[rank++] = 1;
    }
    from[number[part[i]]] = hd_size_times(from[number[part[i]]], size);
  }
  int64_t places[HD_MAX_RANK];
  for (unsigned i = 0; i < parts; i++)
    places[i] = number[i];
  hd_attributes_t attributes = {0};
  hd_attributes_ints(l, &attributes, "order", places, parts);
  const hd_value_t *y = hd_lower_reshape(l, x, from, rank);
  return hd_lower_task(l, "transpose", &y, 1, &attributes, NULL);
}

const hd_value_t *hd_lower_transpose(hd_lowering_t *l, const hd_value_t *x,
                                     const int64_t *permutation) {
  if (!x || x->form != HD_HOLDS_TENSOR)
    return NULL;
  // Axes of one element move nothing.
  int64_t shape[HD_MAX_RANK] = {0}, last = -1;
  bool moves = false;
  for (int i = 0; i < x->rank; i++) {
    shape[i] = hd_lower_size(x, (int)permutation[i]);
    if (shape[i] == 1)
      continue;
    moves |= permutation[i] < last;
    last = permutation[i];
  }
  const hd_value_t *y = moves ? transpose(l, x, permutation) : x;
  return y ? hd_lower_reshape(l, y, shape, (unsigned)x->rank) : NULL;
}
