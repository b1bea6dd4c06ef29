// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A map from pointers to pointers, in an arena.
#ifndef HIDET_SUPPORT_PTRMAP_H
#define HIDET_SUPPORT_PTRMAP_H

#include "Support/Arena.h"

typedef struct hd_ptr_map {
  struct {
    const void *key, *value;
  } *slots;
  size_t size, capacity;
} hd_ptr_map_t;

// A map of zeros is empty. key is not NULL; a later value replaces an earlier.
void hd_ptr_map_set(hd_arena_t *arena, hd_ptr_map_t *map, const void *key,
                    const void *value);
// NULL where there is none.
const void *hd_ptr_map_get(const hd_ptr_map_t *map, const void *key);
// The same, where what was set may be changed.
void *hd_ptr_map_find(const hd_ptr_map_t *map, const void *key);

#endif
