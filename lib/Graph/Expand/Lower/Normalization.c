// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Softmax and normalizations.
#include "Graph/Expand/Lower/Lower.h"

#include <string.h>

static bool has_axes(const hd_value_t *value, const hd_value_t *x, int first) {
  bool same = value->rank == x->rank - first;
  for (int i = 0; same && i < value->rank; i++)
    same = hd_lower_size(value, i) == hd_lower_size(x, first + i);
  return same;
}

static bool read_shape(const hd_value_t *x, int64_t *shape) {
  for (int i = 0; i < x->rank; i++)
    shape[i] = hd_lower_size(x, i);
  return true;
}

// A task along one axis: x: T[..s, n, ..t].
static const hd_value_t *along(hd_lowering_t *l, const char *task,
                               const hd_value_t *x, int64_t axis) {
  hd_attributes_t list = {0};
  hd_attributes_int(l, &list, "s", axis);
  return hd_lower_task(l, task, &x, 1, &list, NULL);
}

// Before version 13 all axes from the one named on are one.
bool hd_onnx_softmax(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *y = x;
  const char *task = hd_lower_argument(l);
  int64_t axis, shape[HD_MAX_RANK];
  bool flat = hd_lower_version(l) < 13;
  if (!hd_lower_axis(l, "axis", flat ? 1 : -1, x->rank, &axis))
    return false;
  if (!flat || axis == x->rank - 1) {
    y = along(l, task, x, axis);
    return hd_lower_output(l, 0, y);
  }
  int64_t pair[] = {hd_lower_product(x, 0, (int)axis),
                    hd_lower_product(x, (int)axis, x->rank)};
  read_shape(x, shape);
  y = hd_lower_reshape(l, x, pair, 2);
  y = y ? along(l, task, y, 1) : NULL;
  y = y ? hd_lower_reshape(l, y, shape, (unsigned)x->rank) : NULL;
  return hd_lower_output(l, 0, y);
}

// Before version 9 statistics may be of each element instead of each channel.
bool hd_onnx_batch_norm(hd_lowering_t *l) {
  const hd_value_t *inputs[5], *outputs[3];
  hd_attributes_t list = {0};
  int64_t shape[HD_MAX_RANK];
  for (unsigned i = 0; i < 5; i++)
    inputs[i] = hd_lower_input(l, i);
  const hd_value_t *x = inputs[0];
  if (hd_lower_version(l) < 9 && !hd_lower_int(l, "spatial", 1))
    return hd_lower_unsupported(l, "statistics of each element (spatial = 0)");
  bool trains = hd_lower_int(l, "training_mode", 0) != 0;
  if (!trains && hd_lower_wants_output(l, 1))
    return hd_lower_unsupported(l, "statistics as results, but for "
                                   "training_mode");
  if (x->rank == 1) { // One channel.
    int64_t column[] = {hd_lower_size(x, 0), 1};
    inputs[0] = hd_lower_reshape(l, x, column, 2);
  }
  hd_attributes_float(l, &list, "epsilon", hd_lower_float(l, "epsilon", 1e-5));
  if (trains) {
    int64_t count =
        hd_lower_count(x) /
        (x->rank > 1 && hd_lower_size(x, 1) ? hd_lower_size(x, 1) : 1);
    hd_attributes_int(l, &list, "count", count);
    hd_attributes_float(l, &list, "momentum",
                        hd_lower_float(l, "momentum", 0.9));
  }
  if (!inputs[0] ||
      !hd_lower_task(l, trains ? "batch_norm_training" : "batch_norm", inputs,
                     5, &list, outputs))
    return false;
  read_shape(x, shape);
  if (x->rank == 1 && !(outputs[0] = hd_lower_reshape(l, outputs[0], shape, 1)))
    return false;
  for (unsigned i = 0; i < (trains ? 3u : 1u); i++)
    if (hd_lower_wants_output(l, i) && !hd_lower_output(l, i, outputs[i]))
      return false;
  return true;
}

// A channel is a group of its own, or several are.
static bool normalize_groups(hd_lowering_t *l, int64_t groups, bool of_groups,
                             double epsilon) {
  const hd_value_t *x = hd_lower_input(l, 0);
  const hd_value_t *inputs[] = {NULL, hd_lower_input(l, 1),
                                hd_lower_input(l, 2)};
  int64_t shape[HD_MAX_RANK], split[HD_MAX_RANK];
  read_shape(x, shape);
  if (x->rank < 2 || x->rank >= HD_MAX_RANK || groups < 1 ||
      shape[1] % groups != 0)
    return hd_lower_invalid(l, "a tensor of rank %d in %lld groups", x->rank,
                            (long long)groups);
  split[0] = shape[0];
  split[1] = groups;
  split[2] = shape[1] / groups;
  memcpy(split + 3, shape + 2, ((size_t)x->rank - 2) * sizeof *shape);
  int64_t given = of_groups ? groups : shape[1];
  int64_t column[] = {groups, 1};
  for (int i = 1; i < 3; i++) {
    if (inputs[i]->rank != 1 || hd_lower_size(inputs[i], 0) != given)
      return hd_lower_invalid(l, "scale and bias have %lld elements",
                              (long long)given);
    inputs[i] =
        hd_lower_reshape(l, inputs[i], of_groups ? column : split + 1, 2);
    if (inputs[i] && of_groups)
      inputs[i] = hd_lower_expand(l, inputs[i], split + 1, 2);
  }
  inputs[0] = hd_lower_reshape(l, x, split, (unsigned)x->rank + 1);
  if (!inputs[0] || !inputs[1] || !inputs[2])
    return false;
  hd_attributes_t list = {0};
  hd_attributes_float(l, &list, "epsilon", epsilon);
  hd_attributes_int(l, &list, "count",
                    hd_lower_product(x, 1, x->rank) / groups);
  const hd_value_t *y = hd_lower_task(l, "group_norm", inputs, 3, &list, NULL);
  y = y ? hd_lower_reshape(l, y, shape, (unsigned)x->rank) : NULL;
  return hd_lower_output(l, 0, y);
}

bool hd_onnx_instance_norm(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  return normalize_groups(l, x->rank > 1 ? hd_lower_size(x, 1) : 1, false,
                          hd_lower_float(l, "epsilon", 1e-5));
}

// Before version 21 scale and bias are of a group.
bool hd_onnx_group_norm(hd_lowering_t *l) {
  return normalize_groups(l, hd_lower_int(l, "num_groups", 0),
                          hd_lower_version(l) < 21,
                          hd_lower_float(l, "epsilon", 1e-5));
}

static const hd_value_t *zeros_like(hd_lowering_t *l, const hd_value_t *x) {
  int64_t shape[HD_MAX_RANK];
  hd_host_tensor_t *data;
  read_shape(x, shape);
  return hd_lower_constant(l, x->type, shape, (unsigned)x->rank, &data);
}

// The general case: scale and bias broadcast, or mean and deviation are wanted.
static bool layer_norm_parts(hd_lowering_t *l, const hd_value_t *x,
                             const hd_value_t *scale, const hd_value_t *bias,
                             const hd_attributes_t *list, int axis) {
  const hd_value_t *outputs[3];
  int64_t shape[HD_MAX_RANK];
  if (!hd_lower_task(l, "layer_norm_statistics", &x, 1, list, outputs))
    return false;
  const hd_value_t *y = hd_lower_binary(l, "mul", outputs[0], scale);
  y = y && bias ? hd_lower_binary(l, "add", y, bias) : y;
  if (!y || !hd_lower_output(l, 0, y))
    return false;
  read_shape(x, shape);
  for (int i = axis; i < x->rank; i++)
    shape[i] = 1;
  for (unsigned i = 1; i < 3; i++) {
    if (!hd_lower_wants_output(l, i))
      continue;
    y = hd_lower_reshape(l, outputs[i], shape, (unsigned)x->rank);
    if (!y || !hd_lower_output(l, i, y))
      return false;
  }
  return true;
}

static bool read_rows(hd_lowering_t *l, const hd_value_t *x, int64_t *axis,
                      hd_attributes_t *list) {
  if (!hd_lower_axis(l, "axis", -1, x->rank, axis))
    return false;
  hd_attributes_int(l, list, "s", *axis);
  hd_attributes_float(l, list, "epsilon", hd_lower_float(l, "epsilon", 1e-5));
  hd_attributes_int(l, list, "count", hd_lower_product(x, (int)*axis, x->rank));
  return true;
}

bool hd_onnx_layer_norm(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *scale = hd_lower_input(l, 1);
  const hd_value_t *bias = hd_lower_input(l, 2);
  int64_t axis;
  hd_attributes_t list = {0};
  if (!read_rows(l, x, &axis, &list))
    return false;
  bool plain =
      has_axes(scale, x, (int)axis) && (!bias || has_axes(bias, x, (int)axis));
  if (!plain || hd_lower_wants_output(l, 1) || hd_lower_wants_output(l, 2))
    return layer_norm_parts(l, x, scale, bias, &list, (int)axis);
  const hd_value_t *inputs[] = {x, scale, bias ? bias : zeros_like(l, scale)};
  const hd_value_t *y =
      inputs[2] ? hd_lower_task(l, "layer_norm", inputs, 3, &list, NULL) : NULL;
  return hd_lower_output(l, 0, y);
}

bool hd_onnx_rms_norm(hd_lowering_t *l) {
  const hd_value_t *inputs[] = {hd_lower_input(l, 0), hd_lower_input(l, 1)};
  const hd_value_t *x = inputs[0], *scale = inputs[1];
  int64_t axis;
  hd_attributes_t list = {0};
  if (!read_rows(l, x, &axis, &list))
    return false;
  const hd_value_t *y;
  if (has_axes(scale, x, (int)axis)) {
    y = hd_lower_task(l, "rms_norm_scale", inputs, 2, &list, NULL);
  } else {
    y = hd_lower_task(l, "rms_norm", inputs, 1, &list, NULL);
    y = y ? hd_lower_cast(l, y, scale->type) : NULL;
    y = y ? hd_lower_binary(l, "mul", y, scale) : NULL;
  }
  return hd_lower_output(l, 0, y);
}

bool hd_onnx_lrn(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  int64_t size = hd_lower_int(l, "size", 0);
  if (size < 1)
    return hd_lower_invalid(l, "size is %lld", (long long)size);
  // So many reach all channels from each.
  int64_t channels = x->rank > 1 ? hd_lower_size(x, 1) : 1;
  int64_t most = 2 * (channels > 1 ? channels : 1);
  double alpha = hd_lower_float(l, "alpha", 1e-4);
  if (size > most) {
    alpha *= (double)most / (double)size;
    size = most;
  }
  hd_attributes_t list = {0};
  hd_attributes_float(l, &list, "alpha", alpha);
  hd_attributes_float(l, &list, "beta", hd_lower_float(l, "beta", 0.75));
  hd_attributes_float(l, &list, "bias", hd_lower_float(l, "bias", 1));
  hd_attributes_int(l, &list, "size", size);
  const hd_value_t *y =
      hd_lower_task(l, "local_response_norm", &x, 1, &list, NULL);
  return hd_lower_output(l, 0, y);
}

bool hd_onnx_lp_norm(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  int64_t axis, p = hd_lower_int(l, "p", 2);
  if (p != 1 && p != 2)
    return hd_lower_invalid(l, "p is %lld", (long long)p);
  if (!hd_lower_axis(l, "axis", -1, x->rank, &axis))
    return false;
  const hd_value_t *y =
      along(l, p == 1 ? "l1_normalize" : "l2_normalize", x, axis);
  return hd_lower_output(l, 0, y);
}

// The axes named come first for the task, and go back after it.
bool hd_onnx_mean_variance_norm(hd_lowering_t *l) {
  static const int64_t usual[] = {0, 2, 3};
  const hd_value_t *x = hd_lower_input(l, 0);
  size_t count;
  const int64_t *axes = hd_lower_ints(l, "axes", &count);
  bool named[HD_MAX_RANK] = {false};
  int64_t order[HD_MAX_RANK], back[HD_MAX_RANK];
  int rank = 0;
  if (!axes) {
    axes = usual;
    count = 3;
  }
  for (size_t i = 0; i < count; i++) {
    int64_t axis = axes[i] < 0 ? axes[i] + x->rank : axes[i];
    if (axis < 0 || axis >= x->rank || named[axis])
      return hd_lower_invalid(l, "axes names %lld", (long long)axes[i]);
    named[axis] = true;
  }
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < x->rank; i++)
      if (named[i] == (pass == 0)) {
        back[i] = rank;
        order[rank++] = i;
      }
  const hd_value_t *y = hd_lower_transpose(l, x, order);
  if (!y)
    return false;
  hd_attributes_t list = {0};
  hd_attributes_int(l, &list, "s", (int64_t)count);
  hd_attributes_int(l, &list, "count", hd_lower_product(y, 0, (int)count));
  y = hd_lower_task(l, "mean_variance_normalize", &y, 1, &list, NULL);
  y = y ? hd_lower_transpose(l, y, back) : NULL;
  return hd_lower_output(l, 0, y);
}

// Before version 7 it had a training form, too, told by an attribute.
bool hd_onnx_test_batch_norm(hd_lowering_t *l) {
  if (!hd_lower_int(l, "is_test", 0))
    return hd_lower_unsupported(l, "training (is_test = 0)");
  return hd_onnx_batch_norm(l);
}
