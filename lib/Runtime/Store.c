// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Runtime/Store.h"
#include "Runtime/Storage.h"
#include "Support/HostMemory.h"

static const hd_loc_t nowhere;
static const hd_env_t no_sizes; // Every shape is known.

static hd_context_t *context_of(const hd_store_t *s) {
  return s->module->context;
}

void hd_store_init(hd_store_t *s, hd_module_t *module, hd_device_t *device) {
  *s = (hd_store_t){.module = module, .device = device};
  hd_arena_init(&s->arena, &module->context->budget);
}

void hd_store_fini(hd_store_t *s) {
  for (size_t i = 0; i < s->stored.size; i++) {
    hd_stored_t *stored = s->stored.data[i];
    hd_host_tensor_fini(&stored->own);
    if (stored->slot.address)
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

static bool download(hd_store_t *s, hd_stored_t *stored) {
  hd_context_t *context = context_of(s);
  const hd_value_t *value = stored->value;
  hd_tensor_type_t type = {.type = value->type, .rank = (unsigned)value->rank};
  for (int i = 0; i < value->rank; i++)
    type.shape[i] = value->shape[i]->u.i;
  if (!stored->own.data &&
      !hd_host_tensor_init(&stored->own, &context->diags, &context->budget,
                           value->name, type.type, type.shape, type.rank))
    return false;
  const hd_tensor_t *like = stored->slot.var->tensor;
  if (hd_storage_is_plain(like))
    return s->device->ops->download(s->device, stored->own.data,
                                    stored->slot.address, stored->own.bytes);
  size_t bytes = stored->slot.bytes;
  unsigned char *storage = hd_host_memory_alloc(
      &context->diags, &context->budget, value->name, bytes);
  bool ok = storage &&
            s->device->ops->download(s->device, storage, stored->slot.address,
                                     bytes) &&
            hd_storage_unpack(&no_sizes, &s->arena, like, storage, bytes,
                              &stored->own);
  hd_host_memory_free(&context->budget, storage, bytes);
  return ok;
}

const hd_host_tensor_t *hd_store_fetch(hd_store_t *s, const hd_value_t *value) {
  hd_stored_t *stored = hd_store_find(s, value);
  if (!stored->data && value->constant)
    stored->data = hd_constant_load(s->module, value);
  else if (!stored->data && download(s, stored))
    stored->data = &stored->own;
  return stored->data;
}

static bool upload(hd_store_t *s, const hd_stored_t *stored,
                   const hd_host_tensor_t *data) {
  hd_context_t *context = context_of(s);
  const hd_slot_t *slot = &stored->slot;
  if (hd_storage_is_plain(slot->var->tensor))
    return s->device->ops->upload(s->device, slot->address, data->data,
                                  slot->bytes);
  unsigned char *storage = hd_host_memory_alloc(
      &context->diags, &context->budget, stored->value->name, slot->bytes);
  bool ok =
      storage &&
      hd_storage_pack(&no_sizes, &s->arena, slot->var->tensor, data, storage,
                      slot->bytes) &&
      s->device->ops->upload(s->device, slot->address, storage, slot->bytes);
  hd_host_memory_free(&context->budget, storage, slot->bytes);
  return ok;
}

// The parameter's type, which lives as long as the store.
static const hd_var_t *keep_param(hd_store_t *s, const hd_value_t *value,
                                  const hd_var_t *param) {
  hd_tensor_t *tensor = HD_ARENA_NEW(&s->arena, hd_tensor_t);
  *tensor = (hd_tensor_t){.element = param->tensor->element,
                          .rank = (uint32_t)value->rank,
                          .shape = value->shape};
  return hd_var_make_tensor(&s->arena, value->name, tensor, value->loc);
}

bool hd_store_place(hd_store_t *s, const hd_value_t *value,
                    const hd_var_t *param, bool fill) {
  hd_stored_t *stored = hd_store_find(s, value);
  int64_t bytes;
  if (stored->slot.address)
    return true;
  if (!hd_storage_bytes(&no_sizes, &s->arena, param->tensor, &bytes))
    return hd_error(&context_of(s)->diags, nowhere, HD_E0309, value->name);
  stored->slot =
      (hd_slot_t){.var = keep_param(s, value, param), .bytes = (size_t)bytes};
  if (!s->device->ops->alloc(s->device, value->name, (size_t)bytes,
                             &stored->slot.address))
    return false;
  if (!fill)
    return true;
  const hd_host_tensor_t *data = hd_store_fetch(s, value);
  return data && upload(s, stored, data);
}

bool hd_store_update(hd_store_t *s, const hd_value_t *value,
                     const hd_host_tensor_t *data) {
  hd_stored_t *stored = hd_store_find(s, value);
  stored->data = data;
  return !stored->slot.address || upload(s, stored, data);
}
