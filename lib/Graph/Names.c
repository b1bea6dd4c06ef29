// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Graph/Names.h"

#include "IR/Graph/Task.h"
#include "IR/Text/Printer.h"

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

const hd_task_t *hd_task_shared(hd_arena_t *arena, hd_module_t *module,
                                hd_key_map_t *tasks, const hd_task_t *made,
                                const char *name) {
  hd_buffer_t text;
  hd_buffer_init_local(&text, arena->budget);
  hd_task_print(made, &text);
  hd_task_t *task = hd_key_map_find_name(tasks, hd_buffer_text(&text));
  if (!task) {
    task = HD_ARENA_NEW(arena, hd_task_t);
    hd_key_map_set_name(
        arena, tasks, hd_arena_strndup(arena, hd_buffer_text(&text), text.size),
        task);
    *task = *made;
    task->name = hd_module_fresh_name(arena, module, name);
    hd_item_t item = {.kind = HD_ITEM_TASK, .u.task = task};
    hd_vec_push(arena, &module->items, item);
  }
  hd_buffer_fini(&text);
  return task;
}
