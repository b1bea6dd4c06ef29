// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known about values: interval arithmetic, divisors, and deciding
// conditions.

#include "IR/Passes/FactsState.h"
#include "Support/Gcd.h"

hd_range_t hd_type_range(hd_type_t type) {
  unsigned bits = hd_scalar_bits(type.scalar);
  const hd_wide_t one = 1;
  switch (hd_scalar_class(type.scalar)) {
  case HD_CLASS_BOOL:
    return (hd_range_t){0, 1};
  case HD_CLASS_SIGNED:
    return (hd_range_t){-(one << (bits - 1)), (one << (bits - 1)) - 1};
  case HD_CLASS_UNSIGNED:
    return (hd_range_t){0, (one << bits) - 1};
  case HD_CLASS_VOID:
  case HD_CLASS_FLOAT:
  case HD_CLASS_OPAQUE:
    break;
  }
  return (hd_range_t){INT64_MIN, INT64_MAX};
}

static hd_wide_t smaller(hd_wide_t a, hd_wide_t b) { return a < b ? a : b; }
static hd_wide_t larger(hd_wide_t a, hd_wide_t b) { return a > b ? a : b; }

static hd_range_t hull(hd_range_t a, hd_range_t b) {
  return (hd_range_t){smaller(a.least, b.least),
                      larger(a.greatest, b.greatest)};
}

// Contradictory facts mean that the place is never reached; any answer will do,
// but it has to be a range.
static hd_range_t meet(hd_range_t a, hd_range_t b) {
  hd_range_t both = {larger(a.least, b.least), smaller(a.greatest, b.greatest)};
  return both.least <= both.greatest ? both : a;
}

static hd_range_t multiply(hd_range_t a, hd_range_t b, hd_range_t otherwise) {
  hd_wide_t corners[4];
  if (__builtin_mul_overflow(a.least, b.least, &corners[0]) ||
      __builtin_mul_overflow(a.least, b.greatest, &corners[1]) ||
      __builtin_mul_overflow(a.greatest, b.least, &corners[2]) ||
      __builtin_mul_overflow(a.greatest, b.greatest, &corners[3]))
    return otherwise;
  hd_range_t range = {corners[0], corners[0]};
  for (unsigned i = 1; i < 4; ++i)
    range = hull(range, (hd_range_t){corners[i], corners[i]});
  return range;
}

// Division towards zero grows with the dividend, and with a positive divisor
// shrinks towards zero.
static hd_range_t divide(hd_range_t a, hd_range_t b, hd_range_t otherwise) {
  if (b.least < 1)
    return otherwise;
  return (hd_range_t){smaller(a.least / b.least, a.least / b.greatest),
                      larger(a.greatest / b.least, a.greatest / b.greatest)};
}

static hd_range_t remainder_of(hd_range_t a, hd_range_t b,
                               hd_range_t otherwise) {
  if (b.least < 1)
    return otherwise;
  if (b.least == b.greatest && a.least >= 0 &&
      a.least / b.least == a.greatest / b.least)
    return (hd_range_t){a.least % b.least, a.greatest % b.least};
  hd_wide_t most = b.greatest - 1;
  return (hd_range_t){a.least < 0 ? larger(a.least, -most) : 0,
                      a.greatest > 0 ? smaller(a.greatest, most) : 0};
}

// The least 2^n - 1 that is not below value >= 0.
static hd_wide_t all_ones(hd_wide_t value) {
  hd_wide_t ones = 0;
  while (ones < value)
    ones = ones * 2 + 1;
  return ones;
}

static hd_range_t bitwise(hd_expr_kind_t kind, hd_range_t a, hd_range_t b,
                          hd_range_t otherwise) {
  if (kind == HD_EXPR_BITAND) {
    if (a.least >= 0 && b.least >= 0)
      return (hd_range_t){0, smaller(a.greatest, b.greatest)};
    if (a.least >= 0)
      return (hd_range_t){0, a.greatest};
    return b.least >= 0 ? (hd_range_t){0, b.greatest} : otherwise;
  }
  if (a.least < 0 || b.least < 0)
    return otherwise;
  return (hd_range_t){kind == HD_EXPR_BITOR ? larger(a.least, b.least) : 0,
                      all_ones(larger(a.greatest, b.greatest))};
}

static hd_range_t shift(hd_expr_kind_t kind, hd_range_t a, hd_range_t b,
                        hd_range_t otherwise) {
  if (b.least != b.greatest || b.least < 0 || b.least > 62)
    return otherwise;
  hd_wide_t power = (hd_wide_t)1 << b.least;
  if (kind == HD_EXPR_SHL)
    return multiply(a, (hd_range_t){power, power}, otherwise);
  // Right shifts round down.
  return (hd_range_t){a.least >> b.least, a.greatest >> b.least};
}

static hd_range_t binary_range(hd_facts_t *facts, const hd_expr_t *e,
                               hd_range_t all) {
  hd_expr_kind_t kind = (hd_expr_kind_t)e->kind;
  hd_range_t a = hd_facts_range(facts, e->operands[0]);
  hd_range_t b = hd_facts_range(facts, e->operands[1]);
  switch (kind) {
  case HD_EXPR_ADD:
    return (hd_range_t){a.least + b.least, a.greatest + b.greatest};
  case HD_EXPR_SUB:
    return (hd_range_t){a.least - b.greatest, a.greatest - b.least};
  case HD_EXPR_MUL:
    return multiply(a, b, all);
  case HD_EXPR_DIV:
    return divide(a, b, all);
  case HD_EXPR_MOD:
    return remainder_of(a, b, all);
  case HD_EXPR_SHL:
  case HD_EXPR_SHR:
    return shift(kind, a, b, all);
  case HD_EXPR_BITAND:
  case HD_EXPR_BITOR:
  case HD_EXPR_BITXOR:
    return bitwise(kind, a, b, all);
  case HD_EXPR_MIN:
    return (hd_range_t){smaller(a.least, b.least),
                        smaller(a.greatest, b.greatest)};
  case HD_EXPR_MAX:
    return (hd_range_t){larger(a.least, b.least),
                        larger(a.greatest, b.greatest)};
  default:
    return all;
  }
}

// Before any wrap; all is the type's.
static hd_range_t structural_range(hd_facts_t *facts, const hd_expr_t *e,
                                   hd_range_t all) {
  if (e->type.lanes != 1)
    return all;
  switch ((hd_expr_kind_t)e->kind) {
  case HD_EXPR_CONST:
    if (hd_type_is_float(e->type))
      return all;
    if (e->type.scalar == HD_U64)
      return (hd_range_t){(uint64_t)e->u.i, (uint64_t)e->u.i};
    return (hd_range_t){e->u.i, e->u.i};
  case HD_EXPR_VAR: {
    hd_var_fact_t *fact = hd_facts_find_var(facts, e->u.var);
    return fact ? fact->range : all;
  }
  case HD_EXPR_BUILTIN:
    return facts->builtins[e->u.builtin];
  case HD_EXPR_NEG: {
    hd_range_t a = hd_facts_range(facts, e->operands[0]);
    return (hd_range_t){-a.greatest, -a.least};
  }
  case HD_EXPR_BITNOT: {
    hd_range_t a = hd_facts_range(facts, e->operands[0]);
    return hd_type_is_signed(e->type)
               ? (hd_range_t){-1 - a.greatest, -1 - a.least}
               : all;
  }
  case HD_EXPR_SELECT:
    return hull(hd_facts_range(facts, e->operands[1]),
                hd_facts_range(facts, e->operands[2]));
  case HD_EXPR_CAST:
    return hd_type_is_integer(e->operands[0]->type) ||
                   hd_type_is_bool(e->operands[0]->type)
               ? hd_facts_range(facts, e->operands[0])
               : all;
  default:
    return e->num_operands == 2 &&
                   hd_expr_info((hd_expr_kind_t)e->kind)->form !=
                       HD_FORM_OTHER &&
                   hd_type_equal(e->operands[0]->type, e->type)
               ? binary_range(facts, e, all)
               : all;
  }
}

hd_range_t hd_facts_range(hd_facts_t *facts, const hd_expr_t *e) {
  hd_range_t all = hd_type_range(e->type);
  hd_range_t range = structural_range(facts, e, all);
  if (!hd_range_inside(range, all))
    range = all; // It may wrap.
  if (e->kind == HD_EXPR_CONST)
    return range;
  for (size_t i = 0; i < facts->atoms.size; ++i)
    if (facts->atoms.data[i].atom->kind == e->kind &&
        hd_expr_equal(facts->atoms.data[i].atom, e))
      range = meet(range, facts->atoms.data[i].range);
  return range;
}

bool hd_facts_nonnegative(hd_facts_t *facts, const hd_expr_t *e) {
  return hd_facts_range(facts, e).least >= 0;
}

bool hd_facts_constant(hd_facts_t *facts, const hd_expr_t *e, int64_t *value) {
  if (e->type.lanes != 1 || hd_type_is_float(e->type))
    return false;
  hd_range_t range = hd_facts_range(facts, e);
  *value = (int64_t)range.least;
  return range.least == range.greatest;
}

static int64_t power_of_two_in(int64_t value) { return value & -value; }

static int64_t structural_divisor(hd_facts_t *facts, const hd_expr_t *e) {
  const hd_expr_t *a = e->num_operands > 0 ? e->operands[0] : NULL;
  const hd_expr_t *b = e->num_operands > 1 ? e->operands[1] : NULL;
  int64_t product;
  switch ((hd_expr_kind_t)e->kind) {
  case HD_EXPR_CONST:
    if (e->type.scalar == HD_U64 && e->u.i < 0) // It stands for 2^64 + i.
      return e->u.i == INT64_MIN ? INT64_C(1) << 62 : power_of_two_in(e->u.i);
    return e->u.i == INT64_MIN ? INT64_C(1) << 62
           : e->u.i < 0        ? -e->u.i
                               : e->u.i;
  case HD_EXPR_VAR: {
    hd_var_fact_t *fact = hd_facts_find_var(facts, e->u.var);
    return fact ? fact->divisor : 1;
  }
  case HD_EXPR_ADD:
  case HD_EXPR_SUB:
  case HD_EXPR_MIN:
  case HD_EXPR_MAX:
  case HD_EXPR_MOD: // x % y is x - y * q.
    return hd_gcd(hd_facts_divisor(facts, a), hd_facts_divisor(facts, b));
  case HD_EXPR_NEG:
    return hd_facts_divisor(facts, a);
  case HD_EXPR_SELECT:
    return hd_gcd(hd_facts_divisor(facts, b),
                  hd_facts_divisor(facts, e->operands[2]));
  case HD_EXPR_MUL:
    return __builtin_mul_overflow(hd_facts_divisor(facts, a),
                                  hd_facts_divisor(facts, b), &product)
               ? 1
               : product;
  case HD_EXPR_SHL:
    if (!hd_expr_is_const(b) || b->u.i < 0 || b->u.i > 40)
      return 1;
    return __builtin_mul_overflow(hd_facts_divisor(facts, a),
                                  INT64_C(1) << b->u.i, &product)
               ? 1
               : product;
  case HD_EXPR_DIV:
    if (!hd_expr_is_const(b) || b->u.i < 1)
      return 1;
    product = hd_facts_divisor(facts, a);
    return product % b->u.i == 0 ? product / b->u.i : 1;
  case HD_EXPR_SHR:
    if (!hd_expr_is_const(b) || b->u.i < 0 || b->u.i > 40)
      return 1;
    product = hd_facts_divisor(facts, a);
    return product % (INT64_C(1) << b->u.i) == 0 ? product >> b->u.i : 1;
  case HD_EXPR_BITAND: { // A low bit that is 0 on either side stays 0.
    int64_t x = power_of_two_in(hd_facts_divisor(facts, a));
    int64_t y = power_of_two_in(hd_facts_divisor(facts, b));
    return x > y ? x : y;
  }
  case HD_EXPR_BITOR:
  case HD_EXPR_BITXOR:
    return power_of_two_in(
        hd_gcd(hd_facts_divisor(facts, a), hd_facts_divisor(facts, b)));
  case HD_EXPR_CAST:
    return hd_type_is_integer(a->type) &&
                   hd_range_inside(hd_facts_range(facts, a),
                                   hd_type_range(e->type))
               ? hd_facts_divisor(facts, a)
               : 1;
  default:
    return 1;
  }
}

// Whether the operation's own result, before any wrap, fits its type.
static bool wraps(hd_facts_t *facts, const hd_expr_t *e) {
  hd_range_t all = hd_type_range(e->type);
  hd_range_t range = structural_range(facts, e, all);
  return !hd_range_inside(range, all) ||
         (e->kind == HD_EXPR_MUL && // Given up: it may have overflowed.
          range.greatest == all.greatest);
}

int64_t hd_facts_divisor(hd_facts_t *facts, const hd_expr_t *e) {
  if (!hd_type_is_integer(e->type) || e->type.lanes != 1)
    return 1;
  int64_t divisor = structural_divisor(facts, e);
  // Wrapping takes away multiples of a power of two, and leaves those.
  if (divisor != 0 && e->num_operands > 0 && wraps(facts, e))
    divisor = power_of_two_in(divisor);
  for (size_t i = 0; i < facts->atoms.size; ++i) {
    const hd_atom_fact_t *fact = &facts->atoms.data[i];
    if (fact->divisor <= 1 || !hd_expr_equal(fact->atom, e) || divisor == 0)
      continue;
    int64_t common = hd_gcd(divisor, fact->divisor), both;
    if (!__builtin_mul_overflow(divisor / common, fact->divisor, &both))
      divisor = both;
  }
  return divisor;
}
