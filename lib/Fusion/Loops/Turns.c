// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of a task of a loop's body,
//
//   y[i] = sum(p: 4) h[i, p] * w[p]
//
// for all turns, h having a slice for each and w none:
//
//   y[turn, i] = sum(p: 4) h[turn, i, p] * w[p]
//
// And of y[i] = a[i] * h[i] + b[i], which is what the state h becomes, the
// states after each turn:
//
//   monoid fading(a: f32, b: f32)(c, d) from (1, 0) = (a * c, b * c + d)
//   faded[turn, i], y[turn, i] = scan fading(step: n to turn)
//     (a[step, i], step == 0 ? a[step, i] * first[i] + b[step, i] : b[step, i])
//
// which rounds as turns do, one after the other. Where the first state is 0,
// the scan begins with that, which differs in the sign of a 0 alone, or by a
// NaN where the first factor is none or infinite.
#include "Fusion/Loops/Turns.h"

#include "Support/Map.h"

typedef struct turner {
  hd_arena_t *arena;
  hd_task_t *made;
  hd_ptr_map_t values;   // Of the task, to new ones.
  hd_ptr_map_t turned;   // The new ones that have a slice for each turn.
  const hd_term_t *turn; // Which slice.
  int64_t steps;
} turner_t;

static const hd_task_value_t *
put_value(turner_t *t, const hd_task_value_t *value, bool turned) {
  int64_t shape[HD_MAX_RANK + 1];
  for (uint32_t i = 0; i < value->rank; i++)
    shape[turned + i] = hd_flat_size(value, i);
  if (turned)
    shape[0] = t->steps;
  hd_task_value_t *made =
      hd_flat_value_make(t->arena, value->name, value->kind, value->type.scalar,
                         shape, value->rank + turned);
  made->loc = value->loc;
  hd_ptr_map_set(t->arena, &t->values, value, made);
  if (turned)
    hd_ptr_map_set(t->arena, &t->turned, made, made);
  return made;
}

static const hd_term_t *put_access(void *argument, const hd_term_t *term) {
  turner_t *t = argument;
  const hd_task_value_t *value =
      hd_flat_is_load(term) ? hd_ptr_map_get(&t->values, term->u.value) : NULL;
  if (!value)
    return term;
  const hd_term_t *operands[HD_MAX_RANK + 2];
  unsigned count = 0;
  if (hd_ptr_map_get(&t->turned, value))
    operands[count++] = t->turn;
  for (unsigned i = 0; i < term->num_operands; i++)
    operands[count++] = term->operands[i];
  hd_term_t *load = hd_term_make(t->arena, (hd_term_kind_t)term->kind,
                                 term->type, operands, count);
  load->u.value = value;
  load->loc = term->loc;
  return load;
}

static void begin(turner_t *t, const hd_task_t *flat, hd_arena_t *arena,
                  int64_t steps) {
  *t = (turner_t){.arena = arena, .steps = steps};
  t->made = HD_ARENA_NEW(arena, hd_task_t);
  t->made->name = flat->name;
  t->made->loc = flat->loc;
  for (size_t i = 0; i < flat->monoids.size; i++)
    hd_vec_push(arena, &t->made->monoids, flat->monoids.data[i]);
}

// --- A task for all turns ---

static bool has_room(const hd_task_t *flat) {
  bool ok = true;
  for (size_t i = 0; ok && i < flat->definitions.size; i++) {
    const hd_definition_t *d = flat->definitions.data[i];
    ok = d->kind == HD_DEFINE && d->num_indices < HD_MAX_RANK;
  }
  for (size_t i = 0; ok && i < flat->inputs.size; i++)
    ok = flat->inputs.data[i]->rank < HD_MAX_RANK;
  return ok;
}

static void put_definition(turner_t *t, const hd_definition_t *d) {
  hd_definition_t *made = HD_ARENA_COPY(t->arena, hd_definition_t, d);
  const hd_index_t **indices =
      HD_ARENA_ARRAY(t->arena, const hd_index_t *, d->num_indices + 1);
  const hd_task_value_t **targets =
      HD_ARENA_ARRAY(t->arena, const hd_task_value_t *, d->num_targets);
  indices[0] = hd_flat_index_make(t->arena, "turn", t->steps);
  for (uint32_t i = 0; i < d->num_indices; i++)
    indices[i + 1] = d->indices[i];
  for (uint32_t i = 0; i < d->num_targets; i++)
    targets[i] = hd_ptr_map_get(&t->values, d->targets[i]);
  t->turn = hd_flat_index(t->arena, indices[0]);
  made->indices = indices;
  made->num_indices++;
  made->targets = targets;
  made->term = hd_flat_rewrite(t->arena, d->term, put_access, t);
  hd_vec_push(t->arena, &t->made->definitions, (const hd_definition_t *)made);
}

hd_task_t *hd_turns_task(hd_arena_t *arena, const hd_task_t *flat,
                         const bool *turned, int64_t steps) {
  turner_t t;
  if (!has_room(flat))
    return NULL;
  begin(&t, flat, arena, steps);
  for (size_t i = 0; i < flat->inputs.size; i++)
    hd_vec_push(arena, &t.made->inputs,
                put_value(&t, flat->inputs.data[i], turned[i]));
  for (size_t i = 0; i < flat->outputs.size; i++)
    hd_vec_push(arena, &t.made->outputs,
                put_value(&t, flat->outputs.data[i], true));
  for (size_t i = 0; i < flat->locals.size; i++)
    hd_vec_push(arena, &t.made->locals,
                put_value(&t, flat->locals.data[i], true));
  for (size_t i = 0; i < flat->definitions.size; i++)
    put_definition(&t, flat->definitions.data[i]);
  return t.made;
}

// --- A state ---

// factor * state + rest; NULL: 0.
typedef struct fading {
  const hd_term_t *factor, *rest;
} fading_t;

typedef struct fader {
  hd_arena_t *arena;
  const hd_task_value_t *state;
  const hd_definition_t *d;
} fader_t;

// Whether it is the state's element at the place that is defined.
static bool is_own_element(const fader_t *f, const hd_term_t *term) {
  if (term->kind != HD_TERM_LOAD || term->u.value != f->state ||
      f->state->rank != f->d->num_indices)
    return false;
  bool own = true;
  for (uint32_t i = 0; own && i < f->d->num_indices; i++) {
    const hd_term_t *at = term->operands[i];
    const hd_index_t *index = f->d->indices[i];
    own = hd_flat_size(f->state, i) == hd_flat_range(index) &&
          (at->kind == HD_TERM_INDEX
               ? at->u.index == index
               : hd_flat_range(index) == 1 && hd_flat_is_int(at, 0));
  }
  return own;
}

// The negative, or the term itself.
static const hd_term_t *signed_term(fader_t *f, const hd_term_t *term,
                                    bool negative) {
  return negative
             ? hd_flat_operate(f->arena, HD_EXPR_SUB,
                               hd_flat_float(f->arena, term->type.scalar, -0.0),
                               term)
             : term;
}

static bool is_one(const hd_term_t *term) {
  return term->kind == HD_TERM_CONST && term->u.f == 1.0;
}

// A sum of two of which one alone knows the state, and has nothing more; a
// product likewise. Anything else would be rounded in another order.
static bool find_fading(fader_t *f, const hd_term_t *term, fading_t *out) {
  if (!hd_flat_reads(term, f->state)) {
    *out = (fading_t){NULL, term};
    return true;
  }
  if (is_own_element(f, term)) {
    *out = (fading_t){hd_flat_float(f->arena, term->type.scalar, 1.0), NULL};
    return true;
  }
  fading_t x[2];
  if (term->kind != HD_TERM_OPERATOR || term->num_operands != 2 ||
      !find_fading(f, term->operands[0], &x[0]) ||
      !find_fading(f, term->operands[1], &x[1]))
    return false;
  unsigned knows = x[1].factor != NULL;
  if (x[!knows].factor || x[knows].rest)
    return false;
  const hd_term_t *factor = x[knows].factor, *other = x[!knows].rest;
  bool subtracts = term->u.op == HD_EXPR_SUB;
  if (term->u.op == HD_EXPR_MUL)
    *out = (fading_t){
        is_one(factor) ? other
                       : hd_flat_operate(f->arena, HD_EXPR_MUL, factor, other),
        NULL};
  else if (term->u.op == HD_EXPR_ADD || subtracts)
    *out = (fading_t){signed_term(f, factor, subtracts && knows),
                      signed_term(f, other, subtracts && !knows)};
  else
    return false;
  return true;
}

static const hd_variable_t *variable(hd_arena_t *arena, const char *name,
                                     hd_scalar_t type) {
  hd_variable_t *made = HD_ARENA_NEW(arena, hd_variable_t);
  *made = (hd_variable_t){.name = name, .type = hd_flat_type(type)};
  return made;
}

static const hd_term_t *bound(hd_arena_t *arena, const hd_variable_t *v) {
  hd_term_t *term = hd_term_make(arena, HD_TERM_BOUND, v->type, NULL, 0);
  term->u.variable = v;
  return term;
}

// (a, b)(c, d): first a times the state and b more, then c times that and d.
static const hd_monoid_t *fading_monoid(hd_arena_t *arena, hd_scalar_t type) {
  static const char *const names[] = {"a", "b", "c", "d"};
  const hd_variable_t **v = HD_ARENA_ARRAY(arena, const hd_variable_t *, 4);
  const hd_term_t *x[4];
  const hd_term_t **identity = HD_ARENA_ARRAY(arena, const hd_term_t *, 2);
  const hd_term_t **result = HD_ARENA_ARRAY(arena, const hd_term_t *, 2);
  for (unsigned i = 0; i < 4; i++) {
    v[i] = variable(arena, names[i], type);
    x[i] = bound(arena, v[i]);
  }
  identity[0] = hd_flat_float(arena, type, 1.0);
  identity[1] = hd_flat_float(arena, type, 0.0);
  result[0] = hd_flat_operate(arena, HD_EXPR_MUL, x[0], x[2]);
  result[1] =
      hd_flat_operate(arena, HD_EXPR_ADD,
                      hd_flat_operate(arena, HD_EXPR_MUL, x[1], x[2]), x[3]);
  hd_monoid_t *m = HD_ARENA_NEW(arena, hd_monoid_t);
  *m = (hd_monoid_t){.builtin = HD_MONOID_COUNT,
                     .name = "fading",
                     .size = 2,
                     .left = v,
                     .right = v + 2,
                     .identity = identity,
                     .result = result};
  return m;
}

// Both operands of the scan, at the turn that it goes over. first: NULL where
// the state is 0 before.
static void put_operands(turner_t *t, const fading_t *fading,
                         const hd_task_value_t *first, const hd_definition_t *d,
                         const hd_term_t **operands) {
  hd_scalar_t type = d->targets[0]->type.scalar;
  operands[0] = hd_flat_rewrite(t->arena, fading->factor, put_access, t);
  operands[1] = fading->rest
                    ? hd_flat_rewrite(t->arena, fading->rest, put_access, t)
                    : hd_flat_float(t->arena, type, 0.0);
  if (!first)
    return;
  const hd_term_t *places[HD_MAX_RANK];
  for (uint32_t i = 0; i < d->num_indices; i++)
    places[i] = hd_flat_range(d->indices[i]) == 1
                    ? hd_flat_int(t->arena, HD_I64, 0)
                    : hd_flat_index(t->arena, d->indices[i]);
  const hd_term_t *before =
      hd_flat_operate(t->arena, HD_EXPR_ADD,
                      hd_flat_operate(t->arena, HD_EXPR_MUL, operands[0],
                                      hd_flat_load(t->arena, first, places)),
                      operands[1]);
  operands[1] = hd_flat_select(
      t->arena, hd_flat_operate_int(t->arena, HD_EXPR_EQ, t->turn, 0), before,
      operands[1]);
}

static void put_scan(turner_t *t, const fading_t *fading,
                     const hd_task_value_t *first, const hd_definition_t *d) {
  const hd_index_t **indices =
      HD_ARENA_ARRAY(t->arena, const hd_index_t *, d->num_indices + 1);
  const hd_index_t **step = HD_ARENA_ARRAY(t->arena, const hd_index_t *, 1);
  const hd_task_value_t **targets =
      HD_ARENA_ARRAY(t->arena, const hd_task_value_t *, 2);
  const hd_term_t *operands[2];
  indices[0] = hd_flat_index_make(t->arena, "turn", t->steps);
  step[0] = hd_flat_index_make(t->arena, "step", t->steps);
  for (uint32_t i = 0; i < d->num_indices; i++)
    indices[i + 1] = d->indices[i];
  hd_task_type_t type = d->targets[0]->type;
  t->turn = hd_flat_index(t->arena, step[0]);
  put_operands(t, fading, first, d, operands);
  hd_reduction_t *r = HD_ARENA_NEW(t->arena, hd_reduction_t);
  *r = (hd_reduction_t){.monoid = fading_monoid(t->arena, type.scalar),
                        .num_indices = 1,
                        .indices = step,
                        .part = HD_SCAN_TO,
                        .at = hd_flat_index(t->arena, indices[0])};
  hd_vec_push(t->arena, &t->made->monoids, r->monoid);
  hd_term_t *scan = hd_term_make(t->arena, HD_TERM_SCAN, type, operands, 2);
  scan->u.reduction = r;
  targets[1] = hd_ptr_map_get(&t->values, d->targets[0]);
  hd_task_value_t *faded = HD_ARENA_COPY(t->arena, hd_task_value_t, targets[1]);
  faded->name = "faded";
  faded->kind = HD_VALUE_LOCAL;
  targets[0] = faded;
  hd_vec_push(t->arena, &t->made->locals, targets[0]);
  hd_definition_t *made = HD_ARENA_NEW(t->arena, hd_definition_t);
  *made = (hd_definition_t){.kind = HD_DEFINE,
                            .loc = d->loc,
                            .num_targets = 2,
                            .targets = targets,
                            .num_indices = d->num_indices + 1,
                            .indices = indices,
                            .term = scan};
  hd_vec_push(t->arena, &t->made->definitions, (const hd_definition_t *)made);
}

hd_task_t *hd_turns_fading(hd_arena_t *arena, const hd_task_t *flat,
                           size_t state, const bool *turned, int64_t steps,
                           bool from_zeros) {
  if (flat->definitions.size != 1 || !has_room(flat))
    return NULL;
  const hd_definition_t *d = flat->definitions.data[0];
  fader_t f = {arena, flat->inputs.data[state], d};
  fading_t fading;
  hd_scalar_t type = f.state->type.scalar;
  if (d->num_targets != 1 || !hd_type_is_float(hd_type(type)) ||
      hd_flat_has(d->term, HD_TERM_REDUCE) ||
      hd_flat_has(d->term, HD_TERM_SCAN) ||
      !find_fading(&f, d->term, &fading) || !fading.factor ||
      hd_flat_reads(fading.factor, f.state))
    return NULL;
  turner_t t;
  begin(&t, flat, arena, steps);
  for (size_t i = 0; i < flat->inputs.size; i++)
    if (i != state)
      hd_vec_push(arena, &t.made->inputs,
                  put_value(&t, flat->inputs.data[i], turned[i]));
  hd_task_value_t *first = NULL;
  if (!from_zeros) {
    first =
        HD_ARENA_COPY(arena, hd_task_value_t, put_value(&t, f.state, false));
    first->name = "first";
    hd_vec_push(arena, &t.made->inputs, (const hd_task_value_t *)first);
  }
  hd_vec_push(arena, &t.made->outputs,
              put_value(&t, flat->outputs.data[0], true));
  put_scan(&t, &fading, first, d);
  return t.made;
}

// --- States before and after ---

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
