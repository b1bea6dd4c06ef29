// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Graph/Names.h"

#include <string.h>
// An arena serves uthash as well as the heap.
#define uthash_malloc(size) hd_arena_alloc(arena, size)
#define uthash_free(pointer, size) ((void)(pointer), (void)(size))
#include <uthash.h>

struct hd_names {
  const char *name;
  unsigned next; // Number for another one of that name.
  UT_hash_handle hh;
};

const char *hd_name_unique(hd_arena_t *arena, hd_names_t **names,
                           const char *name) {
  for (;;) {
    hd_names_t *entry;
    HASH_FIND_STR(*names, name, entry);
    if (!entry) {
      entry = HD_ARENA_NEW(arena, hd_names_t);
      entry->name = name;
      HASH_ADD_KEYPTR(hh, *names, name, strlen(name), entry);
      return name;
    }
    name = hd_arena_printf(arena, "%s_%u", name, ++entry->next);
  }
}
