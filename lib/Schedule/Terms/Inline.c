// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which local tensors are worth their memory. Costs are counted in simple
// operations: enough to tell a sum from an exponential.
#include "Schedule/Terms/Prepare.h"

#include "Support/Map.h"

enum { LOAD_COST = 3, STORE_COST = 8, FUNCTION_COST = 16 };

static bool is_affine(const hd_term_t *term) {
  bool good = term->kind == HD_TERM_INDEX || term->kind == HD_TERM_CONST ||
              term->kind == HD_TERM_OPERATOR;
  for (unsigned i = 0; good && i < term->num_operands; i++)
    good = is_affine(term->operands[i]);
  return good;
}

// scope: the points of what is around the term.
static void count_reads(hd_flat_reads_t *r, const hd_term_t *term,
                        double scope) {
  double inner = scope;
  if (hd_flat_is_reduction(term))
    inner *= (double)hd_flat_points(term->u.reduction->indices,
                                    term->u.reduction->num_indices);
  for (unsigned i = 0; i < term->num_operands; i++)
    count_reads(r, term->operands[i], inner);
  if (term->kind == HD_TERM_SCAN)
    count_reads(r, term->u.reduction->at, scope);
  bool loads = hd_flat_is_load(term);
  if (!loads || term->u.value != r->value)
    return;
  r->times += scope;
  // Data decide the place: it is checked against the tensor.
  r->is_decided |= term->kind == HD_TERM_LOADELSE;
  for (unsigned i = 0; i < term->num_operands; i++)
    r->is_decided |= !is_affine(term->operands[i]);
}

void hd_flat_count_reads(const hd_definition_t *d, hd_flat_reads_t *reads) {
  double points = (double)hd_flat_points(d->indices, d->num_indices);
  count_reads(reads, d->term, points);
  for (uint32_t k = 0; d->at && k < d->targets[0]->rank; k++)
    count_reads(reads, d->at[k], points);
}

static double cost_of(const hd_term_t *term) {
  double cost = term->kind == HD_TERM_FUNCTION ? FUNCTION_COST
                : hd_flat_is_load(term)        ? LOAD_COST
                : term->kind == HD_TERM_CONST || term->kind == HD_TERM_INDEX
                    ? 0
                    : 1;
  for (unsigned i = 0; i < term->num_operands; i++)
    cost += cost_of(term->operands[i]);
  return cost;
}

// Whether a local tensor is to be inlined where it is read: where that is
// possible, and costs no more or is wanted anyway.
static bool is_worth_it(const hd_task_t *task, size_t at, bool always) {
  const hd_definition_t *d = task->definitions.data[at];
  const hd_task_value_t *value = d->targets[0];
  if (d->kind != HD_DEFINE || d->num_targets > 1 ||
      value->kind != HD_VALUE_LOCAL || hd_flat_has(d->term, HD_TERM_REDUCE) ||
      hd_flat_has(d->term, HD_TERM_SCAN))
    return false;
  bool possible = true;
  hd_flat_reads_t r = {.value = value};
  for (size_t i = at + 1; i < task->definitions.size; i++) {
    possible &= task->definitions.data[i]->onto != value;
    hd_flat_count_reads(task->definitions.data[i], &r);
  }
  double cost = cost_of(d->term), count = (double)hd_flat_count(value);
  return possible && !r.is_decided &&
         (always ||
          r.times * cost <= count * (cost + STORE_COST) + r.times * LOAD_COST);
}

typedef struct substitution {
  hd_arena_t *arena;
  const hd_definition_t *d; // What is inlined.
  hd_ptr_map_t places;      // Its indices to what they are where it is read.
} substitution_t;

static const hd_term_t *put_place(void *argument, const hd_term_t *term) {
  const substitution_t *s = argument;
  const hd_term_t *place = term->kind == HD_TERM_INDEX
                               ? hd_ptr_map_get(&s->places, term->u.index)
                               : NULL;
  return place ? place : term;
}

static const hd_term_t *put_value(void *argument, const hd_term_t *term) {
  substitution_t *s = argument;
  if (term->kind != HD_TERM_LOAD || term->u.value != s->d->targets[0])
    return term;
  for (uint32_t i = 0; i < s->d->num_indices; i++)
    hd_ptr_map_set(s->arena, &s->places, s->d->indices[i], term->operands[i]);
  return hd_flat_rewrite(s->arena, s->d->term, put_place, s);
}

static void inline_into(substitution_t *s, const hd_definition_t **user) {
  hd_definition_t *d = HD_ARENA_COPY(s->arena, hd_definition_t, *user);
  d->term = hd_flat_rewrite(s->arena, d->term, put_value, s);
  const hd_term_t **at = HD_ARENA_ARRAY(s->arena, const hd_term_t *,
                                        d->at ? d->targets[0]->rank : 0);
  for (uint32_t k = 0; d->at && k < d->targets[0]->rank; k++)
    at[k] = hd_flat_rewrite(s->arena, d->at[k], put_value, s);
  d->at = d->at ? at : NULL;
  *user = d;
}

static void inline_locals(hd_arena_t *arena, hd_task_t *task, bool always) {
  size_t kept = 0;
  for (size_t i = 0; i < task->definitions.size; i++) {
    const hd_definition_t *d = task->definitions.data[i];
    if (!is_worth_it(task, i, always)) {
      task->definitions.data[kept++] = d;
      continue;
    }
    substitution_t s = {.arena = arena, .d = d};
    for (size_t k = i + 1; k < task->definitions.size; k++)
      inline_into(&s, &task->definitions.data[k]);
    hd_flat_forget_local(task, d->targets[0]);
  }
  task->definitions.size = kept;
}

void hd_task_inline(hd_arena_t *arena, hd_task_t *task) {
  inline_locals(arena, task, false);
}

void hd_task_inline_all(hd_arena_t *arena, hd_task_t *task) {
  inline_locals(arena, task, true);
}

static hd_scalar_t wider(hd_scalar_t type) {
  return hd_type_is_float(hd_type(type))      ? HD_F16
         : hd_type_is_unsigned(hd_type(type)) ? HD_U8
                                              : HD_I8;
}

// The tensor's elements, of another type.
static const hd_definition_t *convert(hd_arena_t *arena,
                                      const hd_definition_t *like,
                                      const hd_task_value_t *from,
                                      const hd_task_value_t *to) {
  const hd_term_t *places[HD_MAX_RANK];
  for (uint32_t i = 0; i < like->num_indices; i++)
    places[i] = hd_flat_index(arena, like->indices[i]);
  const hd_term_t *load = hd_flat_load(arena, from, places);
  hd_definition_t *d =
      hd_flat_define(arena, to, like->indices,
                     hd_term_make(arena, HD_TERM_CAST, to->type, &load, 1));
  d->loc = like->loc;
  return d;
}

void hd_task_widen(hd_arena_t *arena, hd_task_t *task) {
  HD_VEC(const hd_definition_t *) out = {0};
  for (size_t i = 0; i < task->definitions.size; i++) {
    const hd_definition_t *d = task->definitions.data[i];
    bool narrow = false;
    for (uint32_t k = 0; d->kind == HD_DEFINE && k < d->num_targets; k++)
      narrow |= hd_scalar_bits(d->targets[k]->type.scalar) < 8;
    bool reduces = hd_flat_has(d->term, HD_TERM_REDUCE) ||
                   hd_flat_has(d->term, HD_TERM_SCAN);
    if (!narrow || !reduces) {
      hd_vec_push(arena, &out, d);
      continue;
    }
    hd_definition_t *first = HD_ARENA_COPY(arena, hd_definition_t, d);
    const hd_task_value_t **targets =
        HD_ARENA_ARRAY(arena, const hd_task_value_t *, d->num_targets);
    first->targets = targets;
    hd_vec_push(arena, &out, first);
    for (uint32_t k = 0; k < d->num_targets; k++) {
      const hd_task_value_t *target = d->targets[k];
      hd_scalar_t type = target->type.scalar;
      targets[k] = target;
      if (hd_scalar_bits(type) >= 8)
        continue;
      int64_t shape[HD_MAX_RANK];
      for (uint32_t n = 0; n < target->rank; n++)
        shape[n] = hd_flat_size(target, n);
      targets[k] = hd_flat_value_make(
          arena, hd_arena_printf(arena, "%s_wide", target->name),
          HD_VALUE_LOCAL, wider(type), shape, target->rank);
      hd_vec_push(arena, &task->locals, targets[k]);
      hd_vec_push(arena, &out, convert(arena, d, targets[k], target));
    }
    if (d->num_targets == 1)
      first->term =
          hd_term_make(arena, HD_TERM_CAST, targets[0]->type, &d->term, 1);
  }
  task->definitions.data = out.data;
  task->definitions.size = out.size;
  task->definitions.capacity = out.capacity;
}
