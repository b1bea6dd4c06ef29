// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators as they were before version 7, without numpy's broadcasting: the
// second operand is given the shape that makes today's do the same.
#include "Graph/Lower/Lower.h"

// What the same operator of version 7 makes of the operands.
static bool as_today(hd_lowering_t *l, const hd_value_t *a,
                     const hd_value_t *b) {
  const hd_value_t *inputs[] = {a, b};
  const hd_value_t *y =
      a && b ? hd_lower_as(l, hd_lower_node(l)->op, 7, inputs, 2, NULL) : NULL;
  return y && hd_lower_output(l, 0, y);
}

// x with its axes at axis, axis + 1, ... of a tensor of that rank.
static const hd_value_t *aligned(hd_lowering_t *l, const hd_value_t *x,
                                 int64_t axis, int rank) {
  int64_t shape[HD_MAX_RANK];
  int count = 0;
  for (; count < x->rank; count++)
    shape[count] = hd_lower_size(x, count);
  while (count < rank - axis)
    shape[count++] = 1;
  return hd_lower_reshape(l, x, shape, (unsigned)count);
}

static bool same_shape(const hd_value_t *a, const hd_value_t *b) {
  bool same = a->rank == b->rank;
  for (int i = 0; same && i < a->rank; i++)
    same = hd_lower_size(a, i) == hd_lower_size(b, i);
  return same;
}

// With broadcast, b's axes are those of a from axis on, or a's last ones.
bool hd_onnx_aligned_binary(hd_lowering_t *l) {
  const hd_value_t *a = hd_lower_input(l, 0), *b = hd_lower_input(l, 1);
  if (!hd_lower_int(l, "broadcast", 0))
    return same_shape(a, b)
               ? as_today(l, a, b)
               : hd_lower_invalid(l,
                                  "operands of two shapes without broadcast");
  int64_t axis = hd_lower_int(l, "axis", a->rank - b->rank);
  if (axis < 0 || axis + b->rank > a->rank)
    return hd_lower_invalid(l, "axis %lld of ranks %d and %d", (long long)axis,
                            a->rank, b->rank);
  return as_today(l, a, aligned(l, b, axis, a->rank));
}

// A slope for each channel, which is axis 1, or one for all.
bool hd_onnx_channel_prelu(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *slope = hd_lower_input(l, 1);
  if (slope->rank == 1 && x->rank > 1)
    slope = aligned(l, slope, hd_lower_size(slope, 0) == 1 ? x->rank - 1 : 1,
                    x->rank);
  return as_today(l, x, slope);
}

// It had a training form, too, told by an attribute.
bool hd_onnx_test_batch_norm(hd_lowering_t *l) {
  if (!hd_lower_int(l, "is_test", 0))
    return hd_lower_unsupported(l, "training (is_test = 0)");
  return hd_onnx_batch_norm(l);
}
