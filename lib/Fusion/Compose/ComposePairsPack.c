// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The nodes that put the columns of constants side by side.
#include "Fusion/Compose/ComposePairs.h"
#include "Graph/Names.h"

void hd_packer_begin(hd_packer_t *p, hd_composer_t *c) {
  p->c = c;
  hd_names_take(c->arena, &c->names, c->graph);
}

const hd_value_t *hd_pack_columns(hd_packer_t *p, hd_merged_t *packing,
                                  hd_loc_t loc) {
  hd_arena_t *arena = p->c->arena;
  const hd_task_value_t *matrix = packing->flat->outputs.data[0];
  const hd_task_t *task = hd_task_shared(arena, p->c->module, &p->tasks,
                                         packing->flat, packing->flat->name);
  const char *name =
      hd_arena_printf(arena, "%s_pairs", packing->inputs.data[0]->name);
  int64_t shape[HD_MAX_RANK];
  for (uint32_t i = 0; i < matrix->rank; i++)
    shape[i] = hd_flat_size(matrix, i);
  const hd_value_t *value =
      hd_value_make(arena, hd_name_unique(arena, &p->c->names, name),
                    matrix->type.scalar, shape, matrix->rank, loc);
  const hd_value_t **outputs = HD_ARENA_ARRAY(arena, const hd_value_t *, 1);
  outputs[0] = value;
  hd_node_t *node = HD_ARENA_NEW(arena, hd_node_t);
  *node = (hd_node_t){.op = task->name,
                      .task = task,
                      .loc = loc,
                      .num_inputs = (uint32_t)packing->inputs.size,
                      .inputs = packing->inputs.data,
                      .num_outputs = 1,
                      .outputs = outputs};
  hd_ptr_map_set(arena, &p->c->packed, value, node);
  return value;
}
