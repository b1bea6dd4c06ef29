// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Part of pass lower-points: fragments of products to shared memory by
// stmatrix. In the order of mma and wgmma a lane of a warp has of every 8 x 8
// elements two neighbours of row lane / 4, columns 2 * (lane % 4) and the next;
// an instruction stores four such matrices, 16 x 16 elements, a lane naming one
// of their 32 rows of 16 bytes. Fewer instructions than pairs would take, and
// no bank conflict where the layout has its rows of eight in different banks.
// From the PTX manual, "stmatrix".
#include "TaskMapping/Points.h"
#include "TaskMapping/TaskMapping.h"

enum { MAX_PARTS = 16, LANES = 32, SIDE = 16, FRAGMENT = 8 };

// A composition's parts from left to right; false where there are too many.
static bool take_apart(const hd_mapping_t *m, const hd_mapping_t **parts,
                       unsigned *count) {
  if (m->kind == HD_MAPPING_COMPOSE)
    return take_apart(m->left, parts, count) &&
           take_apart(m->right, parts, count);
  if (*count == MAX_PARTS)
    return false;
  parts[(*count)++] = m;
  return true;
}

static bool is_part(const hd_mapping_t *m, hd_mapping_kind_t kind, int64_t rows,
                    int64_t columns) {
  return m->kind == kind && !m->order && m->dims[0] == rows &&
         m->dims[1] == columns;
}

// ... * repeat(1, 2 n) * repeat(2, 1) * spatial(8, 4) * repeat(1, 2) counted in
// blocks of 16 x 16, and warps; NULL for other mappings.
static const hd_mapping_t *blocks_of(hd_arena_t *arena, const hd_mapping_t *m) {
  const hd_mapping_t *parts[MAX_PARTS];
  unsigned n = 0;
  if (m->rank != 2 || !take_apart(m, parts, &n) || n < 4 ||
      !is_part(parts[n - 1], HD_MAPPING_REPEAT, 1, 2) ||
      !is_part(parts[n - 2], HD_MAPPING_SPATIAL, 8, 4) ||
      !is_part(parts[n - 3], HD_MAPPING_REPEAT, 2, 1) ||
      !is_part(parts[n - 4], HD_MAPPING_REPEAT, 1, parts[n - 4]->dims[1]) ||
      parts[n - 4]->dims[1] % 2 != 0)
    return NULL;
  int64_t dims[] = {1, parts[n - 4]->dims[1] / 2};
  const hd_mapping_t *blocks = hd_mapping_repeat(arena, dims, NULL, 2);
  for (unsigned i = n - 4; blocks && i-- > 0;)
    blocks = hd_mapping_compose(arena, parts[i], blocks);
  return blocks;
}

// Whether worker % 32 is the lane: a thread's index, or that modulo warps.
static bool counts_lanes(const hd_tile_t *tile) {
  const hd_expr_t *worker = tile->worker;
  int64_t warps;
  if (worker && worker->kind == HD_EXPR_VAR)
    worker = hd_ptr_map_get(&tile->l->lets, worker->u.var);
  if (worker && worker->kind == HD_EXPR_MOD &&
      hd_expr_fold_int(worker->operands[1], &warps) && warps % LANES == 0)
    worker = worker->operands[0];
  return worker && worker->kind == HD_EXPR_BUILTIN &&
         worker->u.builtin == HD_BUILTIN_THREAD;
}

static const hd_expr_t *binary(const hd_tile_t *tile, hd_expr_kind_t kind,
                               const hd_expr_t *a, int64_t b) {
  hd_arena_t *arena = tile->l->arena;
  return hd_expr_binary(arena, kind, a, hd_expr_i32(arena, b));
}

// block * 16 + more, for both axes.
static void set_place(hd_nest_t *nest, const hd_expr_t *row,
                      const hd_expr_t *column) {
  const hd_expr_t *more[] = {row, column};
  for (unsigned a = 0; a < 2; ++a)
    nest->values[a] = hd_expr_binary(
        nest->tile->l->arena, HD_EXPR_ADD,
        binary(nest->tile, HD_EXPR_MUL, nest->firsts[a], SIDE), more[a]);
}

static const hd_var_t *declare_fragment(const hd_tile_t *tile) {
  hd_arena_t *arena = tile->l->arena;
  const hd_expr_t **shape = HD_ARENA_NEW(arena, const hd_expr_t *);
  *shape = hd_expr_i32(arena, FRAGMENT);
  hd_tensor_t *tensor = HD_ARENA_NEW(arena, hd_tensor_t);
  *tensor = (hd_tensor_t){.scope = HD_SCOPE_REGISTER,
                          .element = tile->point->u.point.staging->type,
                          .rank = 1,
                          .shape = shape};
  hd_stmt_t *stmt = hd_stmt_make(arena, HD_STMT_DECLARE, tile->point->loc);
  stmt->u.declare.var =
      hd_var_make_tensor(arena, "fragment", tensor, tile->point->loc);
  hd_stmt_list_push(arena, tile->out, stmt);
  return stmt->u.declare.var;
}

static const hd_expr_t *element_of(const hd_tile_t *tile, const hd_var_t *var,
                                   int64_t i) {
  const hd_expr_t *index = hd_expr_i32(tile->l->arena, i);
  return hd_expr_access(tile->l->arena, HD_EXPR_REF, var, 1, &index, 1);
}

// The row of 16 bytes that a lane names: rows of the tile, or columns, of which
// an instruction turns each matrix.
static const hd_expr_t *row_of(hd_nest_t *nest, const hd_expr_t *lane,
                               bool is_turned) {
  const hd_tile_t *tile = nest->tile;
  const hd_expr_t *half = binary(
      tile, HD_EXPR_MUL, binary(tile, HD_EXPR_DIV, lane, SIDE), SIDE / 2);
  const hd_expr_t *row = binary(tile, HD_EXPR_MOD, lane, SIDE);
  if (is_turned)
    set_place(nest,
              binary(tile, HD_EXPR_MUL,
                     binary(tile, HD_EXPR_DIV, row, SIDE / 2), SIDE / 2),
              hd_expr_binary(tile->l->arena, HD_EXPR_ADD, half,
                             binary(tile, HD_EXPR_MOD, lane, SIDE / 2)));
  else
    set_place(nest, row, half);
  return hd_nest_expr(nest, tile->point->u.point.staging);
}

bool hd_push_matrices(const hd_tile_t *tile, const hd_tile_t *by,
                      const hd_expr_t *value) {
  const hd_expr_t *staging = tile->point->u.point.staging, *all = NULL;
  hd_arena_t *arena = tile->l->arena;
  hd_tile_window_t window;
  const hd_mapping_t *blocks = blocks_of(arena, tile->mapping);
  if (!blocks || !counts_lanes(tile) || hd_type_bits(staging->type) != 16 ||
      !hd_tile_window_find(by, staging, &window) ||
      !hd_tile_window_is_aligned(by, &window, FRAGMENT, &all) || all)
    return false;
  const hd_var_t *fragment = declare_fragment(tile);
  const hd_expr_t *lane = hd_expr_builtin(arena, HD_BUILTIN_LANE_ID);
  const hd_expr_t *row = binary(tile, HD_EXPR_DIV, lane, 4);
  const hd_expr_t *column =
      binary(tile, HD_EXPR_MUL, binary(tile, HD_EXPR_MOD, lane, 4), 2);
  hd_tile_t warps = *tile;
  warps.worker = binary(tile, HD_EXPR_DIV, tile->worker, LANES);
  hd_nest_t nest = hd_nest_begin(&warps, blocks, 1, HD_UNROLL_FULL);
  hd_stmt_list_t list = {0};
  for (unsigned i = 0; i < FRAGMENT; ++i) {
    set_place(&nest, binary(tile, HD_EXPR_ADD, row, i / 2 % 2 * 8),
              binary(tile, HD_EXPR_ADD, column, i / 4 * 8 + i % 2));
    hd_stmt_list_push(arena, &list,
                      hd_make_store(tile, element_of(tile, fragment, i),
                                    hd_nest_expr(&nest, value)));
  }
  const hd_expr_t *operands[] = {row_of(&nest, lane, by != tile),
                                 element_of(tile, fragment, 0)};
  hd_push_call(tile,
               by == tile ? HD_INTRINSIC_STMATRIX_X4
                          : HD_INTRINSIC_STMATRIX_X4_TRANS,
               operands, 2, &list);
  hd_nest_end(&nest, NULL, hd_block_of(arena, &list), tile->out);
  return true;
}
