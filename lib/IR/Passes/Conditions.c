// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known about values: assuming conditions, and deciding others by them.
//
// A comparison of integers a < b is the sum b - a - 1 being at least 0. As long
// as the sums are exact, assumptions are sums that are not negative, and a goal
// is proven where its range says so, or where the goal minus an assumption is
// proven.

#include "IR/Passes/FactsState.h"
#include "Support/Gcd.h"

// Conditions of conditions, by way of lets, grow fast.
enum { MAX_CONDITIONS = 256 };

static bool is_integer_comparison(const hd_expr_t *e) {
  return hd_expr_info((hd_expr_kind_t)e->kind)->form == HD_FORM_COMPARE &&
         hd_type_is_integer(e->operands[0]->type) &&
         e->operands[0]->type.lanes == 1;
}

// Sums and differences of a few constants up to this do not wrap.
static const int64_t max_constant = INT64_C(1) << 58;

// more - less + constant as an exact sum of mathematical integers.
static bool difference(hd_facts_t *facts, const hd_expr_t *more,
                       const hd_expr_t *less, int64_t constant,
                       hd_linear_mode_t mode, hd_linear_t *out) {
  hd_linear_t subtrahend;
  if (!hd_linear_of(facts, more, mode, out) ||
      !hd_linear_of(facts, less, mode, &subtrahend) ||
      !hd_linear_is_exact(facts, out) ||
      !hd_linear_is_exact(facts, &subtrahend))
    return false;
  if (out->constant > max_constant || out->constant < -max_constant ||
      subtrahend.constant > max_constant || subtrahend.constant < -max_constant)
    return false;
  out->is_final &= subtrahend.is_final;
  out->type = hd_type(HD_I64); // The difference may pass the operands' type.
  if (!hd_linear_add(out, &subtrahend, -1))
    return false;
  return !__builtin_add_overflow(out->constant, constant, &out->constant);
}

// The sum that is at least 0 exactly where a OP b holds; EQ and NE have none.
static bool as_sum(hd_facts_t *facts, hd_expr_kind_t kind, const hd_expr_t *a,
                   const hd_expr_t *b, hd_linear_mode_t mode,
                   hd_linear_t *out) {
  switch (kind) {
  case HD_EXPR_LT:
    return difference(facts, b, a, -1, mode, out);
  case HD_EXPR_LE:
    return difference(facts, b, a, 0, mode, out);
  case HD_EXPR_GT:
    return difference(facts, a, b, -1, mode, out);
  case HD_EXPR_GE:
    return difference(facts, a, b, 0, mode, out);
  default:
    return false;
  }
}

static hd_wide_t floor_div(hd_wide_t a, hd_wide_t b) {
  return a / b - (a % b != 0 && a < 0);
}

// The multiples of a divisor in a range.
static hd_range_t round_range(hd_range_t range, int64_t divisor) {
  if (divisor > 1) {
    hd_wide_t least = -floor_div(-(hd_wide_t)range.least, divisor) * divisor;
    hd_wide_t greatest = floor_div(range.greatest, divisor) * divisor;
    if (least <= INT64_MAX && greatest >= INT64_MIN)
      range = (hd_range_t){(int64_t)least, (int64_t)greatest};
  }
  return range;
}

// From sum >= 0: how small or large each of its atoms can be.
static void narrow_atoms(hd_facts_t *facts, const hd_linear_t *sum) {
  hd_range_t whole = hd_linear_range(facts, sum);
  for (unsigned i = 0; i < sum->size; ++i) {
    int64_t factor = sum->terms[i].factor;
    hd_range_t atom = hd_facts_range(facts, sum->terms[i].expr);
    hd_wide_t rest =
        whole.greatest - factor * (factor > 0 ? atom.greatest : atom.least);
    hd_atom_fact_t fact = {sum->terms[i].expr, atom, 1};
    if (factor > 0) // factor * atom >= -rest
      fact.range.least = -floor_div(rest, factor);
    else // -factor * atom <= rest
      fact.range.greatest = floor_div(rest, -factor);
    bool news = factor > 0 ? fact.range.least > atom.least
                           : fact.range.greatest < atom.greatest;
    if (news)
      fact.range = round_range(fact.range, hd_facts_divisor(facts, fact.atom));
    if (news && fact.range.least <= fact.range.greatest)
      hd_facts_assume_atom(facts, fact);
  }
}

// A number that divides what a sum is but for its constant.
static int64_t divisor_of(hd_facts_t *facts, const hd_linear_t *sum) {
  int64_t divisor = 0;
  for (unsigned i = 0; i < sum->size; ++i) {
    int64_t x = hd_facts_divisor(facts, sum->terms[i].expr);
    if (__builtin_mul_overflow(x, sum->terms[i].factor, &x) || x == INT64_MIN)
      return 1;
    divisor = hd_gcd(divisor, x);
  }
  return divisor;
}

// A sum that is at least 0 with its constant as small as the divisor of the
// rest lets it be: 64 x - 705 >= 0 is 64 x - 768 >= 0.
static void tighten(hd_facts_t *facts, hd_linear_t *sum) {
  int64_t divisor = divisor_of(facts, sum);
  hd_wide_t least =
      divisor > 1 ? floor_div(sum->constant, divisor) * divisor : INT64_MIN;
  if (least > INT64_MIN)
    sum->constant = (int64_t)least;
}

static void assume_sum(hd_facts_t *facts, hd_expr_kind_t kind,
                       const hd_expr_t *a, const hd_expr_t *b) {
  hd_linear_t sum, before = {0};
  bool is_final = false;
  for (hd_linear_mode_t mode = HD_LINEAR_DEEP;
       mode <= HD_LINEAR_EXPAND && !is_final; ++mode) {
    if (!as_sum(facts, kind, a, b, mode, &sum))
      continue;
    is_final = sum.is_final;
    if (sum.size == 0 || hd_linear_equal(&sum, &before))
      continue;
    before = sum;
    tighten(facts, &sum);
    size_t known = facts->atoms.size;
    narrow_atoms(facts, &sum);
    is_final &= facts->atoms.size == known;
    hd_vec_push(facts->arena, &facts->linears, sum);
  }
}

// x % c == 0
static void assume_divisor(hd_facts_t *facts, const hd_expr_t *e) {
  const hd_expr_t *mod = e->operands[0];
  bool zero = hd_expr_is_int(e->operands[1], 0);
  int64_t c = 0;
  if (zero && mod->kind == HD_EXPR_MOD && hd_expr_is_const(mod->operands[1]))
    c = mod->operands[1]->u.i;
  if (zero && mod->kind == HD_EXPR_BITAND &&
      hd_expr_is_const(mod->operands[1]) && mod->operands[1]->u.i != INT64_MAX)
    c = mod->operands[1]->u.i + 1;
  if (c < 2 || (mod->kind == HD_EXPR_BITAND && (c & (c - 1)) != 0))
    return;
  hd_atom_fact_t fact = {mod->operands[0],
                         hd_facts_range(facts, mod->operands[0]), c};
  hd_facts_assume_atom(facts, fact);
}

// a != b tells something where b is one end of the range.
static void assume_different(hd_facts_t *facts, const hd_expr_t *a,
                             const hd_expr_t *b) {
  hd_range_t x = hd_facts_range(facts, a), y = hd_facts_range(facts, b);
  if (y.least != y.greatest)
    return;
  if (y.least == x.least)
    assume_sum(facts, HD_EXPR_GT, a, b);
  if (y.least == x.greatest)
    assume_sum(facts, HD_EXPR_LT, a, b);
}

static void assume_comparison(hd_facts_t *facts, const hd_expr_t *e,
                              bool holds) {
  hd_expr_kind_t kind = (hd_expr_kind_t)e->kind;
  if (!holds)
    kind = hd_comparison_opposite(kind);
  if (kind == HD_EXPR_EQ) {
    assume_divisor(facts, e);
    assume_sum(facts, HD_EXPR_LE, e->operands[0], e->operands[1]);
    assume_sum(facts, HD_EXPR_GE, e->operands[0], e->operands[1]);
  } else if (kind == HD_EXPR_NE) {
    assume_different(facts, e->operands[0], e->operands[1]);
  } else {
    assume_sum(facts, kind, e->operands[0], e->operands[1]);
  }
}

void hd_facts_assume(hd_facts_t *facts, const hd_expr_t *e, bool holds) {
  if ((e->kind == HD_EXPR_AND && holds) || (e->kind == HD_EXPR_OR && !holds)) {
    hd_facts_assume(facts, e->operands[0], holds);
    hd_facts_assume(facts, e->operands[1], holds);
    return;
  }
  if (e->kind == HD_EXPR_NOT) {
    hd_facts_assume(facts, e->operands[0], !holds);
    return;
  }
  if (e->kind == HD_EXPR_CONST || facts->conditions.size >= MAX_CONDITIONS ||
      !hd_expr_is_stable(e))
    return;
  hd_condition_fact_t fact = {e, holds};
  hd_vec_push(facts->arena, &facts->conditions, fact);
  const hd_expr_t *value =
      e->kind == HD_EXPR_VAR ? hd_facts_value(facts, e->u.var) : NULL;
  if (value)
    hd_facts_assume(facts, value, holds);
  else if (is_integer_comparison(e))
    assume_comparison(facts, e, holds);
}

bool hd_facts_nonnegative_sum(hd_facts_t *facts, const hd_linear_t *sum) {
  if (hd_linear_range(facts, sum).least >= 0)
    return true;
  for (size_t i = 0; i < facts->linears.size; ++i) {
    hd_linear_t rest = *sum;
    if (hd_linear_add(&rest, &facts->linears.data[i], -1) &&
        hd_linear_range(facts, &rest).least >= 0)
      return true;
  }
  return false;
}

static bool proves(hd_facts_t *facts, hd_expr_kind_t kind, const hd_expr_t *a,
                   const hd_expr_t *b) {
  hd_linear_t sum, before = {.constant = -1};
  for (hd_linear_mode_t mode = HD_LINEAR_DEEP; mode <= HD_LINEAR_EXPAND;
       ++mode) {
    if (!as_sum(facts, kind, a, b, mode, &sum))
      continue;
    if (!hd_linear_equal(&sum, &before) &&
        hd_facts_nonnegative_sum(facts, &sum))
      return true;
    if (sum.is_final)
      return false;
    before = sum;
  }
  return false;
}

// a == b cannot be where the divisor of a - b leaves its constant over.
static bool never_equal(hd_facts_t *facts, const hd_expr_t *a,
                        const hd_expr_t *b) {
  hd_linear_t sum;
  if (!difference(facts, a, b, 0, HD_LINEAR_EXPAND, &sum) || sum.size == 0)
    return false;
  int64_t divisor = divisor_of(facts, &sum);
  return divisor > 1 && sum.constant % divisor != 0;
}

static int decide_comparison(hd_facts_t *facts, const hd_expr_t *e) {
  hd_expr_kind_t kind = (hd_expr_kind_t)e->kind;
  const hd_expr_t *a = e->operands[0], *b = e->operands[1];
  if (kind == HD_EXPR_EQ || kind == HD_EXPR_NE) {
    if (proves(facts, HD_EXPR_LT, a, b) || proves(facts, HD_EXPR_GT, a, b) ||
        never_equal(facts, a, b))
      return kind == HD_EXPR_NE;
    if (proves(facts, HD_EXPR_LE, a, b) && proves(facts, HD_EXPR_GE, a, b))
      return kind == HD_EXPR_EQ;
    return -1;
  }
  if (proves(facts, kind, a, b))
    return 1;
  return proves(facts, hd_comparison_opposite(kind), a, b) ? 0 : -1;
}

int hd_facts_decide(hd_facts_t *facts, const hd_expr_t *e) {
  if (e->kind == HD_EXPR_CONST)
    return e->u.i != 0;
  if (e->kind == HD_EXPR_NOT) {
    int inner = hd_facts_decide(facts, e->operands[0]);
    return inner < 0 ? inner : !inner;
  }
  if (e->kind == HD_EXPR_AND || e->kind == HD_EXPR_OR) {
    int settles = e->kind == HD_EXPR_OR;
    int a = hd_facts_decide(facts, e->operands[0]);
    int b = a == settles ? a : hd_facts_decide(facts, e->operands[1]);
    if (a == settles || b == settles)
      return settles;
    return a < 0 || b < 0 ? -1 : !settles;
  }
  for (size_t i = facts->conditions.size; i-- > 0;)
    if (hd_expr_equal(facts->conditions.data[i].condition, e))
      return facts->conditions.data[i].holds;
  return is_integer_comparison(e) ? decide_comparison(facts, e) : -1;
}
