// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constant, in all its forms.
#include "Graph/Expand/Lower/Lower.h"

#include <string.h>

static const hd_value_t *numbers(hd_lowering_t *l, const hd_attribute_t *a,
                                 bool list) {
  bool floats = a->kind == HD_ATTRIBUTE_FLOAT || a->kind == HD_ATTRIBUTE_FLOATS;
  int64_t count = list ? (int64_t)a->count : 1;
  hd_host_tensor_t *data;
  const hd_value_t *value = hd_lower_constant(l, floats ? HD_F32 : HD_I64,
                                              &count, list ? 1 : 0, &data);
  for (int64_t i = 0; value && i < count; i++) {
    if (floats)
      hd_host_tensor_set(data, i, list ? a->u.floats[i] : a->u.f);
    else
      hd_host_tensor_set_int(data, i, list ? a->u.ints[i] : a->u.i);
  }
  return value;
}

// Exactly one of its attributes says what it is.
bool hd_onnx_constant(hd_lowering_t *l) {
  static const struct {
    const char *name;
    hd_attribute_kind_t kind;
    bool list;
  } forms[] = {
      {"value_float", HD_ATTRIBUTE_FLOAT, false},
      {"value_floats", HD_ATTRIBUTE_FLOATS, true},
      {"value_int", HD_ATTRIBUTE_INT, false},
      {"value_ints", HD_ATTRIBUTE_INTS, true},
  };
  const hd_node_t *node = hd_lower_node(l);
  if (node->num_attributes != 1)
    return hd_lower_invalid(l, "a Constant has one attribute, found %u",
                            node->num_attributes);
  const hd_attribute_t *a = node->attributes[0];
  if (a->kind == HD_ATTRIBUTE_TENSOR)
    return hd_lower_output(l, 0, hd_lower_tensor(l, a->u.tensor));
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    // An empty list comes without a kind of its own.
    if (strcmp(a->name, forms[i].name) == 0 &&
        (a->kind == forms[i].kind || (forms[i].list && a->count == 0))) {
      const hd_value_t *value = numbers(l, a, forms[i].list);
      return hd_lower_output(l, 0, value);
    }
  return hd_lower_unsupported(l, "the attribute '%s', which is %s", a->name,
                              hd_attribute_kind_name(a->kind));
}
