// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The statements of a kernel over rows: what a thread does with its elements in
// each phase, and what it does between them. The elements that it takes are
// those of a loop over a task mapping, which a template or the rule says.
#include "Schedule/Rows/Rows.h"

#include "TaskMapping/Points.h"

#include <string.h>

enum {
  EARLY = HD_MAX_PHASES + 1, // Before all phases.
  MOST_LANES = 16,           // Neighbours that are taken as one.
};

static bool computes(const hd_rows_t *rows, const hd_row_step_t *step,
                     unsigned phase) {
  return step->kind == HD_ROW_REDUCE
             ? step->phase == phase
             : step->kind == HD_ROW_VECTOR && phase == rows->phases &&
                   step->stored;
}

// The element that the kernel's text has for the one that is read.
static const hd_expr_t *given_at(hd_row_maker_t *m, const hd_expr_t *at) {
  hd_rewriter_t rewriter = {.arena = m->draft.b.arena};
  hd_rewriter_substitute(&rewriter, m->loop->u.mapfor.vars[0], at);
  return hd_rewrite_expr(&rewriter, m->given);
}

// Evaluates a step at the element, and keeps it where that is wanted.
static const hd_expr_t *
make_vector(hd_row_maker_t *m, const hd_row_step_t *step, const hd_expr_t *at) {
  hd_builder_t *b = &m->draft.b;
  const hd_task_value_t *value = step->values[0];
  const hd_expr_t *e = m->given && step == m->rows->main
                           ? given_at(m, at)
                           : hd_translate(&m->draft.t, step->term);
  e = hd_b_let(b, value->name, hd_b_cast(b, value->type.scalar, e));
  if (step->is_kept)
    hd_b_store(b, step->cells[0], &at, 1, e);
  if (step->in_place) {
    const hd_expr_t *place = given_at(m, at);
    hd_b_store(b, place->u.var, place->operands, place->num_operands, e);
  }
  return e;
}

// What a step is worth at the element, for later steps to find.
static void put_vector(hd_row_maker_t *m, const hd_row_step_t *step,
                       unsigned phase, const hd_expr_t *at) {
  hd_builder_t *b = &m->draft.b;
  const hd_task_value_t *value = step->values[0];
  uint32_t before = (UINT32_C(1) << phase) - 1;
  const hd_expr_t *e;
  if (step->is_kept && (step->is_early || (step->phases & before))) {
    e = hd_b_load(b, step->cells[0], &at, 1);
  } else if (step->in_place && (step->phases & before)) {
    e = hd_b_let(b, value->name, given_at(m, at));
  } else {
    e = make_vector(m, step, at);
  }
  hd_ptr_map_set(b->arena, &m->draft.t.values, value, e);
}

static void put_early(hd_row_maker_t *m, const hd_expr_t *at) {
  for (size_t i = 0; i < m->rows->steps.size; i++)
    if (m->rows->steps.data[i]->is_early)
      make_vector(m, m->rows->steps.data[i], at);
}

static void put_element(hd_row_maker_t *m, unsigned phase,
                        const hd_expr_t *at) {
  hd_rows_t *rows = m->rows;
  hd_translator_t *t = &m->draft.t;
  if (phase == EARLY) {
    put_early(m, at);
    return;
  }
  for (size_t i = 0; i < rows->steps.size; i++) {
    const hd_row_step_t *step = rows->steps.data[i];
    if (step->kind == HD_ROW_VECTOR && (step->phases >> phase & 1))
      put_vector(m, step, phase, at);
    if (!computes(rows, step, phase))
      continue;
    if (step->kind == HD_ROW_REDUCE)
      hd_translate_step(t, step->term, step->cells);
    else
      hd_draft_store(&m->draft, step->definition, 0,
                     hd_ptr_map_get(&t->values, step->values[0]));
  }
}

// --- Elements by a loop over a mapping ---

// repeat(turns) * rest, of which a worker takes `lanes` neighbours at a time.
typedef struct tile {
  const hd_mapping_t *rest; // Divided by lanes.
  int64_t turns, lanes;
} tile_t;

static const hd_mapping_t *without_bounds(const hd_mapping_t *m) {
  return m->kind == HD_MAPPING_WITHIN ? m->left : m;
}

// What is composed with a leading repeat(n); NULL: the mapping does not begin
// with one, or is nothing else.
static const hd_mapping_t *
without_turns(hd_arena_t *arena, const hd_mapping_t *m, int64_t *turns) {
  if (m->kind != HD_MAPPING_COMPOSE)
    return NULL;
  if (m->left->kind == HD_MAPPING_SPATIAL && m->left->workers == 1) {
    const hd_mapping_t *rest = without_turns(arena, m->right, turns);
    return rest ? rest : m->right;
  }
  if (m->left->kind == HD_MAPPING_REPEAT) {
    *turns = m->left->dims[0];
    return m->right;
  }
  const hd_mapping_t *left = without_turns(arena, m->left, turns);
  return left ? hd_mapping_compose(arena, left, m->right) : NULL;
}

static tile_t take_apart(hd_arena_t *arena, const hd_mapping_t *m,
                         int64_t points) {
  tile_t tile = {without_bounds(m), 1, 1};
  const hd_mapping_t *rest = without_turns(arena, tile.rest, &tile.turns);
  const hd_mapping_t *last = tile.rest = rest ? rest : tile.rest;
  while (last->kind == HD_MAPPING_COMPOSE)
    last = last->right;
  if (last->kind == HD_MAPPING_REPEAT)
    for (tile.lanes = MOST_LANES;
         last->dims[0] % tile.lanes || points % tile.lanes;)
      tile.lanes /= 2;
  tile.rest = hd_mapping_divide(arena, tile.rest, tile.lanes);
  return tile;
}

// The thread's chunks from number `first` on, of so many that are left; NULL:
// enough for all of them.
static void put_chunks(hd_row_maker_t *m, unsigned phase, const tile_t *tile,
                       const hd_expr_t *first, const hd_expr_t *left) {
  hd_builder_t *b = &m->draft.b;
  const hd_stmt_t *loop = m->loop;
  const hd_row_axes_t *axes = &m->rows->element;
  const hd_var_t **vars = HD_ARENA_ARRAY(b->arena, const hd_var_t *, 1);
  const hd_var_t *chunk = vars[0] = hd_b_loop_var(b, "chunk", HD_I32);
  const hd_var_t *lane = hd_b_loop_var(b, "v", HD_I32);
  hd_open_block_t chunks, lanes;
  hd_b_open(b, &chunks);
  const hd_expr_t *at =
      hd_b_op(b, HD_EXPR_ADD, first, hd_expr_var(b->arena, chunk));
  at = hd_b_let(b, "at", hd_b_op_int(b, HD_EXPR_MUL, at, tile->lanes));
  hd_b_open(b, &lanes);
  if (tile->lanes > 1)
    at = hd_b_op(b, HD_EXPR_ADD, at, hd_expr_var(b->arena, lane));
  hd_draft_place(&m->draft, m->base ? hd_b_op(b, HD_EXPR_ADD, m->base, at) : at,
                 axes->indices, axes->count);
  put_element(m, phase, at);
  hd_block_t body = hd_b_close(b);
  if (tile->lanes > 1)
    hd_b_for(b, lane, hd_b_i32(b, 0), hd_b_i32(b, tile->lanes), NULL,
             HD_UNROLL_FULL, body);
  else
    hd_b_if(b, NULL, body, (hd_block_t){0});
  body = hd_b_close(b);
  hd_b_mapfor(
      b, vars,
      left ? hd_mapping_within(b->arena, tile->rest, &left) : tile->rest,
      loop->u.mapfor.worker, tile->turns > 1 ? 0 : loop->u.mapfor.unroll, body);
}

static bool keeps_registers(const hd_rows_t *rows) {
  for (size_t i = 0; i < rows->steps.size; i++)
    if (rows->steps.data[i]->is_kept)
      return true;
  return false;
}

// Registers' elements are known by their turns, so each turn asks.
static void put_each_turn(hd_row_maker_t *m, unsigned phase, const tile_t *tile,
                          const hd_expr_t *left) {
  hd_builder_t *b = &m->draft.b;
  int64_t each = tile->rest->dims[0];
  const hd_var_t *turn = hd_b_loop_var(b, "turn", HD_I32);
  hd_open_block_t block, inner;
  hd_b_open(b, &block);
  const hd_expr_t *first =
      hd_b_op_int(b, HD_EXPR_MUL, hd_expr_var(b->arena, turn), each);
  const hd_expr_t *rest =
      hd_b_let(b, "rest", hd_b_op(b, HD_EXPR_SUB, left, first));
  hd_b_open(b, &inner);
  put_chunks(m, phase, tile, first, NULL);
  hd_block_t whole = hd_b_close(b);
  hd_b_open(b, &inner);
  put_chunks(m, phase, tile, first, rest);
  hd_block_t some = hd_b_close(b);
  hd_b_if(b, hd_b_op_int(b, HD_EXPR_GE, rest, each), whole, some);
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, turn, hd_b_i32(b, 0), hd_b_i32(b, tile->turns), NULL,
           m->loop->u.mapfor.unroll, body);
}

// Turns from first to limit, of so many chunks that are left; NULL: of enough.
typedef struct span {
  const hd_expr_t *first, *limit, *left;
} span_t;

static void put_turns(hd_row_maker_t *m, unsigned phase, const tile_t *tile,
                      const span_t *span) {
  hd_builder_t *b = &m->draft.b;
  const hd_var_t *turn = hd_b_loop_var(b, "turn", HD_I32);
  hd_open_block_t block;
  hd_b_open(b, &block);
  const hd_expr_t *first = hd_b_op_int(
      b, HD_EXPR_MUL, hd_expr_var(b->arena, turn), tile->rest->dims[0]);
  put_chunks(m, phase, tile, first,
             span->left ? hd_b_let(b, "rest",
                                   hd_b_op(b, HD_EXPR_SUB, span->left, first))
                        : NULL);
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, turn, span->first, span->limit, NULL,
           span->left ? 1 : m->loop->u.mapfor.unroll, body);
}

// Of elements that a block has from m->base on: in which turn they end is known
// when it runs.
static void put_part(hd_row_maker_t *m, unsigned phase, const tile_t *tile) {
  hd_builder_t *b = &m->draft.b;
  int64_t each = tile->rest->dims[0];
  hd_b_assert(b,
              hd_b_op_int(b, HD_EXPR_EQ,
                          hd_b_op_int(b, HD_EXPR_MOD, m->base, tile->lanes), 0),
              "a part of a row begins with a whole vector");
  const hd_expr_t *left =
      hd_b_op(b, HD_EXPR_SUB, hd_b_i32(b, m->rows->element.points), m->base);
  left = hd_b_let(b, "left", hd_b_op_int(b, HD_EXPR_DIV, left, tile->lanes));
  if (keeps_registers(m->rows)) {
    put_each_turn(m, phase, tile, left);
    return;
  }
  const hd_expr_t *turns = hd_b_i32(b, tile->turns);
  const hd_expr_t *whole = hd_b_op_int(b, HD_EXPR_DIV, left, each);
  whole = hd_b_op(b, HD_EXPR_MIN, hd_b_op_int(b, HD_EXPR_MAX, whole, 0), turns);
  whole = hd_b_let(b, "whole", whole);
  put_turns(m, phase, tile, &(span_t){hd_b_i32(b, 0), whole, NULL});
  put_turns(m, phase, tile, &(span_t){whole, turns, left});
}

// All elements of the thread. Turns that everyone has are not guarded.
static void put_elements(hd_row_maker_t *m, unsigned phase) {
  hd_builder_t *b = &m->draft.b;
  int64_t points = m->rows->element.points;
  tile_t tile = take_apart(b->arena, m->loop->u.mapfor.mapping, points);
  if (m->base) {
    put_part(m, phase, &tile);
    return;
  }
  int64_t chunks = points / tile.lanes, each = tile.rest->dims[0];
  int64_t whole = chunks / each < tile.turns ? chunks / each : tile.turns;
  const hd_var_t *turn = hd_b_loop_var(b, "turn", HD_I32);
  hd_open_block_t block;
  hd_b_open(b, &block);
  const hd_expr_t *first = hd_b_op_int(
      b, HD_EXPR_MUL, whole > 1 ? hd_expr_var(b->arena, turn) : hd_b_i32(b, 0),
      each);
  if (whole)
    put_chunks(m, phase, &tile, first, NULL);
  hd_block_t body = hd_b_close(b);
  if (whole > 1)
    hd_b_for(b, turn, hd_b_i32(b, 0), hd_b_i32(b, whole), NULL,
             m->loop->u.mapfor.unroll, body);
  else
    hd_b_if(b, NULL, body, (hd_block_t){0});
  if (chunks > whole * each && whole < tile.turns)
    put_chunks(m, phase, &tile, hd_b_i32(b, whole * each),
               hd_b_i32(b, chunks - whole * each));
}

// --- Phases ---

static bool is_last_launch(const hd_row_maker_t *m) {
  return m->across[HD_ACROSS_GRID] <= 1 || m->launch == m->rows->phases;
}

// Numbers for each row that can be known now; those of tensors are stored by
// one thread.
static void put_row_values(hd_row_maker_t *m, const hd_row_step_t *step) {
  hd_builder_t *b = &m->draft.b;
  hd_translator_t *t = &m->draft.t;
  const hd_expr_t *values[HD_MAX_COMPONENTS];
  for (uint32_t i = 0; i < step->num_values; i++) {
    hd_scalar_t type = step->values[i]->type.scalar;
    const hd_expr_t *e = step->kind == HD_ROW_REDUCE
                             ? hd_b_get(b, step->cells[i])
                             : hd_translate(t, step->term);
    values[i] = hd_b_let(b, step->values[i]->name, hd_b_cast(b, type, e));
    hd_ptr_map_set(b->arena, &t->values, step->values[i], values[i]);
  }
  if (!step->stored || !is_last_launch(m))
    return;
  hd_open_block_t block;
  hd_b_open(b, &block);
  for (uint32_t i = 0; i < step->num_values; i++)
    if (step->stored >> i & 1)
      hd_draft_store(&m->draft, step->definition, i, values[i]);
  hd_block_t then = hd_b_close(b);
  hd_b_if(b, hd_b_and(b, m->first, m->exists), then, (hd_block_t){0});
}

// Of reductions, those of the phase before.
static void put_rows(hd_row_maker_t *m, unsigned phase) {
  const hd_rows_t *rows = m->rows;
  for (size_t i = 0; i < rows->steps.size; i++) {
    const hd_row_step_t *step = rows->steps.data[i];
    if ((step->kind == HD_ROW_SCALAR && step->phase == phase) ||
        (step->kind == HD_ROW_REDUCE && step->phase + 1 == phase))
      put_row_values(m, step);
  }
}

static void put_phase(hd_row_maker_t *m, unsigned phase) {
  hd_rows_t *rows = m->rows;
  bool any = false;
  put_rows(m, phase);
  for (size_t i = 0; i < rows->steps.size; i++) {
    hd_row_step_t *step = rows->steps.data[i];
    bool does = computes(rows, step, phase);
    any |= does;
    if (does && step->kind == HD_ROW_REDUCE)
      hd_translate_begin(&m->draft.t, step->term, step->cells);
  }
  if (!any)
    return;
  hd_builder_t *b = &m->draft.b;
  bool is_grid = m->across[HD_ACROSS_GRID] > 1;
  bool is_left = is_grid && phase < m->launch; // By a launch before.
  hd_open_block_t block;
  hd_b_open(b, &block);
  if (!is_left)
    put_elements(m, phase);
  hd_block_t body = hd_b_close(b);
  hd_b_if(b, phase == rows->phases ? m->exists : NULL, body, (hd_block_t){0});
  for (size_t i = 0; i < rows->steps.size; i++) {
    const hd_row_step_t *step = rows->steps.data[i];
    if (step->kind != HD_ROW_REDUCE || step->phase != phase)
      continue;
    if (is_left)
      hd_rows_take_parts(m, step);
    hd_rows_combine(m, step);
    if (is_grid && !is_left)
      hd_rows_leave_parts(m, step);
  }
}

// --- All of it ---

void hd_rows_place_thread(hd_row_maker_t *m) {
  hd_builder_t *b = &m->draft.b;
  int64_t apart = m->across[HD_ACROSS_THREAD];
  int64_t workers =
      apart ? apart
            : (int64_t)m->across[HD_ACROSS_LANE] * m->across[HD_ACROSS_WARP];
  const hd_expr_t *thread = hd_b_thread(b);
  int64_t fast = apart ? m->slots : workers, slow = apart ? workers : m->slots;
  const hd_expr_t *low =
      slow == 1 ? thread : hd_b_op_int(b, HD_EXPR_MOD, thread, fast);
  const hd_expr_t *high =
      slow == 1 ? hd_b_i32(b, 0) : hd_b_op_int(b, HD_EXPR_DIV, thread, fast);
  m->worker = hd_b_let(b, "worker", apart ? high : low);
  m->slot = hd_b_let(b, "slot", apart ? low : high);
  if (workers > 1)
    m->first = hd_b_op_int(b, HD_EXPR_EQ, m->worker, 0);
  int64_t grid = m->across[HD_ACROSS_GRID];
  if (grid > 1) {
    m->rank = hd_b_let(b, "rank",
                       hd_b_op_int(b, HD_EXPR_MOD,
                                   hd_expr_builtin(b->arena, HD_BUILTIN_BLOCK),
                                   grid));
    m->first = hd_b_and(b, m->first, hd_b_op_int(b, HD_EXPR_EQ, m->rank, 0));
  }
  if (m->across[HD_ACROSS_CLUSTER] > 1)
    m->first =
        hd_b_and(b, m->first,
                 hd_b_op_int(b, HD_EXPR_EQ,
                             hd_expr_builtin(b->arena, HD_BUILTIN_CLUSTER), 0));
}

static void declare_kept(hd_row_maker_t *m) {
  hd_builder_t *b = &m->draft.b;
  const hd_mapping_t *mapping = without_bounds(m->loop->u.mapfor.mapping);
  const hd_layout_t *layout =
      hd_layout_make(b->arena, (hd_layout_item_t){.kind = HD_LAYOUT_LOCAL,
                                                  .mapping = mapping});
  for (size_t i = 0; i < m->rows->steps.size; i++) {
    hd_row_step_t *step = m->rows->steps.data[i];
    const hd_task_value_t *value = step->values[0];
    if (step->is_kept) {
      hd_var_t *kept =
          hd_b_tensor(b, HD_SCOPE_REGISTER,
                      hd_arena_printf(b->arena, "%s_kept", value->name),
                      value->type.scalar, mapping->dims, 1, layout);
      hd_b_declare(b, kept, NULL);
      step->cells[0] = kept;
    }
    const hd_definition_t *d = step->definition;
    for (uint32_t k = 0; d && k < d->num_indices; k++)
      if (hd_flat_range(d->indices[k]) == 1)
        hd_translate_bind(&m->draft.t, d->indices[k], hd_b_i32(b, 0));
  }
}

void hd_rows_put(hd_row_maker_t *m) {
  hd_rows_arrive(m);
  declare_kept(m);
  if (m->rows->has_early)
    put_elements(m, EARLY);
  unsigned last = m->across[HD_ACROSS_GRID] > 1 ? m->launch : m->rows->phases;
  for (unsigned phase = 0; phase <= last; phase++)
    put_phase(m, phase);
}
