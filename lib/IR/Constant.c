// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loading constants from mapped files.
#include "IR/Graph/Graph.h"

#include "Support/Beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool hd_packed_size(hd_scalar_t type, const int64_t *shape, unsigned rank,
                    int64_t *count, int64_t *bytes) {
  int64_t bits;
  if (!hd_shape_count(shape, rank, count) ||
      __builtin_mul_overflow(*count, (int64_t)hd_scalar_bits(type), &bits))
    return false;
  *bytes = bits / 8 + (bits % 8 != 0);
  return true;
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

static bool wrong(hd_module_t *module, const hd_value_t *value,
                  const char *why) {
  const char *file = value->constant->file;
  return hd_error(&module->context->diags, value->loc, HD_E1102, value->name,
                  hd_arena_printf(&module->arena, "'%s': %s", file, why));
}

static const hd_mapped_file_t *map_file(hd_module_t *module,
                                        const hd_value_t *value) {
  if (!module->folder) {
    wrong(module, value, "a module in memory has no folder");
    return NULL;
  }
  const char *path = hd_arena_printf(&module->arena, "%s/%s", module->folder,
                                     value->constant->file);
  for (const hd_mapped_file_t *f = module->files; f; f = f->next)
    if (strcmp(f->path, path) == 0)
      return f;
  int folder = open(module->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  int fd = folder < 0 ? -1 : hd_beneath_open(folder, value->constant->file);
  int error = errno;
  if (folder >= 0)
    close(folder);
  if (fd >= 0)
    return hd_module_map(module, path, fd);
  wrong(module, value, hd_beneath_text(error));
  return NULL;
}

// Finds the bytes of a constant that is in a file alone.
static bool map_constant(hd_module_t *module, const hd_value_t *value,
                         int64_t bytes) {
  hd_constant_t *constant = value->constant;
  const hd_mapped_file_t *file = map_file(module, value);
  if (!file)
    return false;
  if (constant->offset < 0 || bytes > (int64_t)file->size ||
      constant->offset > (int64_t)file->size - bytes)
    return wrong(module, value,
                 hd_arena_printf(
                     &module->arena,
                     "it ends at %zu bytes, and %lld from %lld on are needed",
                     file->size, (long long)bytes,
                     (long long)constant->offset));
  constant->mapped =
      file->data ? file->data + constant->offset : (const unsigned char *)"";
  return true;
}

void hd_module_set_folder(hd_module_t *module, const char *path) {
  const char *slash = strrchr(path, '/');
  size_t size = slash ? (size_t)(slash - path) : 0;
  module->folder = !slash      ? "."
                   : size == 0 ? "/"
                               : hd_arena_strndup(&module->arena, path, size);
}

// The tensor of a constant's shape, without its elements; NULL where that is
// too large. bytes: as the file has them.
static hd_host_tensor_t *make_tensor(hd_arena_t *arena, const hd_value_t *value,
                                     int64_t *bytes) {
  hd_host_tensor_t *tensor = HD_ARENA_NEW(arena, hd_host_tensor_t);
  tensor->type = value->type;
  tensor->rank = (unsigned)value->rank;
  for (unsigned i = 0; i < tensor->rank; i++)
    hd_expr_fold_int(value->shape[i], &tensor->shape[i]);
  if (!hd_packed_size(value->type, tensor->shape, tensor->rank, &tensor->count,
                      bytes))
    return NULL;
  tensor->bytes = (size_t)tensor->count * hd_host_element_bytes(value->type);
  return tensor;
}

static void unpack(hd_arena_t *arena, hd_host_tensor_t *tensor,
                   const void *mapped) {
  uintptr_t at = (uintptr_t)mapped;
  bool whole = hd_scalar_bits(tensor->type) >= 8;
  if (whole && at % hd_host_element_bytes(tensor->type) == 0) {
    tensor->data = (unsigned char *)at; // Nobody writes to a const tensor.
    return;
  }
  tensor->data = hd_arena_alloc(arena, tensor->bytes + 1);
  if (whole)
    memcpy(tensor->data, mapped, tensor->bytes);
  else
    hd_unpack_elements(tensor->type, mapped, tensor->count, tensor->data);
}

const hd_host_tensor_t *hd_constant_elements(hd_arena_t *arena,
                                             const hd_value_t *value) {
  const hd_constant_t *constant = value->constant;
  int64_t bytes;
  if (constant->tensor || !constant->mapped)
    return constant->tensor;
  hd_host_tensor_t *tensor = make_tensor(arena, value, &bytes);
  if (tensor)
    unpack(arena, tensor, constant->mapped);
  return tensor;
}

const hd_host_tensor_t *hd_constant_load(hd_module_t *module,
                                         const hd_value_t *value) {
  hd_constant_t *constant = value->constant;
  if (constant->tensor)
    return constant->tensor;
  while (module->source) // What is loaded lives as long as the constant.
    module = module->source;
  int64_t bytes;
  hd_host_tensor_t *tensor = make_tensor(&module->arena, value, &bytes);
  if (!tensor) {
    hd_error(&module->context->diags, value->loc, HD_E0309, value->name);
    return NULL;
  }
  if (!constant->mapped && !map_constant(module, value, bytes))
    return NULL;
  unpack(&module->arena, tensor, constant->mapped);
  constant->tensor = tensor;
  return tensor;
}
