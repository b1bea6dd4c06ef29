// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Support/PtrMap.h"

#include <stdint.h>

static size_t slot_of(const hd_ptr_map_t *map, const void *key) {
  size_t i = ((uintptr_t)key >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20;
  i &= map->capacity - 1;
  while (map->slots[i].key && map->slots[i].key != key)
    i = (i + 1) & (map->capacity - 1);
  return i;
}

static void grow(hd_arena_t *arena, hd_ptr_map_t *map) {
  hd_ptr_map_t old = *map;
  map->capacity = old.capacity ? old.capacity * 2 : 32;
  map->slots = hd_arena_alloc(arena, map->capacity * sizeof(*map->slots));
  for (size_t i = 0; i < old.capacity; ++i)
    if (old.slots[i].key)
      map->slots[slot_of(map, old.slots[i].key)] = old.slots[i];
}

void hd_ptr_map_set(hd_arena_t *arena, hd_ptr_map_t *map, const void *key,
                    const void *value) {
  if (2 * (map->size + 1) > map->capacity)
    grow(arena, map);
  size_t i = slot_of(map, key);
  map->size += map->slots[i].key == NULL;
  map->slots[i].key = key;
  map->slots[i].value = value;
}

const void *hd_ptr_map_get(const hd_ptr_map_t *map, const void *key) {
  return map->capacity ? map->slots[slot_of(map, key)].value : NULL;
}

void *hd_ptr_map_find(const hd_ptr_map_t *map, const void *key) {
  union {
    const void *value;
    void *found;
  } u = {hd_ptr_map_get(map, key)};
  return u.found;
}
