// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Graph/Graph.h"

#include "Support/Map.h"

#include <string.h>

bool hd_attribute_equal(const hd_attribute_t *a, const hd_attribute_t *b) {
  if (a->kind != b->kind || a->count != b->count)
    return false;
  switch (a->kind) {
  case HD_ATTRIBUTE_INT:
    return a->u.i == b->u.i;
  case HD_ATTRIBUTE_FLOAT:
    return memcmp(&a->u.f, &b->u.f, sizeof(double)) == 0;
  case HD_ATTRIBUTE_INTS:
    return memcmp(a->u.ints, b->u.ints, a->count * sizeof(int64_t)) == 0;
  case HD_ATTRIBUTE_FLOATS:
    return memcmp(a->u.floats, b->u.floats, a->count * sizeof(double)) == 0;
  case HD_ATTRIBUTE_TYPE:
    return a->u.type == b->u.type;
  case HD_ATTRIBUTE_SIZE:
  case HD_ATTRIBUTE_SIZES:
    for (size_t i = 0; i < a->count; i++)
      if (!hd_expr_equal(a->u.sizes[i], b->u.sizes[i]))
        return false;
    return true;
  case HD_ATTRIBUTE_STRING:
  case HD_ATTRIBUTE_STRINGS:
  case HD_ATTRIBUTE_TENSOR:
  case HD_ATTRIBUTE_GRAPH:
  case HD_ATTRIBUTE_KINDS:
    break;
  }
  return false;
}

bool hd_attributes_equal(const hd_node_t *a, const hd_node_t *b) {
  if (a->num_attributes != b->num_attributes)
    return false;
  for (uint32_t i = 0; i < a->num_attributes; i++)
    if (strcmp(a->attributes[i]->name, b->attributes[i]->name) != 0 ||
        !hd_attribute_equal(a->attributes[i], b->attributes[i]))
      return false;
  return true;
}

uint64_t hd_attribute_key(uint64_t key, const hd_attribute_t *a) {
  key = hd_hash(key, a->name, strlen(a->name));
  switch (a->kind) {
  case HD_ATTRIBUTE_INT:
    return hd_hash(key, &a->u.i, sizeof(a->u.i));
  case HD_ATTRIBUTE_FLOAT:
    return hd_hash(key, &a->u.f, sizeof(a->u.f));
  case HD_ATTRIBUTE_INTS:
    return hd_hash(key, a->u.ints, a->count * sizeof(int64_t));
  case HD_ATTRIBUTE_FLOATS:
    return hd_hash(key, a->u.floats, a->count * sizeof(double));
  case HD_ATTRIBUTE_TYPE:
    return hd_hash(key, &a->u.type, sizeof(a->u.type));
  case HD_ATTRIBUTE_SIZE:
  case HD_ATTRIBUTE_SIZES:
    for (size_t i = 0; i < a->count; i++) {
      uint64_t size = hd_expr_hash(a->u.sizes[i]);
      key = hd_hash(key, &size, sizeof(size));
    }
    return key;
  case HD_ATTRIBUTE_STRING:
  case HD_ATTRIBUTE_STRINGS:
  case HD_ATTRIBUTE_TENSOR:
  case HD_ATTRIBUTE_GRAPH:
  case HD_ATTRIBUTE_KINDS:
    break;
  }
  return key;
}
