// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory on the device for what goes from piece to piece. It stays from run to
// run, in blocks of powers of two, of which there are as many as one run has
// had at once. Under the sanitizer each is as large as what it holds, and ends
// with the run.
#include "Runtime/Trail.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_ROOM = 256 };

static size_t room_bytes(const hd_model_t *m, size_t bytes) {
  size_t room = LEAST_ROOM;
  if (m->options.keep_layouts)
    return bytes;
  while (room < bytes && room <= SIZE_MAX / 2)
    room *= 2;
  return room < bytes ? bytes : room;
}

static hd_room_t *find_room(hd_trail_t *trail, size_t bytes) {
  for (hd_room_t *room = trail->rooms; room; room = room->next)
    if (!room->taken && room->bytes == bytes)
      return room;
  return NULL;
}

hd_room_t *hd_trail_room(hd_model_t *m, const char *name, size_t bytes,
                         bool cleared) {
  hd_device_t *device = m->device;
  hd_trail_t *trail = m->trail;
  bytes = room_bytes(m, bytes);
  hd_room_t *room = find_room(trail, bytes);
  if (!room) {
    room = calloc(1, sizeof(*room));
    if (!room)
      hd_budget_exhausted(&device->context->budget, HD_EXHAUSTED_MEMORY);
    room->next = trail->rooms;
    room->taken = true; // While memory is looked for, others are freed.
    trail->rooms = room;
    if (!device->ops->alloc(device, name, bytes, &room->address) ||
        (cleared && bytes &&
         !device->ops->fill(device, room->address, 0, 1, bytes))) {
      room->taken = false;
      return NULL;
    }
    room->bytes = bytes;
  }
  room->taken = true;
  return room;
}

bool hd_trail_free_rooms(hd_model_t *m) {
  bool any = false;
  for (hd_room_t **at = &m->trail->rooms; *at;) {
    hd_room_t *room = *at;
    if (room->taken) {
      at = &room->next;
      continue;
    }
    *at = room->next;
    if (room->address)
      m->device->ops->free(m->device, room->address);
    free(room);
    any = true;
  }
  return any;
}

void hd_trail_leave_rooms(hd_model_t *m) {
  for (hd_room_t *room = m->trail->rooms; room; room = room->next)
    room->taken = false;
  if (m->options.keep_layouts)
    hd_trail_free_rooms(m);
}

const hd_host_tensor_t *hd_trail_fetch(hd_trail_run_t *r, size_t number) {
  hd_held_t *held = &r->held.data[number];
  hd_device_t *device = r->m->device;
  if (held->host)
    return held->host;
  hd_host_tensor_t *data = hd_host_tensor_make(
      &r->arena, held->type.type, held->type.shape, held->type.rank);
  if (data->bytes && !device->ops->download(device, data->data,
                                            held->room->address, data->bytes))
    return NULL;
  return held->host = data;
}

static size_t bytes_of(const hd_tensor_type_t *type) {
  size_t bytes = hd_host_element_bytes(type->type);
  for (unsigned i = 0; i < type->rank; i++)
    bytes *= (size_t)type->shape[i];
  return bytes;
}

bool hd_trail_place(hd_trail_run_t *r, size_t number, size_t bytes,
                    hd_address_t *address) {
  hd_held_t *held = &r->held.data[number];
  hd_device_t *device = r->m->device;
  size_t own = bytes_of(&held->type);
  if (!held->room || held->room->bytes < bytes) {
    hd_room_t *before = held->room;
    hd_room_t *room = hd_trail_room(r->m, "a value", bytes > own ? bytes : own,
                                    bytes > own || before);
    if (!room ||
        (before && own &&
         !device->ops->copy(device, room->address, before->address, own,
                            NULL)) ||
        (before && !device->ops->wait(device, NULL)) ||
        (!before && own &&
         !device->ops->upload(device, room->address, held->host->data, own)))
      return false;
    held->room = room;
  }
  *address = held->room->address;
  return true;
}
