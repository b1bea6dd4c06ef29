// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expressions as sums, and sums as expressions.

#include "IR/Passes/FactsState.h"

// Expressions larger than this are no index arithmetic.
enum { MAX_NODES = 512 };

static bool atoms_equal(const void *a, const void *b) {
  return hd_expr_equal(a, b);
}

static hd_range_t atom_range(void *facts, const void *atom) {
  return hd_facts_range(facts, atom);
}

static int64_t atom_divisor(void *facts, const void *atom) {
  return hd_facts_divisor(facts, atom);
}

static const hd_linear_atoms_t atoms = {atoms_equal, atom_range, atom_divisor};

static void set_constant(hd_linear_t *sum, hd_type_t type, int64_t value) {
  hd_linear_set(sum, &atoms, type, value);
}

void hd_linear_of_atom(const hd_expr_t *atom, hd_linear_t *out) {
  set_constant(out, atom->type, 0);
  hd_linear_add_term(out, atom, 1);
}

// k * c * (x / c) + k * (x % c) is k * x.
static bool join_quotients(hd_facts_t *facts, hd_linear_mode_t mode,
                           hd_linear_t *sum) {
  for (unsigned i = 0; i < sum->size; ++i) {
    const hd_expr_t *mod = sum->terms[i].expr;
    if (mod->kind != HD_EXPR_MOD || !hd_expr_is_const(mod->operands[1]))
      continue;
    int64_t factor = sum->terms[i].factor, c = mod->operands[1]->u.i;
    for (unsigned j = 0; j < sum->size; ++j) {
      const hd_expr_t *div = sum->terms[j].expr;
      int64_t product;
      if (div->kind != HD_EXPR_DIV || !hd_expr_is_int(div->operands[1], c) ||
          __builtin_mul_overflow(factor, c, &product) ||
          sum->terms[j].factor != hd_linear_wrap(sum->type, product) ||
          !hd_expr_equal(div->operands[0], mod->operands[0]))
        continue;
      hd_linear_t inner;
      if (!hd_linear_of(facts, mod->operands[0], mode, &inner) ||
          !hd_linear_add_term(sum, div, -sum->terms[j].factor) ||
          !hd_linear_add_term(sum, mod, -factor) ||
          !hd_linear_add(sum, &inner, factor))
        return false;
      return join_quotients(facts, mode, sum);
    }
  }
  return true;
}

static bool is_power_of_two(int64_t value) {
  return value > 0 && (value & (value - 1)) == 0;
}

// Shifts right and masks of numbers that are not negative as what they mean.
static const hd_expr_t *canonical_atom(hd_facts_t *facts, const hd_expr_t *e) {
  hd_arena_t *arena = hd_facts_arena(facts);
  if ((e->kind != HD_EXPR_SHR && e->kind != HD_EXPR_BITAND) ||
      !hd_expr_is_const(e->operands[1]) ||
      !hd_facts_nonnegative(facts, e->operands[0]))
    return e;
  int64_t value = e->operands[1]->u.i;
  if (e->kind == HD_EXPR_SHR && value >= 0 && value < 62 &&
      value + 1 < hd_type_bits(e->type))
    return hd_expr_binary(arena, HD_EXPR_DIV, e->operands[0],
                          hd_expr_int(arena, e->type, INT64_C(1) << value));
  if (e->kind == HD_EXPR_BITAND && value < INT32_MAX &&
      is_power_of_two(value + 1))
    return hd_expr_binary(arena, HD_EXPR_MOD, e->operands[0],
                          hd_expr_int(arena, e->type, value + 1));
  return e;
}

static bool collect(hd_facts_t *facts, const hd_expr_t *e,
                    hd_linear_mode_t mode, hd_linear_t *out);

static bool collect_sum(hd_facts_t *facts, const hd_expr_t *e,
                        hd_linear_mode_t mode, int64_t sign, hd_linear_t *out) {
  hd_linear_t right;
  return collect(facts, e->operands[0], mode, out) &&
         collect(facts, e->operands[1], mode, &right) &&
         hd_linear_add(out, &right, sign);
}

// factor * e
static bool collect_scaled(hd_facts_t *facts, const hd_expr_t *e,
                           hd_linear_mode_t mode, int64_t factor,
                           hd_linear_t *out) {
  hd_linear_t inner;
  if (!collect(facts, e, mode, &inner))
    return false;
  set_constant(out, e->type, 0);
  if (mode == HD_LINEAR_SHALLOW && inner.size + (inner.constant != 0) > 1) {
    facts->is_whole = true;
    return hd_linear_add_term(out, e, factor);
  }
  return hd_linear_add(out, &inner, factor);
}

// With lets taken apart a quotient or remainder may come out even, as that of
// i * 16 + j with j < 16 by 16 does.
static bool collect_even(hd_facts_t *facts, const hd_expr_t *e,
                         hd_linear_mode_t mode, hd_linear_t *out) {
  const hd_expr_t *atom = canonical_atom(facts, e);
  hd_linear_t sum, quotient, rest;
  if ((atom->kind != HD_EXPR_DIV && atom->kind != HD_EXPR_MOD) ||
      !hd_expr_is_const(atom->operands[1]) || atom->operands[1]->u.i < 1)
    return false;
  int64_t c = atom->operands[1]->u.i;
  if (!collect(facts, atom->operands[0], mode, &sum) ||
      hd_linear_range(facts, &sum).least < 0 ||
      !hd_linear_is_exact(facts, &sum))
    return false;
  hd_linear_split(&sum, c, &quotient, &rest);
  if (!hd_linear_is_below(facts, &rest, c))
    return false;
  *out = atom->kind == HD_EXPR_DIV ? quotient : rest;
  return true;
}

static bool collect_atom(hd_facts_t *facts, const hd_expr_t *e,
                         hd_linear_t *out) {
  set_constant(out, e->type, 0);
  return hd_expr_is_pure(e) &&
         hd_linear_add_term(out, canonical_atom(facts, e), 1);
}

static bool collect(hd_facts_t *facts, const hd_expr_t *e,
                    hd_linear_mode_t mode, hd_linear_t *out) {
  const hd_expr_t *value;
  if (facts->fuel-- <= 0)
    return false;
  switch ((hd_expr_kind_t)e->kind) {
  case HD_EXPR_CONST:
    set_constant(out, e->type, hd_linear_wrap(e->type, e->u.i));
    return true;
  case HD_EXPR_ADD:
    return collect_sum(facts, e, mode, 1, out);
  case HD_EXPR_SUB:
    return collect_sum(facts, e, mode, -1, out);
  case HD_EXPR_NEG:
    return collect_scaled(facts, e->operands[0], mode, -1, out);
  case HD_EXPR_MUL:
    if (hd_expr_is_const(e->operands[1]))
      return collect_scaled(facts, e->operands[0], mode, e->operands[1]->u.i,
                            out);
    if (hd_expr_is_const(e->operands[0]))
      return collect_scaled(facts, e->operands[1], mode, e->operands[0]->u.i,
                            out);
    break;
  case HD_EXPR_SHL:
    if (hd_expr_is_const(e->operands[1]) && e->operands[1]->u.i >= 0 &&
        e->operands[1]->u.i < hd_type_bits(e->type) && e->operands[1]->u.i < 40)
      return collect_scaled(facts, e->operands[0], mode,
                            INT64_C(1) << e->operands[1]->u.i, out);
    break;
  case HD_EXPR_DIV:
  case HD_EXPR_MOD:
  case HD_EXPR_SHR:
  case HD_EXPR_BITAND:
    if (mode < HD_LINEAR_ONCE)
      facts->is_whole |= hd_expr_is_const(e->operands[1]);
    else if (collect_even(facts, e, mode, out))
      return true;
    break;
  case HD_EXPR_VAR:
    value = hd_facts_value(facts, e->u.var);
    if (value && mode >= HD_LINEAR_ONCE)
      return collect(facts, value,
                     mode == HD_LINEAR_ONCE ? HD_LINEAR_DEEP : mode, out);
    facts->is_whole |= value != NULL;
    break;
  default: // Whatever else there is, is an atom.
    break;
  }
  return collect_atom(facts, e, out);
}

bool hd_linear_of(hd_facts_t *facts, const hd_expr_t *e, hd_linear_mode_t mode,
                  hd_linear_t *out) {
  if (!hd_type_is_integer(e->type) || e->type.lanes != 1 ||
      hd_type_bits(e->type) < 8)
    return false;
  int outer = facts->fuel;
  if (outer <= 0)
    facts->fuel = MAX_NODES;
  bool was_whole = facts->is_whole;
  facts->is_whole = false;
  bool ok = collect(facts, e, mode, out) && join_quotients(facts, mode, out);
  facts->fuel = outer <= 0 ? 0 : facts->fuel;
  out->is_final = ok && !facts->is_whole;
  facts->is_whole |= was_whole;
  return ok;
}

static unsigned log2_of(int64_t value) {
  return (unsigned)__builtin_ctzll((unsigned long long)value);
}

const hd_expr_t *hd_build_div(hd_arena_t *arena, const hd_expr_t *a,
                              int64_t c) {
  if (c == 1)
    return a;
  if (is_power_of_two(c))
    return hd_expr_binary(arena, HD_EXPR_SHR, a,
                          hd_expr_int(arena, a->type, log2_of(c)));
  return hd_expr_binary(arena, HD_EXPR_DIV, a, hd_expr_int(arena, a->type, c));
}

const hd_expr_t *hd_build_mod(hd_arena_t *arena, const hd_expr_t *a,
                              int64_t c) {
  if (c == 1)
    return hd_expr_int(arena, a->type, 0);
  if (is_power_of_two(c))
    return hd_expr_binary(arena, HD_EXPR_BITAND, a,
                          hd_expr_int(arena, a->type, c - 1));
  return hd_expr_binary(arena, HD_EXPR_MOD, a, hd_expr_int(arena, a->type, c));
}

static const hd_expr_t *build_atom(hd_facts_t *facts, hd_arena_t *arena,
                                   const hd_expr_t *atom) {
  if ((atom->kind != HD_EXPR_DIV && atom->kind != HD_EXPR_MOD) ||
      !hd_expr_is_const(atom->operands[1]) || atom->operands[1]->u.i <= 0 ||
      !hd_facts_nonnegative(facts, atom->operands[0]))
    return atom;
  return atom->kind == HD_EXPR_DIV
             ? hd_build_div(arena, atom->operands[0], atom->operands[1]->u.i)
             : hd_build_mod(arena, atom->operands[0], atom->operands[1]->u.i);
}

// The sum is right modulo 2^bits: what the type cannot hold, as -(-2^31),
// wraps.
static const hd_expr_t *build_constant(hd_arena_t *arena, hd_type_t type,
                                       int64_t value) {
  unsigned unused = 64 - (unsigned)hd_type_bits(type);
  uint64_t high = (uint64_t)value << unused;
  return hd_expr_int(arena, type,
                     hd_type_is_unsigned(type) ? (int64_t)(high >> unused)
                                               : (int64_t)high >> unused);
}

static int64_t negated(int64_t value) { return (int64_t)-(uint64_t)value; }

// |factor| * atom, or the other sign where that is the type's way.
static const hd_expr_t *build_term(hd_facts_t *facts, hd_arena_t *arena,
                                   hd_type_t type, const hd_linear_term_t *term,
                                   bool negate) {
  const hd_expr_t *atom = build_atom(facts, arena, term->expr);
  int64_t factor = negate ? negated(term->factor) : term->factor;
  if (factor == 1)
    return atom;
  return hd_expr_binary(arena, HD_EXPR_MUL, atom,
                        build_constant(arena, type, factor));
}

const hd_expr_t *hd_linear_build(hd_facts_t *facts, hd_arena_t *arena,
                                 const hd_linear_t *sum) {
  hd_type_t type = sum->type;
  const hd_expr_t *e = NULL;
  for (unsigned i = 0; i < sum->size; ++i) {
    bool negative = sum->terms[i].factor < 0;
    const hd_expr_t *term =
        build_term(facts, arena, type, &sum->terms[i], negative);
    if (!e && negative)
      e = hd_expr_unary(arena, HD_EXPR_NEG, term);
    else if (!e)
      e = term;
    else
      e = hd_expr_binary(arena, negative ? HD_EXPR_SUB : HD_EXPR_ADD, e, term);
  }
  if (!e)
    return build_constant(arena, type, sum->constant);
  if (sum->constant == 0)
    return e;
  bool negative = sum->constant < 0 && sum->constant != INT64_MIN;
  return hd_expr_binary(
      arena, negative ? HD_EXPR_SUB : HD_EXPR_ADD, e,
      build_constant(arena, type, negative ? -sum->constant : sum->constant));
}
