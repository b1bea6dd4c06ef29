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

void hd_names_take(hd_arena_t *arena, hd_key_map_t *names,
                   const hd_graph_t *graph) {
  for (size_t i = 0; i < graph->inputs.size; i++)
    hd_name_unique(arena, names, graph->inputs.data[i]->name);
  for (size_t i = 0; i < graph->constants.size; i++)
    hd_name_unique(arena, names, graph->constants.data[i]->name);
  for (size_t i = 0; i < graph->nodes.size; i++)
    for (uint32_t k = 0; k < graph->nodes.data[i]->num_outputs; k++)
      if (graph->nodes.data[i]->outputs[k])
        hd_name_unique(arena, names, graph->nodes.data[i]->outputs[k]->name);
}
