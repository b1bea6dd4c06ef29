// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Part of pass lower-points: elements that pass through registers, several at a
// time.
#include "TaskMapping/Points.h"

#include <string.h>

// So many loads of a thread are under way at once: of global memory, and of
// shared memory, from where results leave.
enum { MAX_BATCH = 16, MAX_LEAVING = 8 };

static bool count_node(void *argument, const hd_expr_t *e) {
  (void)e;
  ++*(int64_t *)argument;
  return true;
}

// Of long values fewer: each is a copy of the code.
static int64_t batch_of(const hd_tile_t *tile) {
  enum { LONG = 80 };
  const hd_expr_t *value = tile->point->u.point.value;
  int64_t nodes = 0;
  if (tile->point->u.point.kind == HD_POINT_YIELD)
    return MAX_LEAVING;
  hd_walk_expr(value, count_node, &nodes);
  return nodes > LONG ? MAX_BATCH / 4 : MAX_BATCH;
}

// A mapping repeat * ... in two: repeat(outer) on its own, and what is left,
// with so many rounds at most. False where it is no such mapping.
static bool divide_rounds(hd_arena_t *arena, const hd_mapping_t *m,
                          int64_t most, const hd_mapping_t **outer,
                          const hd_mapping_t **inner) {
  if (m->kind != HD_MAPPING_COMPOSE || m->left->kind != HD_MAPPING_REPEAT ||
      m->left->order)
    return false;
  int64_t rounds[HD_MAPPING_MAX_RANK], batch[HD_MAPPING_MAX_RANK], count = 1;
  for (unsigned a = m->rank; a-- > 0;) {
    int64_t all = m->left->dims[a];
    batch[a] = all < most / count ? all : most / count;
    while (all % batch[a])
      batch[a]--;
    rounds[a] = all / batch[a];
    count *= batch[a];
  }
  *outer = hd_mapping_repeat(arena, rounds, NULL, m->rank);
  *inner = hd_mapping_compose(
      arena, hd_mapping_repeat(arena, batch, NULL, m->rank), m->right);
  return count > 1 && *outer && *inner;
}

// An element of the tile for each worker, by a loop of its own.
static hd_stmt_t *make_loop(hd_point_lowering_t *l, const hd_tile_t *tile,
                            const hd_mapping_t *mapping, int32_t unroll,
                            const hd_expr_t **values) {
  hd_stmt_t *loop = hd_stmt_copy(l->arena, tile->loop);
  const hd_var_t **vars =
      HD_ARENA_ARRAY(l->arena, const hd_var_t *, mapping->rank);
  for (unsigned a = 0; a < mapping->rank; ++a) {
    const hd_var_t *old = tile->loop->u.mapfor.vars[a];
    vars[a] =
        hd_var_make(l->arena, old->name, HD_VAR_LOOP, old->type, old->loc);
    values[a] = hd_expr_var(l->arena, vars[a]);
  }
  loop->u.mapfor.vars = vars;
  loop->u.mapfor.mapping = mapping;
  loop->u.mapfor.worker = mapping->workers == 1 ? NULL : tile->worker;
  loop->u.mapfor.unroll = unroll;
  return loop;
}

static const hd_expr_t *at_tasks(const hd_tile_t *tile, const hd_expr_t *e,
                                 const hd_expr_t *const *tasks) {
  hd_rewriter_t rewriter = {.arena = tile->l->arena};
  for (unsigned a = 0; a < tile->mapping->rank; ++a)
    hd_rewriter_substitute(&rewriter, tile->loop->u.mapfor.vars[a], tasks[a]);
  return hd_rewrite_expr(&rewriter, e);
}

// A register for each element of a batch that a worker has.
static hd_var_t *make_batch(hd_point_lowering_t *l, const hd_tile_t *tile,
                            const hd_mapping_t *inner) {
  hd_type_t type = tile->point->u.point.place->type;
  const hd_layout_t *layout = hd_layout_make(
      l->arena, (hd_layout_item_t){.kind = HD_LAYOUT_LOCAL, .mapping = inner});
  const hd_expr_t **shape =
      HD_ARENA_ARRAY(l->arena, const hd_expr_t *, inner->rank);
  for (unsigned a = 0; a < inner->rank; ++a)
    shape[a] = hd_expr_i32(l->arena, inner->dims[a]);
  hd_tensor_t *tensor = HD_ARENA_NEW(l->arena, hd_tensor_t);
  *tensor = (hd_tensor_t){.element = type,
                          .scope = HD_SCOPE_REGISTER,
                          .rank = inner->rank,
                          .shape = shape,
                          .layout = layout};
  return hd_var_make_tensor(l->arena, "batch", tensor, tile->point->loc);
}

// What comes is there for all of a tile; what leaves is where it is inside.
static hd_block_t store_element(const hd_tile_t *tile, const hd_expr_t *place,
                                const hd_expr_t *value) {
  hd_stmt_list_t list = {0};
  hd_push_if(tile,
             tile->point->u.point.kind == HD_POINT_YIELD
                 ? hd_inside(tile->l, place, NULL)
                 : NULL,
             hd_block_of_one(tile->l->arena, hd_make_store(tile, place, value)),
             (hd_block_t){0}, &list);
  return hd_block_of(tile->l->arena, &list);
}

// Through registers, a batch at a time: its loads are asked for before the
// first of them is stored.
//
//   for i0, p0 in repeat(4, 1) unroll(1) {
//     register batch: f16[32, 8] layout(local(M))
//     for i, p in M on thread unroll { batch[i, p] = a[...] else 0 }
//     for i, p in M on thread unroll { s[...] = batch[i, p] }
//   }
bool hd_push_in_batches(const hd_tile_t *tile, const hd_mapping_t *mapping,
                        const hd_expr_t *loaded, hd_stmt_list_t *out) {
  hd_point_lowering_t *l = tile->l;
  const hd_mapping_t *outer, *inner;
  const hd_expr_t *rounds[HD_MAPPING_MAX_RANK], *at[HD_MAPPING_MAX_RANK];
  if (!divide_rounds(l->arena, mapping, batch_of(tile), &outer, &inner))
    return false;
  hd_var_t *batch = make_batch(l, tile, inner);
  hd_stmt_t *declare =
      hd_stmt_make(l->arena, HD_STMT_DECLARE, tile->point->loc);
  declare->u.declare.var = batch;
  hd_stmt_list_t body = {0};
  hd_stmt_list_push(l->arena, &body, declare);
  hd_stmt_t *loop = make_loop(l, tile, outer, 1, rounds);
  for (int stores = 0; stores < 2; stores++) {
    hd_stmt_t *each = make_loop(l, tile, inner, HD_UNROLL_FULL, at);
    const hd_expr_t *tasks[HD_MAPPING_MAX_RANK];
    for (unsigned a = 0; a < inner->rank; ++a)
      tasks[a] =
          hd_expr_binary(l->arena, HD_EXPR_ADD,
                         hd_expr_binary(l->arena, HD_EXPR_MUL, rounds[a],
                                        hd_expr_i32(l->arena, inner->dims[a])),
                         at[a]);
    const hd_expr_t *value = at_tasks(tile, loaded, tasks);
    const hd_expr_t *cell =
        hd_expr_access(l->arena, HD_EXPR_LOAD, batch, 1, at, inner->rank);
    const hd_expr_t *place = at_tasks(tile, tile->point->u.point.place, tasks);
    each->u.mapfor.body =
        stores ? store_element(tile, place, cell)
               : hd_block_of_one(l->arena, hd_make_store(tile, cell, value));
    hd_stmt_list_push(l->arena, &body, each);
  }
  loop->u.mapfor.body = hd_block_of(l->arena, &body);
  hd_stmt_list_push(l->arena, out, loop);
  return true;
}
