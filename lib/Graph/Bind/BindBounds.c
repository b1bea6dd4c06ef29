// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Accesses that leave their tensor whatever the data is:
//
//   y[i] = x[i + 2]     with y as long as x
//
// A device that runs such a node by itself would find it, one that computes
// the element where another kernel reads it might take another one for it. So
// it is said here, of accesses that are done for certain, at points of their
// indices' ranges: at the corners, where sums of multiples are least and
// greatest, and, of what is no such sum, at many others. Conditions that
// compare an index with a number make its range smaller; under others it is
// looked at the points where they hold. What is not found here is left to the
// run. Divisors that sizes and attributes make 0 are found beside it.
#include "Graph/Bind/BindingState.h"

enum { MOST_INDICES = 8, MOST_POINTS = 1000, MOST_GUARDS = 8 };

// A condition around an access, and what it has to be.
typedef struct guard {
  const hd_term_t *condition;
  bool holds;
} guard_t;

typedef struct bounds_walk {
  hd_binder_t *b;
  guard_t guards[MOST_GUARDS];
  unsigned num_guards;
} bounds_walk_t;

// The indices of a term, and a point that they stand at.
typedef struct points {
  const hd_task_binding_t *binding;
  const hd_index_t *indices[MOST_INDICES];
  int64_t first[MOST_INDICES], last[MOST_INDICES], at[MOST_INDICES];
  unsigned count;
  bool is_monotone; // In each index, so that its corners are enough.
} points_t;

static bool is_settled(const hd_term_t *term) {
  if (term->kind == HD_TERM_SIZE && term->u.size->bound)
    return false; // The data decides it.
  for (unsigned i = 0; i < term->num_operands; i++)
    if (!is_settled(term->operands[i]))
      return false;
  return true;
}

static bool add_index(points_t *p, const hd_term_t *term, unsigned axis) {
  const hd_index_t *index = term->u.index;
  int64_t size;
  for (unsigned i = 0; i < p->count; i++)
    if (p->indices[i] == index)
      return true;
  if (p->count == MOST_INDICES || !is_settled(index->range) ||
      !hd_binding_extent(p->binding, index->range, axis, &size) || size < 1)
    return false;
  p->last[p->count] = size - 1;
  p->indices[p->count++] = index;
  return true;
}

static unsigned index_at(const points_t *p, const hd_index_t *index) {
  unsigned i = 0;
  while (p->indices[i] != index)
    i++;
  return i;
}

static bool is_monotone(const points_t *p, const hd_term_t *term,
                        unsigned axis) {
  int64_t value;
  switch (term->u.op) {
  case HD_EXPR_ADD:
  case HD_EXPR_SUB:
  case HD_EXPR_NEG:
    return true;
  case HD_EXPR_MUL:
    return hd_binding_extent(p->binding, term->operands[0], axis, &value) ||
           hd_binding_extent(p->binding, term->operands[1], axis, &value);
  default:
    return false;
  }
}

// False: the term is of something else than indices, sizes and attributes.
static bool find_indices(points_t *p, const hd_term_t *term, unsigned axis) {
  axis = term->pack ? axis : 0;
  switch ((hd_term_kind_t)term->kind) {
  case HD_TERM_INDEX:
    return add_index(p, term, axis);
  case HD_TERM_CONST:
  case HD_TERM_SIZE:
  case HD_TERM_PACK:
  case HD_TERM_BROADCAST:
  case HD_TERM_ATTRIBUTE:
    return is_settled(term);
  case HD_TERM_OPERATOR:
    p->is_monotone &= is_monotone(p, term, axis);
    break;
  case HD_TERM_SELECT:
  case HD_TERM_CAST:
    p->is_monotone = false;
    break;
  default:
    return false;
  }
  for (unsigned i = 0; i < term->num_operands; i++)
    if (!find_indices(p, term->operands[i], axis))
      return false;
  return true;
}

// What the term is worth at the point; false: it divides by zero.
static bool worth(const points_t *p, const hd_term_t *term, unsigned axis,
                  hd_number_t *out) {
  hd_number_t x, y = {0};
  axis = term->pack ? axis : 0;
  if (term->kind == HD_TERM_INDEX) {
    out->i = p->at[index_at(p, term->u.index)];
    return true;
  }
  if (term->num_operands == 0)
    return hd_binding_number(p->binding, term, axis, out);
  hd_scalar_t type = hd_binding_type(p->binding, term->operands[0]->type);
  if (!worth(p, term->operands[0], axis, &x))
    return false;
  if (term->kind == HD_TERM_SELECT)
    return worth(p, term->operands[x.i ? 1 : 2], axis, out);
  if (term->kind == HD_TERM_CAST) {
    *out = hd_scalar_convert(hd_binding_type(p->binding, term->type), type, x);
    return true;
  }
  if ((term->u.op == HD_EXPR_AND && !x.i) ||
      (term->u.op == HD_EXPR_OR && x.i)) {
    *out = x;
    return true;
  }
  return (term->num_operands == 1 || worth(p, term->operands[1], axis, &y)) &&
         hd_scalar_operate(term->u.op, type, x, y, out);
}

// The points where index < bound, or index >= bound.
static void narrow_index(points_t *p, const hd_index_t *index, bool below,
                         int64_t bound) {
  unsigned i = index_at(p, index);
  if (below && p->last[i] >= bound)
    p->last[i] = bound - 1;
  if (!below && p->first[i] < bound)
    p->first[i] = bound;
}

// Leaves the points where a condition, whose indices are known, holds or does
// not; false: some of those that are left are others.
static bool narrow(points_t *p, const hd_term_t *condition, bool holds) {
  if (condition->kind != HD_TERM_OPERATOR || condition->num_operands != 2)
    return false;
  const hd_term_t *a = condition->operands[0], *b = condition->operands[1];
  hd_expr_kind_t op = condition->u.op;
  if (op == (holds ? HD_EXPR_AND : HD_EXPR_OR)) {
    bool left = narrow(p, a, holds);
    return narrow(p, b, holds) && left;
  }
  bool is_right = b->kind == HD_TERM_INDEX;
  int64_t bound;
  if ((is_right ? b : a)->kind != HD_TERM_INDEX ||
      !hd_binding_extent(p->binding, is_right ? a : b, 0, &bound) ||
      bound > INT64_MAX - 1 || bound < INT64_MIN + 1)
    return false;
  // index < bound, index <= bound; bound < index is not index <= bound.
  bool below = (op == HD_EXPR_LT || op == HD_EXPR_LE) != is_right;
  bool with = (op == HD_EXPR_LE || op == HD_EXPR_GT) != is_right;
  if (op != HD_EXPR_LT && op != HD_EXPR_LE && op != HD_EXPR_GT &&
      op != HD_EXPR_GE)
    return false;
  narrow_index(p, (is_right ? b : a)->u.index, below == holds, bound + with);
  return true;
}

static bool is_outside(const bounds_walk_t *w, const points_t *p,
                       const hd_term_t *term, unsigned axis, int64_t size,
                       int64_t *found) {
  hd_number_t number;
  for (unsigned i = 0; i < w->num_guards; i++)
    if (!worth(p, w->guards[i].condition, 0, &number) ||
        !number.i == w->guards[i].holds)
      return false;
  if (!worth(p, term, axis, &number) || (number.i >= 0 && number.i < size))
    return false;
  *found = number.i;
  return true;
}

// Whether a term leaves 0 .. size - 1, and where it goes.
static bool leaves(const bounds_walk_t *w, const hd_term_t *term, unsigned axis,
                   int64_t size, int64_t *found) {
  int64_t all = 1;
  points_t points = {.binding = w->b->binding, .is_monotone = true};
  points_t *p = &points;
  if (!find_indices(p, term, axis))
    return false;
  for (unsigned i = 0; i < w->num_guards; i++) {
    bool monotone = p->is_monotone;
    if (!find_indices(p, w->guards[i].condition, 0))
      return false;
    p->is_monotone =
        narrow(p, w->guards[i].condition, w->guards[i].holds) && monotone;
  }
  for (unsigned i = 0; i < p->count; i++)
    if (p->first[i] > p->last[i])
      return false;
  for (unsigned corner = 0; corner < 1u << p->count; corner++) {
    for (unsigned i = 0; i < p->count; i++)
      p->at[i] = corner >> i & 1 ? p->last[i] : p->first[i];
    if (is_outside(w, p, term, axis, size, found))
      return true;
  }
  for (unsigned i = 0; i < p->count; i++)
    if (__builtin_mul_overflow(all, p->last[i] - p->first[i] + 1, &all))
      return false;
  int64_t step = all / MOST_POINTS + 1;
  for (int64_t point = 0; point < all && !p->is_monotone; point += step) {
    int64_t rest = point;
    for (unsigned i = 0; i < p->count; i++) {
      int64_t count = p->last[i] - p->first[i] + 1;
      p->at[i] = p->first[i] + rest % count;
      rest /= count;
    }
    if (is_outside(w, p, term, axis, size, found))
      return true;
  }
  return false;
}

// --- Accesses ---

static bool check_axis(const bounds_walk_t *w, const hd_task_value_t *value,
                       const hd_term_t *at, unsigned part, unsigned axis,
                       int64_t size, const char *verb) {
  hd_binder_t *b = w->b;
  int64_t found;
  if (!leaves(w, at, part, size, &found))
    return true;
  hd_bind_fault(b, "'%s' is %s at %lld on axis %u, whose size is %lld",
                value->name, verb, (long long)found, axis, (long long)size);
  if (!b->quiet)
    hd_note(&b->context->diags, at->loc, "by this index");
  return false;
}

// Broadcasts are aligned at the right; where the tensor's axis has one element
// that one is meant.
static bool check_access(const bounds_walk_t *w, const hd_task_value_t *value,
                         const hd_term_t *const *at, const char *verb) {
  const hd_binder_t *b = w->b;
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
      if (!check_axis(w, value, at[i], skip + n, axis, size, verb))
        return false;
    }
  }
  return true;
}

// Whether the term, which is evaluated for certain, divides by a size or an
// attribute that is 0.
static bool check_divisor(const bounds_walk_t *w, const hd_term_t *term) {
  hd_binder_t *b = w->b;
  hd_extents_t by;
  const hd_term_t *divisor = term->operands[term->num_operands - 1];
  if ((term->u.op != HD_EXPR_DIV && term->u.op != HD_EXPR_MOD) ||
      !hd_type_is_integer(hd_type(hd_binding_type(b->binding, term->type))) ||
      !is_settled(divisor) ||
      !hd_binding_extents(b->binding, b->arena, divisor, &by))
    return true;
  for (unsigned n = 0; n < by.rank; n++)
    if (by.values[n] == 0) {
      hd_bind_fault(b, "an integer is divided by 0");
      if (!b->quiet)
        hd_note(&b->context->diags, divisor->loc, "by this");
      return false;
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

static bool check_term(bounds_walk_t *w, const hd_term_t *term);

// A term that is evaluated where the condition holds, or does not.
static bool check_guarded(bounds_walk_t *w, const hd_term_t *condition,
                          bool holds, const hd_term_t *term) {
  if (condition->pack || w->num_guards == MOST_GUARDS)
    return true;
  w->guards[w->num_guards++] = (guard_t){condition, holds};
  bool ok = check_term(w, term);
  w->num_guards--;
  return ok;
}

// A term that is evaluated for certain where the guards allow it. A scan
// combines nothing at its first or last element.
static bool check_term(bounds_walk_t *w, const hd_term_t *term) {
  const hd_binder_t *b = w->b;
  const hd_term_t *const *x = term->operands;
  unsigned count = term->num_operands;
  if (term->kind == HD_TERM_SCAN)
    return true;
  if (term->kind == HD_TERM_SELECT)
    return check_term(w, x[0]) && check_guarded(w, x[0], true, x[1]) &&
           check_guarded(w, x[0], false, x[2]);
  if (term->kind == HD_TERM_OPERATOR &&
      (term->u.op == HD_EXPR_AND || term->u.op == HD_EXPR_OR))
    return check_term(w, x[0]) &&
           check_guarded(w, x[0], term->u.op == HD_EXPR_AND, x[1]);
  if (term->kind == HD_TERM_OPERATOR && !w->num_guards &&
      !check_divisor(w, term))
    return false;
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
    if (!check_term(w, x[i]))
      return false;
  return term->kind != HD_TERM_LOAD ||
         term->u.value->kind == HD_VALUE_ATTRIBUTE ||
         check_access(w, term->u.value, x, "read");
}

static bool check_definition(hd_binder_t *b, const hd_definition_t *d) {
  bounds_walk_t w = {.b = b};
  if (!is_run(b, d->indices, d->num_indices))
    return true;
  for (uint32_t i = 0; d->at && i < d->targets[0]->rank; i++)
    if (!check_term(&w, d->at[i]))
      return false;
  if (d->drops)
    return true; // Where a point lies outside, its value is not asked for.
  return (!d->at || check_access(&w, d->targets[0], d->at, "written")) &&
         check_term(&w, d->term);
}

bool hd_bind_bounds(hd_binder_t *b) {
  for (size_t i = 0; i < b->task->definitions.size; i++)
    if (!check_definition(b, b->task->definitions.data[i]))
      return false;
  return true;
}
