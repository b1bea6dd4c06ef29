// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known of numbers where an element is inside its tensor. Indices say
// where they lie themselves, and quotients with their remainders what they are
// of:
//
//   c[x / 64, y, x % 64] of c: f16[12, 2048, 64]: x is in 0 .. 767
//
// C's division rounds to zero: of x in -63 .. -1 the quotient is 0, but then
// the remainder is below 0, so both say that x is not.

#include "Schedule/Access/AccessPoint.h"

// Numbers from least on, and below limit.
typedef struct span {
  int64_t least, limit;
} span_t;

static const int64_t large = INT64_C(1) << 40; // Sums of such do not overflow.

// e as something plus *constant.
static const hd_expr_t *without_constant(const hd_expr_t *e,
                                         int64_t *constant) {
  int64_t value;
  *constant = 0;
  while (e->kind == HD_EXPR_ADD || e->kind == HD_EXPR_SUB) {
    bool adds = e->kind == HD_EXPR_ADD;
    unsigned side = adds && hd_expr_fold_int(e->operands[0], &value) ? 0 : 1;
    if (!hd_expr_fold_int(e->operands[side], &value) || value > large ||
        value < -large)
      break;
    *constant += adds ? value : -value;
    e = e->operands[1 - side];
  }
  return e;
}

// Whether both are the same but for a constant: x = y + *more.
static bool differ_by(const hd_expr_t *x, const hd_expr_t *y, int64_t *more) {
  int64_t a, b;
  x = without_constant(x, &a);
  y = without_constant(y, &b);
  *more = a - b;
  return hd_expr_equal(x, y);
}

static bool is_by(const hd_expr_t *e, hd_expr_kind_t kind, int64_t *divisor) {
  return e->kind == kind && hd_expr_fold_int(e->operands[1], divisor) &&
         *divisor > 0 && *divisor < large;
}

// Whether an index is x % c, or all digits of it below c are indices: x % d and
// x / d % (c / d), so that none of them is below 0.
static bool has_rest(const hd_expr_t *place, const hd_expr_t *x, int64_t c) {
  int64_t d, other;
  for (unsigned i = 0; i < place->num_operands; i++) {
    const hd_expr_t *rest = place->operands[i];
    if (!is_by(rest, HD_EXPR_MOD, &d) || !hd_expr_equal(rest->operands[0], x))
      continue;
    if (d == c)
      return true;
    for (unsigned k = 0; c % d == 0 && k < place->num_operands; k++) {
      const hd_expr_t *next = place->operands[k];
      if (is_by(next, HD_EXPR_MOD, &other) && other == c / d &&
          is_by(next->operands[0], HD_EXPR_DIV, &other) && other == d &&
          hd_expr_equal(next->operands[0]->operands[0], x))
        return true;
    }
  }
  return false;
}

// What index i, which is inside its axis, says of e.
static bool index_says(const hd_expr_t *place, unsigned i, const hd_expr_t *e,
                       span_t *span) {
  const hd_expr_t *index = place->operands[i];
  int64_t size, more, divisor;
  if (!hd_expr_fold_int(place->u.var->tensor->shape[i], &size) || size > large)
    return false;
  *span = (span_t){0, size};
  if (!differ_by(e, index, &more)) {
    if (!is_by(index, HD_EXPR_DIV, &divisor) || size > large / divisor ||
        !differ_by(e, index->operands[0], &more) ||
        !has_rest(place, index->operands[0], divisor))
      return false;
    span->limit *= divisor;
  }
  span->least += more;
  span->limit += more;
  return true;
}

static bool says_span(const hd_expr_t *place, const hd_expr_t *e,
                      const span_t *wanted) {
  span_t span;
  for (unsigned i = 0; i < place->num_operands; i++)
    if (index_says(place, i, e, &span) && span.least >= wanted->least &&
        span.limit <= wanted->limit)
      return true;
  return false;
}

bool hd_access_says(const hd_expr_t *access, const hd_access_guard_t *guard) {
  span_t wanted = {0};
  for (unsigned i = 0; i < hd_expr_num_indices(access); i++)
    if (hd_expr_equal(access->operands[i], guard->index) &&
        hd_access_same_size(access->u.var->tensor->shape[i], guard->size))
      return true;
  return hd_expr_fold_int(guard->size, &wanted.limit) &&
         says_span(access, guard->index, &wanted);
}

// What a comparison with a constant on the right says of its left side.
static bool span_of(const hd_expr_t *e, span_t *span) {
  int64_t constant;
  if (e->num_operands != 2 || !hd_expr_fold_int(e->operands[1], &constant) ||
      constant > large || constant < -large)
    return false;
  *span = (span_t){INT64_MIN, INT64_MAX};
  switch (e->kind) {
  case HD_EXPR_LT:
    span->limit = constant;
    return true;
  case HD_EXPR_LE:
    span->limit = constant + 1;
    return true;
  case HD_EXPR_GT:
    span->least = constant + 1;
    return true;
  case HD_EXPR_GE:
    span->least = constant;
    return true;
  default:
    return false;
  }
}

bool hd_access_says_condition(const hd_expr_t *access, const hd_expr_t *e) {
  span_t span;
  if (e->kind == HD_EXPR_AND)
    return hd_access_says_condition(access, e->operands[0]) &&
           hd_access_says_condition(access, e->operands[1]);
  return span_of(e, &span) && says_span(access, e->operands[0], &span);
}

// The least or the greatest number that e is in the loop: its variables occur
// in sums alone. NULL: that is not so.
static const hd_expr_t *extreme(hd_arena_t *arena, const hd_stmt_t *loop,
                                const hd_expr_t *e, bool greatest) {
  if (e->kind == HD_EXPR_VAR)
    for (uint32_t a = 0; a < loop->u.mapfor.mapping->rank; a++)
      if (loop->u.mapfor.vars[a] == e->u.var)
        return hd_expr_int(arena, e->type,
                           greatest ? loop->u.mapfor.mapping->dims[a] - 1 : 0);
  if (e->kind != HD_EXPR_ADD && e->kind != HD_EXPR_SUB) {
    for (unsigned i = 0; i < e->num_operands; i++)
      if (extreme(arena, loop, e->operands[i], false) != e->operands[i])
        return NULL;
    return e;
  }
  const hd_expr_t *a = extreme(arena, loop, e->operands[0], greatest);
  const hd_expr_t *b = extreme(arena, loop, e->operands[1],
                               greatest == (e->kind == HD_EXPR_ADD));
  if (!a || !b || (a == e->operands[0] && b == e->operands[1]))
    return a && b ? e : NULL;
  return hd_expr_binary(arena, (hd_expr_kind_t)e->kind, a, b);
}

const hd_expr_t *hd_access_may_hold(hd_builder_t *b, const hd_stmt_t *loop,
                                    const hd_expr_t *e) {
  span_t span;
  if (e->kind == HD_EXPR_AND)
    return hd_b_and(b, hd_access_may_hold(b, loop, e->operands[0]),
                    hd_access_may_hold(b, loop, e->operands[1]));
  if (!span_of(e, &span))
    return NULL;
  const hd_expr_t *best =
      extreme(b->arena, loop, e->operands[0], span.limit == INT64_MAX);
  return best ? hd_expr_binary(b->arena, (hd_expr_kind_t)e->kind, best,
                               e->operands[1])
              : NULL;
}

const hd_expr_t *hd_access_all_hold(hd_builder_t *b, const hd_stmt_t *loop,
                                    const hd_access_guard_t *guard) {
  const hd_expr_t *least = extreme(b->arena, loop, guard->index, false);
  const hd_expr_t *greatest = extreme(b->arena, loop, guard->index, true);
  if (!least || !greatest ||
      guard->index->type.scalar != guard->size->type.scalar)
    return NULL;
  const hd_expr_t *zero = hd_expr_int(b->arena, least->type, 0);
  return hd_b_and(b, hd_expr_binary(b->arena, HD_EXPR_GE, least, zero),
                  hd_expr_binary(b->arena, HD_EXPR_LT, greatest, guard->size));
}

// x / c * c + x % c
static const hd_expr_t *join(hd_rewriter_t *rewriter, const hd_expr_t *e) {
  int64_t c, other, factor;
  (void)rewriter;
  if (e->kind != HD_EXPR_ADD || !is_by(e->operands[1], HD_EXPR_MOD, &c) ||
      !is_by(e->operands[0], HD_EXPR_MUL, &factor) || factor != c)
    return e;
  const hd_expr_t *x = e->operands[1]->operands[0];
  const hd_expr_t *quotient = e->operands[0]->operands[0];
  return is_by(quotient, HD_EXPR_DIV, &other) && other == c &&
                 hd_expr_equal(quotient->operands[0], x)
             ? x
             : e;
}

const hd_expr_t *hd_access_joined(hd_arena_t *arena, const hd_expr_t *e) {
  hd_rewriter_t rewriter = {.arena = arena, .expr = join};
  return hd_rewrite_expr(&rewriter, e);
}
