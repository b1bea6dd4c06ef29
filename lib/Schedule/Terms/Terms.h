// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Making and rewriting the terms of flat tasks (Flatten.h).
#ifndef HIDET_SCHEDULE_TERMS_TERMS_H
#define HIDET_SCHEDULE_TERMS_TERMS_H

#include "IR/Graph/Task.h"

static inline hd_task_type_t hd_flat_type(hd_scalar_t scalar) {
  return (hd_task_type_t){scalar, NULL};
}
// The number of an axis' elements.
static inline int64_t hd_flat_size(const hd_task_value_t *value,
                                   unsigned axis) {
  return value->shape[axis]->u.i;
}
static inline int64_t hd_flat_range(const hd_index_t *index) {
  return index->range->u.i;
}
// The number of a tensor's elements.
int64_t hd_flat_count(const hd_task_value_t *value);
// The number of points of a domain, at most INT64_MAX.
int64_t hd_flat_points(const hd_index_t *const *indices, unsigned count);

const hd_term_t *hd_flat_int(hd_arena_t *arena, hd_scalar_t type,
                             int64_t value);
// Rounded to the type.
const hd_term_t *hd_flat_float(hd_arena_t *arena, hd_scalar_t type,
                               double value);
const hd_term_t *hd_flat_index(hd_arena_t *arena, const hd_index_t *index);
const hd_term_t *hd_flat_load(hd_arena_t *arena, const hd_task_value_t *value,
                              const hd_term_t *const *operands);
// Of a scalar type: the term itself where it has that.
const hd_term_t *hd_flat_cast(hd_arena_t *arena, const hd_term_t *term,
                              hd_scalar_t type);
hd_index_t *hd_flat_index_make(hd_arena_t *arena, const char *name,
                               int64_t range);
hd_task_value_t *hd_flat_value_make(hd_arena_t *arena, const char *name,
                                    hd_value_kind_t kind, hd_scalar_t type,
                                    const int64_t *shape, unsigned rank);

// target[indices] = term, as many indices as the target has axes.
hd_definition_t *hd_flat_define(hd_arena_t *arena,
                                const hd_task_value_t *target,
                                const hd_index_t *const *indices,
                                const hd_term_t *term);

// The task without inputs and definitions, to be given others.
hd_task_t *hd_flat_emptied(hd_arena_t *arena, const hd_task_t *flat);

// What a component of a monoid begins with.
const hd_term_t *hd_flat_identity(hd_arena_t *arena, const hd_monoid_t *monoid,
                                  unsigned component, hd_scalar_t type);

// A term of the kind, type, payload and place of another, and as many operands.
hd_term_t *hd_flat_like(hd_arena_t *arena, const hd_term_t *like,
                        const hd_term_t *const *operands);
// The same, where integers and conditions of constants are folded.
const hd_term_t *hd_flat_rebuild(hd_arena_t *arena, const hd_term_t *term,
                                 const hd_term_t *const *operands);

const hd_term_t *hd_flat_operate(hd_arena_t *arena, hd_expr_kind_t op,
                                 const hd_term_t *a, const hd_term_t *b);
// By a number, an i64.
const hd_term_t *hd_flat_operate_int(hd_arena_t *arena, hd_expr_kind_t op,
                                     const hd_term_t *a, int64_t b);
const hd_term_t *hd_flat_select(hd_arena_t *arena, const hd_term_t *condition,
                                const hd_term_t *a, const hd_term_t *b);
// Another term in the place of one, known by its address.
const hd_term_t *hd_flat_replace(hd_arena_t *arena, const hd_term_t *term,
                                 const hd_term_t *from, const hd_term_t *to);

// Rewrites bottom-up: leave() is given every term with its operands rewritten
// and returns what takes its place.
typedef const hd_term_t *(*hd_flat_leave_t)(void *argument,
                                            const hd_term_t *term);
const hd_term_t *hd_flat_rewrite(hd_arena_t *arena, const hd_term_t *term,
                                 hd_flat_leave_t leave, void *argument);

// Calls visit on every term, users before operands; operands of a term for
// which it returns false are left out.
typedef bool (*hd_flat_visit_t)(void *argument, const hd_term_t *term);
void hd_flat_walk(const hd_term_t *term, hd_flat_visit_t visit, void *argument);

bool hd_flat_is_among(const hd_index_t *const *indices, unsigned count,
                      const hd_index_t *index);
bool hd_flat_uses(const hd_term_t *term, const hd_index_t *index);
// Whether it reads elements of a tensor.
bool hd_flat_reads(const hd_term_t *term, const hd_task_value_t *value);
// Whether a term of that kind stands in it.
bool hd_flat_has(const hd_term_t *term, hd_term_kind_t kind);
// Whether it loads where elements of a table say, which its indices choose.
bool hd_flat_gathers(const hd_term_t *term);
bool hd_flat_is_reduction(const hd_term_t *term); // REDUCE or SCAN
static inline bool hd_flat_is_operator(const hd_term_t *term,
                                       hd_expr_kind_t op) {
  return term->kind == HD_TERM_OPERATOR && term->u.op == op;
}
static inline bool hd_flat_is_load(const hd_term_t *term) {
  return term->kind == HD_TERM_LOAD || term->kind == HD_TERM_LOADELSE;
}
// Whether operand i is evaluated in places alone.
bool hd_flat_is_lazy(const hd_term_t *term, unsigned i);
// Whether an access in it may be outside, for all that is seen there.
bool hd_flat_is_risky(const hd_term_t *term);
// Whether a definition gives one local tensor.
static inline bool hd_flat_is_local(const hd_definition_t *d) {
  return d->kind == HD_DEFINE && d->num_targets == 1 &&
         d->targets[0]->kind == HD_VALUE_LOCAL;
}
// Takes a tensor out of the task's locals.
void hd_flat_forget_local(hd_task_t *task, const hd_task_value_t *value);
static inline bool hd_flat_is_int(const hd_term_t *term, int64_t value) {
  return term->kind == HD_TERM_CONST &&
         !hd_type_is_float(hd_type(term->type.scalar)) && term->u.i == value;
}

#endif
