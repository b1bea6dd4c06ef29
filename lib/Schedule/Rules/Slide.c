// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A function of one small reduction, a thread for several neighbours:
//
//   y[b, i, j, f] = max(p: 3, q: 3) x[b, i * 2 + p - 1, j * 2 + q - 1, f] else
//   c
//
// becomes, a thread having 8 neighbours along f and 2 along j,
//
//   register acc: f16[2, 8] = -inf
//   for p in 0..3 {
//     register row: f16[5, 8]
//     for e in 0..8 unroll { row[0, e] = x[b, i * 2 + p - 1, j * 4 - 1, f * 8 +
//     e] else c }
//     ...
//     for t, q, e in 0..2, 0..3, 0..8 unroll {
//       acc[t, e] = max(acc[t, e], row[t * 2 + q, e])
//     }
//   }
//   for t, e in 0..2, 0..8 unroll { y[b, i, j * 2 + t, f * 8 + e] = acc[t, e] }
//
// The lanes e lie side by side wherever they are read, so that they are
// accessed by 16 bytes at once (pass vectorize). The tile t is an axis along
// which the windows of neighbours overlap: all that is read there is a function
// of j * step + q * dilation, which is read once for all who have it. Each
// element is combined in the order of the reduction, whatever the monoid; sums
// and other monoids whose order is free by columns: what windows of a tile have
// in common is combined once, too.
#include "Schedule/Rules/Slide.h"

enum {
  THREADS = 128,
  MOST_UNROLLED = 12, // Vectors that are asked for at once,
  AT_HAND = 64,       // in so many registers.
};

typedef struct slide {
  hd_kernel_draft_t draft;
  hd_slide_t of;
  // Where the tile and the lanes begin.
  const hd_expr_t *first_at, *first_lane;
  // Where what is combined may change its order, all rows of a column are
  // first: that is what windows of a tile have in common.
  bool by_columns;
  const hd_var_t *acc[HD_MAX_COMPONENTS], *row[HD_MAX_COMPONENTS];
  const hd_var_t *column[HD_MAX_COMPONENTS];
} slide_t;

static const hd_expr_t *plus(slide_t *s, const hd_expr_t *first,
                             const hd_expr_t *more) {
  return hd_b_op(&s->draft.b, HD_EXPR_ADD, first, more);
}

// The place number t of the tile; of those outside, the last one inside, so
// that what is read for them is there.
static void bind_tile(slide_t *s, int64_t t) {
  hd_builder_t *b = &s->draft.b;
  if (!s->of.at)
    return;
  int64_t size = hd_flat_range(s->of.at);
  const hd_expr_t *at = hd_b_op_int(b, HD_EXPR_ADD, s->first_at, t);
  if ((size - 1) / s->of.tile * s->of.tile + t >= size)
    at = hd_b_op_int(b, HD_EXPR_MIN, at, size - 1);
  hd_translate_bind(&s->draft.t, s->of.at, at);
}

// for e in 0..lanes unroll, as the last index; NULL: there is one.
static const hd_var_t *open_lanes(slide_t *s, hd_open_block_t *block) {
  hd_builder_t *b = &s->draft.b;
  if (s->of.lanes == 1)
    return NULL;
  const hd_var_t *e =
      hd_b_loop_var(b, "e", (hd_scalar_t)s->first_lane->type.scalar);
  hd_b_open(b, block);
  hd_translate_bind(&s->draft.t, s->of.last,
                    plus(s, s->first_lane, hd_expr_var(b->arena, e)));
  return e;
}

static void close_unrolled(slide_t *s, const hd_var_t *var, int64_t count) {
  hd_builder_t *b = &s->draft.b;
  if (!var)
    return;
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, var, hd_b_int(b, var->type.scalar, 0),
           hd_b_int(b, var->type.scalar, count), NULL, HD_UNROLL_FULL, body);
}

static const hd_expr_t *lane(slide_t *s, const hd_var_t *e) {
  hd_builder_t *b = &s->draft.b;
  return e ? hd_b_cast(b, HD_I32, hd_expr_var(b->arena, e)) : hd_b_i32(b, 0);
}

// row[place] = what is reduced there, as its first reader has it.
static void read_place(slide_t *s, int64_t place, int64_t t,
                       const hd_expr_t *q) {
  hd_builder_t *b = &s->draft.b;
  const hd_term_t *r = s->of.reduced.reduction;
  bind_tile(s, t);
  hd_translate_bind(&s->draft.t, s->of.in, q);
  hd_open_block_t block;
  const hd_var_t *e = open_lanes(s, &block);
  const hd_expr_t *at[] = {hd_b_i32(b, place), lane(s, e)};
  for (unsigned i = 0; i < r->num_operands; i++)
    hd_b_store(b, s->row[i], at, 2, hd_translate(&s->draft.t, r->operands[i]));
  close_unrolled(s, e, s->of.lanes);
}

static void declare(slide_t *s, const char *name, int64_t places, bool begins,
                    const hd_var_t **vars) {
  const hd_term_t *r = s->of.reduced.reduction;
  hd_builder_t *b = &s->draft.b;
  int64_t shape[] = {places, s->of.lanes};
  for (unsigned i = 0; i < r->num_operands; i++) {
    hd_scalar_t type = r->operands[i]->type.scalar;
    const hd_term_t *identity =
        hd_flat_identity(b->arena, r->u.reduction->monoid, i, type);
    vars[i] =
        hd_b_register(b, name, type, shape, 2,
                      begins ? hd_translate(&s->draft.t, identity) : NULL);
  }
}

// to[t] takes from[place] on its right.
static void combine(slide_t *s, const hd_var_t *const *to, const hd_expr_t *t,
                    const hd_var_t *const *values, const hd_expr_t *place) {
  hd_builder_t *b = &s->draft.b;
  const hd_expr_t *left[HD_MAX_COMPONENTS], *right[HD_MAX_COMPONENTS];
  const hd_expr_t *both[HD_MAX_COMPONENTS];
  unsigned count = s->of.reduced.reduction->num_operands;
  hd_open_block_t block;
  const hd_var_t *e = open_lanes(s, &block);
  const hd_expr_t *into[] = {t, lane(s, e)}, *from[] = {place, lane(s, e)};
  for (unsigned i = 0; i < count; i++) {
    left[i] = hd_b_let(b, "left", hd_b_load(b, to[i], into, 2));
    right[i] = hd_b_let(b, "right", hd_b_load(b, values[i], from, 2));
  }
  hd_translate_combination(&s->draft.t, s->of.reduced.reduction, left, right,
                           both);
  for (unsigned i = 0; i < count; i++)
    both[i] = hd_b_let(b, "both", both[i]);
  for (unsigned i = 0; i < count; i++)
    hd_b_store(b, to[i], into, 2, both[i]);
  close_unrolled(s, e, s->of.lanes);
}

// What each window of the tile makes of a row, or of columns.
static void put_windows(slide_t *s, const hd_var_t *const *values) {
  hd_builder_t *b = &s->draft.b;
  const hd_var_t *tv = hd_b_loop_var(b, "t", HD_I32);
  const hd_var_t *qv = hd_b_loop_var(b, "q", HD_I32);
  const hd_expr_t *te = hd_expr_var(b->arena, tv),
                  *qe = hd_expr_var(b->arena, qv);
  hd_open_block_t outer, inner;
  hd_b_open(b, &outer);
  hd_b_open(b, &inner);
  combine(s, s->acc, te, values,
          plus(s, hd_b_op_int(b, HD_EXPR_MUL, te, s->of.step),
               hd_b_op_int(b, HD_EXPR_MUL, qe, s->of.dilation)));
  close_unrolled(s, qv, hd_flat_range(s->of.in));
  close_unrolled(s, tv, s->of.tile);
}

// A row of windows: all that they read of it, then what is made of that.
static void put_row(slide_t *s) {
  hd_builder_t *b = &s->draft.b;
  int64_t t, q, width = hd_slide_width(&s->of, s->of.tile);
  declare(s, "row", width, false, s->row);
  for (int64_t place = 0; place < width; place++)
    if (hd_slide_reader(&s->of, s->of.tile, place, &t, &q))
      read_place(s, place, t, hd_b_i32(b, q));
  for (int64_t place = 0; place < width && s->by_columns; place++)
    if (hd_slide_reader(&s->of, s->of.tile, place, &t, &q))
      combine(s, s->column, hd_b_i32(b, place), s->row, hd_b_i32(b, place));
  if (!s->by_columns)
    put_windows(s, s->row);
}

// Windows longer than a thread has at once, or that move along nothing.
static void put_element(slide_t *s, const hd_expr_t *q) {
  declare(s, "row", 1, false, s->row);
  read_place(s, 0, 0, q);
  combine(s, s->acc, hd_b_i32(&s->draft.b, 0), s->row,
          hd_b_i32(&s->draft.b, 0));
}

static void put_loops(slide_t *s, unsigned depth, int unroll) {
  hd_kernel_draft_t *draft = &s->draft;
  hd_builder_t *b = &draft->b;
  const hd_reduction_t *r = s->of.reduced.reduction->u.reduction;
  bool innermost = depth + 1 == r->num_indices;
  if (innermost && s->of.at) {
    put_row(s);
    return;
  }
  const hd_index_t *index = r->indices[depth];
  hd_scalar_t type = hd_translate_index_type(index);
  const hd_var_t *var = hd_b_loop_var(b, index->name, type);
  const hd_expr_t *at = hd_expr_var(b->arena, var);
  hd_open_block_t block;
  hd_b_open(b, &block);
  if (innermost) {
    put_element(s, at);
  } else {
    hd_translate_bind(&draft->t, index, at);
    put_loops(s, depth + 1, unroll);
  }
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, var, hd_b_int(b, type, 0),
           hd_b_int(b, type, hd_flat_range(index)), NULL, unroll, body);
}

static void put_results(slide_t *s) {
  hd_builder_t *b = &s->draft.b;
  const hd_expr_t *values[HD_MAX_COMPONENTS];
  hd_open_block_t outer, inner, block;
  const hd_var_t *tv = hd_b_loop_var(b, "t", HD_I32);
  const hd_expr_t *t =
      s->of.tile > 1 ? hd_expr_var(b->arena, tv) : hd_b_i32(b, 0);
  if (s->of.tile > 1)
    hd_b_open(b, &outer);
  const hd_expr_t *at = s->of.at ? plus(s, s->first_at, t) : NULL;
  bool ends = s->of.at && hd_flat_range(s->of.at) % s->of.tile;
  if (at)
    hd_translate_bind(&s->draft.t, s->of.at, at);
  if (ends)
    hd_b_open(b, &inner);
  const hd_var_t *e = open_lanes(s, &block);
  const hd_expr_t *from[] = {t, lane(s, e)};
  for (unsigned i = 0; i < s->of.reduced.reduction->num_operands; i++)
    values[i] = hd_b_load(b, s->acc[i], from, 2);
  hd_draft_store_reduced(&s->draft, &s->of.reduced, values);
  close_unrolled(s, e, s->of.lanes);
  if (ends) {
    hd_block_t then = hd_b_close(b);
    hd_b_if(b, hd_b_op_int(b, HD_EXPR_LT, at, hd_flat_range(s->of.at)), then,
            (hd_block_t){0});
  }
  if (s->of.tile > 1)
    close_unrolled(s, tv, s->of.tile);
}

// The thread's indices, and where its tile and lanes begin.
static hd_grid_t place_thread(slide_t *s, hd_open_block_t *block) {
  hd_kernel_draft_t *draft = &s->draft;
  hd_builder_t *b = &draft->b;
  uint32_t rank = s->of.definition->num_indices;
  const hd_index_t *indices[HD_MAX_RANK], *tile = NULL, *lanes = NULL;
  for (uint32_t i = 0; i < rank; i++) {
    const hd_index_t *index = indices[i] = s->of.definition->indices[i];
    int64_t range = hd_flat_range(index);
    if (index == s->of.at)
      indices[i] = tile = hd_flat_index_make(
          b->arena, index->name, (range + s->of.tile - 1) / s->of.tile);
    else if (index == s->of.last && s->of.lanes > 1)
      indices[i] = lanes =
          hd_flat_index_make(b->arena, index->name, range / s->of.lanes);
  }
  hd_grid_t grid = hd_grid_linear(hd_flat_points(indices, rank), THREADS);
  hd_draft_place(draft, hd_draft_open_workers(draft, &grid, block), indices,
                 rank);
  if (tile)
    s->first_at = hd_b_op_int(
        b, HD_EXPR_MUL, hd_ptr_map_get(&draft->t.indices, tile), s->of.tile);
  if (lanes)
    s->first_lane = hd_b_op_int(
        b, HD_EXPR_MUL, hd_ptr_map_get(&draft->t.indices, lanes), s->of.lanes);
  return grid;
}

bool hd_rule_slide(hd_rules_t *rules, const hd_definition_t *d) {
  slide_t *s = HD_ARENA_NEW(&rules->module->arena, slide_t);
  if (!hd_slide_find(&rules->module->arena, d, &s->of))
    return false;
  hd_draft_begin(&s->draft, rules);
  hd_open_block_t block;
  hd_grid_t grid = place_thread(s, &block);
  const hd_reduction_t *r = s->of.reduced.reduction->u.reduction;
  int64_t rows = hd_flat_points(r->indices, r->num_indices) /
                 (s->of.at ? hd_flat_range(s->of.in) : 1);
  int64_t read = rows * (s->of.at ? hd_slide_count(&s->of, s->of.tile) : 1);
  bool at_once = read <= MOST_UNROLLED &&
                 rows * hd_slide_bits(&s->of, s->of.tile) <= AT_HAND * 32;
  s->by_columns =
      s->of.tile > 1 && rows > 1 && r->monoid->builtin != HD_MONOID_COUNT;
  if (s->by_columns)
    declare(s, "column", hd_slide_width(&s->of, s->of.tile), true, s->column);
  else
    declare(s, "acc", s->of.tile, true, s->acc);
  put_loops(s, 0, at_once ? HD_UNROLL_FULL : 0);
  if (s->by_columns) {
    declare(s, "acc", s->of.tile, true, s->acc);
    put_windows(s, s->column);
  }
  put_results(s);
  hd_draft_finish_workers(&s->draft, &grid, "");
  return true;
}
