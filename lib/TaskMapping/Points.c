// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles, windows and the loops that pass lower-points makes of them.
#include "TaskMapping/Points.h"
#include "IR/Passes/Simplifier.h"
#include "Support/Gcd.h"
#include "TaskMapping/TaskMapping.h"

enum { SECTOR_BITS = 256 }; // That memory takes at a time, at the least.

static const hd_expr_t *i32(hd_point_lowering_t *l, int64_t value) {
  return hd_expr_i32(l->arena, value);
}

static const hd_expr_t *binary(hd_point_lowering_t *l, hd_expr_kind_t kind,
                               const hd_expr_t *a, const hd_expr_t *b) {
  return hd_expr_binary(l->arena, kind, a, b);
}

const hd_expr_t *hd_both(hd_point_lowering_t *l, const hd_expr_t *a,
                         const hd_expr_t *b) {
  return !a ? b : !b ? a : binary(l, HD_EXPR_AND, a, b);
}

const hd_expr_t *hd_zero(hd_arena_t *arena, hd_type_t type) {
  return hd_type_is_bool(type) ? hd_expr_bool(arena, false)
         : hd_type_is_float(type)
             ? hd_expr_float(arena, type,
                             hd_float_round((hd_scalar_t)type.scalar, 0))
             : hd_expr_int(arena, type, 0);
}

// Windows

typedef struct search {
  const hd_stmt_t *loop;
  int axis; // That was met; -1: none, -2: several.
} search_t;

static bool visit_axis(void *argument, const hd_expr_t *e) {
  search_t *search = argument;
  for (uint32_t a = 0;
       e->kind == HD_EXPR_VAR && a < search->loop->u.mapfor.mapping->rank; ++a)
    if (search->loop->u.mapfor.vars[a] == e->u.var)
      search->axis = search->axis == -1 || search->axis == (int)a ? (int)a : -2;
  return true;
}

static int axis_of(const hd_tile_t *tile, const hd_expr_t *e) {
  search_t search = {tile->loop, -1};
  hd_walk_expr(e, visit_axis, &search);
  return search.axis;
}

// e - var, for an e that is var plus what does not change with the tile.
static bool take_out(const hd_tile_t *tile, const hd_expr_t *e,
                     const hd_expr_t **base) {
  *base = NULL;
  if (e->kind == HD_EXPR_VAR)
    return true;
  if (e->kind != HD_EXPR_ADD && e->kind != HD_EXPR_SUB)
    return false;
  unsigned side = axis_of(tile, e->operands[0]) < 0;
  const hd_expr_t *rest = e->operands[1 - side];
  if (axis_of(tile, rest) != -1 || (e->kind == HD_EXPR_SUB && side == 1) ||
      !take_out(tile, e->operands[side], base))
    return false;
  if (e->kind == HD_EXPR_SUB)
    *base = binary(tile->l, HD_EXPR_SUB, *base ? *base : i32(tile->l, 0), rest);
  else
    *base = *base ? binary(tile->l, HD_EXPR_ADD, *base, rest) : rest;
  return true;
}

bool hd_tile_window_find(const hd_tile_t *tile, const hd_expr_t *access,
                         hd_tile_window_t *window) {
  bool met[HD_MAPPING_MAX_RANK] = {false};
  *window = (hd_tile_window_t){.tensor = access->u.var};
  if (!tile->loop || access->linear || access->type.lanes != 1)
    return false;
  for (unsigned t = 0; t < hd_expr_num_indices(access); ++t) {
    const hd_expr_t *index = access->operands[t];
    int axis = axis_of(tile, index);
    if (axis == -2 || !hd_type_equal(index->type, hd_type(HD_I32)) ||
        (axis >= 0 && met[axis]))
      return false;
    window->axis[t] = axis;
    window->base[t] = index;
    if (axis < 0)
      continue;
    met[axis] = true;
    ++window->num_axes;
    if (!take_out(tile, index, &window->base[t]))
      return false;
  }
  return true;
}

// *all && e % width == 0; false where it never is.
static bool demand_multiple(hd_point_lowering_t *l, const hd_expr_t *e,
                            int64_t width, const hd_expr_t **all) {
  int64_t value;
  if (!e || width == 1)
    return true;
  if (hd_expr_fold_int(e, &value))
    return value % width == 0;
  const hd_expr_t *rest =
      binary(l, HD_EXPR_MOD, e, hd_expr_int(l->arena, e->type, width));
  *all = hd_both(
      l, *all, binary(l, HD_EXPR_EQ, rest, hd_expr_int(l->arena, e->type, 0)));
  return true;
}

// Whether a layout keeps 16 bytes of a row side by side and aligned, if the
// row is a multiple of that.
static bool keeps_chunks(const hd_tensor_t *tensor) {
  const hd_layout_t *layout = tensor->layout;
  for (unsigned i = 0; layout && i < layout->num_items; ++i) {
    const hd_layout_item_t *item = &layout->items[i];
    bool is_hardware = item->kind == HD_LAYOUT_SWIZZLE && item->num_values == 1;
    if (item->kind != HD_LAYOUT_ROW && !is_hardware)
      return false;
  }
  return true;
}

// Whether rows begin where the tensor does, and none ends inside a chunk: what
// is read and written of global tensors may be cut off at their end.
static bool is_one_row(const hd_tensor_t *tensor) {
  return tensor->rank == 1 && tensor->scope != HD_SCOPE_GLOBAL;
}

bool hd_tile_window_is_aligned(const hd_tile_t *tile,
                               const hd_tile_window_t *window, int64_t width,
                               const hd_expr_t **all) {
  const hd_tensor_t *tensor = window->tensor->tensor;
  unsigned last = tensor->rank - 1;
  int64_t bytes = width * hd_type_bits(tensor->element) / 8;
  bool is_memory = tensor->scope != HD_SCOPE_REGISTER;
  return tensor->rank > 0 && hd_type_bits(tensor->element) >= 8 &&
         window->axis[last] == (int)tile->mapping->rank - 1 &&
         keeps_chunks(tensor) &&
         (!is_memory || tensor->scope == HD_SCOPE_SHARED || !tensor->align ||
          tensor->align >= bytes) &&
         (is_one_row(tensor) ||
          demand_multiple(tile->l, tensor->shape[last], width, all)) &&
         demand_multiple(tile->l, window->base[last], width, all);
}

bool hd_tile_window_bounds(const hd_tile_t *tile,
                           const hd_tile_window_t *window, int64_t width,
                           const hd_expr_t **bounds, const hd_expr_t **all,
                           const hd_expr_t **low) {
  hd_point_lowering_t *l = tile->l;
  const hd_tensor_t *tensor = window->tensor->tensor;
  unsigned rank = tile->mapping->rank;
  for (unsigned a = 0; a < rank; ++a)
    bounds[a] = i32(l, tile->mapping->dims[a] / (a + 1 == rank ? width : 1));
  for (unsigned t = 0; t < tensor->rank; ++t) {
    const hd_expr_t *size = tensor->shape[t], *base = window->base[t];
    if (!hd_type_equal(size->type, hd_type(HD_I32)))
      return false;
    if (base) {
      const hd_expr_t **which = window->axis[t] < 0 ? all : low;
      *which = hd_both(l, *which, binary(l, HD_EXPR_GE, base, i32(l, 0)));
    }
    if (window->axis[t] < 0) {
      *all = hd_both(l, *all, binary(l, HD_EXPR_LT, base, size));
      continue;
    }
    const hd_expr_t *left = base ? binary(l, HD_EXPR_SUB, size, base) : size;
    if (window->axis[t] == (int)rank - 1 && width > 1)
      left = binary(l, HD_EXPR_DIV, left, i32(l, width));
    bounds[window->axis[t]] = left;
  }
  return true;
}

const hd_expr_t *hd_is_below(hd_point_lowering_t *l, const hd_expr_t *index,
                             const hd_expr_t *size) {
  hd_type_t type =
      hd_type(hd_type_equal(index->type, hd_type(HD_U64)) ? HD_U64 : HD_I64);
  if (!hd_type_equal(index->type, size->type)) {
    index = hd_expr_cast(l->arena, type, index);
    size = hd_expr_cast(l->arena, type, size);
  }
  return binary(l, HD_EXPR_LT, index, size);
}

// The indices at which a vector's first element can stand, along an axis.
static const hd_expr_t *places_along(hd_point_lowering_t *l,
                                     const hd_expr_t *access, unsigned t) {
  const hd_tensor_t *tensor = access->u.var->tensor;
  const hd_expr_t *size = tensor->shape[t];
  int64_t more = access->type.lanes - 1;
  return more == 0 || t + 1 < tensor->rank
             ? size
             : binary(l, HD_EXPR_SUB,
                      hd_expr_cast(l->arena, hd_type(HD_I64), size),
                      hd_expr_int(l->arena, hd_type(HD_I64), more));
}

// x, where indices are x / d and x % d, of which there are d; else NULL. Inside
// is 0 <= x < d * size: all of a chunk or none of it, as no digit alone says.
static const hd_expr_t *digits_of(const hd_expr_t *access, unsigned t,
                                  int64_t *limit) {
  const hd_expr_t *index = access->operands[t];
  const hd_tensor_t *tensor = access->u.var->tensor;
  bool is_high = index->kind == HD_EXPR_DIV;
  int64_t d, size;
  if (access->type.lanes > 1 || (!is_high && index->kind != HD_EXPR_MOD) ||
      !hd_expr_fold_int(index->operands[1], &d) || d <= 0)
    return NULL;
  for (unsigned u = 0; u < hd_expr_num_indices(access); ++u) {
    const hd_expr_t *other = access->operands[u];
    if (other->kind == (is_high ? HD_EXPR_MOD : HD_EXPR_DIV) &&
        hd_expr_is_int(tensor->shape[is_high ? u : t], d) &&
        hd_expr_fold_int(tensor->shape[is_high ? t : u], &size) &&
        !__builtin_mul_overflow(size, d, limit) && *limit <= INT32_MAX &&
        hd_expr_equal(other->operands[0], index->operands[0]) &&
        hd_expr_equal(other->operands[1], index->operands[1]))
      return index->operands[0];
  }
  return NULL;
}

const hd_expr_t *hd_inside(hd_point_lowering_t *l, const hd_expr_t *access,
                           const hd_expr_t *all) {
  const hd_tensor_t *tensor = access->u.var->tensor;
  for (unsigned t = 0; t < tensor->rank; ++t) {
    int64_t limit;
    const hd_expr_t *index = access->operands[t];
    const hd_expr_t *size = places_along(l, access, t);
    const hd_expr_t *number = digits_of(access, t, &limit);
    if (number && index->kind == HD_EXPR_MOD)
      continue;
    if (number) {
      index = number;
      size = hd_expr_int(l->arena, index->type, limit);
    }
    const hd_expr_t *zero = hd_expr_int(l->arena, index->type, 0);
    const hd_expr_t *low = hd_type_is_signed(index->type)
                               ? binary(l, HD_EXPR_GE, index, zero)
                               : NULL;
    const hd_expr_t *high = hd_is_below(l, index, size);
    all = hd_both(l, all, hd_both(l, low, high));
  }
  return all;
}

// Mappings

const hd_mapping_t *hd_mapping_divide(hd_arena_t *arena, const hd_mapping_t *m,
                                      int64_t width) {
  int64_t dims[HD_MAPPING_MAX_RANK];
  if (width == 1)
    return m;
  if (m->kind == HD_MAPPING_COMPOSE) {
    const hd_mapping_t *right = hd_mapping_divide(arena, m->right, width);
    return right ? hd_mapping_compose(arena, m->left, right) : NULL;
  }
  if (m->kind != HD_MAPPING_REPEAT || m->order ||
      m->dims[m->rank - 1] % width != 0)
    return NULL;
  for (unsigned a = 0; a < m->rank; ++a)
    dims[a] = m->dims[a];
  dims[m->rank - 1] /= width;
  return hd_mapping_repeat(arena, dims, NULL, m->rank);
}

// Rows of chunks that workers do not divide: as many store side by side as one
// has, or a part, some idle. Else each would store to less than a sector.
static const hd_mapping_t *spread_rows(hd_arena_t *arena, const int64_t *dims,
                                       unsigned rank, int64_t workers) {
  int64_t spatial[HD_MAPPING_MAX_RANK], repeat[HD_MAPPING_MAX_RANK];
  int64_t left = workers;
  for (unsigned a = rank; a-- > 0;) {
    spatial[a] = dims[a] < left ? dims[a] : left;
    while (dims[a] % spatial[a] != 0)
      --spatial[a];
    repeat[a] = dims[a] / spatial[a];
    left /= spatial[a];
  }
  const hd_mapping_t *all =
      hd_mapping_compose(arena, hd_mapping_repeat(arena, repeat, NULL, rank),
                         hd_mapping_spatial(arena, spatial, NULL, rank));
  return all->workers < workers ? hd_mapping_idle(arena, all, workers) : all;
}

const hd_mapping_t *hd_tile_spread(const hd_tile_t *tile, int64_t width) {
  hd_arena_t *arena = tile->l->arena;
  unsigned rank = tile->mapping->rank;
  int64_t dims[HD_MAPPING_MAX_RANK], left_over;
  for (unsigned a = 0; a < rank; ++a)
    dims[a] = tile->mapping->dims[a];
  if (dims[rank - 1] % width != 0)
    return NULL;
  dims[rank - 1] /= width;
  int64_t workers = tile->mapping->workers;
  int64_t bits = width * hd_type_bits(tile->point->u.point.place->type);
  if (tile->point->u.point.kind == HD_POINT_YIELD &&
      hd_gcd(workers, dims[rank - 1]) * bits < SECTOR_BITS &&
      dims[rank - 1] * bits >= SECTOR_BITS)
    return spread_rows(arena, dims, rank, workers);
  const hd_mapping_t *all = hd_mapping_auto(arena, dims, rank, workers);
  all = all ? hd_mapping_expand_auto(arena, all, &left_over) : NULL;
  return all && left_over > 1 ? hd_mapping_idle(arena, all, workers) : all;
}

// Nests

hd_nest_t hd_nest_begin(const hd_tile_t *tile, const hd_mapping_t *mapping,
                        int64_t width, int32_t unroll) {
  hd_point_lowering_t *l = tile->l;
  hd_nest_t nest = {
      .tile = tile, .mapping = mapping, .width = width, .unroll = unroll};
  for (unsigned a = 0; a < mapping->rank; ++a) {
    const hd_var_t *old = tile->loop->u.mapfor.vars[a];
    nest.vars[a] =
        hd_var_make(l->arena, old->name, HD_VAR_LOOP, old->type, old->loc);
    nest.values[a] = nest.firsts[a] = hd_expr_var(l->arena, nest.vars[a]);
  }
  if (width == 1)
    return nest;
  unsigned last = mapping->rank - 1;
  nest.lane =
      hd_var_make(l->arena, "e", HD_VAR_LOOP, hd_type(HD_I32), tile->loop->loc);
  nest.firsts[last] = binary(l, HD_EXPR_MUL, nest.firsts[last], i32(l, width));
  nest.values[last] = binary(l, HD_EXPR_ADD, nest.firsts[last],
                             hd_expr_var(l->arena, nest.lane));
  return nest;
}

static const hd_expr_t *replace(const hd_nest_t *nest, const hd_expr_t *e,
                                const hd_expr_t *const *values) {
  hd_rewriter_t rewriter = {.arena = nest->tile->l->arena};
  for (unsigned a = 0; a < nest->mapping->rank; ++a)
    hd_rewriter_substitute(&rewriter, nest->tile->loop->u.mapfor.vars[a],
                           values[a]);
  const hd_expr_t *result = hd_rewrite_expr(&rewriter, e);
  return result;
}

const hd_expr_t *hd_nest_expr(const hd_nest_t *nest, const hd_expr_t *e) {
  return replace(nest, e, nest->values);
}

const hd_expr_t *hd_nest_first(const hd_nest_t *nest, const hd_expr_t *e) {
  return replace(nest, e, nest->firsts);
}

hd_block_t hd_nest_lanes(const hd_nest_t *nest, hd_block_t block) {
  if (nest->width == 1)
    return block;
  hd_point_lowering_t *l = nest->tile->l;
  hd_stmt_t *loop = hd_stmt_make(l->arena, HD_STMT_FOR, nest->tile->loop->loc);
  loop->u.loop.var = nest->lane;
  loop->u.loop.first = i32(l, 0);
  loop->u.loop.limit = i32(l, nest->width);
  loop->u.loop.unroll = HD_UNROLL_FULL;
  loop->u.loop.body = block;
  return hd_block_of_one(l->arena, loop);
}

bool hd_nest_is_vector(const hd_nest_t *nest, const hd_expr_t *condition,
                       const hd_expr_t *value, bool fixed) {
  const hd_tile_t *tile = nest->tile;
  hd_point_lowering_t *l = tile->l;
  const hd_expr_t *place = hd_nest_expr(nest, tile->point->u.point.place);
  hd_stmt_list_t list = {0};
  hd_push_if(tile, condition,
             hd_block_of_one(l->arena, hd_make_store(tile, place, value)),
             (hd_block_t){0}, &list);
  hd_block_t lanes = hd_nest_lanes(nest, hd_block_of(l->arena, &list));
  hd_simplifier_t simplifier = {.budget = &l->module->context->budget,
                                .arena = l->arena,
                                .scratch = l->arena,
                                .facts = l->facts};
  hd_facts_mark_t mark = hd_facts_mark(l->facts);
  for (unsigned a = 0; a < nest->mapping->rank; ++a)
    hd_facts_loop(l->facts, nest->vars[a], hd_expr_i32(l->arena, 0),
                  hd_expr_i32(l->arena, nest->mapping->dims[a]), NULL);
  bool ok = hd_loop_is_vector(&simplifier, lanes.stmts[0], fixed);
  hd_facts_reset(l->facts, mark);
  return ok;
}

void hd_nest_end(const hd_nest_t *nest, const hd_expr_t *const *bounds,
                 hd_block_t block, hd_stmt_list_t *out) {
  hd_arena_t *arena = nest->tile->l->arena;
  hd_stmt_t *loop = hd_stmt_copy(arena, nest->tile->loop);
  const hd_var_t **vars =
      HD_ARENA_ARRAY(arena, const hd_var_t *, nest->mapping->rank);
  for (unsigned a = 0; a < nest->mapping->rank; ++a)
    vars[a] = nest->vars[a];
  loop->u.mapfor.vars = vars;
  loop->u.mapfor.mapping =
      bounds ? hd_mapping_within(arena, nest->mapping, bounds) : nest->mapping;
  loop->u.mapfor.worker = nest->tile->worker;
  loop->u.mapfor.unroll = nest->unroll;
  loop->u.mapfor.body = block;
  hd_stmt_list_push(arena, out, loop);
}

// Statements

hd_block_t hd_block_of(hd_arena_t *arena, const hd_stmt_list_t *list) {
  return hd_block_make(arena, list->data, list->size);
}

hd_block_t hd_block_of_one(hd_arena_t *arena, const hd_stmt_t *stmt) {
  return hd_block_make(arena, &stmt, 1);
}

const hd_stmt_t *hd_make_store(const hd_tile_t *tile, const hd_expr_t *place,
                               const hd_expr_t *value) {
  hd_stmt_t *stmt =
      hd_stmt_make(tile->l->arena, HD_STMT_STORE, tile->point->loc);
  stmt->u.store.var = place->u.var;
  stmt->u.store.num_indices = place->num_operands;
  stmt->u.store.indices = place->operands;
  stmt->u.store.value = value;
  return stmt;
}

void hd_push_if(const hd_tile_t *tile, const hd_expr_t *condition,
                hd_block_t then, hd_block_t otherwise, hd_stmt_list_t *out) {
  if (!condition) {
    for (uint32_t i = 0; i < then.size; ++i)
      hd_stmt_list_push(tile->l->arena, out, then.stmts[i]);
    return;
  }
  hd_stmt_t *stmt = hd_stmt_make(tile->l->arena, HD_STMT_IF, tile->point->loc);
  stmt->u.branch.condition = condition;
  stmt->u.branch.then = then;
  stmt->u.branch.otherwise = otherwise;
  hd_stmt_list_push(tile->l->arena, out, stmt);
}

void hd_push_call(const hd_tile_t *tile, hd_intrinsic_t intrinsic,
                  const hd_expr_t *const *operands, unsigned count,
                  hd_stmt_list_t *out) {
  hd_expr_t like = {.u.intrinsic = (int)intrinsic, .loc = tile->point->loc};
  hd_stmt_t *stmt =
      hd_stmt_make(tile->l->arena, HD_STMT_EVAL, tile->point->loc);
  stmt->u.eval.value = hd_expr_make(tile->l->arena, HD_EXPR_INTRINSIC,
                                    hd_intrinsic_info(intrinsic)->result, &like,
                                    operands, count);
  hd_stmt_list_push(tile->l->arena, out, stmt);
}
