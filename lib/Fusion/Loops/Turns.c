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
//   fold fading(h0: f32, h1: f32)(d0, d1) from (0, -0) = (d0, h1 * d0 + d1)
//   faded0[turn, i], y[turn, i] = scan fading(step: n to turn)
//     (step == 0 ? 0 : a[step, i],
//      step == 0 ? a[step, i] * first[i] + b[step, i] : b[step, i])
//
// What is done to the state is done in the fold, operation by operation as the
// turns do it, so that every state is rounded as theirs. The first turn is done
// to the state before it where the fold reads what it adds: all before that, a
// zero, adds nothing, not even a sign. Where the first state is 0, the fold
// begins with that.
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

// What a turn does to the state, from the state on: (state * by) + by, ..
typedef struct stage {
  enum { STAGE_MUL, STAGE_ADD, STAGE_FROM } kind; // FROM: by - state
  const hd_term_t *by;
} stage_t;

enum { MOST_STAGES = 8 }; // A component of the fold each.

typedef struct fader {
  hd_arena_t *arena;
  const hd_task_value_t *state;
  const hd_definition_t *d;
  stage_t stages[MOST_STAGES];
  unsigned count;
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

static const hd_term_t *zero(hd_arena_t *arena, hd_scalar_t type,
                             bool negative) {
  return hd_flat_float(arena, type, negative ? -0.0 : 0.0);
}

static bool put_stage(fader_t *f, int kind, const hd_term_t *by) {
  if (f->count == MOST_STAGES)
    return false;
  f->stages[f->count].kind = kind;
  f->stages[f->count++].by = by;
  return true;
}

// Sums and products of two of which one alone knows the state.
static bool find_stages(fader_t *f, const hd_term_t *term) {
  if (is_own_element(f, term))
    return true;
  if (term->kind != HD_TERM_OPERATOR || term->num_operands != 2)
    return false;
  unsigned knows = hd_flat_reads(term->operands[1], f->state);
  const hd_term_t *by = term->operands[!knows];
  if (hd_flat_reads(by, f->state) || !find_stages(f, term->operands[knows]))
    return false;
  switch (term->u.op) {
  case HD_EXPR_MUL:
    return put_stage(f, STAGE_MUL, by);
  case HD_EXPR_ADD:
    return put_stage(f, STAGE_ADD, by);
  case HD_EXPR_SUB: // x - by is x + -by, to the last bit.
    if (knows)
      return put_stage(f, STAGE_FROM, by);
    by = hd_flat_operate(f->arena, HD_EXPR_SUB,
                         zero(f->arena, by->type.scalar, true), by);
    return put_stage(f, STAGE_ADD, by);
  default:
    return false;
  }
}

// The last of them adds.
static bool find_fading(fader_t *f) {
  return find_stages(f, f->d->term) &&
         ((f->count && f->stages[f->count - 1].kind != STAGE_MUL) ||
          put_stage(f, STAGE_ADD, zero(f->arena, f->state->type.scalar, true)));
}

static const hd_term_t *put_on(hd_arena_t *arena, const stage_t *stage,
                               const hd_term_t *state, const hd_term_t *by) {
  if (stage->kind == STAGE_FROM)
    return hd_flat_operate(arena, HD_EXPR_SUB, by, state);
  return hd_flat_operate(
      arena, stage->kind == STAGE_MUL ? HD_EXPR_MUL : HD_EXPR_ADD, state, by);
}

// Whether the zero that goes into the stage is to be negative, so that no sign
// comes from it out of the last: x + -0 and x - 0 are x.
static bool is_negative_at(const fader_t *f, unsigned stage) {
  bool negative = f->stages[f->count - 1].kind == STAGE_ADD;
  for (unsigned i = f->count - 1; i-- > stage;)
    negative ^= f->stages[i].kind == STAGE_FROM;
  return negative;
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

// A component for each stage: on the right what it does it by, and of the last
// one on the left the state, on which all are put.
static const hd_monoid_t *fading_fold(const fader_t *f, bool from_zeros) {
  hd_arena_t *arena = f->arena;
  hd_scalar_t type = f->state->type.scalar;
  const hd_variable_t **v =
      HD_ARENA_ARRAY(arena, const hd_variable_t *, 2 * f->count);
  const hd_term_t **identity =
      HD_ARENA_ARRAY(arena, const hd_term_t *, f->count);
  const hd_term_t **result = HD_ARENA_ARRAY(arena, const hd_term_t *, f->count);
  for (unsigned i = 0; i < 2 * f->count; i++)
    v[i] = variable(
        arena,
        hd_arena_printf(arena, "%c%u", i < f->count ? 'h' : 'd', i % f->count),
        type);
  unsigned last = f->count - 1;
  const hd_term_t *state = bound(arena, v[last]);
  for (unsigned i = 0; i < f->count; i++) {
    identity[i] = zero(arena, type, false);
    result[i] = bound(arena, v[f->count + i]);
    state = put_on(arena, &f->stages[i], state, result[i]);
  }
  identity[last] = zero(arena, type, !from_zeros && is_negative_at(f, 0));
  result[last] = state;
  hd_monoid_t *m = HD_ARENA_NEW(arena, hd_monoid_t);
  *m = (hd_monoid_t){.builtin = HD_MONOID_COUNT,
                     .name = "fading",
                     .size = f->count,
                     .left = v,
                     .right = v + f->count,
                     .identity = identity,
                     .result = result,
                     .in_order = true};
  return m;
}

// The operands of the scan, at the turn that it goes over. first: NULL where
// the state is 0 before.
static void put_operands(turner_t *t, const fader_t *f,
                         const hd_task_value_t *first,
                         const hd_term_t **operands) {
  const hd_definition_t *d = f->d;
  hd_scalar_t type = f->state->type.scalar;
  const hd_term_t *places[HD_MAX_RANK], *state = NULL;
  for (uint32_t i = 0; i < d->num_indices; i++)
    places[i] = hd_flat_range(d->indices[i]) == 1
                    ? hd_flat_int(t->arena, HD_I64, 0)
                    : hd_flat_index(t->arena, d->indices[i]);
  if (first)
    state = hd_flat_load(t->arena, first, places);
  const hd_term_t *is_first =
      hd_flat_operate_int(t->arena, HD_EXPR_EQ, t->turn, 0);
  for (unsigned i = 0; i < f->count; i++) {
    bool adds = f->stages[i].kind != STAGE_MUL, last = i + 1 == f->count;
    const hd_term_t *by =
        hd_flat_rewrite(t->arena, f->stages[i].by, put_access, t);
    operands[i] = by;
    if (!first)
      continue;
    state = put_on(t->arena, &f->stages[i], state, by);
    operands[i] = hd_flat_select(
        t->arena, is_first,
        last ? state : zero(t->arena, type, adds && is_negative_at(f, i + 1)),
        by);
  }
}

// At each turn, or at the last one alone.
static void put_scan(turner_t *t, const fader_t *f,
                     const hd_task_value_t *first, bool each) {
  const hd_definition_t *d = f->d;
  const hd_index_t **indices =
      HD_ARENA_ARRAY(t->arena, const hd_index_t *, d->num_indices + 1);
  const hd_index_t **step = HD_ARENA_ARRAY(t->arena, const hd_index_t *, 1);
  const hd_task_value_t **targets =
      HD_ARENA_ARRAY(t->arena, const hd_task_value_t *, f->count);
  const hd_term_t *operands[MOST_STAGES];
  step[0] = hd_flat_index_make(t->arena, "step", t->steps);
  if (each)
    indices[0] = hd_flat_index_make(t->arena, "turn", t->steps);
  for (uint32_t i = 0; i < d->num_indices; i++)
    indices[each + i] = d->indices[i];
  t->turn = hd_flat_index(t->arena, step[0]);
  put_operands(t, f, first, operands);
  hd_reduction_t *r = HD_ARENA_NEW(t->arena, hd_reduction_t);
  *r = (hd_reduction_t){.monoid = fading_fold(f, !first),
                        .num_indices = 1,
                        .indices = step,
                        .part = HD_SCAN_TO,
                        .at =
                            each ? hd_flat_index(t->arena, indices[0])
                                 : hd_flat_int(t->arena, HD_I64, t->steps - 1)};
  hd_vec_push(t->arena, &t->made->monoids, r->monoid);
  hd_term_t *scan = hd_term_make(t->arena, HD_TERM_SCAN, d->targets[0]->type,
                                 operands, f->count);
  scan->u.reduction = r;
  unsigned last = f->count - 1;
  targets[last] = hd_ptr_map_get(&t->values, d->targets[0]);
  for (unsigned i = 0; i < last; i++) {
    hd_task_value_t *faded =
        HD_ARENA_COPY(t->arena, hd_task_value_t, targets[last]);
    faded->name = hd_arena_printf(t->arena, "faded%u", i);
    faded->kind = HD_VALUE_LOCAL;
    targets[i] = faded;
    hd_vec_push(t->arena, &t->made->locals, targets[i]);
  }
  hd_definition_t *made = HD_ARENA_NEW(t->arena, hd_definition_t);
  *made = (hd_definition_t){.kind = HD_DEFINE,
                            .loc = d->loc,
                            .num_targets = f->count,
                            .targets = targets,
                            .num_indices = d->num_indices + each,
                            .indices = indices,
                            .term = scan};
  hd_vec_push(t->arena, &t->made->definitions, (const hd_definition_t *)made);
}

hd_task_t *hd_turns_fading(hd_arena_t *arena, const hd_task_t *flat,
                           size_t state, const bool *turned, int64_t steps,
                           bool from_zeros, bool each) {
  if (flat->definitions.size != 1 || !has_room(flat))
    return NULL;
  fader_t f = {.arena = arena,
               .state = flat->inputs.data[state],
               .d = flat->definitions.data[0]};
  if (f.d->num_targets != 1 ||
      !hd_type_is_float(hd_type(f.state->type.scalar)) ||
      hd_flat_has(f.d->term, HD_TERM_REDUCE) ||
      hd_flat_has(f.d->term, HD_TERM_SCAN) || !find_fading(&f))
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
              put_value(&t, flat->outputs.data[0], each));
  put_scan(&t, &f, first, each);
  return t.made;
}
