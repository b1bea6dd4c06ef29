// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A layout's offset is asked of the compiler (hd_tensor_offset), once, over
// variables for the indices, and evaluated for each run of elements that it
// keeps side by side: what the kernel computes and what is done here cannot
// differ.
#include "Runtime/Storage.h"

#include <stdio.h>
#include <string.h>

bool hd_storage_shape(const hd_env_t *env, const hd_tensor_t *tensor,
                      int64_t shape[HD_TENSOR_MAX_RANK]) {
  if (tensor->rank > HD_TENSOR_MAX_RANK)
    return false;
  bool wrapped;
  for (uint32_t i = 0; i < tensor->rank; i++)
    if (!hd_eval_size(env, tensor->shape[i], &shape[i], &wrapped) ||
        shape[i] < 0)
      return false;
  return true;
}

void hd_storage_shape_why(const hd_env_t *env, const hd_var_t *var, char *text,
                          size_t size) {
  const hd_tensor_t *tensor = var->tensor;
  int64_t value;
  bool wrapped;
  snprintf(text, size, "'%.80s' has more than %d axes", var->name,
           HD_TENSOR_MAX_RANK);
  for (uint32_t i = 0; i < tensor->rank; i++) {
    const char *type = hd_type_name(tensor->shape[i]->type);
    bool known = hd_eval_size(env, tensor->shape[i], &value, &wrapped);
    if (known && value >= 0)
      continue;
    if (known)
      snprintf(text, size, "'%.80s' has size %lld on axis %u", var->name,
               (long long)value, i);
    else if (wrapped)
      snprintf(text, size, "the size of '%.80s' on axis %u does not fit %s",
               var->name, i, type);
    else
      snprintf(text, size, "the size of '%.80s' on axis %u divides by zero",
               var->name, i);
    return;
  }
}

bool hd_storage_bytes(const hd_env_t *env, hd_arena_t *arena,
                      const hd_tensor_t *tensor, int64_t *bytes) {
  int64_t shape[HD_TENSOR_MAX_RANK], elements, product = 1;
  if (!hd_storage_shape(env, tensor, shape))
    return false;
  // The expression below wraps; a shape that passes 2^62 is found here.
  for (uint32_t i = 0; i < tensor->rank; i++)
    if (__builtin_mul_overflow(product, shape[i], &product))
      return false;
  if (!hd_eval_int(env, hd_tensor_storage(arena, tensor), &elements) ||
      elements < 0 || (elements < product && hd_storage_is_plain(tensor)))
    return false;
  int64_t bits = (int64_t)hd_type_bits(tensor->element), total;
  if (__builtin_mul_overflow(elements, bits, &total) ||
      __builtin_add_overflow(total, 7, &total))
    return false;
  *bytes = total / 8;
  return true;
}

static bool is_in_rows(const hd_tensor_t *tensor) {
  return !tensor->layout || tensor->layout->num_items == 0 ||
         (tensor->layout->num_items == 1 &&
          tensor->layout->items[0].kind == HD_LAYOUT_ROW);
}

bool hd_storage_is_plain(const hd_tensor_t *tensor) {
  return is_in_rows(tensor) && hd_type_bits(tensor->element) >= 8;
}

typedef struct walk {
  hd_env_t env; // Of its own: the indices come first.
  const hd_expr_t *offset;
  unsigned bits;
  size_t bytes;
  int64_t run; // Elements that are copied at once; it divides the last size.
} walk_t;

// Whether whatever follows the base has offsets that are multiples of the run
// where indices along the last axis are.
static bool is_aligned(const hd_tensor_t *tensor, int64_t run) {
  const hd_layout_t *layout = tensor->layout;
  if (!layout || layout->items[0].kind != HD_LAYOUT_STRIDES)
    return true;
  int64_t stride;
  for (uint32_t i = 0; i + 1 < tensor->rank; i++)
    if (!hd_expr_fold_int(layout->items[0].values[i], &stride) || stride % run)
      return false;
  return true;
}

static int64_t run_of(const hd_tensor_t *tensor, const hd_host_tensor_t *host) {
  enum { MAX_RUN = 1 << 16 };
  int64_t run = 1;
  if (tensor->rank == 0 || hd_type_bits(tensor->element) < 8)
    return run;
  int64_t row = host->shape[host->rank - 1];
  while (run < MAX_RUN && row % (2 * run) == 0 && is_aligned(tensor, 2 * run) &&
         !hd_tensor_why_apart(tensor, (unsigned)(2 * run)))
    run *= 2;
  return run;
}

static void start_walk(walk_t *w, const hd_env_t *env, hd_arena_t *arena,
                       const hd_tensor_t *tensor, const hd_host_tensor_t *host,
                       size_t bytes) {
  const hd_expr_t *indices[HD_TENSOR_MAX_RANK];
  *w = (walk_t){.bits = hd_type_bits(tensor->element),
                .bytes = bytes,
                .run = run_of(tensor, host)};
  w->env.sms = env->sms;
  for (uint32_t i = 0; i < tensor->rank; i++) {
    const hd_var_t *var =
        hd_var_make(arena, "i", HD_VAR_LOOP, hd_type(HD_I64), (hd_loc_t){0});
    hd_env_add(arena, &w->env, var, (hd_number_t){.i = 0});
    indices[i] = hd_expr_var(arena, var);
  }
  for (size_t i = 0; i < env->values.size; i++)
    hd_vec_push(arena, &w->env.values, env->values.data[i]);
  w->offset = hd_tensor_offset(arena, tensor, indices);
}

// The offset in bits of the next run, in row-major order.
static bool next_offset(walk_t *w, const hd_host_tensor_t *tensor,
                        size_t *offset) {
  int64_t elements;
  int64_t size = (int64_t)(w->bytes * 8 / w->bits), step = w->run;
  if (!hd_eval_int(&w->env, w->offset, &elements) || elements < 0 ||
      elements > size - w->run)
    return false;
  *offset = (size_t)elements * w->bits;
  for (unsigned axis = tensor->rank; axis-- > 0; step = 1) {
    hd_number_t *index = &w->env.values.data[axis].value;
    if ((index->i += step) < tensor->shape[axis])
      break;
    index->i = 0;
  }
  return true;
}

// Elements of less than a byte, in rows: whole bytes at a time, weights have
// hundreds of millions of them.
static bool pack_rows(unsigned bits, const hd_host_tensor_t *from,
                      unsigned char *storage, size_t bytes) {
  if ((size_t)from->count > bytes * (8 / bits))
    return false;
  hd_host_tensor_pack(from, bits, storage);
  return true;
}

static bool unpack_rows(unsigned bits, const unsigned char *storage,
                        size_t bytes, hd_host_tensor_t *to) {
  unsigned each = 8 / bits, mask = (1u << bits) - 1;
  if ((size_t)to->count > bytes * each)
    return false;
  for (int64_t i = 0; i < to->count; i++)
    to->data[i] =
        (unsigned char)(storage[i / each] >> (unsigned)(i % each) * bits &
                        mask);
  return true;
}

bool hd_storage_pack(const hd_env_t *env, hd_arena_t *arena,
                     const hd_tensor_t *tensor, const hd_host_tensor_t *from,
                     unsigned char *storage, size_t bytes) {
  if (hd_storage_is_plain(tensor)) {
    memcpy(storage, from->data, bytes < from->bytes ? bytes : from->bytes);
    return bytes == from->bytes;
  }
  memset(storage, 0, bytes);
  if (is_in_rows(tensor))
    return pack_rows(hd_type_bits(tensor->element), from, storage, bytes);
  walk_t w;
  start_walk(&w, env, arena, tensor, from, bytes);
  size_t size = hd_host_element_bytes(from->type), offset;
  for (int64_t i = 0; i < from->count; i += w.run) {
    if (!next_offset(&w, from, &offset))
      return false;
    const unsigned char *element = from->data + (size_t)i * size;
    if (w.bits >= 8)
      memcpy(storage + offset / 8, element, (size_t)w.run * size);
    else
      storage[offset / 8] |=
          (unsigned char)((*element & ((1u << w.bits) - 1)) << offset % 8);
  }
  return true;
}

bool hd_storage_unpack(const hd_env_t *env, hd_arena_t *arena,
                       const hd_tensor_t *tensor, const unsigned char *storage,
                       size_t bytes, hd_host_tensor_t *to) {
  if (hd_storage_is_plain(tensor)) {
    memcpy(to->data, storage, bytes < to->bytes ? bytes : to->bytes);
    return bytes == to->bytes;
  }
  if (is_in_rows(tensor))
    return unpack_rows(hd_type_bits(tensor->element), storage, bytes, to);
  walk_t w;
  start_walk(&w, env, arena, tensor, to, bytes);
  size_t size = hd_host_element_bytes(to->type), offset;
  for (int64_t i = 0; i < to->count; i += w.run) {
    if (!next_offset(&w, to, &offset))
      return false;
    unsigned char *element = to->data + (size_t)i * size;
    if (w.bits >= 8)
      memcpy(element, storage + offset / 8, (size_t)w.run * size);
    else
      *element = (unsigned char)(storage[offset / 8] >> offset % 8 &
                                 ((1u << w.bits) - 1));
  }
  return true;
}
