// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// AttributeProto.
#include "Graph/ONNX/State.h"

#include <string.h>

// AttributeProto.AttributeType.
typedef enum kind {
  UNDEFINED = 0,
  FLOAT = 1,
  INT = 2,
  STRING = 3,
  TENSOR = 4,
  GRAPH = 5,
  FLOATS = 6,
  INTS = 7,
  STRINGS = 8,
  TENSORS = 9,
  GRAPHS = 10,
  SPARSE_TENSOR = 11,
  SPARSE_TENSORS = 12,
  TYPE_PROTO = 13,
  TYPE_PROTOS = 14,
} kind_t;

// Files from before IR version 2 say no kind: what is there says it.
static kind_t kind_of(const HdOnnx__Attribute *proto) {
  return proto->type            ? (kind_t)proto->type
         : proto->has_f         ? FLOAT
         : proto->has_i         ? INT
         : proto->has_s         ? STRING
         : proto->t             ? TENSOR
         : proto->g             ? GRAPH
         : proto->n_floats      ? FLOATS
         : proto->n_ints        ? INTS
         : proto->n_strings     ? STRINGS
         : proto->sparse_tensor ? SPARSE_TENSOR
         : proto->tp            ? TYPE_PROTO
                                : UNDEFINED;
}

static const char *read_text(hd_onnx_import_t *im, ProtobufCBinaryData bytes,
                             const char *node, const char *name) {
  if (bytes.len && memchr(bytes.data, '\0', bytes.len)) {
    hd_import_unsupported(im, node, name, "its text holds a zero byte");
    return NULL;
  }
  return hd_arena_strndup(im->arena, bytes.len ? (const char *)bytes.data : "",
                          bytes.len);
}

static bool read_texts(hd_onnx_import_t *im, const HdOnnx__Attribute *proto,
                       const char *node, hd_attribute_t *attribute) {
  const char **strings =
      HD_ARENA_ARRAY(im->arena, const char *, proto->n_strings + 1);
  for (size_t i = 0; i < proto->n_strings; i++) {
    strings[i] = read_text(im, proto->strings[i], node, attribute->name);
    if (!strings[i])
      return false;
  }
  attribute->u.strings = strings;
  attribute->count = proto->n_strings;
  return true;
}

static void read_floats(hd_onnx_import_t *im, const HdOnnx__Attribute *proto,
                        hd_attribute_t *attribute) {
  double *floats = HD_ARENA_ARRAY(im->arena, double, proto->n_floats + 1);
  for (size_t i = 0; i < proto->n_floats; i++)
    floats[i] = (double)proto->floats[i];
  attribute->u.floats = floats;
  attribute->count = proto->n_floats;
}

static void read_ints(hd_onnx_import_t *im, const HdOnnx__Attribute *proto,
                      hd_attribute_t *attribute) {
  int64_t *ints = HD_ARENA_ARRAY(im->arena, int64_t, proto->n_ints + 1);
  if (proto->n_ints)
    memcpy(ints, proto->ints, proto->n_ints * sizeof *ints);
  attribute->u.ints = ints;
  attribute->count = proto->n_ints;
}

// Of a tensor, or of what a sequence or an optional holds.
static hd_scalar_t element_of(const HdOnnx__Type *type) {
  while (type) {
    switch (type->value_case) {
    case HD_ONNX__TYPE__VALUE_TENSOR_TYPE:
      return hd_onnx_scalar(type->tensor_type->elem_type);
    case HD_ONNX__TYPE__VALUE_SEQUENCE_TYPE:
      type = type->sequence_type->elem_type;
      break;
    case HD_ONNX__TYPE__VALUE_OPTIONAL_TYPE:
      type = type->optional_type->elem_type;
      break;
    default:
      return HD_VOID;
    }
  }
  return HD_VOID;
}

static bool lacks(hd_onnx_import_t *im, const char *node, const char *name,
                  const char *what) {
  return hd_import_invalid(im, node, name, "it holds no %s", what);
}

// node: "node 'name' (Op), attribute"
static bool read_kind(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                      const HdOnnx__Attribute *proto, const char *node,
                      hd_attribute_t *attribute) {
  const char *name = attribute->name;
  switch (kind_of(proto)) {
  case FLOAT:
    attribute->kind = HD_ATTRIBUTE_FLOAT;
    attribute->u.f = (double)proto->f;
    return true;
  case INT:
    attribute->kind = HD_ATTRIBUTE_INT;
    attribute->u.i = proto->i;
    return true;
  case STRING:
    attribute->kind = HD_ATTRIBUTE_STRING;
    attribute->u.s = read_text(im, proto->s, node, name);
    return attribute->u.s != NULL;
  case TENSOR:
    if (!proto->t)
      return lacks(im, node, name, "tensor");
    attribute->kind = HD_ATTRIBUTE_TENSOR;
    attribute->u.tensor = hd_import_constant(im, proto->t, node, name);
    return attribute->u.tensor != NULL;
  case SPARSE_TENSOR:
    if (!proto->sparse_tensor)
      return lacks(im, node, name, "tensor");
    attribute->kind = HD_ATTRIBUTE_TENSOR;
    attribute->u.tensor =
        hd_import_sparse(im, proto->sparse_tensor, node, name);
    return attribute->u.tensor != NULL;
  case GRAPH:
    if (!proto->g)
      return lacks(im, node, name, "graph");
    attribute->kind = HD_ATTRIBUTE_GRAPH;
    attribute->u.graph = hd_import_subgraph(im, scope, proto->g);
    return attribute->u.graph != NULL;
  case FLOATS:
    attribute->kind = HD_ATTRIBUTE_FLOATS;
    read_floats(im, proto, attribute);
    return true;
  case INTS:
    attribute->kind = HD_ATTRIBUTE_INTS;
    read_ints(im, proto, attribute);
    return true;
  case STRINGS:
    attribute->kind = HD_ATTRIBUTE_STRINGS;
    return read_texts(im, proto, node, attribute);
  case TYPE_PROTO:
    attribute->kind = HD_ATTRIBUTE_TYPE;
    attribute->u.type = element_of(proto->tp);
    if (attribute->u.type != HD_VOID)
      return true;
    im->failed = true; // The rest is looked at as well.
    hd_import_unsupported(im, node, name, "the type is not supported");
    return true;
  case TENSORS:
  case GRAPHS:
  case SPARSE_TENSORS:
  case TYPE_PROTOS:
    im->failed = true; // The rest is looked at as well.
    hd_import_unsupported(im, node, name, "a list of tensors, graphs or types");
    return true;
  case UNDEFINED:
    break;
  }
  return hd_import_invalid(im, node, name, "it is of no known kind (%d)",
                           (int)proto->type);
}

static const hd_attribute_t *find_given(const hd_onnx_call_t *call,
                                        const char *name) {
  for (size_t i = 0; i < call->attributes.size; i++)
    if (strcmp(call->attributes.data[i]->name, name) == 0)
      return call->attributes.data[i];
  return NULL;
}

bool hd_import_attribute(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                         const HdOnnx__Attribute *proto, const char *node,
                         const hd_attribute_t **result) {
  *result = NULL;
  const char *what = hd_arena_printf(im->scratch, "%s, attribute", node);
  const char *name = proto->name ? proto->name : "";
  if (!name[0])
    return hd_import_invalid(im, what, "", "it has no name");
  hd_attribute_t *attribute = HD_ARENA_NEW(im->arena, hd_attribute_t);
  const char *word = hd_import_word(im->arena, name);
  if (proto->ref_attr_name && proto->ref_attr_name[0]) {
    if (!scope->call)
      return hd_import_invalid(im, what, name,
                               "it refers to an attribute of a "
                               "function, and stands in none");
    const hd_attribute_t *given = find_given(
        scope->call, hd_import_word(im->scratch, proto->ref_attr_name));
    if (!given)
      return true;
    if (given->kind == HD_ATTRIBUTE_GRAPH &&
        given->u.graph->outer != scope->graph)
      return hd_import_unsupported(im, what, name,
                                   "a graph that is given to a function and "
                                   "used in another graph there");
    *attribute = *given;
    attribute->name = word;
  } else {
    attribute->name = word;
    if (!read_kind(im, scope, proto, what, attribute))
      return false;
  }
  *result = attribute;
  return true;
}
