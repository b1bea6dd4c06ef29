// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loading constants from mapped files.
#include "IR/Graph.h"

#include <string.h>

bool hd_packed_size(hd_scalar_t type, const int64_t *shape, unsigned rank,
                    int64_t *count, int64_t *bytes) {
  const int64_t limit = (int64_t)1 << 62;
  *count = 1;
  bool empty = false;
  for (unsigned i = 0; i < rank; i++) {
    if (shape[i] < 0)
      return false;
    empty |= shape[i] == 0;
  }
  for (unsigned i = 0; i < rank && !empty; i++)
    if (__builtin_mul_overflow(*count, shape[i], count))
      return false;
  if (empty)
    *count = 0;
  int64_t bits;
  if (__builtin_mul_overflow(*count, (int64_t)hd_scalar_bits(type), &bits))
    return false;
  *bytes = bits / 8 + (bits % 8 != 0);
  return *bytes <= limit;
}

void hd_unpack_elements(hd_scalar_t type, const void *packed, int64_t count,
                        unsigned char *out) {
  const unsigned char *in = packed;
  unsigned bits = hd_scalar_bits(type), each = 8 / bits;
  unsigned mask = (1u << bits) - 1;
  for (int64_t i = 0; i < count; i++)
    out[i] =
        (unsigned char)(in[i / each] >> (unsigned)(i % each) * bits & mask);
}

// Finds the bytes of a constant that is in a file alone.
static bool map_constant(hd_module_t *module, hd_constant_t *constant,
                         int64_t bytes) {
  const hd_mapped_file_t *file = hd_module_map(module, constant->file, -1);
  if (!file)
    return false;
  if (constant->offset < 0 || bytes > (int64_t)file->size ||
      constant->offset > (int64_t)file->size - bytes)
    return hd_error(&module->context->diags, (hd_loc_t){0}, HD_E0804,
                    constant->file, (long long)file->size,
                    (long long)((uint64_t)constant->offset + (uint64_t)bytes));
  constant->mapped = file->data + constant->offset;
  return true;
}

const hd_host_tensor_t *hd_constant_load(hd_module_t *module,
                                         const hd_value_t *value) {
  hd_constant_t *constant = value->constant;
  if (constant->tensor)
    return constant->tensor;
  hd_host_tensor_t *tensor = HD_ARENA_NEW(&module->arena, hd_host_tensor_t);
  tensor->type = value->type;
  tensor->rank = (unsigned)value->rank;
  for (unsigned i = 0; i < tensor->rank; i++)
    hd_expr_fold_int(value->shape[i], &tensor->shape[i]);
  int64_t bytes;
  if (!hd_packed_size(value->type, tensor->shape, tensor->rank, &tensor->count,
                      &bytes)) {
    hd_error(&module->context->diags, value->loc, HD_E0309, value->name);
    return NULL;
  }
  if (!constant->mapped && !map_constant(module, constant, bytes))
    return NULL;
  unsigned size = hd_host_element_bytes(value->type);
  tensor->bytes = (size_t)tensor->count * size;
  uintptr_t at = (uintptr_t)constant->mapped;
  if (hd_scalar_bits(value->type) >= 8 && at % size == 0) {
    tensor->data = (unsigned char *)at; // Nobody writes to a const tensor.
  } else {
    tensor->data = hd_arena_alloc(&module->arena, tensor->bytes + 1);
    if (hd_scalar_bits(value->type) >= 8)
      memcpy(tensor->data, constant->mapped, tensor->bytes);
    else
      hd_unpack_elements(value->type, constant->mapped, tensor->count,
                         tensor->data);
  }
  constant->tensor = tensor;
  return tensor;
}
