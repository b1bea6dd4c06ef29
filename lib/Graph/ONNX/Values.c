// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values with the types that the model declares.
#include "Graph/ONNX/State.h"

#include "IR/Tensor.h"

#include <string.h>

hd_value_t *hd_import_value(hd_onnx_import_t *im, const char *label) {
  hd_value_t *value = HD_ARENA_NEW(im->arena, hd_value_t);
  value->name = hd_import_identifier(im, label);
  if (strcmp(value->name, label) != 0)
    value->label = hd_arena_strndup(im->arena, label, strlen(label));
  value->form = HD_HOLDS_TENSOR;
  value->type = HD_VOID;
  value->rank = -1;
  return value;
}

static bool declare_shape(hd_onnx_import_t *im, hd_graph_t *graph,
                          hd_value_t *value, const HdOnnx__Shape *shape,
                          const char *what, const char *name, bool input) {
  if (shape->n_dim > HD_MAX_RANK)
    return hd_import_unsupported(im, what, name, "rank %zu (at most %d)",
                                 shape->n_dim, HD_MAX_RANK);
  const hd_expr_t **sizes =
      HD_ARENA_ARRAY(im->arena, const hd_expr_t *, shape->n_dim + 1);
  for (size_t i = 0; i < shape->n_dim; i++) {
    const HdOnnx__Dimension *dim = shape->dim[i];
    switch (dim->value_case) {
    case HD_ONNX__DIMENSION__VALUE_DIM_VALUE:
      if (dim->dim_value < 0)
        return hd_import_invalid(im, what, name, "axis %zu has the size %lld",
                                 i, (long long)dim->dim_value);
      sizes[i] = hd_expr_int(im->arena, hd_type(HD_I64), dim->dim_value);
      break;
    case HD_ONNX__DIMENSION__VALUE_DIM_PARAM: {
      const hd_var_t *var =
          dim->dim_param[0]
              ? hd_import_dimension(im, graph, dim->dim_param, input)
              : NULL;
      sizes[i] = var ? hd_expr_var(im->arena, var) : NULL;
      break;
    }
    case HD_ONNX__DIMENSION__VALUE__NOT_SET:
    default: // The enumeration has one more, to be as wide as an int.
      break;
    }
  }
  value->rank = (int)shape->n_dim;
  value->shape = sizes;
  return true;
}

// The operator that reads or makes a value; NULL: none in the outer graph.
static const char *operator_beside(const HdOnnx__Model *model,
                                   const char *name) {
  for (size_t i = 0; i < model->graph->n_node; i++) {
    const HdOnnx__Node *node = model->graph->node[i];
    for (size_t j = 0; j < node->n_input; j++)
      if (strcmp(node->input[j], name) == 0)
        return node->op_type;
    for (size_t j = 0; j < node->n_output; j++)
      if (strcmp(node->output[j], name) == 0)
        return node->op_type;
  }
  return NULL;
}

static bool no_such_type(hd_onnx_import_t *im, const char *what,
                         const char *name, const char *type) {
  // Once: a model of many such values would take long.
  const char *op = im->failed ? NULL : operator_beside(im->model, name);
  im->failed = true;
  if (op)
    hd_import_unsupported(im, what, name,
                          "its type (%s), which %s needs, is not supported",
                          type, op);
  else
    hd_import_unsupported(im, what, name, "its type (%s) is not supported",
                          type);
  return true; // The other nodes and values are looked at as well.
}

bool hd_import_declare(hd_onnx_import_t *im, hd_graph_t *graph,
                       hd_value_t *value, const HdOnnx__Type *type,
                       const char *what, bool input) {
  const char *name = hd_value_label(value);
  if (!type)
    return true;
  static const char *const odd[] = {
      [HD_ONNX__TYPE__VALUE_MAP_TYPE] = "a map",
      [HD_ONNX__TYPE__VALUE_OPAQUE_TYPE] = "opaque",
      [HD_ONNX__TYPE__VALUE_SPARSE_TENSOR_TYPE] = "a sparse tensor",
      [HD_ONNX__TYPE__VALUE_SEQUENCE_TYPE] = "a sequence of what is no tensor",
      [HD_ONNX__TYPE__VALUE_OPTIONAL_TYPE] = "an optional in another value",
  };
  if (type->value_case == HD_ONNX__TYPE__VALUE_OPTIONAL_TYPE) {
    value->form = HD_HOLDS_OPTIONAL;
    type = type->optional_type->elem_type;
  }
  if (type && type->value_case == HD_ONNX__TYPE__VALUE_SEQUENCE_TYPE) {
    if (value->form == HD_HOLDS_TENSOR)
      value->form = HD_HOLDS_SEQUENCE;
    type = type->sequence_type->elem_type;
  }
  if (!type || type->value_case == HD_ONNX__TYPE__VALUE__NOT_SET)
    return true;
  if (type->value_case != HD_ONNX__TYPE__VALUE_TENSOR_TYPE)
    return no_such_type(im, what, name, odd[type->value_case]);
  const HdOnnx__TensorType *tensor = type->tensor_type;
  value->type = hd_onnx_scalar(tensor->elem_type);
  if (tensor->elem_type && value->type == HD_VOID)
    no_such_type(im, what, name, hd_onnx_type_name(tensor->elem_type));
  if (value->form != HD_HOLDS_TENSOR || !tensor->shape)
    return true;
  return declare_shape(im, graph, value, tensor->shape, what, name, input);
}
