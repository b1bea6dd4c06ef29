// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an operator's function reads: operands, attributes, what is known of
// them; and how it says that it cannot go on.

#include "Graph/Expand/Expander.h"

#include <stdio.h>
#include <string.h>

const hd_node_t *hd_lower_node(const hd_lowering_t *l) { return l->node; }
int hd_lower_version(const hd_lowering_t *l) { return l->version; }
const char *hd_lower_argument(const hd_lowering_t *l) {
  return l->row->argument;
}
hd_arena_t *hd_lower_arena(hd_lowering_t *l) { return hd_expander_arena(l->x); }
hd_context_t *hd_lower_context(hd_lowering_t *l) {
  return l->x->module->context;
}

const hd_value_t *hd_lower_input(const hd_lowering_t *l, uint32_t i) {
  return i < l->num_inputs ? l->inputs[i] : NULL;
}
uint32_t hd_lower_num_inputs(const hd_lowering_t *l) { return l->num_inputs; }
bool hd_lower_wants_output(const hd_lowering_t *l, uint32_t i) {
  return i < l->node->num_outputs && l->node->outputs[i];
}
uint32_t hd_lower_num_outputs(const hd_lowering_t *l) {
  return l->node->num_outputs;
}

bool hd_lower_output(hd_lowering_t *l, uint32_t i, const hd_value_t *value) {
  if (value && i < l->node->num_outputs)
    l->outputs[i] = value;
  return value != NULL;
}

// "node 'conv1' (Conv)"; without a label by its first output.
static const char *describe(hd_lowering_t *l) {
  const hd_node_t *node = l->node;
  const hd_value_t *output = NULL;
  for (uint32_t i = 0; i < node->num_outputs && !output; i++)
    output = node->outputs[i];
  const char *name = node->label ? node->label : output ? output->name : "?";
  if (!node->label && output && output->label)
    name = output->label;
  return hd_arena_printf(
      hd_lower_arena(l), "node '%.200s' (%s%s%.80s)", name,
      node->domain && strcmp(node->domain, "onnx") != 0 ? node->domain : "",
      node->domain && strcmp(node->domain, "onnx") != 0 ? "." : "", node->op);
}

static bool report(hd_lowering_t *l, hd_diagnostic_code_t code,
                   const char *format, va_list args) {
  const char *text = hd_arena_vprintf(hd_lower_arena(l), format, args);
  return hd_error(&hd_lower_context(l)->diags, l->node->loc, code, describe(l),
                  text);
}

bool hd_lower_unsupported(hd_lowering_t *l, const char *format, ...) {
  va_list args;
  va_start(args, format);
  report(l, HD_E1104, format, args);
  va_end(args);
  return false;
}

bool hd_lower_invalid(hd_lowering_t *l, const char *format, ...) {
  va_list args;
  va_start(args, format);
  report(l, HD_E1103, format, args);
  va_end(args);
  return false;
}

const hd_attribute_t *hd_lower_attribute(hd_lowering_t *l, const char *name,
                                         hd_attribute_kind_t kind) {
  const hd_attribute_t *attribute = hd_node_attribute(l->node, name);
  if (!attribute || attribute->kind == kind)
    return attribute;
  // An empty list has no kind of its own.
  if (attribute->kind == HD_ATTRIBUTE_INTS && attribute->count == 0 &&
      (kind == HD_ATTRIBUTE_FLOATS || kind == HD_ATTRIBUTE_STRINGS))
    return attribute;
  if (!l->broken)
    hd_lower_invalid(l, "attribute '%s' is %s, and %s is needed", name,
                     hd_attribute_kind_name(attribute->kind),
                     hd_attribute_kind_name(kind));
  l->broken = true;
  return NULL;
}

const hd_value_t *hd_lower_tensor(hd_lowering_t *l, const hd_value_t *tensor) {
  return hd_segment_constant(l->x, tensor);
}

int64_t hd_lower_int(hd_lowering_t *l, const char *name, int64_t otherwise) {
  const hd_attribute_t *a = hd_lower_attribute(l, name, HD_ATTRIBUTE_INT);
  return a ? a->u.i : otherwise;
}

double hd_lower_float(hd_lowering_t *l, const char *name, double otherwise) {
  const hd_attribute_t *a = hd_lower_attribute(l, name, HD_ATTRIBUTE_FLOAT);
  return a ? a->u.f : otherwise;
}

const char *hd_lower_string(hd_lowering_t *l, const char *name,
                            const char *otherwise) {
  const hd_attribute_t *a = hd_lower_attribute(l, name, HD_ATTRIBUTE_STRING);
  return a ? a->u.s : otherwise;
}

const int64_t *hd_lower_ints(hd_lowering_t *l, const char *name,
                             size_t *count) {
  static const int64_t none;
  const hd_attribute_t *a = hd_lower_attribute(l, name, HD_ATTRIBUTE_INTS);
  *count = a ? a->count : 0;
  return !a ? NULL : a->count ? a->u.ints : &none;
}

bool hd_lower_axis(hd_lowering_t *l, const char *name, int64_t otherwise,
                   int rank, int64_t *axis) {
  *axis = hd_lower_int(l, name, otherwise);
  if (*axis < -rank || *axis >= rank)
    return hd_lower_invalid(l, "%s is %lld, and the tensor has rank %d", name,
                            (long long)*axis, rank);
  if (*axis < 0)
    *axis += rank;
  return true;
}

int64_t hd_lower_size(const hd_value_t *value, int axis) {
  return value->shape[axis]->u.i;
}

int64_t hd_size_times(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

int64_t hd_lower_product(const hd_value_t *x, int from, int to) {
  int64_t product = 1;
  for (int i = from; i < to; i++)
    product = hd_size_times(product, hd_lower_size(x, i));
  return product;
}

int64_t hd_lower_count(const hd_value_t *value) {
  return hd_lower_product(value, 0, value->rank);
}

hd_tensor_type_t hd_lower_type(const hd_value_t *value) {
  hd_tensor_type_t type = {.type = value->type, .rank = (unsigned)value->rank};
  for (int i = 0; i < value->rank; i++)
    type.shape[i] = hd_lower_size(value, i);
  return type;
}

const hd_host_tensor_t *hd_lower_find_data(hd_lowering_t *l,
                                           const hd_value_t *value) {
  if (value->constant)
    return hd_constant_load(l->x->module, value);
  return hd_ptr_map_get(&l->x->given, value);
}

const hd_host_tensor_t *hd_lower_data(hd_lowering_t *l,
                                      const hd_value_t *value) {
  if (value->form != HD_HOLDS_TENSOR) {
    hd_lower_invalid(l, "a tensor is needed, found a sequence or an optional");
    return NULL;
  }
  const hd_host_tensor_t *data = hd_lower_find_data(l, value);
  if (data)
    return data;
  data = hd_ptr_map_get(&l->x->inputs, value);
  if (data) {
    l->x->looked = true;
  } else {
    l->x->wanted = value;
    l->x->finding = NULL;
  }
  return data;
}

const int64_t *hd_lower_data_ints(hd_lowering_t *l, const hd_value_t *value,
                                  size_t *count) {
  const hd_host_tensor_t *data = hd_lower_data(l, value);
  *count = 0;
  if (!data)
    return NULL;
  if (hd_scalar_class(data->type) == HD_CLASS_FLOAT) {
    hd_lower_invalid(l, "integers are needed, found %s",
                     hd_scalar_name(data->type));
    return NULL;
  }
  int64_t *ints = HD_ARENA_ARRAY(hd_lower_arena(l), int64_t, data->count + 1);
  for (int64_t i = 0; i < data->count; i++)
    ints[i] = hd_host_tensor_get_int(data, i);
  *count = (size_t)data->count;
  return ints;
}
