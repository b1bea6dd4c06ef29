// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Part of pass lower-points: results on their way through shared memory.
#include "IR/Held.h"
#include "TaskMapping/Points.h"

int64_t hd_tile_widest(const hd_tile_t *tile) {
  const hd_expr_t *staging = tile->point->u.point.staging;
  int64_t bits =
      hd_type_bits((staging ? staging : tile->point->u.point.place)->type);
  return bits < 8 ? 1 : HD_POINT_CHUNK * 8 / bits;
}

void hd_stage_barrier(const hd_tile_t *tile) {
  const hd_expr_t *operands[] = {tile->point->u.point.barrier,
                                 tile->point->u.point.threads};
  if (operands[0])
    hd_push_call(tile, HD_INTRINSIC_BARRIER_SYNC, operands, 2, tile->out);
  else
    hd_push_call(tile, HD_INTRINSIC_BARRIER, NULL, 0, tile->out);
}

// An element of global memory, or 0 outside: staging computes all of the tile.
static const hd_expr_t *guard(hd_rewriter_t *rewriter, const hd_expr_t *e) {
  const hd_expr_t *operands[HD_MAX_RANK + 1];
  if (e->kind != HD_EXPR_LOAD || e->linear || e->num_operands == 0 ||
      e->u.var->tensor->scope != HD_SCOPE_GLOBAL)
    return e;
  for (unsigned i = 0; i < e->num_operands; ++i)
    operands[i] = e->operands[i];
  hd_arena_t *arena = rewriter->arena;
  hd_type_t element = hd_type((hd_scalar_t)e->type.scalar);
  const hd_expr_t *zero = hd_zero(arena, element);
  operands[e->num_operands] =
      e->type.lanes == 1
          ? zero
          : hd_expr_make(arena, HD_EXPR_VECTOR, e->type, NULL, &zero, 1);
  return hd_expr_access(arena, HD_EXPR_LOADELSE, e->u.var, e->type.lanes,
                        operands, e->num_operands + 1);
}

// An integer in the bits of an element that has room for it, and back.

static hd_type_t bits_of(hd_type_t room) {
  return hd_type_is_integer(room) ? room : hd_type(HD_U16);
}

static const hd_expr_t *held(hd_arena_t *arena, hd_type_t room,
                             const hd_expr_t *value) {
  if (hd_type_equal(room, value->type))
    return value;
  value = hd_expr_cast(arena, bits_of(room), value);
  return hd_type_equal(room, value->type)
             ? value
             : hd_expr_make(arena, HD_EXPR_BITCAST, room, value, &value, 1);
}

static const hd_expr_t *let_go(hd_arena_t *arena, hd_type_t type,
                               const hd_expr_t *kept) {
  if (hd_type_equal(type, kept->type))
    return kept;
  hd_type_t bits = bits_of(kept->type);
  if (!hd_type_equal(bits, kept->type))
    kept = hd_expr_make(arena, HD_EXPR_BITCAST, bits, kept, &kept, 1);
  return hd_expr_cast(arena, type, kept);
}

// What a worker does one after the other together; where there are maps there
// is stmatrix.
void hd_stage(const hd_tile_t *tile, const hd_tile_t *by) {
  const hd_stmt_t *point = tile->point;
  hd_arena_t *arena = tile->l->arena;
  hd_rewriter_t rewriter = {.arena = arena, .expr = guard};
  const hd_type_t room = point->u.point.staging->type;
  const hd_expr_t *value =
      held(arena, room, hd_rewrite_expr(&rewriter, point->u.point.value));
  bool is_turned = by != tile;
  if (tile->l->func->num_maps > 0 && hd_push_matrices(tile, by, value))
    return;
  int64_t width = is_turned ? 1 : hd_tile_widest(tile);
  const hd_mapping_t *chunks = NULL;
  while (!chunks) {
    chunks = hd_mapping_divide(arena, tile->mapping, width);
    width = chunks ? width : width / 2;
  }
  hd_nest_t nest =
      hd_nest_begin(tile, chunks, width, tile->loop->u.mapfor.unroll);
  const hd_stmt_t *store =
      hd_make_store(tile, hd_nest_expr(&nest, point->u.point.staging),
                    hd_nest_expr(&nest, value));
  hd_nest_end(&nest, NULL, hd_nest_lanes(&nest, hd_block_of_one(arena, store)),
              tile->out);
}

const hd_expr_t *hd_staged(const hd_tile_t *tile) {
  const hd_expr_t *staging = tile->point->u.point.staging;
  const hd_expr_t *kept =
      hd_expr_make(tile->l->arena, HD_EXPR_LOAD, staging->type, staging,
                   staging->operands, staging->num_operands);
  return let_go(tile->l->arena, tile->point->u.point.place->type, kept);
}

bool hd_tile_is_square(const hd_tile_t *tile) {
  return tile->mapping->dims[0] == tile->mapping->dims[1];
}

hd_tile_t hd_tile_turned(const hd_tile_t *tile) {
  hd_arena_t *arena = tile->l->arena;
  const hd_mapping_t *m = tile->mapping;
  int64_t dims[] = {m->dims[1], m->dims[0]};
  hd_tile_t other = *tile;
  hd_stmt_t *loop = hd_stmt_copy(arena, tile->loop);
  hd_stmt_t *point = hd_stmt_copy(arena, tile->point);
  const hd_var_t **vars = HD_ARENA_ARRAY(arena, const hd_var_t *, 2);
  hd_rewriter_t rewriter = {.arena = arena};
  for (unsigned a = 0; a < 2; ++a) {
    vars[a] = tile->loop->u.mapfor.vars[1 - a];
    hd_rewriter_substitute(&rewriter, tile->loop->u.mapfor.vars[a],
                           hd_expr_var(arena, vars[a]));
  }
  if (hd_tile_is_square(tile))
    point->u.point.staging = hd_rewrite_expr(&rewriter, point->u.point.staging);
  other.mapping = hd_mapping_auto(arena, dims, 2, m->workers);
  loop->u.mapfor.vars = vars;
  loop->u.mapfor.mapping = other.mapping;
  other.loop = loop;
  other.point = point;
  return other;
}
