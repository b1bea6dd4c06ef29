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

static bool has_key(const hd_map_entry_t *entry, const void *key, size_t size) {
  return entry->key == key ||
         (size && entry->size == size && memcmp(entry->key, key, size) == 0);
}

// Where the key is, or is to be put.
static inline hd_map_place_t *place_of(const hd_map_table_t *table,
                                       uint32_t hash, const void *key,
                                       size_t size) {
  size_t last = table->capacity - 1;
  for (size_t i = hash & last;; i = (i + 1) & last) {
    hd_map_place_t *place = &table->places[i];
    if (!place->number ||
        (place->hash == hash &&
         has_key(&table->entries[place->number - 1], key, size)))
      return place;
  }
}

static const void *value_of(const hd_map_table_t *table, uint32_t hash,
                            const void *key, size_t size) {
  const hd_map_place_t *place = place_of(table, hash, key, size);
  return place->number ? table->entries[place->number - 1].value : NULL;
}

static bool is_full(const hd_map_table_t *table) {
  return 2 * table->size >= table->capacity;
}

static size_t next_capacity(const hd_map_table_t *table) {
  return table->capacity ? 2 * table->capacity : FIRST_CAPACITY;
}

static size_t growth(const hd_map_table_t *table) {
  return next_capacity(table) *
         (sizeof(hd_map_entry_t) / 2 + sizeof(hd_map_place_t));
}

static hd_map_entry_t *grow(hd_map_table_t *table, void *zeros) {
  const hd_map_table_t old = *table;
  table->capacity = next_capacity(&old);
  assert(table->capacity <= UINT32_MAX);
  table->entries = zeros;
  table->places = (hd_map_place_t *)(table->entries + table->capacity / 2);
  if (old.size)
    memcpy(table->entries, old.entries, old.size * sizeof *old.entries);
  size_t last = table->capacity - 1;
  for (size_t i = 0; i < old.capacity; i++) {
    if (!old.places[i].number)
      continue;
    size_t at = old.places[i].hash & last;
    while (table->places[at].number)
      at = (at + 1) & last;
    table->places[at] = old.places[i];
  }
  return old.entries;
}

static void set_value(hd_arena_t *arena, hd_map_table_t *table, uint32_t hash,
                      hd_map_entry_t entry) {
  if (is_full(table))
    grow(table, hd_arena_alloc(arena, growth(table)));
  hd_map_place_t *place = place_of(table, hash, entry.key, entry.size);
  if (place->number) {
    table->entries[place->number - 1].value = entry.value;
    return;
  }
  table->entries[table->size++] = entry;
  *place = (hd_map_place_t){hash, (uint32_t)table->size};
}

// --- By address ---

static uint32_t hash_of_pointer(const void *key) {
  assert(key);
  uint64_t mixed = (uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);
  return (uint32_t)(mixed >> 32);
}

bool hd_ptr_map_is_full(const hd_ptr_map_t *map) {
  return is_full(&map->table);
}

size_t hd_ptr_map_growth(const hd_ptr_map_t *map) {
  return growth(&map->table);
}

void *hd_ptr_map_grow(hd_ptr_map_t *map, void *zeros) {
  return grow(&map->table, zeros);
}

void hd_ptr_map_set(hd_arena_t *arena, hd_ptr_map_t *map, const void *key,
                    const void *value) {
  set_value(arena, &map->table, hash_of_pointer(key),
            (hd_map_entry_t){.key = key, .value = value});
}

const void *hd_ptr_map_get(const hd_ptr_map_t *map, const void *key) {
  if (!key || !map->table.size)
    return NULL;
  return value_of(&map->table, hash_of_pointer(key), key, 0);
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

static uint32_t hash_of_bytes(const hd_key_map_t *map, const void *key,
                              size_t size) {
  assert(size > 0 && size <= UINT32_MAX);
  return (uint32_t)XXH3_64bits_withSeed(key, size, map->seed);
}

void hd_key_map_set(hd_arena_t *arena, hd_key_map_t *map, const void *key,
                    size_t size, const void *value) {
  if (!map->table.capacity)
    map->seed = draw_seed();
  set_value(arena, &map->table, hash_of_bytes(map, key, size),
            (hd_map_entry_t){key, value, (uint32_t)size});
}

void *hd_key_map_find(const hd_key_map_t *map, const void *key, size_t size) {
  if (!map->table.size)
    return NULL;
  return changeable(
      value_of(&map->table, hash_of_bytes(map, key, size), key, size));
}

// The end of the text is part of the key, which so is never empty.
void hd_key_map_set_name(hd_arena_t *arena, hd_key_map_t *map, const char *name,
                         const void *value) {
  hd_key_map_set(arena, map, name, strlen(name) + 1, value);
}

void *hd_key_map_find_name(const hd_key_map_t *map, const char *name) {
  return hd_key_map_find(map, name, strlen(name) + 1);
}

uint64_t hd_hash(uint64_t hash, const void *data, size_t size) {
  return XXH3_64bits_withSeed(data, size, hash);
}
