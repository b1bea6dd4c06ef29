// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One kernel for several definitions over rows (Rows.h):
//
//   m[i]    = max(p: 768) x[i, p]
//   e[i, p] = exp(x[i, p] - m[i])
//   s[i]    = sum(q: 768) e[i, q]
//   y[i, p] = e[i, p] / s[i]
//
// becomes, 64 threads taking a row and a thread three vectors of it,
//
//   register x_kept: f32[12]; register e_kept: f32[12]
//   register acc: f32 = -inf
//   for turn in 0..3 {
//     for v in 0..4 unroll {
//       x_kept[turn * 4 + v] = x[block, (turn * 64 + thread) * 4 + v]
//       acc = max(acc, ...)
//     }
//   }
//   combine acc over the threads
//   ... exp(x_kept[...] - m) is kept and summed, combined, y stored
//
// Each element of an input is read once where it is kept, each element of an
// output stored once; nothing that is stored is read. What goes from one thread
// to others are the results of reductions alone.
#include "Schedule/Rows.h"

#include "Schedule/Machine.h"

#include "Schedule/Contract.h"
#include "Schedule/Merge.h"
#include "Schedule/Prepare.h"

enum { MAX_RUN = 32 }; // Definitions of a kernel.

// An element of the row: the thread's in its turn, and there.
typedef struct place {
  const hd_expr_t *chunk; // Of the row, of so many lanes.
  const hd_expr_t *turn;
  const hd_expr_t *lane;
} place_t;

static bool computes(const hd_rows_t *rows, const hd_row_step_t *step,
                     unsigned phase) {
  return step->kind == HD_ROW_REDUCE
             ? step->phase == phase
             : step->kind == HD_ROW_VECTOR && phase == rows->phases &&
                   step->stored;
}

static const hd_expr_t *kept_at(hd_row_maker_t *m, const place_t *place) {
  hd_builder_t *b = &m->draft.b;
  return hd_b_op(b, HD_EXPR_ADD,
                 hd_b_op_int(b, HD_EXPR_MUL, place->turn, m->rows->lanes),
                 place->lane);
}

// What a step is worth at the element, for later steps to find.
static void put_vector(hd_row_maker_t *m, const hd_row_step_t *step,
                       unsigned phase, const place_t *place) {
  hd_builder_t *b = &m->draft.b;
  const hd_task_value_t *value = step->values[0];
  uint32_t before = (UINT32_C(1) << phase) - 1;
  const hd_expr_t *at = step->is_kept ? kept_at(m, place) : NULL;
  const hd_expr_t *e;
  if (step->is_kept && (step->phases & before)) {
    e = hd_b_load(b, step->cells[0], &at, 1);
  } else {
    e = hd_translate(&m->draft.t, step->term);
    e = hd_b_let(b, value->name, hd_b_cast(b, value->type.scalar, e));
    if (step->is_kept)
      hd_b_store(b, step->cells[0], &at, 1, e);
  }
  hd_ptr_map_set(b->arena, &m->draft.t.values, value, e);
}

static void put_element(hd_row_maker_t *m, unsigned phase,
                        const place_t *place) {
  hd_rows_t *rows = m->rows;
  hd_translator_t *t = &m->draft.t;
  for (size_t i = 0; i < rows->steps.size; i++) {
    const hd_row_step_t *step = rows->steps.data[i];
    if (step->kind == HD_ROW_VECTOR && (step->phases >> phase & 1))
      put_vector(m, step, phase, place);
    if (!computes(rows, step, phase))
      continue;
    if (step->kind == HD_ROW_REDUCE)
      hd_translate_step(t, step->term, step->cells);
    else
      hd_draft_store(&m->draft, step->definition, 0,
                     hd_ptr_map_get(&t->values, step->values[0]));
  }
}

// The elements of a chunk.
static void put_chunk(hd_row_maker_t *m, unsigned phase, place_t *place) {
  hd_builder_t *b = &m->draft.b;
  const hd_rows_t *rows = m->rows;
  hd_row_axes_t axes = rows->element;
  if (rows->lanes == 1) {
    place->lane = hd_b_i32(b, 0);
    hd_draft_place(&m->draft, place->chunk, axes.indices, axes.count);
    put_element(m, phase, place);
    return;
  }
  const hd_index_t *last = axes.indices[axes.count - 1];
  const hd_index_t *chunk =
      hd_flat_index_make(b->arena, "chunk", hd_flat_range(last) / rows->lanes);
  axes.indices[axes.count - 1] = chunk;
  hd_draft_place(&m->draft, place->chunk, axes.indices, axes.count);
  const hd_expr_t *first = hd_b_op_int(
      b, HD_EXPR_MUL, hd_ptr_map_get(&m->draft.t.indices, chunk), rows->lanes);
  const hd_var_t *var = hd_b_loop_var(b, "v", HD_I32);
  hd_open_block_t block;
  hd_b_open(b, &block);
  place->lane = hd_expr_var(b->arena, var);
  hd_translate_bind(&m->draft.t, last,
                    hd_b_op(b, HD_EXPR_ADD, first, place->lane));
  put_element(m, phase, place);
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, var, hd_b_i32(b, 0), hd_b_i32(b, rows->lanes), NULL,
           HD_UNROLL_FULL, body);
}

// The thread's chunk of a turn; guarded: if there is one.
static void put_turn(hd_row_maker_t *m, unsigned phase, const hd_expr_t *turn,
                     bool guarded) {
  hd_builder_t *b = &m->draft.b;
  const hd_rows_t *rows = m->rows;
  const hd_expr_t *chunk =
      rows->ordered
          ? hd_b_op(b, HD_EXPR_ADD,
                    hd_b_op_int(b, HD_EXPR_MUL, m->worker, rows->turns), turn)
          : hd_b_op(b, HD_EXPR_ADD,
                    hd_b_op_int(b, HD_EXPR_MUL, turn, rows->threads),
                    m->worker);
  place_t place = {.chunk = hd_b_let(b, "at", chunk), .turn = turn};
  hd_open_block_t block;
  hd_b_open(b, &block);
  put_chunk(m, phase, &place);
  hd_block_t body = hd_b_close(b);
  hd_b_if(b,
          guarded ? hd_b_op_int(b, HD_EXPR_LT, place.chunk,
                                rows->element.points / rows->lanes)
                  : NULL,
          body, (hd_block_t){0});
}

static void put_turns(hd_row_maker_t *m, unsigned phase, int64_t count,
                      bool guarded) {
  hd_builder_t *b = &m->draft.b;
  if (count == 1) {
    put_turn(m, phase, hd_b_i32(b, 0), guarded);
    return;
  }
  const hd_var_t *var = hd_b_loop_var(b, "turn", HD_I32);
  hd_open_block_t block;
  hd_b_open(b, &block);
  put_turn(m, phase, hd_expr_var(b->arena, var), guarded);
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, var, hd_b_i32(b, 0), hd_b_i32(b, count), NULL, 0, body);
}

// All elements of the thread. Turns that everyone has are not guarded.
static void put_elements(hd_row_maker_t *m, unsigned phase) {
  const hd_rows_t *rows = m->rows;
  int64_t chunks = rows->element.points / rows->lanes;
  int64_t whole = chunks / rows->threads;
  bool even = chunks % rows->threads == 0;
  if (rows->ordered && !even) {
    put_turns(m, phase, rows->turns, true);
    return;
  }
  if (whole)
    put_turns(m, phase, whole, false);
  if (!even)
    put_turn(m, phase, hd_b_i32(&m->draft.b, whole), true);
}

// --- Phases ---

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
  if (!step->stored)
    return;
  hd_open_block_t block;
  hd_b_open(b, &block);
  for (uint32_t i = 0; i < step->num_values; i++)
    if (step->stored >> i & 1)
      hd_draft_store(&m->draft, step->definition, i, values[i]);
  hd_block_t then = hd_b_close(b);
  const hd_expr_t *first =
      m->rows->threads > 1 ? hd_b_op_int(b, HD_EXPR_EQ, m->worker, 0) : NULL;
  hd_b_if(b, hd_b_and(b, first, m->exists), then, (hd_block_t){0});
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
  hd_open_block_t block;
  hd_b_open(b, &block);
  put_elements(m, phase);
  hd_block_t body = hd_b_close(b);
  hd_b_if(b, phase == rows->phases ? m->exists : NULL, body, (hd_block_t){0});
  for (size_t i = 0; i < rows->steps.size; i++)
    if (rows->steps.data[i]->kind == HD_ROW_REDUCE &&
        rows->steps.data[i]->phase == phase)
      hd_rows_combine(m, rows->steps.data[i]);
}

// --- The kernel ---

static void place_thread(hd_row_maker_t *m) {
  hd_builder_t *b = &m->draft.b;
  const hd_rows_t *rows = m->rows;
  const hd_expr_t *thread = hd_b_thread(b);
  int64_t fast = rows->along ? rows->threads : rows->rows;
  int64_t slow = rows->along ? rows->rows : rows->threads;
  const hd_expr_t *low =
      slow == 1 ? thread : hd_b_op_int(b, HD_EXPR_MOD, thread, fast);
  const hd_expr_t *high =
      slow == 1 ? hd_b_i32(b, 0) : hd_b_op_int(b, HD_EXPR_DIV, thread, fast);
  m->worker = hd_b_let(b, "worker", rows->along ? low : high);
  m->slot = hd_b_let(b, "slot", rows->along ? high : low);
}

// Rows past the end are the last one again, and not stored.
static int64_t place_row(hd_row_maker_t *m) {
  hd_builder_t *b = &m->draft.b;
  const hd_rows_t *rows = m->rows;
  int64_t count = rows->row.points;
  int64_t blocks = (count + rows->rows - 1) / rows->rows;
  const hd_expr_t *row = m->slot;
  if (blocks > 1)
    row = hd_b_op(b, HD_EXPR_ADD,
                  hd_b_op_int(b, HD_EXPR_MUL,
                              hd_expr_builtin(b->arena, HD_BUILTIN_BLOCK),
                              rows->rows),
                  row);
  if (count % rows->rows) {
    row = hd_b_let(b, "number", row);
    m->exists = hd_b_op_int(b, HD_EXPR_LT, row, count);
    row = hd_b_op_int(b, HD_EXPR_MIN, row, count - 1);
  }
  row = hd_b_let(b, "row", row);
  hd_draft_place(&m->draft, row, rows->row.indices, rows->row.count);
  return blocks;
}

static void declare_kept(hd_row_maker_t *m) {
  hd_builder_t *b = &m->draft.b;
  int64_t each = m->rows->turns * m->rows->lanes;
  for (size_t i = 0; i < m->rows->steps.size; i++) {
    hd_row_step_t *step = m->rows->steps.data[i];
    const hd_task_value_t *value = step->values[0];
    if (step->is_kept)
      step->cells[0] =
          hd_b_register(b, hd_arena_printf(b->arena, "%s_kept", value->name),
                        value->type.scalar, &each, 1, NULL);
    const hd_definition_t *d = step->definition;
    for (uint32_t k = 0; d && k < d->num_indices; k++)
      if (hd_flat_range(d->indices[k]) == 1)
        hd_translate_bind(&m->draft.t, d->indices[k], hd_b_i32(b, 0));
  }
}

static void make_rows(hd_rules_t *rules, hd_rows_t *rows) {
  hd_row_maker_t m = {.rows = rows};
  hd_draft_begin(&m.draft, rules);
  place_thread(&m);
  int64_t blocks = place_row(&m);
  declare_kept(&m);
  for (unsigned phase = 0; phase <= rows->phases; phase++)
    put_phase(&m, phase);
  hd_draft_finish_linear(&m.draft, "", blocks, rows->threads * rows->rows);
}

// --- Runs ---

static bool has_tiles(hd_arena_t *arena, const hd_definition_t *d) {
  hd_contraction_t c;
  return hd_contraction_find(arena, d, &c);
}

// Past the last definition that may stand in a run from first on.
static size_t end_of_run(hd_arena_t *arena, const hd_task_t *flat,
                         size_t first) {
  size_t end = first;
  while (end < flat->definitions.size && end < first + MAX_RUN &&
         flat->definitions.data[end]->kind == HD_DEFINE &&
         !has_tiles(arena, flat->definitions.data[end]))
    end++;
  return end;
}

// Of first .. end - 1.
static bool is_run(hd_arena_t *arena, const hd_task_t *flat, size_t first,
                   size_t end, int multiprocessors, hd_rows_t *rows) {
  return hd_rows_find(arena, flat, first, end, rows) &&
         hd_rows_plan(rows, multiprocessors) &&
         (end > first + 1 || hd_rows_pay(rows));
}

// What is in registers now is no tensor.
static void forget_inner(hd_task_t *flat, const hd_rows_t *rows) {
  for (size_t i = 0; i < rows->steps.size; i++) {
    const hd_row_step_t *step = rows->steps.data[i];
    for (uint32_t k = 0; k < step->num_values; k++)
      if (!(step->stored >> k & 1))
        hd_flat_forget_local(flat, step->values[k]);
  }
}

size_t hd_rule_rows(hd_rules_t *rules, size_t first) {
  hd_rows_t rows;
  hd_arena_t *arena = &rules->module->arena;
  const hd_schedule_options_t *options = rules->module->context->schedules;
  int count = options && !options->simulated ? options->machine.count : 0;
  for (size_t end = end_of_run(arena, rules->flat, first); end > first; end--)
    if (is_run(arena, rules->flat, first, end, count, &rows)) {
      make_rows(rules, &rows);
      forget_inner(rules->flat, &rows);
      return end - first;
    }
  return 0;
}

bool hd_rows_fit(hd_arena_t *arena, const hd_task_t *flat) {
  hd_task_t copy = *flat;
  hd_rows_t rows;
  copy.definitions.data = NULL; // What follows writes to the lists.
  copy.definitions.size = copy.definitions.capacity = 0;
  copy.locals.data = NULL;
  copy.locals.size = copy.locals.capacity = 0;
  for (size_t i = 0; i < flat->definitions.size; i++)
    hd_vec_push(arena, &copy.definitions, flat->definitions.data[i]);
  for (size_t i = 0; i < flat->locals.size; i++)
    hd_vec_push(arena, &copy.locals, flat->locals.data[i]);
  hd_task_hoist(arena, &copy);
  hd_task_inline(arena, &copy);
  hd_task_widen(arena, &copy);
  size_t count = copy.definitions.size;
  return end_of_run(arena, &copy, 0) == count &&
         is_run(arena, &copy, 0, count, 0, &rows);
}
