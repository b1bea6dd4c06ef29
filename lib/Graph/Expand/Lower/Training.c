// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps of optimizers, for any number of tensors, and operators of ai.onnx.ml
// that are of tensors alone.
#include "Graph/Expand/Lower/Lower.h"

#include <string.h>

enum { MAX_STATES = 4 };

// After rate and step come all tensors, then all gradients, then all of each
// state; the results are the tensors and then the states.
static bool optimize(hd_lowering_t *l, const char *task, uint32_t states,
                     const hd_attributes_t *list) {
  uint32_t each = states + 2, given = hd_lower_num_inputs(l) - 2;
  uint32_t count = given / each;
  if (given % each != 0)
    return hd_lower_invalid(l, "%u inputs are not %u for each tensor", given,
                            each);
  const hd_value_t *inputs[2 + MAX_STATES], *outputs[MAX_STATES];
  for (uint32_t i = 0; i < count; i++) {
    inputs[0] = hd_lower_reshape(l, hd_lower_input(l, 0), NULL, 0);
    inputs[1] = hd_lower_reshape(l, hd_lower_input(l, 1), NULL, 0);
    if (!inputs[0] || !inputs[1])
      return false;
    for (uint32_t n = 0; n < each; n++)
      if (!(inputs[2 + n] = hd_lower_input(l, 2 + n * count + i)))
        return hd_lower_invalid(l, "input %u is missing", 2 + n * count + i);
    if (!hd_lower_task(l, task, inputs, 2 + each, list, outputs))
      return false;
    for (uint32_t n = 0; n < states + 1; n++)
      if (hd_lower_wants_output(l, n * count + i) &&
          !hd_lower_output(l, n * count + i, outputs[n]))
        return false;
  }
  return true;
}

static void copy_float(hd_lowering_t *l, hd_attributes_t *list,
                       const char *task_name, const char *name,
                       double otherwise) {
  hd_attributes_float(l, list, task_name, hd_lower_float(l, name, otherwise));
}

bool hd_onnx_adagrad(hd_lowering_t *l) {
  hd_attributes_t list = {0};
  copy_float(l, &list, "decay", "decay_factor", 0);
  copy_float(l, &list, "epsilon", "epsilon", 1e-6);
  copy_float(l, &list, "norm", "norm_coefficient", 0);
  return optimize(l, "adagrad", 1, &list);
}

bool hd_onnx_adam(hd_lowering_t *l) {
  hd_attributes_t list = {0};
  copy_float(l, &list, "alpha", "alpha", 0.9);
  copy_float(l, &list, "beta", "beta", 0.999);
  copy_float(l, &list, "epsilon", "epsilon", 1e-6);
  copy_float(l, &list, "norm", "norm_coefficient", 0);
  copy_float(l, &list, "post", "norm_coefficient_post", 0);
  return optimize(l, "adam", 2, &list);
}

bool hd_onnx_momentum(hd_lowering_t *l) {
  hd_attributes_t list = {0};
  const char *mode = hd_lower_string(l, "mode", "standard");
  bool nesterov = strcmp(mode, "nesterov") == 0;
  if (!nesterov && strcmp(mode, "standard") != 0)
    return hd_lower_invalid(l, "mode is '%s'", mode);
  copy_float(l, &list, "alpha", "alpha", 0);
  copy_float(l, &list, "beta", "beta", 0);
  copy_float(l, &list, "norm", "norm_coefficient", 0);
  hd_attributes_int(l, &list, "nesterov", nesterov);
  return optimize(l, "momentum", 1, &list);
}

bool hd_onnx_binarizer(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  hd_attributes_t list = {0};
  copy_float(l, &list, "threshold", "threshold", 0);
  const hd_value_t *y = hd_lower_task(l, "binarize", &x, 1, &list, NULL);
  return hd_lower_output(l, 0, y);
}

// Chosen along the last axis; of a vector, as a row.
bool hd_onnx_array_feature_extractor(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *at = hd_lower_input(l, 1);
  if (x->rank < 1)
    return hd_lower_invalid(l, "a tensor of rank 0");
  int64_t count = hd_lower_count(at);
  at = hd_lower_reshape(l, at, &count, 1);
  const hd_value_t *y = at ? hd_lower_gather(l, x, at, x->rank - 1) : NULL;
  int64_t row[] = {1, count};
  if (y && x->rank == 1)
    y = hd_lower_reshape(l, y, row, 2);
  return hd_lower_output(l, 0, y);
}

// Keys or values: a list of integers, a list of floats, or a tensor.
static const hd_value_t *read_list(hd_lowering_t *l, const char *what) {
  static const struct {
    const char *suffix;
    hd_attribute_kind_t kind;
  } forms[] = {{"tensor", HD_ATTRIBUTE_TENSOR},
               {"int64s", HD_ATTRIBUTE_INTS},
               {"floats", HD_ATTRIBUTE_FLOATS}};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    const char *name =
        hd_arena_printf(hd_lower_arena(l), "%s_%s", what, forms[i].suffix);
    if (!hd_node_attribute(hd_lower_node(l), name))
      continue;
    const hd_attribute_t *a = hd_lower_attribute(l, name, forms[i].kind);
    if (!a)
      return NULL;
    if (a->kind == HD_ATTRIBUTE_TENSOR)
      return hd_lower_tensor(l, a->u.tensor);
    if (a->kind == HD_ATTRIBUTE_INTS)
      return hd_lower_ints_constant(l, a->u.ints, a->count);
    int64_t count = (int64_t)a->count;
    hd_host_tensor_t *data;
    const hd_value_t *list = hd_lower_constant(l, HD_F32, &count, 1, &data);
    for (int64_t n = 0; list && n < count; n++)
      hd_host_tensor_set(data, n, a->u.floats[n]);
    return list;
  }
  hd_lower_unsupported(l, "%s that are no numbers", what);
  return NULL;
}

static const hd_value_t *read_default(hd_lowering_t *l, hd_scalar_t type) {
  if (hd_node_attribute(hd_lower_node(l), "default_tensor")) {
    const hd_attribute_t *a =
        hd_lower_attribute(l, "default_tensor", HD_ATTRIBUTE_TENSOR);
    return a ? hd_lower_reshape(l, hd_lower_tensor(l, a->u.tensor), NULL, 0)
             : NULL;
  }
  return hd_lower_scalar(l, type,
                         type == HD_F32
                             ? hd_lower_float(l, "default_float", 0)
                             : (double)hd_lower_int(l, "default_int64", -1));
}

bool hd_onnx_label_encoder(hd_lowering_t *l) {
  const hd_value_t *inputs[] = {hd_lower_input(l, 0), read_list(l, "keys"),
                                NULL, NULL};
  inputs[2] = inputs[1] ? read_list(l, "values") : NULL;
  inputs[3] = inputs[2] ? read_default(l, inputs[2]->type) : NULL;
  const hd_value_t *y =
      inputs[3] ? hd_lower_task(l, "label", inputs, 4, NULL, NULL) : NULL;
  return hd_lower_output(l, 0, y);
}
