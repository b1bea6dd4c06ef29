// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of values in another shape, zeros where it is larger.
#include "Fusion/Layout/LayoutState.h"
#include "Graph/Names.h"

const hd_task_t *hd_layouts_copying_task(hd_arena_t *arena,
                                         const hd_task_value_t *from,
                                         const int64_t *shape, unsigned rank,
                                         const hd_index_t *const *indices,
                                         const hd_term_t *const *places) {
  hd_scalar_t type = from->type.scalar;
  int64_t sizes[HD_MAX_RANK];
  const hd_term_t *operands[HD_MAX_RANK + 1];
  for (uint32_t i = 0; i < from->rank; i++) {
    sizes[i] = hd_flat_size(from, i);
    operands[i] = places[i];
  }
  operands[from->rank] = hd_type_is_float(hd_type(type))
                             ? hd_flat_float(arena, type, 0)
                             : hd_flat_int(arena, type, 0);
  const hd_task_value_t *x =
      hd_flat_value_make(arena, "x", HD_VALUE_INPUT, type, sizes, from->rank);
  const hd_task_value_t *y =
      hd_flat_value_make(arena, "y", HD_VALUE_OUTPUT, type, shape, rank);
  hd_term_t *load =
      hd_term_make(arena, HD_TERM_LOADELSE, x->type, operands, from->rank + 1);
  load->u.value = x;
  hd_task_t *task = HD_ARENA_NEW(arena, hd_task_t);
  hd_vec_push(arena, &task->inputs, x);
  hd_vec_push(arena, &task->outputs, y);
  hd_vec_push(arena, &task->definitions,
              (const hd_definition_t *)hd_flat_define(arena, y, indices, load));
  return task;
}

const hd_value_t *hd_layouts_put_copy(hd_layouts_t *l, const hd_value_t *value,
                                      const hd_task_t *task, const char *what,
                                      hd_loc_t loc) {
  const hd_task_value_t *made = task->outputs.data[0];
  int64_t shape[HD_MAX_RANK];
  for (uint32_t i = 0; i < made->rank; i++)
    shape[i] = hd_flat_size(made, i);
  const hd_value_t *copy = hd_layouts_value(l, value, shape, made->rank, what);
  const hd_task_t *known =
      hd_task_shared(l->arena, l->module, &l->tasks, task,
                     hd_arena_printf(l->arena, "copy_%s", what));
  const hd_node_t *node =
      hd_node_between(l->arena, known->name, known, value, copy, NULL, loc);
  hd_vec_push(l->arena, &l->made->nodes, node);
  return copy;
}
