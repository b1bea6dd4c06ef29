// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of states after each turn those before each, and the last one.
#include "Fusion/Loops/Turns.h"

// y[i..] = term of xs, whose slices those are.
typedef struct mover {
  hd_arena_t *arena;
  hd_task_t *made;
  const hd_task_value_t *xs;
  const hd_index_t *indices[HD_MAX_RANK]; // The turn, then the slice's.
  const hd_term_t *places[HD_MAX_RANK];
} mover_t;

static void begin_move(mover_t *m, hd_scalar_t type, const int64_t *shape,
                       unsigned rank, int64_t steps) {
  int64_t whole[HD_MAX_RANK + 1];
  whole[0] = steps;
  m->indices[0] = hd_flat_index_make(m->arena, "turn", steps);
  m->places[0] = hd_flat_index(m->arena, m->indices[0]);
  for (unsigned i = 0; i < rank; i++) {
    whole[i + 1] = shape[i];
    m->indices[i + 1] = hd_flat_index_make(
        m->arena, hd_arena_printf(m->arena, "i%u", i), shape[i]);
    m->places[i + 1] = shape[i] == 1
                           ? hd_flat_int(m->arena, HD_I64, 0)
                           : hd_flat_index(m->arena, m->indices[i + 1]);
  }
  m->made = HD_ARENA_NEW(m->arena, hd_task_t);
  m->xs =
      hd_flat_value_make(m->arena, "xs", HD_VALUE_INPUT, type, whole, rank + 1);
  hd_vec_push(m->arena, &m->made->inputs, m->xs);
}

static hd_task_t *finish_move(mover_t *m, const hd_task_value_t *y,
                              const hd_index_t *const *indices,
                              const hd_term_t *term) {
  hd_vec_push(m->arena, &m->made->outputs, y);
  hd_vec_push(
      m->arena, &m->made->definitions,
      (const hd_definition_t *)hd_flat_define(m->arena, y, indices, term));
  return m->made;
}

hd_task_t *hd_turns_before(hd_arena_t *arena, hd_scalar_t type,
                           const int64_t *shape, unsigned rank, int64_t steps) {
  mover_t m = {.arena = arena};
  begin_move(&m, type, shape, rank, steps);
  const hd_task_value_t *first =
      hd_flat_value_make(arena, "first", HD_VALUE_INPUT, type, shape, rank);
  hd_task_value_t *y = HD_ARENA_COPY(arena, hd_task_value_t, m.xs);
  y->name = "y";
  y->kind = HD_VALUE_OUTPUT;
  hd_vec_push(arena, &m.made->inputs, first);
  const hd_term_t *turn = m.places[0];
  const hd_term_t *at_first = hd_flat_load(arena, first, m.places + 1);
  m.places[0] = hd_flat_operate_int(arena, HD_EXPR_SUB, turn, 1);
  const hd_term_t *term =
      hd_flat_select(arena, hd_flat_operate_int(arena, HD_EXPR_EQ, turn, 0),
                     at_first, hd_flat_load(arena, m.xs, m.places));
  return finish_move(&m, y, m.indices, term);
}

hd_task_t *hd_turns_last(hd_arena_t *arena, hd_scalar_t type,
                         const int64_t *shape, unsigned rank, int64_t steps) {
  mover_t m = {.arena = arena};
  begin_move(&m, type, shape, rank, steps);
  m.places[0] = hd_flat_int(arena, HD_I64, steps - 1);
  return finish_move(
      &m, hd_flat_value_make(arena, "y", HD_VALUE_OUTPUT, type, shape, rank),
      m.indices + 1, hd_flat_load(arena, m.xs, m.places));
}
