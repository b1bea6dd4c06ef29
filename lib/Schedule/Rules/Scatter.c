// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two kernels: the first fills the target, with onto or the identity, the
// second sends the values there.
//
//   scatter sum(i: n, j: m) y[at[i], j] = x[i, j] onto z
//
// What lies outside the target fails an assertion, as a gather's index does,
// unless the task says `else drop`. Targets that differ in j never meet: a
// thread for each j goes over i in order, so results are the same each time.
// Where j leaves few threads, a thread for each point uses atomics instead, if
// the order cannot be seen: integers are combined; or of `first` and `last` the
// number of the point that wins is found for every element, or row of elements
// that points bring whole, before the winners store.
#include "IR/Intrinsic.h"
#include "Schedule/Rules/Rules.h"
#include "Schedule/Rules/ScatterAxes.h"

enum {
  THREADS = 128,
  MIN_ATOMIC_POINTS = 1024,
  MANY_SLICES = 4096,
  LONG_SLICE = 32, // Points, one after the other, that take two more launches.
};

// What elements are that no point meets.
static void fill(hd_rules_t *rules, const hd_definition_t *d) {
  hd_arena_t *arena = &rules->module->arena;
  const hd_task_value_t *target = d->targets[0];
  const hd_index_t **indices =
      HD_ARENA_ARRAY(arena, const hd_index_t *, target->rank);
  const hd_term_t *places[HD_MAX_RANK];
  for (uint32_t i = 0; i < target->rank; i++) {
    indices[i] = hd_flat_index_make(arena, hd_arena_printf(arena, "i%u", i),
                                    hd_flat_size(target, i));
    places[i] = hd_flat_index(arena, indices[i]);
  }
  const hd_term_t *value =
      d->onto ? hd_flat_load(arena, d->onto, places)
              : hd_flat_identity(arena, d->monoid, 0, target->type.scalar);
  hd_definition_t filled = {.kind = HD_DEFINE,
                            .loc = d->loc,
                            .num_targets = 1,
                            .targets = d->targets,
                            .num_indices = target->rank,
                            .indices = indices,
                            .term = value};
  hd_rule_pointwise(rules, &filled);
}

// An atomic takes a place, a value, an order and a scope. -1: none.
static int overload(hd_intrinsic_t first, hd_scalar_t type) {
  hd_intrinsic_t row = hd_intrinsic_overload(first, hd_type(type), 4);
  return row < HD_INTRINSIC_COUNT ? (int)row : -1;
}

// The row of Intrinsics.def, where one combines the type; -1: none.
static int find_atomic(const hd_definition_t *d) {
  hd_scalar_t type = d->targets[0]->type.scalar;
  if (d->duplicates != HD_DUPLICATES_COMBINE || hd_scalar_bits(type) < 32 ||
      !hd_type_is_integer(hd_type(type)))
    return -1;
  switch (d->monoid->builtin) {
  case HD_MONOID_SUM:
    return overload(HD_INTRINSIC_ATOMIC_ADD, type);
  case HD_MONOID_MIN:
    return overload(HD_INTRINSIC_ATOMIC_MIN, type);
  case HD_MONOID_MAX:
    return overload(HD_INTRINSIC_ATOMIC_MAX, type);
  case HD_MONOID_PROD:
  case HD_MONOID_ANY:
  case HD_MONOID_ALL:
  case HD_MONOID_COUNT:
    break;
  }
  return -1;
}

static const hd_expr_t *combined(hd_kernel_draft_t *draft,
                                 const hd_definition_t *d, const hd_expr_t *old,
                                 const hd_expr_t *value) {
  if (d->duplicates != HD_DUPLICATES_COMBINE)
    return value;
  hd_reduction_t r = {.monoid = d->monoid};
  hd_term_t like = {.kind = HD_TERM_REDUCE, .num_operands = 1};
  like.u.reduction = &r;
  const hd_expr_t *result;
  hd_translate_combination(&draft->t, &like, &old, &value, &result);
  return result;
}

// Where the point at hand goes to; returns whether that is inside, NULL: it is,
// or the data is wrong, which is asserted.
static const hd_expr_t *find_places(hd_kernel_draft_t *draft,
                                    const hd_definition_t *d,
                                    const hd_expr_t **places) {
  hd_builder_t *b = &draft->b;
  const hd_expr_t *inside = NULL;
  bool is_empty = hd_flat_count(d->targets[0]) == 0;
  for (uint32_t i = 0; i < d->targets[0]->rank; i++) {
    int64_t size = hd_flat_size(d->targets[0], i);
    if (!d->drops) {
      places[i] =
          hd_b_let(b, "to", hd_translate_place(&draft->t, d->at[i], size));
      continue;
    }
    hd_worth_t at = hd_translate_worth(&draft->t, d->at[i]);
    places[i] = hd_b_let(b, "to", at.e);
    if (at.range.least < 0)
      inside = hd_b_and(b, inside, hd_b_op_int(b, HD_EXPR_GE, places[i], 0));
    if (at.range.greatest >= size)
      inside = hd_b_and(b, inside, hd_b_op_int(b, HD_EXPR_LT, places[i], size));
  }
  for (uint32_t i = 0; is_empty && i < d->targets[0]->rank; i++)
    places[i] = hd_b_i32(b, 0); // None is inside: an assertion has failed.
  return inside;
}

static void put_atomic(hd_kernel_draft_t *draft, const hd_definition_t *d,
                       const hd_expr_t *const *places, int row) {
  hd_builder_t *b = &draft->b;
  const hd_task_value_t *target = d->targets[0];
  const hd_var_t *var = hd_translate_tensor(&draft->t, target, HD_DIR_INOUT);
  const hd_expr_t *value = hd_translate(&draft->t, d->term);
  const hd_expr_t *operands[] = {
      hd_expr_access(b->arena, HD_EXPR_REF, var, 1, places, target->rank),
      value, hd_b_i32(b, HD_RELAXED), hd_b_i32(b, HD_SYNC_DEVICE)};
  hd_b_call(b, hd_b_intrinsic(b, row, value->type, operands, 4));
}

// An element below a byte: its neighbours are written as they were.
static void put_packed(hd_kernel_draft_t *draft, const hd_definition_t *d,
                       const hd_expr_t *const *places) {
  hd_builder_t *b = &draft->b;
  const hd_task_value_t *target = d->targets[0];
  hd_scalar_t type = target->type.scalar;
  unsigned lanes = 8 / hd_scalar_bits(type);
  const hd_var_t *var = draft->packed
                            ? draft->packed
                            : hd_draft_bytes(draft, target, HD_DIR_INOUT);
  draft->packed = var;
  const hd_expr_t *offset = hd_b_i32(b, 0);
  for (uint32_t i = 0; i < target->rank; i++) {
    int64_t size = hd_flat_size(target, i);
    offset = hd_b_op(b, HD_EXPR_ADD, hd_b_op_int(b, HD_EXPR_MUL, offset, size),
                     hd_b_cast(b, HD_I32, places[i]));
  }
  offset = hd_b_let(b, "offset", offset);
  const hd_expr_t *lane =
      hd_b_let(b, "lane", hd_b_op_int(b, HD_EXPR_MOD, offset, lanes));
  const hd_expr_t *first =
      hd_b_let(b, "first",
               hd_b_op_int(b, HD_EXPR_MUL,
                           hd_b_op_int(b, HD_EXPR_DIV, offset, lanes), lanes));
  hd_type_t vector = hd_type_vector(type, lanes);
  const hd_expr_t *old = hd_b_let(
      b, "old", hd_expr_access(b->arena, HD_EXPR_LOAD, var, lanes, &first, 1));
  const hd_expr_t *value = hd_translate(&draft->t, d->term);
  const hd_expr_t *values[8];
  for (unsigned e = 0; e < lanes; e++) {
    hd_expr_t like = {.u.i = e};
    const hd_expr_t *was =
        hd_expr_make(b->arena, HD_EXPR_LANE, hd_type(type), &like, &old, 1);
    values[e] = hd_expr_select(b->arena, hd_b_op_int(b, HD_EXPR_EQ, lane, e),
                               combined(draft, d, was, value), was);
  }
  hd_b_store(
      b, var, &first, 1,
      hd_expr_make(b->arena, HD_EXPR_VECTOR, vector, NULL, values, lanes));
}

static void put_value(hd_kernel_draft_t *draft, const hd_definition_t *d,
                      const hd_expr_t *const *places) {
  const hd_task_value_t *target = d->targets[0];
  const hd_var_t *var = hd_translate_tensor(&draft->t, target, HD_DIR_INOUT);
  const hd_expr_t *value = hd_translate(&draft->t, d->term);
  const hd_expr_t *old = hd_b_load(&draft->b, var, places, target->rank);
  hd_b_store(&draft->b, var, places, target->rank,
             combined(draft, d, old, value));
}

// The first of so many points is at hand, the thread's.
static void place_first(hd_kernel_draft_t *draft, const hd_definition_t *d,
                        const hd_expr_t *number, int64_t count) {
  if (count > 1)
    number = hd_b_let(&draft->b, "first",
                      hd_b_op_int(&draft->b, HD_EXPR_MUL, number, count));
  hd_draft_place(draft, number, d->indices, d->num_indices);
}

// The values of so many points from the one at hand on, along the last index.
static void put_neighbours(hd_kernel_draft_t *draft, const hd_definition_t *d,
                           const hd_expr_t **places, int64_t count) {
  hd_builder_t *b = &draft->b;
  uint32_t axis = d->targets[0]->rank - 1;
  if (count == 1) {
    put_value(draft, d, places);
    return;
  }
  const hd_index_t *last = d->indices[d->num_indices - 1];
  hd_scalar_t type = hd_translate_index_type(last);
  const hd_var_t *e = hd_b_loop_var(b, "e", type);
  const hd_expr_t *first = places[axis];
  hd_open_block_t block;
  hd_b_open(b, &block);
  places[axis] = hd_b_let(b, "at",
                          hd_b_op(b, HD_EXPR_ADD, first,
                                  hd_b_cast(b, (hd_scalar_t)first->type.scalar,
                                            hd_expr_var(b->arena, e))));
  hd_translate_bind(&draft->t, last, places[axis]);
  put_value(draft, d, places);
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, e, hd_b_int(b, type, 0), hd_b_int(b, type, count), NULL,
           HD_UNROLL_FULL, body);
}

// What the point at hand does, and so many from it on along the last index;
// outside a target that drops, nothing.
static void put_point(hd_kernel_draft_t *draft, const hd_definition_t *d,
                      int atomic, int64_t wide) {
  const hd_expr_t *places[HD_MAX_RANK];
  const hd_expr_t *inside = find_places(draft, d, places);
  hd_open_block_t block;
  hd_b_open(&draft->b, &block);
  if (hd_scalar_bits(d->targets[0]->type.scalar) < 8)
    put_packed(draft, d, places);
  else if (atomic >= 0)
    put_atomic(draft, d, places, atomic);
  else
    put_neighbours(draft, d, places, wide);
  hd_block_t then = hd_b_close(&draft->b);
  hd_b_if(&draft->b, inside, then, (hd_block_t){0});
}

// Goes over indices in order, backwards where the first value is to stay.
static void put_loops(hd_kernel_draft_t *draft, const hd_definition_t *d,
                      const hd_index_t *const *indices, unsigned count) {
  hd_builder_t *b = &draft->b;
  if (count == 0) {
    put_point(draft, d, -1, 1);
    return;
  }
  const hd_index_t *index = indices[0];
  hd_scalar_t type = hd_translate_index_type(index);
  const hd_var_t *var = hd_b_loop_var(b, index->name, type);
  const hd_expr_t *at = hd_expr_var(b->arena, var);
  hd_open_block_t block;
  hd_b_open(b, &block);
  if (d->duplicates == HD_DUPLICATES_FIRST)
    at = hd_b_let(b, "at",
                  hd_b_op(b, HD_EXPR_SUB,
                          hd_b_int(b, type, hd_flat_range(index) - 1), at));
  hd_translate_bind(&draft->t, index, at);
  put_loops(draft, d, indices + 1, count - 1);
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, var, hd_b_int(b, type, 0),
           hd_b_int(b, type, hd_flat_range(index)), NULL, 0, body);
}

// The number of the point at hand among these indices', as a term.
static const hd_term_t *
number_of(hd_arena_t *arena, const hd_index_t *const *indices, unsigned count) {
  const hd_term_t *number = hd_flat_int(arena, HD_I64, 0);
  for (unsigned i = 0; i < count; i++)
    number = hd_flat_operate(arena, HD_EXPR_ADD,
                             hd_flat_operate_int(arena, HD_EXPR_MUL, number,
                                                 hd_flat_range(indices[i])),
                             hd_flat_index(arena, indices[i]));
  return number;
}

// first, last: who wins, then the winners' values. Rows win as a whole.
static void put_winners(hd_rules_t *rules, const hd_definition_t *d) {
  static const hd_monoid_t least = {.builtin = HD_MONOID_MIN, .name = "min"};
  static const hd_monoid_t most = {.builtin = HD_MONOID_MAX, .name = "max"};
  hd_arena_t *arena = &rules->module->arena;
  const hd_task_value_t *target = d->targets[0];
  int64_t shape[HD_MAX_RANK];
  const hd_term_t **at =
      HD_ARENA_ARRAY(arena, const hd_term_t *, target->rank + 1);
  for (uint32_t i = 0; i < target->rank; i++) {
    shape[i] = hd_flat_size(target, i);
    at[i] = d->at[i];
  }
  const hd_index_t **indices =
      HD_ARENA_ARRAY(arena, const hd_index_t *, d->num_indices);
  unsigned count = 0;
  bool is_whole[HD_MAX_RANK] = {false};
  for (uint32_t i = 0; i < d->num_indices; i++) {
    int axis = hd_scatter_own_axis(d, d->indices[i]);
    if (axis < 0) {
      indices[count++] = d->indices[i];
      continue;
    }
    is_whole[axis] = true;
    shape[axis] = 1;
    at[axis] = hd_flat_int(arena, HD_I64, 0);
  }
  const hd_task_value_t **winner =
      HD_ARENA_ARRAY(arena, const hd_task_value_t *, 1);
  winner[0] = hd_flat_value_make(arena, "winner", HD_VALUE_LOCAL, HD_I64, shape,
                                 target->rank);
  hd_vec_push(arena, &rules->flat->locals, winner[0]);
  hd_definition_t find = *d;
  find.targets = winner;
  find.at = at;
  find.indices = indices;
  find.num_indices = count;
  find.term = number_of(arena, indices, count);
  find.onto = NULL;
  find.monoid = d->duplicates == HD_DUPLICATES_FIRST ? &least : &most;
  find.duplicates = HD_DUPLICATES_COMBINE;
  hd_rule_scatter(rules, &find);
  hd_kernel_draft_t draft;
  hd_draft_begin(&draft, rules);
  hd_builder_t *b = &draft.b;
  int64_t wide = hd_scatter_neighbours(d);
  hd_grid_t grid = hd_grid_linear(
      hd_flat_points(d->indices, d->num_indices) / wide, THREADS);
  hd_open_block_t inner, won, block;
  const hd_expr_t *number = hd_draft_open_workers(&draft, &grid, &inner);
  place_first(&draft, d, number, wide);
  const hd_expr_t *places[HD_MAX_RANK], *rows[HD_MAX_RANK];
  const hd_expr_t *inside = find_places(&draft, d, places);
  for (uint32_t i = 0; i < target->rank; i++)
    rows[i] = is_whole[i] ? hd_b_i32(b, 0) : places[i];
  hd_b_open(b, &block);
  const hd_expr_t *who =
      hd_b_load(b, hd_translate_tensor(&draft.t, winner[0], HD_DIR_IN), rows,
                target->rank);
  const hd_expr_t *mine = hd_translate(&draft.t, find.term);
  hd_b_open(b, &won);
  put_neighbours(&draft, d, places, wide);
  hd_block_t then = hd_b_close(b);
  hd_b_if(b, hd_b_op(b, HD_EXPR_EQ, who, hd_b_cast(b, HD_I64, mine)), then,
          (hd_block_t){0});
  then = hd_b_close(b);
  hd_b_if(b, inside, then, (hd_block_t){0});
  hd_draft_finish_workers(&draft, &grid, "_scatter");
}

void hd_rule_scatter(hd_rules_t *rules, const hd_definition_t *d) {
  const hd_index_t *slices[HD_MAX_RANK],
      **others = HD_ARENA_ARRAY(&rules->module->arena, const hd_index_t *,
                                d->num_indices);
  unsigned num_slices = 0, num_others = 0;
  // Elements below a byte share it with their neighbours: one thread alone.
  bool is_packed = hd_scalar_bits(d->targets[0]->type.scalar) < 8;
  for (uint32_t i = 0; i < d->num_indices; i++)
    if (!is_packed &&
        hd_scatter_tells_apart(&rules->module->arena, d, d->indices[i]))
      slices[num_slices++] = d->indices[i];
    else
      others[num_others++] = d->indices[i];
  // Else it keeps what is there, or there is nothing.
  if (d->onto != d->targets[0] && hd_flat_count(d->targets[0]) > 0)
    fill(rules, d);
  int64_t points = hd_flat_points(d->indices, d->num_indices);
  if (points == 0)
    return;
  int64_t rows = hd_flat_points(slices, num_slices);
  // Where no two points differ in another index, none meet.
  bool few = points > rows && points >= MIN_ATOMIC_POINTS && rows < MANY_SLICES;
  bool is_long = few || points / rows >= LONG_SLICE;
  if (is_long && !is_packed && d->duplicates != HD_DUPLICATES_COMBINE) {
    put_winners(rules, d);
    return;
  }
  int atomic = few ? find_atomic(d) : -1;
  hd_kernel_draft_t draft;
  hd_draft_begin(&draft, rules);
  // Where none meet, each thread has one, or neighbours.
  int64_t wide = num_others || is_packed ? 1 : hd_scatter_neighbours(d);
  hd_grid_t grid =
      hd_grid_linear((atomic >= 0 ? points : rows) / wide, THREADS);
  hd_open_block_t inner;
  const hd_expr_t *number = hd_draft_open_workers(&draft, &grid, &inner);
  if (atomic >= 0 || wide > 1) {
    place_first(&draft, d, number, wide);
    put_point(&draft, d, atomic, wide);
  } else {
    hd_draft_place(&draft, number, slices, num_slices);
    put_loops(&draft, d, others, num_others);
  }
  hd_draft_finish_workers(&draft, &grid, "_scatter");
}
