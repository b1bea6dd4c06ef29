// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SparseTensorProto: values, and where they stand, as linear indices or as a
// row of indices each. They become dense constants.
#include "Graph/ONNX/State.h"

#include "IR/Tensor.h"

#include <string.h>

typedef struct sparse {
  hd_onnx_import_t *im;
  const char *what, *name;
  const hd_host_tensor_t *values, *indices;
  int64_t shape[HD_MAX_RANK];
  unsigned rank;
  int64_t count, bytes;
} sparse_t;

static bool read_shape(sparse_t *s, const HdOnnx__SparseTensor *tensor) {
  if (tensor->n_dims > HD_MAX_RANK)
    return hd_import_unsupported(s->im, s->what, s->name,
                                 "rank %zu (at most %d)", tensor->n_dims,
                                 HD_MAX_RANK);
  s->rank = (unsigned)tensor->n_dims;
  for (unsigned i = 0; i < s->rank; i++) {
    s->shape[i] = tensor->dims[i];
    if (s->shape[i] < 0)
      return hd_import_invalid(s->im, s->what, s->name,
                               "axis %u has the size %lld", i,
                               (long long)s->shape[i]);
  }
  unsigned size = hd_host_element_bytes(s->values->type);
  if (!hd_packed_size(s->values->type, s->shape, s->rank, &s->count, &s->bytes))
    return hd_error(s->im->diags, (hd_loc_t){0}, HD_E0309,
                    hd_arena_printf(s->im->scratch, "%.200s", s->name));
  if (s->count > HD_ONNX_MAX_DENSE / size) {
    const char *text = hd_arena_printf(
        s->im->scratch,
        "%.500s '%.200s' is sparse, and has more than %d bytes when "
        "made dense",
        s->what, s->name, (int)HD_ONNX_MAX_DENSE);
    return hd_error(s->im->diags, (hd_loc_t){0}, HD_E0904, text);
  }
  s->bytes = s->count * size;
  return true;
}

// Where value number i stands; -1 after an error.
static int64_t place(const sparse_t *s, int64_t i) {
  int64_t at = 0;
  if (s->indices->rank == 1) {
    at = hd_host_tensor_get_int(s->indices, i);
    if (at >= 0 && at < s->count)
      return at;
  } else {
    unsigned axis = 0;
    for (; axis < s->rank; axis++) {
      int64_t index = hd_host_tensor_get_int(s->indices, i * s->rank + axis);
      if (index < 0 || index >= s->shape[axis])
        break;
      at = at * s->shape[axis] + index;
    }
    if (axis == s->rank)
      return at;
  }
  hd_import_invalid(s->im, s->what, s->name,
                    "index number %lld lies outside its shape", (long long)i);
  return -1;
}

static bool check_indices(const sparse_t *s) {
  const hd_host_tensor_t *indices = s->indices, *values = s->values;
  bool fits = values->rank == 1 && indices->type == HD_I64 &&
              (indices->rank == 1 ||
               (indices->rank == 2 && indices->shape[1] == s->rank)) &&
              indices->shape[0] == values->shape[0];
  return fits ||
         hd_import_invalid(s->im, s->what, s->name,
                           "its indices do not fit its values and shape");
}

static bool fill(const sparse_t *s, unsigned char *data) {
  unsigned size = hd_host_element_bytes(s->values->type);
  for (int64_t i = 0; i < s->values->count; i++) {
    int64_t at = place(s, i);
    if (at < 0)
      return false;
    memcpy(data + at * size, s->values->data + i * size, size);
  }
  return true;
}

static void finish_value(const sparse_t *s, unsigned char *data,
                         hd_value_t *value) {
  hd_arena_t *arena = s->im->arena;
  hd_host_tensor_t *tensor = HD_ARENA_NEW(arena, hd_host_tensor_t);
  *tensor = (hd_host_tensor_t){.type = s->values->type,
                               .rank = s->rank,
                               .count = s->count,
                               .data = data,
                               .bytes = (size_t)s->bytes};
  memcpy(tensor->shape, s->shape, sizeof s->shape);
  const hd_expr_t **shape =
      HD_ARENA_ARRAY(arena, const hd_expr_t *, s->rank + 1);
  for (unsigned i = 0; i < s->rank; i++)
    shape[i] = hd_expr_int(arena, hd_type(HD_I64), s->shape[i]);
  value->type = tensor->type;
  value->rank = (int)s->rank;
  value->shape = shape;
  value->constant = HD_ARENA_NEW(arena, hd_constant_t);
  value->constant->tensor = tensor;
}

hd_value_t *hd_import_sparse(hd_onnx_import_t *im,
                             const HdOnnx__SparseTensor *tensor,
                             const char *what, const char *name) {
  sparse_t s = {.im = im, .what = what, .name = name};
  if (!tensor->values || !tensor->indices) {
    hd_import_invalid(im, what, name,
                      "it is sparse, without values or indices");
    return NULL;
  }
  hd_value_t *value = hd_import_value(im, name); // First: the name is its.
  hd_value_t *values = hd_import_constant(im, tensor->values, what, name);
  if (!values || values->type == HD_VOID)
    return values;
  hd_value_t *indices = hd_import_constant(im, tensor->indices, what, name);
  if (!indices || indices->type == HD_VOID)
    return indices;
  s.values = hd_constant_load(im->module, values);
  s.indices = hd_constant_load(im->module, indices);
  if (!s.values || !s.indices || !read_shape(&s, tensor) || !check_indices(&s))
    return NULL;
  unsigned char *data = hd_arena_alloc(im->arena, (size_t)s.bytes + 1);
  if (!fill(&s, data))
    return NULL;
  finish_value(&s, data, value);
  return value;
}
