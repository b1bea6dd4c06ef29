// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Part of pass lower-points: how results leave a kernel.
//
//   for i, j in tile on thread {
//     yield c[row + i, column + j] <- f16(sum[i, j]) through s[i, j]
//   }
//
// What lies outside c is left out. The ways, the first that fits:
//
//   copy engine   through shared memory, where the kernel's signature has a map
//                 of c whose box is the tile. Values are stored to s, which is
//                 free once all but `buffers` - 1 stores have read theirs; one
//                 worker starts the copy
//   staged        through shared memory: values are stored to s, then rows are
//                 written by neighbours, 16 bytes at once where they are
//                 aligned, else elements, of which a worker reads several
//                 before it stores the first
//   vectors       without `through`: what a worker does one after the other
//                 along the last axis, up to 16 bytes, where that is aligned
//   elements
//
// Workers meet before s is written and behind it. Of three buffers one is free
// when all have met behind that of the yield before, so once is enough.
//
// Alignment is a condition (n % 8 == 0), which folds where sizes are constants.
// The copy engine and staging leave the order in which workers store to the
// compiler.

#include "TaskMapping/Points.h"
#include "TaskMapping/TaskMapping.h"

enum { COPY_ALIGN = 1024 }; // Bytes: a copy's place, whatever the swizzle.

static const hd_expr_t *place_of(const hd_tile_t *tile) {
  return tile->point->u.point.place;
}

static void explain(const hd_tile_t *tile, const char *how) {
  if (tile->l->explain)
    hd_remark(&tile->l->module->context->diags, tile->point->loc, "%s", how);
}

// What stands in a nest: place = value, where it is inside. The bounds of the
// tasks do that already, or every element is tested.
static hd_block_t store_lanes(const hd_nest_t *nest, const hd_expr_t *value,
                              bool tested) {
  const hd_tile_t *tile = nest->tile;
  hd_arena_t *arena = tile->l->arena;
  const hd_expr_t *place = hd_nest_expr(nest, place_of(tile));
  hd_block_t store = hd_block_of_one(
      arena, hd_make_store(tile, place, hd_nest_expr(nest, value)));
  hd_stmt_list_t list = {0};
  hd_push_if(tile, tested ? NULL : hd_inside(tile->l, place, NULL), store,
             (hd_block_t){0}, &list);
  return hd_nest_lanes(nest, hd_block_of(arena, &list));
}

static hd_block_t store_nest(const hd_nest_t *nest, const hd_expr_t *value,
                             const hd_expr_t *const *bounds) {
  hd_stmt_list_t list = {0};
  hd_nest_end(nest, bounds, store_lanes(nest, value, bounds != NULL), &list);
  return hd_block_of(nest->tile->l->arena, &list);
}

// A loop over a mapping that stores value to the point's place; where the tile
// may begin before the tensor, a second one that tests every element.
static void push_stores(const hd_tile_t *tile, const hd_mapping_t *mapping,
                        int64_t width, int32_t unroll, const hd_expr_t *value,
                        hd_stmt_list_t *out) {
  hd_nest_t nest = hd_nest_begin(tile, mapping, width, unroll);
  const hd_expr_t *bounds[HD_MAPPING_MAX_RANK], *all = NULL, *low = NULL;
  hd_tile_window_t window;
  if (mapping->kind == HD_MAPPING_WITHIN ||
      !hd_tile_window_find(tile, place_of(tile), &window) ||
      !hd_tile_window_bounds(tile, &window, width, bounds, &all, &low)) {
    hd_push_if(tile, NULL, store_nest(&nest, value, NULL), (hd_block_t){0},
               out);
    return;
  }
  hd_block_t tested = {0};
  if (low) {
    hd_nest_t other = hd_nest_begin(tile, mapping, width, unroll);
    tested = store_nest(&other, value, NULL);
  }
  hd_stmt_list_t list = {0};
  hd_push_if(tile, low, store_nest(&nest, value, bounds), tested, &list);
  hd_push_if(tile, all, hd_block_of(tile->l->arena, &list), (hd_block_t){0},
             out);
}

// Staged elements one by one: each would be waited for before it is stored.
static void push_elements(const hd_tile_t *tile, const hd_mapping_t *mapping,
                          int32_t unroll, const hd_expr_t *value,
                          hd_stmt_list_t *out) {
  if (!tile->point->u.point.staging || hd_type_bits(value->type) < 8 ||
      !hd_push_in_batches(tile, mapping, value, out))
    push_stores(tile, mapping, 1, unroll, value, out);
}

// Chunks where they are aligned, else elements.
static void push_choice(const hd_tile_t *tile, const hd_expr_t *condition,
                        const hd_mapping_t *chunks, int64_t width,
                        const hd_mapping_t *elements, int32_t unroll,
                        const hd_expr_t *value) {
  hd_stmt_list_t then = {0}, otherwise = {0};
  push_stores(tile, chunks, width, unroll, value, &then);
  if (condition)
    push_elements(tile, elements, unroll, value, &otherwise);
  hd_push_if(tile, condition, hd_block_of(tile->l->arena, &then),
             hd_block_of(tile->l->arena, &otherwise), tile->out);
}

// The widest vectors that a loop over chunks stores wherever they are, by what
// is known of indices that are no windows: `c[x / 64, x % 64]`. 1: none are.
static int64_t known_width(const hd_tile_t *tile, int64_t width, bool spread) {
  hd_arena_t *arena = tile->l->arena;
  for (; width > 1; width /= 2) {
    const hd_mapping_t *chunks =
        spread ? hd_tile_spread(tile, width)
               : hd_mapping_divide(arena, tile->mapping, width);
    if (!chunks)
      continue;
    hd_nest_t nest = hd_nest_begin(tile, chunks, width, 0);
    const hd_expr_t *place = hd_nest_expr(&nest, place_of(tile));
    if (hd_nest_is_vector(&nest, hd_inside(tile->l, place, NULL),
                          hd_zero(arena, place->type), true))
      return width;
  }
  return 1;
}

static void yield_directly(const hd_tile_t *tile) {
  const hd_expr_t *value = tile->point->u.point.value, *all;
  int32_t unroll = tile->loop->u.mapfor.unroll;
  hd_tile_window_t window;
  bool found = hd_tile_window_find(tile, place_of(tile), &window);
  for (int64_t width = hd_tile_widest(tile); found && width > 1; width /= 2) {
    const hd_mapping_t *chunks =
        hd_mapping_divide(tile->l->arena, tile->mapping, width);
    all = NULL;
    if (!chunks || !hd_tile_window_is_aligned(tile, &window, width, &all))
      continue;
    explain(tile, "stored from registers, in vectors where rows are aligned");
    push_choice(tile, all, chunks, width, tile->mapping, unroll, value);
    return;
  }
  int64_t width = found ? 1 : known_width(tile, hd_tile_widest(tile), false);
  explain(tile, width > 1 ? "stored from registers, in vectors"
                          : "stored from registers, element by element");
  push_stores(tile, hd_mapping_divide(tile->l->arena, tile->mapping, width),
              width, unroll, value, tile->out);
}

// Whether a loop over the mapping does all of its tasks.
static bool is_whole(const hd_mapping_t *m) {
  return !m || (m->kind != HD_MAPPING_WITHIN && is_whole(m->left) &&
                is_whole(m->right));
}

// Whether neighbours in the place are neighbours along the first of a tile's
// two axes: by its indices, or because vectors are stored so and not otherwise.
static bool lies_across(const hd_tile_t *tile, const hd_tile_t *other) {
  const hd_expr_t *place = place_of(tile);
  hd_tile_window_t window;
  if (hd_tile_window_find(tile, place, &window))
    return place->num_operands > 0 && window.axis[place->num_operands - 1] == 0;
  return known_width(tile, hd_tile_widest(tile), true) == 1 &&
         known_width(other, hd_tile_widest(other), true) > 1;
}

// From shared memory to the point's place, by rows.
static void push_rows(const hd_tile_t *tile, bool whole) {
  const hd_expr_t *value = hd_staged(tile), *all = NULL;
  int64_t width = hd_tile_widest(tile);
  const hd_mapping_t *elements = whole ? hd_tile_spread(tile, 1) : NULL;
  hd_tile_window_t window;
  bool found = hd_tile_window_find(tile, place_of(tile), &window);
  if (!elements)
    elements = tile->mapping;
  for (int64_t chunk = width; whole && found && chunk > 1; chunk /= 2) {
    const hd_mapping_t *chunks = hd_tile_spread(tile, chunk);
    all = NULL;
    if (chunks && hd_tile_window_is_aligned(tile, &window, chunk, &all)) {
      push_choice(tile, all, chunks, chunk, elements, 1, value);
      return;
    }
  }
  width = found || !whole ? 1 : known_width(tile, width, true);
  if (width > 1)
    push_stores(tile, hd_tile_spread(tile, width), width, 1, value, tile->out);
  else
    push_elements(tile, elements, 1, value, tile->out);
}

// Whether the place is known to be free: who writes it has met the others
// behind the yield before, when all had left those before that.
static bool comes_round_late(const hd_tile_t *tile) {
  return tile->point->u.point.buffers > 2;
}

static void yield_staged(const hd_tile_t *tile) {
  bool whole = is_whole(tile->mapping), across = false;
  hd_tile_t other, own = *tile;
  if (whole && tile->mapping->rank == 2) {
    other = hd_tile_turned(tile);
    across = lies_across(tile, &other);
  }
  if (across)
    own.point = other.point;
  if (!comes_round_late(tile))
    hd_stage_barrier(tile); // Who read the staging before is done.
  hd_stage(&own, across && hd_tile_is_square(tile) ? &other : &own);
  hd_stage_barrier(tile);
  explain(tile, across ? "staged in shared memory, then stored by columns"
                       : "staged in shared memory, then stored by rows");
  push_rows(across ? &other : tile, whole);
}

// Whether a map's box is the tile: its axes in their order, the others 1.
static bool is_box(const hd_tile_t *tile, const hd_map_t *map,
                   const hd_tile_window_t *window) {
  int axis = 0;
  if (map->im2col || map->num_box != map->tensor->tensor->rank)
    return false;
  for (unsigned t = 0; t < map->num_box; ++t) {
    int64_t wanted = 1;
    if (window->axis[t] >= 0) {
      if (window->axis[t] != axis)
        return false;
      wanted = tile->mapping->dims[axis++];
    }
    int64_t extent;
    if (!hd_expr_fold_int(map->box[t], &extent) || extent != wanted)
      return false;
  }
  return axis == (int)tile->mapping->rank;
}

// Whether the tile lies in its staging tensor as a box does: row after row,
// with nothing between, from a place on where a copy may begin.
static bool is_staged_as_box(const hd_tile_t *tile) {
  const hd_expr_t *staging = tile->point->u.point.staging;
  const hd_tensor_t *tensor = staging->u.var->tensor;
  unsigned rank = tile->mapping->rank;
  int64_t bytes = hd_type_bits(staging->type) / 8;
  hd_tile_window_t window;
  if (!hd_tile_window_find(tile, staging, &window) || tensor->rank < rank)
    return false;
  unsigned first = tensor->rank - rank;
  for (unsigned a = 0; a < rank; ++a) {
    bytes *= tile->mapping->dims[a];
    if (window.axis[first + a] != (int)a || window.base[first + a])
      return false;
  }
  for (unsigned a = 1; a + 1 < rank; ++a) {
    int64_t size;
    if (!hd_expr_fold_int(tensor->shape[first + a], &size) ||
        size != tile->mapping->dims[a])
      return false;
  }
  return first == 0 || bytes % COPY_ALIGN == 0;
}

static const hd_var_t *find_map(const hd_tile_t *tile,
                                hd_tile_window_t *window) {
  const hd_func_t *func = tile->l->func;
  if (!is_whole(tile->mapping) || !is_staged_as_box(tile) ||
      !hd_type_equal(tile->point->u.point.staging->type,
                     place_of(tile)->type) ||
      !hd_tile_window_find(tile, place_of(tile), window))
    return NULL;
  for (uint32_t i = 0; i < func->num_maps; ++i)
    if (func->maps[i]->map->tensor == window->tensor &&
        is_box(tile, func->maps[i]->map, window))
      return func->maps[i];
  return NULL;
}

// That this is worker 0; NULL where it is the only one.
static const hd_expr_t *leads(const hd_tile_t *tile) {
  return tile->worker ? hd_expr_binary(tile->l->arena, HD_EXPR_EQ, tile->worker,
                                       hd_expr_i32(tile->l->arena, 0))
                      : NULL;
}

// tma_store(map, staging at the tile's corner, the corner's indices).
static void push_copy(const hd_tile_t *tile, const hd_var_t *map,
                      const hd_tile_window_t *window, hd_stmt_list_t *out) {
  hd_point_lowering_t *l = tile->l;
  const hd_tensor_t *tensor = window->tensor->tensor;
  const hd_expr_t *operands[HD_INTRINSIC_MAX_PARAMS], *inside = NULL;
  const hd_expr_t *zero = hd_expr_i32(l->arena, 0);
  hd_nest_t corner = hd_nest_begin(tile, tile->mapping, 1, 0);
  for (unsigned a = 0; a < tile->mapping->rank; ++a)
    corner.firsts[a] = zero;
  unsigned count = 0;
  operands[count++] = hd_expr_var(l->arena, map);
  operands[count++] = hd_nest_first(&corner, tile->point->u.point.staging);
  for (unsigned t = 0; t < tensor->rank; ++t) {
    const hd_expr_t *base = window->base[t] ? window->base[t] : zero;
    operands[count++] = base;
    inside = hd_both(l, inside, hd_is_below(l, base, tensor->shape[t]));
  }
  operands[count++] =
      hd_expr_i32(l->arena, hd_intrinsic_name_default(HD_PARAM_POLICY));
  hd_stmt_list_t copy = {0};
  hd_intrinsic_t row =
      hd_intrinsic_overload(HD_INTRINSIC_TMA_STORE_1D, hd_type(HD_VOID), count);
  hd_push_call(tile, row, operands, count, &copy);
  hd_push_if(tile, inside, hd_block_of(l->arena, &copy), (hd_block_t){0}, out);
}

typedef struct uses {
  const hd_var_t *var;
  unsigned count;
} uses_t;

static bool visit_use(void *argument, const hd_expr_t *e) {
  uses_t *uses = argument;
  uses->count += (e->kind == HD_EXPR_REF || e->kind == HD_EXPR_LOAD ||
                  e->kind == HD_EXPR_LOADELSE || e->kind == HD_EXPR_TENSOR) &&
                 e->u.var == uses->var;
  return true;
}

static bool visit_store(void *argument, const hd_stmt_t *stmt) {
  uses_t *uses = argument;
  uses->count += stmt->kind == HD_STMT_STORE && stmt->u.store.var == uses->var;
  return true;
}

// Whether a staging tensor serves for more than this point.
static bool has_other_uses(const hd_func_t *func, const hd_stmt_t *point) {
  uses_t uses = {point->u.point.staging->u.var, 0};
  hd_walk_block(func->body, visit_store, visit_use, &uses);
  return uses.count > 1;
}

static void yield_by_map(const hd_tile_t *tile, const hd_var_t *map,
                         const hd_tile_window_t *window) {
  hd_point_lowering_t *l = tile->l;
  bool late = comes_round_late(tile);
  // Late: so that the next one's place is free.
  const hd_expr_t *under_way =
      hd_expr_i32(l->arena, tile->point->u.point.buffers - (late ? 2 : 1));
  hd_stmt_list_t first = {0}, last = {0};
  explain(tile, "staged in shared memory, then stored by the copy engine");
  hd_push_call(tile, HD_INTRINSIC_BULK_WAIT_READ, &under_way, 1, &first);
  hd_block_t wait = hd_block_of(l->arena, &first);
  if (!late) {
    hd_push_if(tile, leads(tile), wait, (hd_block_t){0}, tile->out);
    hd_stage_barrier(tile);
  }
  hd_stage(tile, tile);
  hd_push_call(tile, HD_INTRINSIC_FENCE_PROXY_ASYNC, NULL, 0, tile->out);
  if (late)
    hd_push_if(tile, leads(tile), wait, (hd_block_t){0}, tile->out);
  hd_stage_barrier(tile);
  push_copy(tile, map, window, &last);
  hd_push_call(tile, HD_INTRINSIC_BULK_COMMIT, NULL, 0, &last);
  // Others learn by a barrier alone that they may write to the staging tensor.
  if (tile->point->u.point.buffers == 1 && has_other_uses(l->func, tile->point))
    hd_push_call(tile, HD_INTRINSIC_BULK_WAIT_READ, &under_way, 1, &last);
  hd_push_if(tile, leads(tile), hd_block_of(l->arena, &last), (hd_block_t){0},
             tile->out);
  l->has_bulk = true;
}

void hd_lower_yield(const hd_tile_t *tile) {
  const hd_stmt_t *point = tile->point;
  hd_tile_window_t window;
  if (!tile->loop) {
    const hd_stmt_t *store =
        hd_make_store(tile, point->u.point.place, point->u.point.value);
    hd_push_if(tile, hd_inside(tile->l, point->u.point.place, NULL),
               hd_block_of_one(tile->l->arena, store), (hd_block_t){0},
               tile->out);
    return;
  }
  if (!point->u.point.staging) {
    yield_directly(tile);
    return;
  }
  const hd_var_t *map = find_map(tile, &window);
  if (map)
    yield_by_map(tile, map, &window);
  else
    yield_staged(tile);
}
