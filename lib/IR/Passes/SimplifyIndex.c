// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Simplifying index arithmetic. An integer expression is taken as an exact sum
// of multiples of atoms, whose quotients and remainders IR/Linear.h finds; and
// for atoms that are quotients and remainders themselves
//
//   x / a / c = x / (a c);  c | a:  x % a % c = x % c,  x % a / c = x / c % (a
//   / c)
//
// What is left of divisions by powers of two becomes shifts and masks.

#include "IR/Passes/Simplifier.h"

unsigned hd_expr_cost(const hd_expr_t *e) {
  unsigned cost = e->num_operands > 0;
  if (e->kind == HD_EXPR_DIV || e->kind == HD_EXPR_MOD)
    cost = 4;
  for (unsigned i = 0; i < e->num_operands; ++i)
    cost += hd_expr_cost(e->operands[i]);
  return cost;
}

static const hd_expr_t *build(hd_simplifier_t *s, const hd_linear_t *sum) {
  return hd_linear_build(s->facts, s->arena, sum);
}

static const hd_expr_t *constant(hd_simplifier_t *s, hd_type_t type,
                                 int64_t value) {
  return hd_expr_int(s->arena, type, value);
}

// Takes the sum anew where that is less work.
static const hd_expr_t *simplify_sum(hd_simplifier_t *s, const hd_expr_t *e) {
  unsigned best = hd_expr_cost(e);
  hd_linear_t sums[2], *before = NULL, *sum = &sums[0];
  bool is_final = false;
  for (hd_linear_mode_t mode = HD_LINEAR_SHALLOW;
       mode <= HD_LINEAR_EXPAND && !is_final; ++mode) {
    if (!hd_linear_of(s->facts, e, mode, sum))
      continue;
    is_final = sum->is_final;
    if (before && hd_linear_equal(sum, before))
      continue;
    const hd_expr_t *other = build(s, sum);
    unsigned cost = hd_expr_cost(other);
    if (cost < best) {
      best = cost;
      e = other;
      is_final = false;
    }
    before = sum;
    sum = sum == &sums[0] ? &sums[1] : &sums[0];
  }
  return e;
}

static bool fits_type(hd_type_t type, int64_t value) {
  hd_range_t range = hd_type_range(type);
  return value >= range.least && value <= range.greatest;
}

static const hd_expr_t *quotient_of(hd_simplifier_t *s, const hd_expr_t *a,
                                    int64_t c);

// x of a sum that is nothing but x op constant, c the constant.
static const hd_expr_t *inner_of(const hd_linear_t *sum, hd_expr_kind_t kind,
                                 int64_t *c) {
  if (sum->size != 1 || sum->constant != 0 || sum->terms[0].factor != 1)
    return NULL;
  const hd_expr_t *atom = sum->terms[0].expr;
  if (atom->kind != kind || !hd_expr_is_const(atom->operands[1]) ||
      atom->operands[1]->u.i < 1)
    return NULL;
  *c = atom->operands[1]->u.i;
  return atom->operands[0];
}

static const hd_expr_t *remainder_of(hd_simplifier_t *s, const hd_expr_t *a,
                                     int64_t c);

// A sum that is one quotient or remainder, divided by c.
static const hd_expr_t *nested_quotient(hd_simplifier_t *s,
                                        const hd_linear_t *sum, int64_t c) {
  int64_t inner_c, product;
  const hd_expr_t *x = inner_of(sum, HD_EXPR_DIV, &inner_c);
  if (x && hd_facts_nonnegative(s->facts, x)) {
    if (__builtin_mul_overflow(c, inner_c, &product) ||
        !fits_type(sum->type, product))
      return constant(s, sum->type, 0);
    return quotient_of(s, x, product);
  }
  x = inner_of(sum, HD_EXPR_MOD, &inner_c);
  if (x && inner_c % c == 0 && hd_facts_nonnegative(s->facts, x))
    return remainder_of(s, quotient_of(s, x, c), inner_c / c);
  return NULL;
}

static const hd_expr_t *nested_remainder(hd_simplifier_t *s,
                                         const hd_linear_t *sum, int64_t c) {
  int64_t inner_c;
  const hd_expr_t *x = inner_of(sum, HD_EXPR_MOD, &inner_c);
  if (x && inner_c % c == 0 && hd_facts_nonnegative(s->facts, x))
    return remainder_of(s, x, c);
  return NULL;
}

static bool exact_nonnegative(hd_simplifier_t *s, const hd_linear_t *sum) {
  return hd_range_inside(hd_linear_range(s->facts, sum),
                         hd_type_range(sum->type)) &&
         hd_facts_nonnegative_sum(s->facts, sum);
}

// sum / c, or NULL where no rule helps. Parts of the sum are exact: they are
// not negative and no larger than it.
static const hd_expr_t *divide_sum(hd_simplifier_t *s, const hd_linear_t *sum,
                                   int64_t c) {
  hd_linear_digits_t digits;
  const hd_expr_t *nested = nested_quotient(s, sum, c);
  if (nested)
    return nested;
  if (!hd_linear_divide(s->facts, sum, c, &digits))
    return NULL;
  if (digits.g == c)
    return build(s, &digits.quotient);
  const hd_expr_t *part = quotient_of(s, build(s, &digits.outer), c / digits.g);
  if (hd_linear_is_zero(&digits.quotient))
    return part;
  return hd_simplify_node(s, hd_expr_binary(s->arena, HD_EXPR_ADD,
                                            build(s, &digits.quotient), part));
}

static const hd_expr_t *reduce_sum(hd_simplifier_t *s, const hd_linear_t *sum,
                                   int64_t c) {
  hd_linear_digits_t digits;
  const hd_expr_t *nested = nested_remainder(s, sum, c);
  if (nested)
    return nested;
  if (!hd_linear_divide(s->facts, sum, c, &digits))
    return NULL;
  if (digits.g == c)
    return build(s, &digits.low);
  const hd_expr_t *part =
      remainder_of(s, build(s, &digits.outer), c / digits.g);
  if (digits.g > 1)
    part =
        hd_simplify_node(s, hd_expr_binary(s->arena, HD_EXPR_MUL, part,
                                           constant(s, sum->type, digits.g)));
  if (hd_linear_is_zero(&digits.low))
    return part;
  return hd_simplify_node(
      s, hd_expr_binary(s->arena, HD_EXPR_ADD, part, build(s, &digits.low)));
}

typedef const hd_expr_t *(*sum_rule_t)(hd_simplifier_t *, const hd_linear_t *,
                                       int64_t);

// What lets stand for is worth taking where it is not more work, or where it
// gets rid of an unrolled loop's variable, so that all copies share the value.
static bool is_better(hd_simplifier_t *s, const hd_expr_t *e,
                      const hd_expr_t *a) {
  return hd_expr_cost(e) <= hd_expr_cost(a) + 1 ||
         (s->resolve && hd_simplify_level(s, a) >= HD_LEVEL_UNROLLED &&
          hd_simplify_level(s, e) < HD_LEVEL_UNROLLED);
}

// Applies a rule to a as a sum.
static const hd_expr_t *by_sum(hd_simplifier_t *s, const hd_expr_t *a,
                               int64_t c, sum_rule_t rule) {
  bool is_final = false;
  for (hd_linear_mode_t mode = HD_LINEAR_DEEP;
       mode <= HD_LINEAR_EXPAND && !is_final; ++mode) {
    hd_linear_t sum;
    if (!hd_linear_of(s->facts, a, mode, &sum))
      continue;
    is_final = sum.is_final;
    if (!exact_nonnegative(s, &sum))
      continue;
    const hd_expr_t *e = rule(s, &sum, c);
    if (e && (mode == HD_LINEAR_DEEP || is_better(s, e, a)))
      return e;
  }
  return NULL;
}

// a / c for a >= 0, c >= 1.
static const hd_expr_t *quotient_of(hd_simplifier_t *s, const hd_expr_t *a,
                                    int64_t c) {
  const hd_expr_t *e = c == 1 ? a : by_sum(s, a, c, divide_sum);
  return e ? e : hd_build_div(s->arena, a, c);
}

static const hd_expr_t *remainder_of(hd_simplifier_t *s, const hd_expr_t *a,
                                     int64_t c) {
  const hd_expr_t *e =
      c == 1 ? constant(s, a->type, 0) : by_sum(s, a, c, reduce_sum);
  return e ? e : hd_build_mod(s->arena, a, c);
}

static bool is_mask(int64_t value) {
  return value > 0 && value < INT32_MAX && (value & (value + 1)) == 0;
}

// x & (2^n - 1) looks at the low bits alone, wrapped or not.
static const hd_expr_t *simplify_mask(hd_simplifier_t *s, const hd_expr_t *e) {
  const hd_expr_t *a = e->operands[0];
  int64_t mask = e->operands[1]->u.i;
  hd_linear_t sum, quotient, rest;
  if (hd_facts_nonnegative(s->facts, a)) {
    const hd_expr_t *other = by_sum(s, a, mask + 1, reduce_sum);
    return other ? other : e;
  }
  if (!hd_linear_of(s->facts, a, HD_LINEAR_DEEP, &sum))
    return e;
  hd_linear_split(&sum, mask + 1, &quotient, &rest);
  if (quotient.size == 0)
    return e;
  return hd_simplify_node(s, hd_expr_binary(s->arena, HD_EXPR_BITAND,
                                            build(s, &rest), e->operands[1]));
}

// (2^n H + L) ^ b = 2^n H + (L ^ b) where L and b have n bits, so that what is
// added stays outside: it may be constant. Likewise the low bits that b leaves
// alone.
static const hd_expr_t *simplify_xor(hd_simplifier_t *s, const hd_expr_t *e) {
  const hd_expr_t *a = e->operands[0], *b = e->operands[1];
  hd_range_t range = hd_facts_range(s->facts, b);
  int64_t high = 1, low = hd_facts_divisor(s->facts, b);
  hd_linear_t sum, upper, middle, outer, bottom;
  if (range.least < 0 || range.greatest > INT32_MAX / 2 || low == 0)
    return e;
  low &= -low;
  while (high <= range.greatest)
    high *= 2;
  if (!hd_linear_of(s->facts, a, HD_LINEAR_DEEP, &sum) ||
      !exact_nonnegative(s, &sum))
    return e;
  hd_linear_split(&sum, high, &upper, &middle);
  if (!hd_linear_is_below(s->facts, &middle, high))
    return e;
  hd_linear_split(&middle, low, &outer, &bottom);
  if (!hd_linear_is_below(s->facts, &bottom, low)) {
    outer = middle;
    hd_linear_set_like(&bottom, &sum, 0);
    low = 1;
  }
  if (hd_linear_is_zero(&upper) && hd_linear_is_zero(&bottom))
    return e;
  const hd_expr_t *mask = quotient_of(s, b, low);
  const hd_expr_t *result = hd_simplify_node(
      s, hd_expr_binary(s->arena, HD_EXPR_BITXOR, build(s, &outer), mask));
  if (low > 1)
    result = hd_expr_binary(s->arena, HD_EXPR_MUL, result,
                            constant(s, e->type, low));
  hd_linear_t around;
  hd_linear_set_like(&around, &sum, 0);
  if (!hd_linear_add(&around, &upper, high) ||
      !hd_linear_add(&around, &bottom, 1))
    return e;
  return hd_expr_binary(s->arena, HD_EXPR_ADD, build(s, &around), result);
}

// By its range, or by a condition on the way here.
static bool is_nonnegative(hd_simplifier_t *s, const hd_expr_t *e) {
  hd_linear_t sum;
  return hd_facts_nonnegative(s->facts, e) ||
         (hd_linear_of(s->facts, e, HD_LINEAR_DEEP, &sum) &&
          exact_nonnegative(s, &sum));
}

static const hd_expr_t *simplify(hd_simplifier_t *s, const hd_expr_t *e) {
  const hd_expr_t *a = e->operands[0];
  const hd_expr_t *b = e->num_operands > 1 ? e->operands[1] : NULL;
  int64_t c = b && hd_expr_is_const(b) ? b->u.i : -1;
  const hd_expr_t *other = NULL;
  switch ((hd_expr_kind_t)e->kind) {
  case HD_EXPR_ADD:
  case HD_EXPR_SUB:
  case HD_EXPR_NEG:
  case HD_EXPR_MUL:
  case HD_EXPR_SHL:
    return simplify_sum(s, e);
  case HD_EXPR_DIV:
    if (c >= 1 && is_nonnegative(s, a))
      return quotient_of(s, a, c);
    return c == 1 ? a : e;
  case HD_EXPR_MOD:
    if (c >= 1 && hd_facts_divisor(s->facts, a) % c == 0)
      return constant(s, e->type, 0); // Negative multiples, too.
    if (c >= 1 && is_nonnegative(s, a))
      return remainder_of(s, a, c);
    return c == 1 ? constant(s, e->type, 0) : e;
  case HD_EXPR_SHR:
    if (c >= 0 && c < 31 && c + 1 < hd_type_bits(e->type) &&
        hd_facts_nonnegative(s->facts, a))
      other = by_sum(s, a, INT64_C(1) << c, divide_sum);
    return other ? other : c == 0 ? a : e;
  case HD_EXPR_BITAND:
    if (c == 0)
      return b;
    return is_mask(c) ? simplify_mask(s, e) : e;
  case HD_EXPR_BITXOR:
    return c == 0 ? a : simplify_xor(s, e);
  case HD_EXPR_BITOR:
    return c == 0 ? a : e;
  default:
    return e;
  }
}

const hd_expr_t *hd_simplify_index(hd_simplifier_t *s, const hd_expr_t *e) {
  if (!hd_expr_is_pure(e))
    return e;
  const hd_expr_t *other = simplify(s, e);
  return other != e && hd_expr_equal(other, e) ? e : other;
}
