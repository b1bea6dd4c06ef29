// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Support/Map.h"

#include <assert.h>
#include <string.h>
#include <sys/auxv.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { FIRST_CAPACITY = 32 };

// The kernel leaves 16 random bytes beside the process's environment.
static uint64_t draw_seed(void) {
  const void *random = (const void *)(uintptr_t)getauxval(AT_RANDOM);
  uint64_t seed = 0;
  if (random)
    memcpy(&seed, random, sizeof seed);
  return seed;
}

// --- The table ---

static bool has_key(const hd_map_slot_t *slot, const hd_map_slot_t *key) {
  return slot->key == key->key ||
         (key->size && slot->hash == key->hash && slot->size == key->size &&
          memcmp(slot->key, key->key, key->size) == 0);
}

// Where the key is, or is to be put.
static inline hd_map_slot_t *slot_of(const hd_map_table_t *table,
                                     const hd_map_slot_t *key) {
  size_t last = table->capacity - 1;
  for (size_t i = key->hash & last;; i = (i + 1) & last) {
    hd_map_slot_t *slot = &table->slots[i];
    if (!slot->key || has_key(slot, key))
      return slot;
  }
}

static bool is_full(const hd_map_table_t *table) {
  return 2 * (table->size + 1) > table->capacity;
}

static size_t next_capacity(const hd_map_table_t *table) {
  return table->capacity ? 2 * table->capacity : FIRST_CAPACITY;
}

static hd_map_slot_t *grow(hd_map_table_t *table, hd_map_slot_t *zeros) {
  const hd_map_table_t old = *table;
  table->slots = zeros;
  table->capacity = next_capacity(&old);
  for (size_t i = 0; i < old.capacity; i++)
    if (old.slots[i].key)
      *slot_of(table, &old.slots[i]) = old.slots[i];
  return old.slots;
}

static void set_slot(hd_map_table_t *table, hd_map_slot_t entry) {
  hd_map_slot_t *slot = slot_of(table, &entry);
  if (slot->key) {
    slot->value = entry.value;
    return;
  }
  table->size++;
  *slot = entry;
}

// --- By address ---

static hd_map_slot_t pointer_key(const void *key) {
  assert(key);
  uint64_t mixed = (uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);
  return (hd_map_slot_t){.key = key, .hash = (uint32_t)(mixed >> 32)};
}

bool hd_ptr_map_is_full(const hd_ptr_map_t *map) {
  return is_full(&map->table);
}

size_t hd_ptr_map_growth(const hd_ptr_map_t *map) {
  return next_capacity(&map->table) * sizeof(hd_map_slot_t);
}

void *hd_ptr_map_grow(hd_ptr_map_t *map, void *zeros) {
  return grow(&map->table, zeros);
}

void hd_ptr_map_set(hd_arena_t *arena, hd_ptr_map_t *map, const void *key,
                    const void *value) {
  if (is_full(&map->table))
    grow(&map->table, hd_arena_alloc(arena, hd_ptr_map_growth(map)));
  hd_map_slot_t entry = pointer_key(key);
  entry.value = value;
  set_slot(&map->table, entry);
}

const void *hd_ptr_map_get(const hd_ptr_map_t *map, const void *key) {
  if (!key || !map->table.size)
    return NULL;
  const hd_map_slot_t wanted = pointer_key(key);
  return slot_of(&map->table, &wanted)->value;
}

// The caller set it, and knows that it may be changed.
static void *changeable(const void *value) {
  union {
    const void *value;
    void *found;
  } u = {value};
  return u.found;
}

void *hd_ptr_map_find(const hd_ptr_map_t *map, const void *key) {
  return changeable(hd_ptr_map_get(map, key));
}

// --- By bytes ---

static hd_map_slot_t bytes_key(const hd_key_map_t *map, const void *key,
                               size_t size) {
  assert(size > 0 && size <= UINT32_MAX);
  return (hd_map_slot_t){
      .key = key,
      .size = (uint32_t)size,
      .hash = (uint32_t)XXH3_64bits_withSeed(key, size, map->seed)};
}

void hd_key_map_set(hd_arena_t *arena, hd_key_map_t *map, const void *key,
                    size_t size, const void *value) {
  if (!map->table.capacity)
    map->seed = draw_seed();
  if (is_full(&map->table))
    grow(&map->table, hd_arena_alloc(arena, next_capacity(&map->table) *
                                                sizeof(hd_map_slot_t)));
  hd_map_slot_t entry = bytes_key(map, key, size);
  entry.value = value;
  set_slot(&map->table, entry);
}

void *hd_key_map_find(const hd_key_map_t *map, const void *key, size_t size) {
  if (!map->table.size)
    return NULL;
  const hd_map_slot_t wanted = bytes_key(map, key, size);
  return changeable(slot_of(&map->table, &wanted)->value);
}

// The end of the text is part of the key, which so is never empty.
void hd_key_map_set_name(hd_arena_t *arena, hd_key_map_t *map, const char *name,
                         const void *value) {
  hd_key_map_set(arena, map, name, strlen(name) + 1, value);
}

void *hd_key_map_find_name(const hd_key_map_t *map, const char *name) {
  return hd_key_map_find(map, name, strlen(name) + 1);
}
