// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that compute each element from one element of each operand.
#include "Graph/Expand/Lower/Lower.h"

#include <string.h>

bool hd_onnx_identity(hd_lowering_t *l) {
  return hd_lower_output(l, 0, hd_lower_input(l, 0));
}

static bool is_integer(const hd_value_t *value) {
  return hd_type_is_integer(hd_type(value->type));
}

// The node's numbers are the task's attributes, by the same names.
static bool unary(hd_lowering_t *l, const char *task) {
  const hd_node_t *node = hd_lower_node(l);
  hd_attributes_t attributes = {0};
  for (uint32_t i = 0; i < node->num_attributes; i++) {
    const hd_attribute_t *a = node->attributes[i];
    if (a->kind == HD_ATTRIBUTE_FLOAT)
      hd_attributes_float(l, &attributes, a->name, a->u.f);
    else if (a->kind == HD_ATTRIBUTE_INT)
      hd_attributes_int(l, &attributes, a->name, a->u.i);
  }
  const hd_value_t *x = hd_lower_input(l, 0);
  return hd_lower_output(l, 0,
                         hd_lower_task(l, task, &x, 1, &attributes, NULL));
}

bool hd_onnx_unary(hd_lowering_t *l) { return unary(l, hd_lower_argument(l)); }

// Integers have a task of their own.
bool hd_onnx_unary_number(hd_lowering_t *l) {
  const char *task = hd_lower_argument(l);
  if (is_integer(hd_lower_input(l, 0)))
    task = hd_arena_printf(hd_lower_arena(l), "%s_integer", task);
  return unary(l, task);
}

// Rounding leaves integers as they are.
bool hd_onnx_unary_float(hd_lowering_t *l) {
  return is_integer(hd_lower_input(l, 0)) ? hd_onnx_identity(l)
                                          : hd_onnx_unary(l);
}

bool hd_onnx_gelu(hd_lowering_t *l) {
  const char *approximate = hd_lower_string(l, "approximate", "none");
  bool is_tanh = strcmp(approximate, "tanh") == 0;
  if (!is_tanh && strcmp(approximate, "none") != 0)
    return hd_lower_invalid(l, "approximate is '%s', not 'none' or 'tanh'",
                            approximate);
  return hd_lower_output(
      l, 0,
      hd_lower_unary(l, is_tanh ? "gelu_tanh" : "gelu", hd_lower_input(l, 0)));
}

static bool binary(hd_lowering_t *l, const char *task) {
  return hd_lower_output(
      l, 0,
      hd_lower_binary(l, task, hd_lower_input(l, 0), hd_lower_input(l, 1)));
}

bool hd_onnx_binary(hd_lowering_t *l) {
  return binary(l, hd_lower_argument(l));
}

bool hd_onnx_mod(hd_lowering_t *l) {
  bool fmod = hd_lower_int(l, "fmod", 0) != 0;
  if (is_integer(hd_lower_input(l, 0)))
    return binary(l, fmod ? "fmod_integer" : "mod_integer");
  if (!fmod)
    return hd_lower_invalid(l, "Mod of floats needs fmod = 1");
  return binary(l, "fmod");
}

// The exponent may have another type; the base's is the result's.
bool hd_onnx_pow(hd_lowering_t *l) {
  if (!is_integer(hd_lower_input(l, 0)))
    return binary(l, "pow");
  return binary(l, is_integer(hd_lower_input(l, 1)) ? "pow_integer"
                                                    : "pow_integer_float");
}

bool hd_onnx_bit_shift(hd_lowering_t *l) {
  const char *direction = hd_lower_string(l, "direction", "");
  bool left = strcmp(direction, "LEFT") == 0;
  if (!left && strcmp(direction, "RIGHT") != 0)
    return hd_lower_invalid(l, "direction is '%s', not 'LEFT' or 'RIGHT'",
                            direction);
  return binary(l, left ? "shift_left" : "shift_right");
}

bool hd_onnx_where(hd_lowering_t *l) {
  const hd_value_t *inputs[] = {hd_lower_input(l, 0), hd_lower_input(l, 1),
                                hd_lower_input(l, 2)};
  return hd_lower_output(l, 0,
                         hd_lower_task(l, "where", inputs, 3, NULL, NULL));
}

// Before version 7: shapes are the same, unless `broadcast` says that those of
// the second operand are some of the first one's, side by side from `axis` on
// (the last ones where it is not given).
bool hd_onnx_binary_aligned(hd_lowering_t *l) {
  const hd_value_t *a = hd_lower_input(l, 0), *b = hd_lower_input(l, 1);
  if (hd_lower_int(l, "broadcast", 0) && b->rank < a->rank) {
    int64_t axis = hd_lower_int(l, "axis", a->rank - b->rank);
    if (axis < 0 || axis + b->rank > a->rank)
      return hd_lower_invalid(l,
                              "%d axes from axis %lld on of a tensor of "
                              "rank %d",
                              b->rank, (long long)axis, a->rank);
    int64_t shape[HD_MAX_RANK];
    for (int i = 0; i < a->rank; i++)
      shape[i] =
          i < axis || i >= axis + b->rank ? 1 : hd_lower_size(b, i - (int)axis);
    if (!(b = hd_lower_reshape(l, b, shape, (unsigned)a->rank)))
      return false;
  }
  return hd_lower_output(l, 0, hd_lower_binary(l, hd_lower_argument(l), a, b));
}

// Before version 7 the slope is one number, or one for each channel.
bool hd_onnx_prelu_channels(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *slope = hd_lower_input(l, 1);
  int64_t shape[HD_MAX_RANK], count = hd_lower_count(slope);
  for (int i = 0; i < x->rank; i++)
    shape[i] = i == 1 ? count : 1;
  if (count > 1)
    slope = hd_lower_reshape(l, slope, shape, (unsigned)x->rank);
  return hd_lower_output(l, 0,
                         hd_lower_binary(l, hd_lower_argument(l), x, slope));
}

// --- Any number of operands ---

static const hd_value_t *fold(hd_lowering_t *l, const char *task) {
  const hd_value_t *y = hd_lower_input(l, 0);
  for (uint32_t i = 1; y && i < hd_lower_num_inputs(l); i++)
    y = hd_lower_binary(l, task, y, hd_lower_input(l, i));
  return y;
}

bool hd_onnx_variadic(hd_lowering_t *l) {
  return hd_lower_output(l, 0, fold(l, hd_lower_argument(l)));
}

bool hd_onnx_mean(hd_lowering_t *l) {
  const hd_value_t *sum = fold(l, "add");
  const hd_value_t *n =
      sum ? hd_lower_scalar(l, sum->type, hd_lower_num_inputs(l)) : NULL;
  return n && hd_lower_output(l, 0, hd_lower_binary(l, "div", sum, n));
}

// --- Clip ---

static const hd_value_t *bound(hd_lowering_t *l, uint32_t input,
                               const char *attribute, bool *ok) {
  const hd_value_t *x = hd_lower_input(l, 0);
  if (hd_lower_version(l) < 11) {
    if (!hd_node_attribute(hd_lower_node(l), attribute))
      return NULL;
    const hd_value_t *value =
        hd_lower_scalar(l, x->type, hd_lower_float(l, attribute, 0));
    *ok = *ok && value;
    return value;
  }
  const hd_value_t *value = hd_lower_input(l, input);
  if (!value || value->rank == 0)
    return value;
  if (hd_lower_count(value) != 1)
    *ok = hd_lower_invalid(l, "%s has %lld elements, not 1", attribute,
                           (long long)hd_lower_count(value));
  else
    value = hd_lower_reshape(l, value, NULL, 0);
  return value;
}

bool hd_onnx_clip(hd_lowering_t *l) {
  bool ok = true;
  const hd_value_t *x = hd_lower_input(l, 0);
  const hd_value_t *low = bound(l, 1, "min", &ok);
  const hd_value_t *high = bound(l, 2, "max", &ok);
  if (!ok)
    return false;
  const hd_value_t *inputs[] = {x, low ? low : high, high};
  uint32_t count = 1 + (low != NULL) + (high != NULL);
  if (count == 1)
    return hd_lower_output(l, 0, x);
  const char *task = count == 3 ? "clip" : low ? "clip_low" : "clip_high";
  return hd_lower_output(l, 0,
                         hd_lower_task(l, task, inputs, count, NULL, NULL));
}

// --- Dropout ---

// Inference drops nothing.
bool hd_onnx_dropout(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  const hd_value_t *ratio = hd_lower_input(l, 1);
  const hd_value_t *training = hd_lower_input(l, 2);
  if (hd_lower_version(l) >= 12 && training) {
    const hd_host_tensor_t *data = hd_lower_data(l, training);
    if (!data)
      return false;
    if (data->count == 1 && hd_host_tensor_get_int(data, 0)) {
      const hd_host_tensor_t *drop = ratio ? hd_lower_data(l, ratio) : NULL;
      if (ratio && !drop)
        return false;
      if (!drop || drop->count != 1 || hd_host_tensor_get(drop, 0) != 0)
        return hd_lower_unsupported(l, "training_mode with a ratio above 0");
    }
  }
  if (hd_lower_wants_output(l, 1)) {
    // Before version 10 the mask has the type of the data.
    hd_scalar_t type = hd_lower_version(l) < 10 ? x->type : HD_BOOL;
    hd_tensor_type_t shape = hd_lower_type(x);
    const hd_value_t *mask = hd_lower_scalar(l, type, 1);
    mask = mask ? hd_lower_expand(l, mask, shape.shape, shape.rank) : NULL;
    if (!mask || !hd_lower_output(l, 1, mask))
      return false;
  }
  return hd_lower_output(l, 0, x);
}

// --- Random numbers ---

bool hd_onnx_random(hd_lowering_t *l) {
  return hd_lower_unsupported(l, "random numbers");
}
