// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Fusion/Group/IndexMap.h"

#include <stdlib.h>

enum { MAX_DIGITS = 32 };

// (index / divisor) % modulus, and what it was found to be.
typedef struct digit {
  const hd_index_t *index;
  int64_t divisor, modulus;
  const hd_term_t *value;
  bool is_used; // In putting its index together.
} digit_t;

typedef struct solver {
  hd_arena_t *arena;
  digit_t digits[MAX_DIGITS];
  unsigned num_digits;
  hd_index_map_t *map;
} solver_t;

static void require(solver_t *s, const hd_term_t *condition) {
  if (condition->kind == HD_TERM_CONST && condition->u.i)
    return;
  const hd_term_t *before = s->map->condition;
  s->map->condition =
      before ? hd_flat_operate(s->arena, HD_EXPR_AND, before, condition)
             : condition;
}

static void require_op(solver_t *s, hd_expr_kind_t op, const hd_term_t *term,
                       int64_t value) {
  require(s, hd_flat_operate_int(s->arena, op, term, value));
}

static const hd_term_t *operate(const solver_t *s, hd_expr_kind_t op,
                                const hd_term_t *term, int64_t value) {
  return hd_index_simplify(s->arena,
                           hd_flat_operate_int(s->arena, op, term, value));
}

// Takes x / c or x % c apart.
static bool take_apart(const hd_term_t **term, hd_expr_kind_t op,
                       int64_t *value) {
  const hd_term_t *t = *term;
  if (t->kind != HD_TERM_OPERATOR || t->u.op != op ||
      t->operands[1]->kind != HD_TERM_CONST || t->operands[1]->u.i <= 0)
    return false;
  *value = t->operands[1]->u.i;
  *term = t->operands[0];
  return true;
}

static bool digit_of(const hd_term_t *atom, digit_t *digit) {
  *digit = (digit_t){.divisor = 1, .modulus = INT64_MAX};
  take_apart(&atom, HD_EXPR_MOD, &digit->modulus);
  take_apart(&atom, HD_EXPR_DIV, &digit->divisor);
  if (atom->kind != HD_TERM_INDEX)
    return false;
  digit->index = atom->u.index;
  return true;
}

// The greatest that a digit may be.
static int64_t digit_most(const digit_t *digit) {
  int64_t most = (hd_flat_range(digit->index) - 1) / digit->divisor;
  return digit->modulus - 1 < most ? digit->modulus - 1 : most;
}

static int by_factor(const void *a, const void *b) {
  int64_t x = ((const hd_linear_term_t *)a)->factor;
  int64_t y = ((const hd_linear_term_t *)b)->factor;
  return (x < y) - (x > y);
}

static bool add_digit(solver_t *s, digit_t digit) {
  if (digit_most(&digit) == 0)
    return true; // It is 0, as has been required.
  for (unsigned i = 0; i < s->num_digits; i++)
    if (s->digits[i].index == digit.index &&
        s->digits[i].divisor == digit.divisor)
      return false; // A diagonal.
  if (s->num_digits == MAX_DIGITS)
    return false;
  s->digits[s->num_digits++] = digit;
  return true;
}

// rest, known to be 0 .. most.
static const hd_term_t *confine(solver_t *s, const hd_term_t *rest,
                                int64_t most) {
  hd_range_t range = hd_term_range(rest);
  if (range.least >= 0 && range.greatest <= most)
    return rest;
  if (range.least < 0)
    require_op(s, HD_EXPR_GE, rest, 0);
  if (range.greatest > most)
    require_op(s, HD_EXPR_LE, rest, most);
  const hd_index_t *index = hd_flat_index_make(s->arena, "part", most + 1);
  s->map->lets[s->map->num_lets++] = (hd_index_let_t){index, rest};
  return hd_flat_index(s->arena, index);
}

// What the digits from part i on come to at most; false where it is too much,
// or where one of them is no digit.
static bool greatest(const hd_linear_t *p, unsigned i, int64_t *sum) {
  *sum = 0;
  for (; i < p->size; i++) {
    digit_t digit;
    int64_t most;
    if (p->terms[i].factor <= 0 || !digit_of(p->terms[i].term, &digit) ||
        __builtin_mul_overflow(p->terms[i].factor, digit_most(&digit), &most) ||
        __builtin_add_overflow(*sum, most, sum))
      return false;
  }
  return true;
}

// at = constant + sum of factor * digit, each factor greater than what the
// smaller ones come to: like a number in a mixed radix.
static bool solve_axis(solver_t *s, hd_linear_t *p, const hd_term_t *at) {
  const hd_term_t *constant = hd_flat_int(s->arena, HD_I64, p->constant);
  bool falls = p->size == 1 && p->terms[0].factor < 0;
  if (falls)
    p->terms[0].factor = -p->terms[0].factor;
  const hd_term_t *rest = hd_index_simplify(
      s->arena, hd_flat_operate(s->arena, HD_EXPR_SUB, falls ? constant : at,
                                falls ? at : constant));
  qsort(p->terms, p->size, sizeof(p->terms[0]), by_factor);
  int64_t most;
  if (!greatest(p, 0, &most))
    return false;
  rest = confine(s, rest, most);
  for (unsigned i = 0; i < p->size; i++) {
    digit_t digit;
    int64_t factor = p->terms[i].factor, below;
    if (!greatest(p, i + 1, &below) || below >= factor)
      return false;
    digit_of(p->terms[i].term, &digit);
    digit.value = operate(s, HD_EXPR_DIV, rest, factor);
    rest = operate(s, HD_EXPR_MOD, rest, factor);
    if (hd_term_range(digit.value).greatest > digit_most(&digit))
      require_op(s, HD_EXPR_LE, digit.value, digit_most(&digit));
    if (!add_digit(s, digit))
      return false;
  }
  if (hd_term_range(rest).greatest > 0)
    require_op(s, HD_EXPR_EQ, rest, 0);
  return true;
}

// The digits of an index, put together: divisors 1, b1, b1 b2, ...
static const hd_term_t *join(solver_t *s, const hd_index_t *index) {
  const hd_term_t *sum = hd_flat_int(s->arena, HD_I64, 0);
  int64_t divisor = 1, range = hd_flat_range(index);
  while (divisor < range) {
    digit_t *found = NULL;
    for (unsigned i = 0; i < s->num_digits; i++)
      if (s->digits[i].index == index && s->digits[i].divisor == divisor)
        found = &s->digits[i];
    if (!found)
      return NULL;
    found->is_used = true;
    sum = hd_flat_operate(
        s->arena, HD_EXPR_ADD, sum,
        hd_flat_operate_int(s->arena, HD_EXPR_MUL, found->value, divisor));
    if (found->modulus == INT64_MAX ||
        __builtin_mul_overflow(divisor, found->modulus, &divisor))
      break;
  }
  return hd_index_simplify(s->arena, sum);
}

bool hd_index_invert(hd_arena_t *arena, const hd_term_t *const *p,
                     unsigned rank, const hd_index_t *const *indices,
                     unsigned count, const hd_term_t *const *at,
                     hd_index_map_t *map) {
  solver_t s = {.arena = arena, .map = map};
  map->condition = NULL;
  map->num_lets = 0;
  for (unsigned i = 0; i < rank; i++) {
    hd_linear_t sum;
    if (!hd_affine_of(arena, p[i], &sum) || !solve_axis(&s, &sum, at[i]))
      return false;
  }
  for (unsigned i = 0; i < count; i++) {
    map->places[i] = join(&s, indices[i]);
    if (!map->places[i])
      return false;
    // The digits may say more than the range: a last one that is not full.
    if (hd_term_range(map->places[i]).greatest >= hd_flat_range(indices[i]))
      require_op(&s, HD_EXPR_LT, map->places[i], hd_flat_range(indices[i]));
  }
  for (unsigned i = 0; i < s.num_digits; i++)
    if (!s.digits[i].is_used)
      return false; // It would have to agree with the others.
  return true;
}
