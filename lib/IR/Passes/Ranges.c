// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known about values: ranges and divisors.

#include "IR/Passes/FactsState.h"
#include "Support/Gcd.h"

#include <stdalign.h>
#include <stddef.h>

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
    return hd_range_hull(hd_facts_range(facts, e->operands[1]),
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
               ? hd_range_operate((hd_expr_kind_t)e->kind,
                                  hd_facts_range(facts, e->operands[0]),
                                  hd_facts_range(facts, e->operands[1]), all)
               : all;
  }
}

static hd_range_t find_range(hd_facts_t *facts, const hd_expr_t *e) {
  hd_range_t all = hd_type_range(e->type);
  hd_range_t range = structural_range(facts, e, all);
  if (!hd_range_inside(range, all))
    range = all; // It may wrap.
  if (e->kind == HD_EXPR_CONST)
    return range;
  for (size_t i = 0; i < facts->atoms.size; ++i)
    if (facts->atoms.data[i].atom->kind == e->kind &&
        hd_expr_equal(facts->atoms.data[i].atom, e))
      range = hd_range_meet(range, facts->atoms.data[i].range);
  return range;
}

hd_range_t hd_facts_range(hd_facts_t *facts, const hd_expr_t *e) {
  if (e->kind == HD_EXPR_CONST)
    return find_range(facts, e);
  hd_known_range_t *known =
      &facts->ranges[(uintptr_t)e / alignof(max_align_t) % HD_KNOWN_RANGES];
  if (known->of != e || known->state != facts->state) {
    hd_range_t range = find_range(facts, e);
    *known = (hd_known_range_t){e, facts->state, range};
  }
  return known->range;
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
