// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that yield pairs.
//
//   for i, j in M * repeat(1, 4) on w {
//     yield c[row + i, column + j] <- sum[i, j] in early[i, j] through s[i, j]
//   }
//
// becomes
//
//   for i, j in M * repeat(1, 2) on w {
//     yield d[row + i, column / 2 + j] <- f32x2(sum[i, 2 * j], sum[i, 2 * j +
//     1])
//       in early[i, 2 * j] through s[i, j]
//   }
//
// as long as column is even: a thread has both of a pair.
#include "Schedule/Product/Pairs.h"

#include "IR/Rewrite.h"
#include "TaskMapping/Points.h"

#include <string.h>

typedef struct pairer {
  hd_point_lowering_t l;
  const hd_var_t *from, *to;
  const hd_var_t *staging, *half; // What half its rows takes the place of;
                                  // NULL: staging stays.
  unsigned points, uses;          // Of the staging.
} pairer_t;

static const hd_expr_t *operate(const pairer_t *p, hd_expr_kind_t op,
                                const hd_expr_t *x, int64_t y) {
  return hd_expr_binary(p->l.arena, op, x, hd_expr_int(p->l.arena, x->type, y));
}

// e with another value for a variable; e may be NULL.
static const hd_expr_t *with_value(const pairer_t *p, const hd_expr_t *e,
                                   const hd_var_t *var,
                                   const hd_expr_t *value) {
  hd_rewriter_t rewriter = {.arena = p->l.arena};
  hd_rewriter_substitute(&rewriter, var, value);
  return e ? hd_rewrite_expr(&rewriter, e) : NULL;
}

static const hd_expr_t *both(const pairer_t *p, const hd_stmt_t *point,
                             const hd_var_t *var, const hd_expr_t *even) {
  hd_scalar_t type = (hd_scalar_t)point->u.point.place->type.scalar;
  const hd_expr_t *value = point->u.point.value, *lanes[2];
  if (point->u.point.kind == HD_POINT_EXPECT)
    return hd_expect_value(p->l.arena, hd_type_vector(type, 2));
  lanes[0] = with_value(p, value, var, even);
  lanes[1] = with_value(p, value, var, operate(p, HD_EXPR_ADD, even, 1));
  return hd_expr_make(p->l.arena, HD_EXPR_VECTOR, hd_type_vector(type, 2), NULL,
                      lanes, 2);
}

static const hd_expr_t *half_staging(const pairer_t *p,
                                     const hd_expr_t *staging) {
  return staging && p->half
             ? hd_expr_access(p->l.arena, HD_EXPR_REF, p->half, 1,
                              staging->operands, staging->num_operands)
             : staging;
}

// The point of pairs for a tile, whose last variable becomes `var`.
static const hd_stmt_t *pair_point(const pairer_t *p, const hd_tile_t *tile,
                                   const hd_tile_window_t *window,
                                   const hd_var_t *var) {
  hd_arena_t *arena = p->l.arena;
  const hd_expr_t *place = tile->point->u.point.place, *at[HD_MAX_RANK];
  const hd_var_t *old = tile->loop->u.mapfor.vars[tile->mapping->rank - 1];
  const hd_expr_t *number = hd_expr_var(arena, var);
  const hd_expr_t *even = operate(p, HD_EXPR_MUL, number, 2);
  uint32_t last = place->num_operands - 1;
  memcpy(at, place->operands, last * sizeof(at[0]));
  at[last] = window->base[last]
                 ? hd_expr_binary(
                       arena, HD_EXPR_ADD,
                       operate(p, HD_EXPR_DIV, window->base[last], 2), number)
                 : number;
  hd_stmt_t *point = hd_stmt_copy(arena, tile->point);
  point->u.point.place =
      hd_expr_access(arena, HD_EXPR_REF, p->to, 1, at, last + 1);
  point->u.point.value = both(p, tile->point, old, even);
  point->u.point.early = with_value(p, point->u.point.early, old, even);
  point->u.point.staging =
      half_staging(p, with_value(p, point->u.point.staging, old, number));
  return point;
}

// The loop of pairs in a tile's place; NULL: what is yielded is no pairs.
static const hd_stmt_t *pair_tile(pairer_t *p, hd_tile_t *tile) {
  hd_arena_t *arena = p->l.arena;
  hd_tile_window_t window;
  uint32_t rank = tile->mapping->rank;
  const hd_mapping_t *half = hd_mapping_divide(arena, tile->mapping, 2);
  const hd_expr_t *place = tile->point->u.point.place;
  if (!half || !hd_tile_window_find(tile, place, &window) ||
      window.axis[place->num_operands - 1] != (int)rank - 1)
    return NULL;
  const hd_expr_t *base = window.base[place->num_operands - 1];
  if (base && hd_facts_divisor(p->l.facts, base) % 2 != 0)
    return NULL;
  hd_stmt_t *loop = hd_stmt_copy(arena, tile->loop);
  const hd_var_t **vars = HD_ARENA_ARRAY(arena, const hd_var_t *, rank);
  const hd_var_t *old = loop->u.mapfor.vars[rank - 1];
  memcpy(vars, loop->u.mapfor.vars, rank * sizeof(*vars));
  vars[rank - 1] =
      hd_var_make(arena, old->name, HD_VAR_LOOP, old->type, old->loc);
  const hd_stmt_t *point = pair_point(p, tile, &window, vars[rank - 1]);
  loop->u.mapfor.vars = vars;
  loop->u.mapfor.mapping = half;
  loop->u.mapfor.body = hd_block_make(arena, &point, 1);
  return loop;
}

static bool enter(hd_rewriter_t *rewriter, const hd_stmt_t *stmt,
                  hd_stmt_list_t *out) {
  pairer_t *p = rewriter->argument;
  if (stmt->kind == HD_STMT_LET)
    hd_facts_let(p->l.facts, stmt->u.let.var, stmt->u.let.value);
  if (p->half && stmt->kind == HD_STMT_DECLARE &&
      stmt->u.declare.var == p->staging) {
    hd_stmt_t *declare = hd_stmt_copy(p->l.arena, stmt);
    declare->u.declare.var = p->half;
    hd_stmt_list_push(p->l.arena, out, declare);
    return true;
  }
  if (stmt->kind != HD_STMT_MAPFOR || stmt->u.mapfor.body.size != 1 ||
      stmt->u.mapfor.body.stmts[0]->kind != HD_STMT_POINT)
    return false;
  hd_tile_t tile = {.l = &p->l,
                    .point = stmt->u.mapfor.body.stmts[0],
                    .loop = stmt,
                    .mapping = stmt->u.mapfor.mapping};
  const hd_stmt_t *loop =
      tile.point->u.point.place->u.var == p->from ? pair_tile(p, &tile) : NULL;
  if (loop)
    hd_stmt_list_push(p->l.arena, out, loop);
  return loop;
}

static bool is_other_expr(void *argument, const hd_expr_t *e) {
  const pairer_t *p = argument;
  bool names = hd_expr_is_access(e) || e->kind == HD_EXPR_TENSOR;
  return !names || e->u.var != p->from;
}

static bool is_other_stmt(void *argument, const hd_stmt_t *stmt) {
  const pairer_t *p = argument;
  return stmt->kind != HD_STMT_STORE || stmt->u.store.var != p->from;
}

// The tensor with half as long rows; NULL: they are odd.
static hd_tensor_t *half_rows(hd_arena_t *arena, const hd_tensor_t *from) {
  uint32_t last = from->rank - 1;
  int64_t size;
  if (from->rank == 0 || !hd_expr_fold_int(from->shape[last], &size) ||
      size % 2 != 0)
    return NULL;
  hd_tensor_t *tensor = HD_ARENA_COPY(arena, hd_tensor_t, from);
  const hd_expr_t **shape =
      HD_ARENA_ARRAY(arena, const hd_expr_t *, from->rank);
  memcpy(shape, from->shape, from->rank * sizeof(*shape));
  shape[last] = hd_expr_int(arena, shape[last]->type, size / 2);
  tensor->shape = shape;
  return tensor;
}

static const hd_var_t *half_of(hd_arena_t *arena, const hd_var_t *var) {
  hd_tensor_t *tensor =
      var->tensor->layout ? NULL : half_rows(arena, var->tensor);
  hd_var_t *half = HD_ARENA_COPY(arena, hd_var_t, var);
  half->tensor = tensor;
  return tensor ? half : NULL;
}

// --- Staging ---

static bool note_point(void *argument, const hd_stmt_t *stmt) {
  pairer_t *p = argument;
  const hd_expr_t *staging =
      stmt->kind == HD_STMT_POINT && stmt->u.point.place->u.var == p->from
          ? stmt->u.point.staging
          : NULL;
  if (staging && !p->staging)
    p->staging = staging->u.var;
  p->points += staging && staging->u.var == p->staging;
  return true;
}

static bool count_use(void *argument, const hd_expr_t *e) {
  pairer_t *p = argument;
  p->uses += (hd_expr_is_access(e) || e->kind == HD_EXPR_TENSOR) &&
             e->u.var == p->staging;
  return true;
}

// Half of `row, swizzle(n)`; NULL: it lies otherwise.
static const hd_layout_t *half_layout(hd_arena_t *arena,
                                      const hd_tensor_t *tensor) {
  const hd_layout_t *layout = tensor->layout;
  const hd_layout_item_t *last =
      layout ? &layout->items[layout->num_items - 1] : NULL;
  int64_t bytes, size;
  if (!last || layout->num_items > 2 || last->kind != HD_LAYOUT_SWIZZLE ||
      last->num_values != 1 ||
      (layout->num_items == 2 && layout->items[0].kind != HD_LAYOUT_ROW) ||
      !hd_expr_fold_int(last->values[0], &bytes) || bytes < 64 ||
      !hd_expr_fold_int(tensor->shape[tensor->rank - 1], &size))
    return NULL;
  size_t all = sizeof(*layout) + layout->num_items * sizeof(*last);
  hd_layout_t *half = hd_arena_alloc(arena, all);
  memcpy(half, layout, all);
  const hd_expr_t **values = HD_ARENA_ARRAY(arena, const hd_expr_t *, 1);
  values[0] = hd_expr_int(arena, last->values[0]->type, bytes / 2);
  half->items[layout->num_items - 1].values = values;
  return half;
}

static void find_staging(pairer_t *p, const hd_func_t *kernel) {
  hd_arena_t *arena = p->l.arena;
  hd_walk_block(kernel->body, note_point, NULL, p);
  if (!p->staging)
    return;
  hd_walk_block(kernel->body, NULL, count_use, p);
  const hd_layout_t *layout = half_layout(arena, p->staging->tensor);
  hd_tensor_t *tensor = half_rows(arena, p->staging->tensor);
  if (p->uses != p->points || !layout || !tensor)
    return;
  hd_var_t *half = HD_ARENA_COPY(arena, hd_var_t, p->staging);
  tensor->layout = layout;
  half->tensor = tensor;
  p->half = half;
}

// A map of c whose box is half as wide, of d; NULL: there is none.
static const hd_var_t *half_map(const pairer_t *p, const hd_var_t *var) {
  const hd_map_t *map = var->map;
  int64_t size;
  if (!p->half || map->im2col || map->swizzle < 64 ||
      !hd_expr_fold_int(map->box[map->num_box - 1], &size) || size % 2 != 0)
    return NULL;
  hd_map_t *half = HD_ARENA_COPY(p->l.arena, hd_map_t, map);
  hd_var_t *made = HD_ARENA_NEW(p->l.arena, hd_var_t);
  half->tensor = p->to;
  half->swizzle = map->swizzle / 2;
  half->box[map->num_box - 1] =
      hd_expr_int(p->l.arena, map->box[map->num_box - 1]->type, size / 2);
  *made = *var;
  made->map = half;
  return made;
}

static void set_maps(const pairer_t *p, hd_func_t *kernel) {
  const hd_var_t **maps =
      HD_ARENA_ARRAY(p->l.arena, const hd_var_t *, kernel->num_maps + 1);
  uint32_t count = 0;
  for (uint32_t i = 0; i < kernel->num_maps; i++) {
    const hd_var_t *map = kernel->maps[i];
    if (map->map->tensor == p->from)
      map = half_map(p, map);
    if (map)
      maps[count++] = map;
  }
  kernel->maps = maps;
  kernel->num_maps = count;
}

hd_func_t *hd_pairs_kernel(hd_arena_t *arena, const hd_func_t *kernel,
                           uint32_t param, const char **why) {
  pairer_t p = {.l = {.arena = arena,
                      .func = kernel,
                      .facts = hd_facts_create(arena, kernel)},
                .from = kernel->params[param],
                .to = half_of(arena, kernel->params[param])};
  *why = "has an odd number of columns";
  if (!p.to)
    return NULL;
  find_staging(&p, kernel);
  hd_rewriter_t rewriter = {.arena = arena, .argument = &p, .enter = enter};
  hd_func_t *made = HD_ARENA_COPY(arena, hd_func_t, kernel);
  const hd_var_t **params =
      HD_ARENA_ARRAY(arena, const hd_var_t *, kernel->num_params);
  made->body = hd_rewrite_block(&rewriter, kernel->body);
  *why = "does not leave the kernel in pairs";
  if (!hd_walk_block(made->body, is_other_stmt, is_other_expr, &p))
    return NULL;
  memcpy(params, kernel->params, kernel->num_params * sizeof(*params));
  params[param] = p.to;
  made->params = params;
  set_maps(&p, made);
  return made;
}
