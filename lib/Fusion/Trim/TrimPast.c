// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a block past an extent still has to do: its stores of constants, and
// what these need, names and the loops and conditions around them.
//
//   for i, j in m on thread {                    for i, j in m on thread {
//     total = part[i, j]                     ->
//     let at = row + i                             let at = row + i
//     yield a[at, j] <- at < extents[0] ? total : 0    a[at, j] = 0
//   }                                            }
#include "Fusion/Trim/TrimState.h"

#include "IR/Effects.h"

typedef struct slicer {
  hd_trim_t *trim;
  hd_ptr_map_t gone; // Variables that are not there.
} slicer_t;

static bool is_there(void *argument, const hd_expr_t *e) {
  const slicer_t *s = argument;
  bool names = e->kind == HD_EXPR_VAR || e->kind == HD_EXPR_TENSOR ||
               hd_expr_is_access(e);
  return !names || !hd_ptr_map_get(&s->gone, e->u.var);
}

static bool may_keep(slicer_t *s, const hd_expr_t *e) {
  return !e || (hd_expr_is_pure(e) && hd_walk_expr(e, is_there, s));
}

static hd_block_t slice(slicer_t *s, hd_block_t block, bool *stores);

static void fail(slicer_t *s) {
  if (!s->trim->why)
    s->trim->why = "what it stores past an extent depends on what it computes";
}

static void push_store(slicer_t *s, const hd_stmt_t *stmt, const hd_var_t *var,
                       const hd_expr_t *const *indices, unsigned count,
                       hd_stmt_list_t *out) {
  hd_arena_t *arena = s->trim->arena;
  hd_stmt_t *store = hd_stmt_make(arena, HD_STMT_STORE, stmt->loc);
  store->u.store.var = var;
  store->u.store.num_indices = count;
  store->u.store.indices = indices;
  store->u.store.value = hd_ptr_map_get(&s->trim->kept, stmt);
  for (unsigned i = 0; i < count; i++)
    if (!may_keep(s, indices[i]))
      fail(s);
  hd_stmt_list_push(arena, out, store);
}

// What is outside is left out, as the point does.
static void push_yield(slicer_t *s, const hd_stmt_t *stmt,
                       hd_stmt_list_t *out) {
  const hd_expr_t *place = stmt->u.point.place;
  hd_stmt_t *point = hd_stmt_make(s->trim->arena, HD_STMT_POINT, stmt->loc);
  point->u.point.kind = HD_POINT_YIELD;
  point->u.point.buffers = 1;
  point->u.point.place = place;
  point->u.point.value = hd_ptr_map_get(&s->trim->kept, stmt);
  for (unsigned i = 0; i < place->num_operands; i++)
    if (!may_keep(s, place->operands[i]))
      fail(s);
  hd_stmt_list_push(s->trim->arena, out, point);
}

// A statement with blocks, kept for the stores in them.
static bool slice_blocks(slicer_t *s, const hd_stmt_t *stmt,
                         hd_stmt_list_t *out) {
  hd_stmt_t *copy = hd_stmt_copy(s->trim->arena, stmt);
  bool stores = false, may = true;
  switch ((hd_stmt_kind_t)stmt->kind) {
  case HD_STMT_IF:
    may = may_keep(s, stmt->u.branch.condition);
    copy->u.branch.then = slice(s, stmt->u.branch.then, &stores);
    copy->u.branch.otherwise = slice(s, stmt->u.branch.otherwise, &stores);
    break;
  case HD_STMT_FOR:
    may = may_keep(s, stmt->u.loop.first) && may_keep(s, stmt->u.loop.limit) &&
          may_keep(s, stmt->u.loop.step);
    copy->u.loop.body = slice(s, stmt->u.loop.body, &stores);
    break;
  case HD_STMT_MAPFOR:
    may = may_keep(s, stmt->u.mapfor.worker);
    copy->u.mapfor.body = slice(s, stmt->u.mapfor.body, &stores);
    break;
  default: // A while.
    may = false;
    slice(s, stmt->u.branch.then, &stores);
    break;
  }
  if (stores && !may)
    fail(s);
  if (stores)
    hd_stmt_list_push(s->trim->arena, out, copy);
  return stores;
}

// Whether it stores.
static bool slice_stmt(slicer_t *s, const hd_stmt_t *stmt,
                       hd_stmt_list_t *out) {
  hd_arena_t *arena = s->trim->arena;
  bool stored = hd_ptr_map_get(&s->trim->kept, stmt) != NULL;
  switch ((hd_stmt_kind_t)stmt->kind) {
  case HD_STMT_LET:
    if (may_keep(s, stmt->u.let.value))
      hd_stmt_list_push(arena, out, stmt);
    else
      hd_ptr_map_set(arena, &s->gone, stmt->u.let.var, stmt);
    return false;
  case HD_STMT_DECLARE:
    hd_ptr_map_set(arena, &s->gone, stmt->u.declare.var, stmt);
    return false;
  case HD_STMT_STORE:
    if (stored)
      push_store(s, stmt, stmt->u.store.var, stmt->u.store.indices,
                 stmt->u.store.num_indices, out);
    return stored;
  case HD_STMT_POINT: {
    if (stored)
      push_yield(s, stmt, out);
    return stored;
  }
  case HD_STMT_IF:
  case HD_STMT_FOR:
  case HD_STMT_MAPFOR:
  case HD_STMT_WHILE:
    return slice_blocks(s, stmt, out);
  case HD_STMT_ASSERT:
  case HD_STMT_EVAL:
  case HD_STMT_RETURN:
  case HD_STMT_BREAK:
  case HD_STMT_CONTINUE:
  case HD_STMT_PRINT:
  case HD_STMT_LAUNCH:
  case HD_STMT_COUNT:
    break;
  }
  return false;
}

static hd_block_t slice(slicer_t *s, hd_block_t block, bool *stores) {
  hd_stmt_list_t out = {0};
  bool any = false;
  for (uint32_t i = 0; i < block.size && !s->trim->why; i++)
    any |= slice_stmt(s, block.stmts[i], &out);
  *stores |= any;
  return hd_block_make(s->trim->arena, out.data, any ? out.size : 0);
}

hd_block_t hd_trim_past(hd_trim_t *trim, hd_block_t block) {
  slicer_t s = {.trim = trim};
  bool stores = false;
  hd_block_t sliced = slice(&s, block, &stores);
  hd_rewriter_t rewriter = {.arena = trim->arena,
                            .declare = hd_rewriter_copy_var};
  return stores ? hd_rewrite_block(&rewriter, sliced) : (hd_block_t){0};
}
