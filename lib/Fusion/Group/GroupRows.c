// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows behind an anchor: a task of reductions over a few neighbours of what a
// group computes, numbers for them and values for each,
//
//   mean[i, t]     = sum(q) x[i, t, q] / 32
//   y[i, t, q]     = x[i, t, q] - mean[i, t]
//
// where x[i, t, q] is, in row-major order, the element that the anchor's kernel
// stores. Such a kernel has neighbours side by side: where its text says in
// which lanes (across), the rows are combined there (Join/JoinRows.c).
#include "Fusion/Group/GroupRows.h"
#include "Fusion/Group/GroupState.h"
#include "IR/Graph/Loop.h"

enum { LONGEST = 1024 };

// The only live value that a node reads, and nothing else; NULL: it does not.
static const hd_value_t *only_input(const hd_group_t *g,
                                    const hd_node_t *node) {
  return node->num_inputs == 1 && hd_group_store(g, node->inputs[0])
             ? node->inputs[0]
             : NULL;
}

static bool is_index(const hd_term_t *term, const hd_index_t *index) {
  return term->kind == HD_TERM_INDEX && term->u.index == index;
}

// Whether the rows are the input's last axis, the others counted in order, and
// all that is read of it is the element at hand.
static bool are_plain(const hd_rows_t *rows, const hd_task_value_t *input) {
  const hd_row_step_t *main = rows->main;
  if (!main || main->term->kind != HD_TERM_LOAD ||
      main->term->u.value != input || rows->element.count != 1)
    return false;
  unsigned next = 0, count = rows->row.count;
  for (uint32_t i = 0; i < input->rank; i++) {
    if (hd_flat_size(input, i) == 1)
      continue;
    if (next > count || !is_index(main->term->operands[i],
                                  next < count ? rows->row.indices[next]
                                               : rows->element.indices[0]))
      return false;
    next++;
  }
  for (size_t i = 0; i < rows->steps.size; i++)
    if (rows->steps.data[i] != main &&
        hd_flat_reads(rows->steps.data[i]->term, input))
      return false;
  return next == count + 1;
}

bool hd_group_rows_find(hd_arena_t *arena, const hd_task_t *flat,
                        hd_rows_t *rows) {
  int64_t length;
  return flat->inputs.size == 1 &&
         hd_rows_find(arena, flat, 0, flat->definitions.size, rows) &&
         !rows->ordered && hd_rows_order(rows) &&
         are_plain(rows, flat->inputs.data[0]) &&
         (length = rows->element.points) >= 2 && length <= LONGEST &&
         (length & (length - 1)) == 0;
}

// Whether a value's element lies where the anchor's own does.
static bool keeps_order(const hd_group_t *g, const hd_store_point_t *store,
                        const hd_value_t *value) {
  const hd_epilogue_t *e = hd_ptr_map_get(&g->placed, value);
  hd_tensor_type_t own = hd_scheduled_type(value);
  hd_tensor_type_t type = hd_scheduled_type(store->value);
  return !e || (e->scope == 0 && !e->map.condition &&
                hd_index_same_number(
                    g->fusion->arena,
                    &(hd_index_place_t){own.rank, own.shape, e->map.places},
                    &(hd_index_place_t){type.rank, type.shape, store->places}));
}

const char *hd_group_add_rows(hd_group_t *g, const hd_node_t *node) {
  hd_arena_t *arena = g->fusion->arena;
  const hd_value_t *value = only_input(g, node);
  if (!value || !node->task || node->schedule || hd_node_is_loop(node))
    return "it does not read what the group computes, and that alone";
  hd_store_point_t *store = hd_ptr_map_find(&g->live, value);
  const hd_flattened_t *flattened = hd_fusion_flatten(g->fusion, node);
  hd_rows_t rows;
  if (!flattened || !hd_group_rows_find(arena, flattened->flat, &rows))
    return "it is not made of few neighbours";
  if (store->rows)
    return "other rows are computed there";
  if (!keeps_order(g, store, value))
    return "its rows are not where their elements are stored";
  const char *why = hd_group_count(g, node, false, UINT64_MAX);
  if (why)
    return why;
  store->rows = node;
  for (uint32_t i = 0; i < node->num_outputs; i++)
    if (node->outputs[i])
      hd_ptr_map_set(arena, &g->values, flattened->flat->outputs.data[i],
                     node->outputs[i]);
  return NULL;
}

void hd_group_drop_rows(hd_group_t *g, const hd_node_t *node) {
  hd_store_point_t *store = hd_ptr_map_find(&g->live, node->inputs[0]);
  store->rows = NULL;
  hd_group_uncount(g, node);
}
