// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Accesses that leave their tensor whatever the data is:
//
//   y[i] = x[i + 2]     with y as long as x
//
// A device that runs such a node by itself would find it, one that computes
// the element where another kernel reads it might take another one for it. So
// it is said here, of accesses that are done for certain and whose index
// reaches what its range says: each of its indices stands in it once, and all
// is monotone. What is not known here is left to the run.
#include "Graph/Bind/BindingState.h"

enum { MOST_INDICES = 16 };

typedef struct span {
  int64_t least, most;
} span_t;

typedef struct reach {
  const hd_task_binding_t *binding;
  const hd_index_t *used[MOST_INDICES];
  unsigned num_used;
} reach_t;

static bool is_settled(const hd_term_t *term) {
  if (term->kind == HD_TERM_SIZE && term->u.size->bound)
    return false; // The data decides it.
  for (unsigned i = 0; i < term->num_operands; i++)
    if (!is_settled(term->operands[i]))
      return false;
  return true;
}

static bool span_of(reach_t *r, const hd_term_t *term, unsigned axis,
                    span_t *s);

static bool span_of_index(reach_t *r, const hd_term_t *term, unsigned axis,
                          span_t *s) {
  const hd_index_t *index = term->u.index;
  int64_t size;
  for (unsigned i = 0; i < r->num_used; i++)
    if (r->used[i] == index)
      return false;
  if (r->num_used == MOST_INDICES || !is_settled(index->range) ||
      !hd_binding_extent(r->binding, index->range, axis, &size) || size < 1)
    return false;
  r->used[r->num_used++] = index;
  *s = (span_t){0, size - 1};
  return true;
}

static bool sum_of(span_t a, span_t b, span_t *s) {
  return !__builtin_add_overflow(a.least, b.least, &s->least) &&
         !__builtin_add_overflow(a.most, b.most, &s->most);
}

static bool product_of(span_t a, span_t b, span_t *s) {
  span_t by = a.least == a.most ? a : b, of = a.least == a.most ? b : a;
  int64_t ends[2];
  if (by.least != by.most ||
      __builtin_mul_overflow(of.least, by.least, &ends[0]) ||
      __builtin_mul_overflow(of.most, by.least, &ends[1]))
    return false;
  *s = by.least < 0 ? (span_t){ends[1], ends[0]} : (span_t){ends[0], ends[1]};
  return true;
}

static bool operation_of(reach_t *r, const hd_term_t *term, unsigned axis,
                         span_t *s) {
  span_t a, b = {0};
  if (!span_of(r, term->operands[0], axis, &a) ||
      (term->num_operands > 1 && !span_of(r, term->operands[1], axis, &b)))
    return false;
  bool is_bare = term->operands[0]->kind == HD_TERM_INDEX;
  switch (term->u.op) {
  case HD_EXPR_ADD:
    return sum_of(a, b, s);
  case HD_EXPR_SUB:
    return b.least != INT64_MIN && b.most != INT64_MIN &&
           sum_of(a, (span_t){-b.most, -b.least}, s);
  case HD_EXPR_NEG:
    *s = (span_t){-a.most, -a.least};
    return a.least != INT64_MIN;
  case HD_EXPR_MUL:
    return product_of(a, b, s);
  case HD_EXPR_DIV:
    if (b.least != b.most || b.least < 1)
      return false;
    *s = (span_t){a.least / b.least, a.most / b.least};
    return true;
  case HD_EXPR_MOD: // 0, 1, .. one after the other.
    if (b.least != b.most || b.least < 1 || !is_bare)
      return false;
    *s = (span_t){0, a.most < b.least ? a.most : b.least - 1};
    return true;
  case HD_EXPR_MIN:
    *s = (span_t){a.least < b.least ? a.least : b.least,
                  a.most < b.most ? a.most : b.most};
    return true;
  case HD_EXPR_MAX:
    *s = (span_t){a.least > b.least ? a.least : b.least,
                  a.most > b.most ? a.most : b.most};
    return true;
  default:
    return false;
  }
}

// The least and the greatest value that the term takes; false: not known.
static bool span_of(reach_t *r, const hd_term_t *term, unsigned axis,
                    span_t *s) {
  int64_t value;
  if (!term->pack)
    axis = 0;
  if (term->type.scalar != HD_I64)
    return false;
  if (term->kind == HD_TERM_INDEX)
    return span_of_index(r, term, axis, s);
  if (is_settled(term) && hd_binding_extent(r->binding, term, axis, &value)) {
    *s = (span_t){value, value};
    return true;
  }
  return term->kind == HD_TERM_OPERATOR &&
         term->operands[0]->type.scalar == HD_I64 &&
         operation_of(r, term, axis, s);
}

// --- Accesses ---

static bool check_axis(hd_binder_t *b, const hd_task_value_t *value,
                       const hd_term_t *at, unsigned part, unsigned axis,
                       int64_t size, const char *verb) {
  reach_t r = {.binding = b->binding};
  span_t s;
  if (!span_of(&r, at, part, &s) || (s.least >= 0 && s.most < size))
    return true;
  hd_bind_fault(b, "'%s' is %s at %lld on axis %u, whose size is %lld",
                value->name, verb, (long long)(s.least < 0 ? s.least : s.most),
                axis, (long long)size);
  if (!b->quiet)
    hd_note(&b->context->diags, at->loc, "by this index");
  return false;
}

// Broadcasts are aligned at the right; where the tensor's axis has one element
// that one is meant.
static bool check_access(hd_binder_t *b, const hd_task_value_t *value,
                         const hd_term_t *const *at, const char *verb) {
  unsigned axis = 0;
  for (uint32_t i = 0; i < value->rank; i++) {
    const hd_pack_t *axes = value->shape[i]->pack, *pack = at[i]->pack;
    unsigned count = axes ? hd_binding_rank(b->binding, axes) : 1;
    unsigned skip = axes ? hd_binding_rank(b->binding, pack) - count : 0;
    for (unsigned n = 0; n < count; n++, axis++) {
      int64_t size;
      if (!is_settled(value->shape[i]) ||
          !hd_binding_extent(b->binding, value->shape[i], n, &size) ||
          (axes && pack != axes && size == 1))
        continue;
      if (!check_axis(b, value, at[i], skip + n, axis, size, verb))
        return false;
    }
  }
  return true;
}

// Whether every index has something to run over, as far as is known here.
static bool is_run(const hd_binder_t *b, const hd_index_t *const *indices,
                   uint32_t count) {
  hd_extents_t extents;
  for (uint32_t i = 0; i < count; i++) {
    if (!is_settled(indices[i]->range) ||
        !hd_binding_extents(b->binding, b->arena, indices[i]->range, &extents))
      return false;
    for (unsigned n = 0; n < extents.rank; n++)
      if (extents.values[n] < 1)
        return false;
  }
  return true;
}

// A term that is evaluated for certain. Conditions that sizes and attributes
// settle are followed; a scan combines nothing at its first or last element.
static bool check_term(hd_binder_t *b, const hd_term_t *term) {
  unsigned count = term->num_operands;
  int64_t chosen;
  if (term->kind == HD_TERM_SCAN)
    return true;
  if (term->kind == HD_TERM_SELECT) {
    const hd_term_t *condition = term->operands[0];
    bool is_known = !condition->pack && is_settled(condition) &&
                    hd_binding_extent(b->binding, condition, 0, &chosen);
    return check_term(b, condition) &&
           (!is_known || check_term(b, term->operands[chosen ? 1 : 2]));
  }
  if (term->kind == HD_TERM_OPERATOR &&
      (term->u.op == HD_EXPR_AND || term->u.op == HD_EXPR_OR))
    count = 1;
  if (term->kind == HD_TERM_LOADELSE)
    count--;
  if (term->kind == HD_TERM_REDUCE) {
    const hd_reduction_t *r = term->u.reduction;
    bool settles_early = r->monoid->builtin == HD_MONOID_ANY ||
                         r->monoid->builtin == HD_MONOID_ALL;
    if (settles_early || !is_run(b, r->indices, r->num_indices))
      return true;
  }
  for (unsigned i = 0; i < count; i++)
    if (!check_term(b, term->operands[i]))
      return false;
  return term->kind != HD_TERM_LOAD ||
         term->u.value->kind == HD_VALUE_ATTRIBUTE ||
         check_access(b, term->u.value, term->operands, "read");
}

static bool check_definition(hd_binder_t *b, const hd_definition_t *d) {
  if (!is_run(b, d->indices, d->num_indices))
    return true;
  for (uint32_t i = 0; d->at && i < d->targets[0]->rank; i++)
    if (!check_term(b, d->at[i]))
      return false;
  if (d->drops)
    return true; // Where a point lies outside, its value is not asked for.
  return (!d->at || check_access(b, d->targets[0], d->at, "written")) &&
         check_term(b, d->term);
}

bool hd_bind_bounds(hd_binder_t *b) {
  for (size_t i = 0; i < b->task->definitions.size; i++)
    if (!check_definition(b, b->task->definitions.data[i]))
      return false;
  return true;
}
