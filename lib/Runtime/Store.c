// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Runtime/Store.h"
#include "Runtime/Storage.h"
#include "Support/HostMemory.h"

#include <assert.h>
#include <string.h>

static const hd_loc_t nowhere;
static const hd_env_t no_sizes; // Every shape is known.

void hd_store_init(hd_store_t *s, hd_module_t *module, hd_context_t *context,
                   hd_device_t *device) {
  *s = (hd_store_t){.module = module, .context = context, .device = device};
  hd_arena_init(&s->arena, &context->budget);
}

void hd_store_fini(hd_store_t *s) {
  for (size_t i = 0; i < s->stored.size; i++) {
    hd_stored_t *stored = s->stored.data[i];
    hd_host_tensor_fini(&stored->own);
    if (stored->slot.address && !stored->borrowed)
      s->device->ops->free(s->device, stored->slot.address);
  }
  hd_arena_fini(&s->arena);
  *s = (hd_store_t){0};
}

hd_stored_t *hd_store_find(hd_store_t *s, const hd_value_t *value) {
  const hd_stored_t *found = hd_ptr_map_get(&s->values, value);
  if (found)
    return s->stored.data[found->index];
  hd_stored_t *stored = HD_ARENA_NEW(&s->arena, hd_stored_t);
  stored->value = value;
  stored->index = s->stored.size;
  hd_ptr_map_set(&s->arena, &s->values, value, stored);
  hd_vec_push(&s->arena, &s->stored, stored);
  return stored;
}

// Host memory for elements as the device has them, which unwinding frees.
typedef struct buffer {
  hd_cleanup_t cleanup;
  hd_budget_t *budget;
  unsigned char *data;
  size_t bytes;
} buffer_t;

static void free_buffer(void *argument) {
  buffer_t *b = argument;
  hd_host_memory_free(b->budget, b->data, b->bytes);
}

static bool begin_buffer(hd_store_t *s, const hd_stored_t *stored,
                         buffer_t *b) {
  hd_context_t *context = s->context;
  b->budget = &context->budget;
  b->bytes = stored->slot.bytes;
  b->data = hd_host_memory_alloc(&context->diags, b->budget,
                                 stored->value->name, b->bytes);
  if (b->data)
    hd_budget_defer(b->budget, &b->cleanup, free_buffer, b);
  return b->data != NULL;
}

static bool download_packed(hd_store_t *s, hd_stored_t *stored) {
  const hd_slot_t *slot = &stored->slot;
  buffer_t b;
  if (!begin_buffer(s, stored, &b))
    return false;
  bool ok =
      s->device->ops->download(s->device, b.data, slot->address, b.bytes) &&
      hd_storage_unpack(&no_sizes, &s->arena, slot->var->tensor, b.data,
                        b.bytes, &stored->own);
  hd_budget_clean(b.budget, &b.cleanup);
  return ok;
}

static bool download(hd_store_t *s, hd_stored_t *stored) {
  hd_context_t *context = s->context;
  const hd_value_t *value = stored->value;
  hd_tensor_type_t type = {.type = value->type, .rank = (unsigned)value->rank};
  assert(stored->slot.address && "no segment gave the value");
  for (int i = 0; i < value->rank; i++)
    type.shape[i] = value->shape[i]->u.i;
  if (!stored->own.data &&
      !hd_host_tensor_init(&stored->own, &context->diags, &context->budget,
                           value->name, type.type, type.shape, type.rank))
    return false;
  if (stored->own.count == 0) // What is there stands for nothing.
    return true;
  return hd_storage_is_plain(stored->slot.var->tensor)
             ? s->device->ops->download(s->device, stored->own.data,
                                        stored->slot.address, stored->own.bytes)
             : download_packed(s, stored);
}

const hd_host_tensor_t *hd_store_fetch(hd_store_t *s, const hd_value_t *value) {
  hd_stored_t *stored = hd_store_find(s, value);
  if (!stored->data && value->constant)
    stored->data = hd_constant_load(s->module, value);
  else if (!stored->data && download(s, stored))
    stored->data = &stored->own;
  return stored->data;
}

static bool upload_packed(hd_store_t *s, const hd_stored_t *stored,
                          const hd_host_tensor_t *data) {
  const hd_slot_t *slot = &stored->slot;
  buffer_t b;
  if (!begin_buffer(s, stored, &b))
    return false;
  bool ok = hd_storage_pack(&no_sizes, &s->arena, slot->var->tensor, data,
                            b.data, b.bytes) &&
            s->device->ops->upload(s->device, slot->address, b.data, b.bytes);
  hd_budget_clean(b.budget, &b.cleanup);
  return ok;
}

// An empty tensor has room on the device for what nobody reads.
static bool upload(hd_store_t *s, const hd_stored_t *stored,
                   const hd_host_tensor_t *data) {
  const hd_slot_t *slot = &stored->slot;
  if (data->count == 0)
    return true;
  return hd_storage_is_plain(slot->var->tensor)
             ? s->device->ops->upload(s->device, slot->address, data->data,
                                      slot->bytes)
             : upload_packed(s, stored, data);
}

// Elements of a constant change no more, and live as long as the module.
static bool adopt(hd_store_t *s, hd_stored_t *stored,
                  const hd_host_tensor_t *data) {
  const hd_constant_t *constant = stored->value->constant;
  return s->device->ops->adopt && constant && constant->tensor == data &&
         data->bytes == stored->slot.bytes && data->bytes > 0 &&
         hd_storage_is_plain(stored->slot.var->tensor) &&
         s->device->ops->adopt(s->device, data->data, &stored->slot.address);
}

// The parameter's type, which lives as long as the store, longer than the value
// perhaps.
static const hd_var_t *keep_param(hd_store_t *s, const hd_value_t *value,
                                  const hd_var_t *param) {
  hd_tensor_t *tensor = HD_ARENA_NEW(&s->arena, hd_tensor_t);
  const hd_expr_t **shape =
      HD_ARENA_ARRAY(&s->arena, const hd_expr_t *, value->rank + 1);
  const char *name =
      hd_arena_strndup(&s->arena, value->name, strlen(value->name));
  for (int i = 0; i < value->rank; i++)
    shape[i] =
        hd_expr_int(&s->arena, value->shape[i]->type, value->shape[i]->u.i);
  *tensor = (hd_tensor_t){.element = param->tensor->element,
                          .rank = (uint32_t)value->rank,
                          .shape = shape};
  return hd_var_make_tensor(&s->arena, name, tensor, value->loc);
}

static void forget(hd_store_t *s, hd_stored_t *stored) {
  s->device->ops->free(s->device, stored->slot.address);
  stored->slot = (hd_slot_t){0};
}

static bool begin_slot(hd_store_t *s, hd_stored_t *stored,
                       const hd_var_t *param) {
  const hd_value_t *value = stored->value;
  int64_t bytes;
  if (!hd_storage_bytes(&no_sizes, &s->arena, param->tensor, &bytes))
    return hd_error(&s->context->diags, nowhere, HD_E0309, value->name);
  stored->slot =
      (hd_slot_t){.var = keep_param(s, value, param), .bytes = (size_t)bytes};
  return true;
}

bool hd_store_lay(hd_store_t *s, const hd_value_t *value, const hd_var_t *param,
                  hd_address_t address) {
  hd_stored_t *stored = hd_store_find(s, value);
  if (!stored->slot.var && !begin_slot(s, stored, param))
    return false;
  stored->borrowed = true;
  stored->slot.address = address;
  return true;
}

bool hd_store_place(hd_store_t *s, const hd_value_t *value,
                    const hd_var_t *param, bool fill) {
  hd_stored_t *stored = hd_store_find(s, value);
  if (stored->slot.address)
    return true;
  const hd_host_tensor_t *data = fill ? hd_store_fetch(s, value) : NULL;
  if ((fill && !data) || !begin_slot(s, stored, param))
    return false;
  if (fill && adopt(s, stored, data))
    return true;
  if (!s->device->ops->alloc(s->device, value->name, stored->slot.bytes,
                             &stored->slot.address))
    return false;
  if (!fill || upload(s, stored, data))
    return true;
  forget(s, stored); // The next run is not to find it there.
  return false;
}

void hd_store_give(hd_store_t *s, const hd_value_t *value, hd_store_t *to,
                   hd_slot_t *slot) {
  hd_stored_t *stored = hd_store_find(s, value);
  const hd_var_t *var = keep_param(to, value, stored->slot.var);
  // It has one owner, whatever unwinds.
  *slot = stored->slot;
  slot->var = var;
  stored->borrowed = true;
}

void hd_store_borrow(hd_store_t *s, const hd_value_t *value,
                     const hd_slot_t *slot) {
  hd_stored_t *stored = hd_store_find(s, value);
  stored->slot = *slot;
  stored->borrowed = true;
}

void hd_store_drop(hd_store_t *s, const hd_value_t *value) {
  hd_stored_t *stored = hd_store_find(s, value);
  if (stored->slot.address && !stored->borrowed && !stored->pinned)
    forget(s, stored);
}

bool hd_store_update(hd_store_t *s, const hd_value_t *value,
                     const hd_host_tensor_t *data) {
  hd_stored_t *stored = hd_store_find(s, value);
  stored->data = data;
  return !stored->slot.address || upload(s, stored, data);
}
