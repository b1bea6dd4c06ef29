// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Graph/Names.h"

const char *hd_name_unique(hd_arena_t *arena, hd_key_map_t *names,
                           const char *name) {
  unsigned *next; // Number for another one of that name.
  while ((next = hd_key_map_find_name(names, name)))
    name = hd_arena_printf(arena, "%s_%u", name, ++*next);
  hd_key_map_set_name(arena, names, name, HD_ARENA_NEW(arena, unsigned));
  return name;
}
