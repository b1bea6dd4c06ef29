// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The hash table: from pointers, or from bytes, to pointers. A map of zeros is
// empty; what it takes lies in an arena, and what it has grown out of stays
// there until the arena ends. Nothing is taken out of a map, but a value may be
// set to NULL, which reads as what was never set.
//
// Names come from users' files, so bytes are hashed with a seed that each
// process draws anew: nobody can write a file whose names all fall together.
#ifndef HIDET_SUPPORT_MAP_H
#define HIDET_SUPPORT_MAP_H

#include "Support/Arena.h"

typedef struct hd_map_entry {
  const void *key;
  const void *value;
  uint32_t size; // Of a key of bytes; 0 of a pointer.
} hd_map_entry_t;

typedef struct hd_map_place {
  uint32_t hash;
  uint32_t number; // Of the entry, from 1 on; 0: free.
} hd_map_place_t;

// Entries stand in the order in which they came, which is mostly the one in
// which they are asked for, so that what is met at random is small.
typedef struct hd_map_table {
  hd_map_entry_t *entries; // Half as many as places, which follow them.
  hd_map_place_t *places;  // Open addressing.
  size_t size, capacity;   // Entries that there are; places.
} hd_map_table_t;

// By address. NULL is no key: it can be asked for, and is never there.
typedef struct hd_ptr_map {
  hd_map_table_t table;
} hd_ptr_map_t;

// A later value replaces an earlier. A map that is not full takes nothing of
// the arena, which then may be NULL.
void hd_ptr_map_set(hd_arena_t *arena, hd_ptr_map_t *map, const void *key,
                    const void *value);
// NULL where there is none.
const void *hd_ptr_map_get(const hd_ptr_map_t *map, const void *key);
// The same, where what was set may be changed.
void *hd_ptr_map_find(const hd_ptr_map_t *map, const void *key);
// For owners without an arena: before a key is set that was not, a map that is
// full is given as many bytes of zeros as it asks for, twice what it has, and
// returns what it had, or NULL.
bool hd_ptr_map_is_full(const hd_ptr_map_t *map);
size_t hd_ptr_map_growth(const hd_ptr_map_t *map);
void *hd_ptr_map_grow(hd_ptr_map_t *map, void *zeros);

// By what the key's bytes are: a name, or a struct without padding. The key
// that is set first lives as long as the map.
typedef struct hd_key_map {
  hd_map_table_t table;
  uint64_t seed;
} hd_key_map_t;

void hd_key_map_set(hd_arena_t *arena, hd_key_map_t *map, const void *key,
                    size_t size, const void *value);
void *hd_key_map_find(const hd_key_map_t *map, const void *key, size_t size);
// Keys that are text.
void hd_key_map_set_name(hd_arena_t *arena, hd_key_map_t *map, const char *name,
                         const void *value);
void *hd_key_map_find_name(const hd_key_map_t *map, const char *name);

// A hash of bytes that goes on from another one, 0 at first; the same in every
// process.
uint64_t hd_hash(uint64_t hash, const void *data, size_t size);

#endif
