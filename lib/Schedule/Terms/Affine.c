// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Schedule/Terms/Affine.h"

// --- Ranges ---

// A quotient or remainder by a positive constant, of what is never below 0
// where that matters to the caller.
static bool is_digit(const hd_term_t *term, hd_expr_kind_t op) {
  return hd_flat_is_operator(term, op) &&
         term->operands[1]->kind == HD_TERM_CONST && term->operands[1]->u.i > 0;
}

hd_range_t hd_term_range(const hd_term_t *term) {
  hd_range_t all = hd_type_range(hd_type(HD_I64));
  if (term->kind == HD_TERM_CONST)
    return hd_range_one(term->u.i);
  if (term->kind == HD_TERM_INDEX)
    return (hd_range_t){0, hd_flat_range(term->u.index) - 1};
  if (term->kind != HD_TERM_OPERATOR || term->type.scalar != HD_I64)
    return all;
  hd_range_t a = hd_term_range(term->operands[0]), result = all;
  if (term->u.op == HD_EXPR_NEG)
    result = hd_range_operate(HD_EXPR_SUB, hd_range_one(0), a, all);
  else if (term->num_operands > 1)
    result =
        hd_range_operate(term->u.op, a, hd_term_range(term->operands[1]), all);
  return hd_range_inside(result, all) ? result : all;
}

static bool atoms_equal(const void *a, const void *b) {
  return hd_term_equal(a, b);
}

static hd_range_t atom_range(void *known, const void *atom) {
  (void)known;
  return hd_term_range(atom);
}

static const hd_linear_atoms_t atoms = {atoms_equal, atom_range, NULL};

static void set_constant(hd_linear_t *sum, int64_t value) {
  hd_linear_set(sum, &atoms, hd_type(HD_I64), value);
}

static bool is_nonnegative(const hd_linear_t *sum) {
  return hd_linear_range(NULL, sum).least >= 0;
}

// --- Sums ---

static bool digit_of(hd_arena_t *arena, hd_expr_kind_t op, const hd_linear_t *x,
                     int64_t d, hd_linear_t *result);

// Adds the sum that a simple term is written as. What is in it is simple, too,
// and is not looked at again: places are nested, and each time that their inner
// parts were made simple twice would double the time with each level.
static bool add_written(hd_linear_t *sum, const hd_term_t *term,
                        int64_t factor) {
  int64_t product;
  if (term->kind == HD_TERM_CONST)
    return !__builtin_mul_overflow(term->u.i, factor, &product) &&
           !__builtin_add_overflow(sum->constant, product, &sum->constant);
  if (hd_flat_is_operator(term, HD_EXPR_ADD))
    return add_written(sum, term->operands[0], factor) &&
           add_written(sum, term->operands[1], factor);
  if (hd_flat_is_operator(term, HD_EXPR_MUL) &&
      term->operands[1]->kind == HD_TERM_CONST)
    return !__builtin_mul_overflow(term->operands[1]->u.i, factor, &product) &&
           add_written(sum, term->operands[0], product);
  return hd_linear_add_term(sum, term, factor);
}

static bool written_sum(const hd_term_t *term, hd_linear_t *sum) {
  set_constant(sum, 0);
  return add_written(sum, term, 1);
}

// (x / d) d + x % d is x: puts x in the place of the two.
static bool join_digits(hd_arena_t *arena, hd_linear_t *sum) {
  for (unsigned i = 0; i < sum->size; i++) {
    hd_linear_term_t low = sum->terms[i];
    if (!is_digit(low.term, HD_EXPR_MOD))
      continue;
    int64_t d = low.term->operands[1]->u.i, factor;
    hd_linear_t x, q;
    if (__builtin_mul_overflow(low.factor, d, &factor) ||
        !written_sum(low.term->operands[0], &x) ||
        !digit_of(arena, HD_EXPR_DIV, &x, d, &q) || q.size != 1 ||
        q.constant != 0 || q.terms[0].factor != 1)
      continue;
    for (unsigned k = 0; k < sum->size; k++) {
      if (sum->terms[k].factor != factor ||
          !hd_term_equal(sum->terms[k].term, q.terms[0].term))
        continue;
      hd_linear_t rest;
      set_constant(&rest, sum->constant);
      for (unsigned n = 0; n < sum->size; n++)
        if (n != i && n != k)
          rest.terms[rest.size++] = sum->terms[n];
      if (!hd_linear_add(&rest, &x, low.factor))
        return false;
      *sum = rest;
      return join_digits(arena, sum);
    }
  }
  return true;
}

// --- Digits ---

// y / d % c, where y is simple.
static const hd_term_t *middle_digit(hd_arena_t *arena, const hd_term_t *y,
                                     int64_t d, int64_t c) {
  hd_linear_t x, q, r;
  if (written_sum(y, &x) && digit_of(arena, HD_EXPR_DIV, &x, d, &q) &&
      digit_of(arena, HD_EXPR_MOD, &q, c, &r))
    return hd_affine_term(arena, &r);
  return hd_flat_operate_int(arena, HD_EXPR_MOD,
                             hd_flat_operate_int(arena, HD_EXPR_DIV, y, d), c);
}

// The atom x / d or x % d, where x is never below 0.
static const hd_term_t *digit_atom(hd_arena_t *arena, hd_expr_kind_t op,
                                   const hd_linear_t *x, int64_t d) {
  const hd_term_t *term = hd_affine_term(arena, x);
  if (hd_linear_range(NULL, x).greatest < d)
    return op == HD_EXPR_MOD ? term : hd_flat_int(arena, HD_I64, 0);
  // (y / c) / d, (y % (c d)) % d, (y % (c d)) / d
  if (op == HD_EXPR_DIV && is_digit(term, HD_EXPR_DIV)) {
    int64_t product;
    if (!__builtin_mul_overflow(term->operands[1]->u.i, d, &product))
      return hd_flat_operate_int(arena, op, term->operands[0], product);
  }
  if (is_digit(term, HD_EXPR_MOD) && term->operands[1]->u.i % d == 0) {
    const hd_term_t *y = term->operands[0];
    if (op == HD_EXPR_MOD)
      return hd_flat_operate_int(arena, op, y, d);
    return middle_digit(arena, y, d, term->operands[1]->u.i / d);
  }
  return hd_flat_operate_int(arena, op, term, d);
}

static bool add_digit(hd_arena_t *arena, hd_linear_t *sum, hd_expr_kind_t op,
                      const hd_linear_t *x, int64_t d) {
  const hd_term_t *atom = digit_atom(arena, op, x, d);
  hd_linear_t part;
  if (atom->kind == HD_TERM_OPERATOR &&
      (atom->u.op == HD_EXPR_DIV || atom->u.op == HD_EXPR_MOD))
    return hd_linear_add_term(sum, atom, 1);
  return written_sum(atom, &part) && hd_linear_add(sum, &part, 1);
}

// x / d, or x % d.
static bool digit_of(hd_arena_t *arena, hd_expr_kind_t op, const hd_linear_t *x,
                     int64_t d, hd_linear_t *result) {
  hd_linear_digits_t digits;
  hd_linear_t part;
  bool divides = op == HD_EXPR_DIV;
  if (!is_nonnegative(x))
    return false;
  set_constant(result, 0);
  if (!hd_linear_divide(NULL, x, d, &digits))
    return add_digit(arena, result, op, x, d);
  *result = divides ? digits.quotient : digits.low;
  return digits.g == d ||
         (digit_of(arena, op, &digits.outer, d / digits.g, &part) &&
          hd_linear_add(result, &part, divides ? 1 : digits.g));
}

// b: zero where there is one operand.
static bool operate(hd_arena_t *arena, hd_expr_kind_t op, const hd_linear_t *a,
                    const hd_linear_t *b, hd_linear_t *sum) {
  if (op == HD_EXPR_NEG)
    return hd_linear_add(sum, a, -1);
  if (op == HD_EXPR_ADD || op == HD_EXPR_SUB)
    return hd_linear_add(sum, a, 1) &&
           hd_linear_add(sum, b, op == HD_EXPR_ADD ? 1 : -1);
  if (op == HD_EXPR_MUL && b->size == 0)
    return hd_linear_add(sum, a, b->constant);
  if (op == HD_EXPR_MUL && a->size == 0)
    return hd_linear_add(sum, b, a->constant);
  return b->size == 0 && b->constant > 0 &&
         (op == HD_EXPR_DIV || op == HD_EXPR_MOD) &&
         digit_of(arena, op, a, b->constant, sum);
}

static bool is_arithmetic(hd_expr_kind_t op) {
  return op == HD_EXPR_NEG || op == HD_EXPR_ADD || op == HD_EXPR_SUB ||
         op == HD_EXPR_MUL || op == HD_EXPR_DIV || op == HD_EXPR_MOD;
}

// The operands are made simple once, whether that makes a sum or not.
static bool affine_operator(hd_arena_t *arena, const hd_term_t *term,
                            hd_linear_t *sum) {
  hd_linear_t parts[2];
  const hd_term_t *simple[2];
  bool known = true, changed = false;
  set_constant(&parts[1], 0);
  for (unsigned i = 0; i < term->num_operands; i++)
    known &= hd_affine_of(arena, term->operands[i], &parts[i]);
  if (known && operate(arena, term->u.op, &parts[0], &parts[1], sum))
    return join_digits(arena, sum);
  for (unsigned i = 0; i < term->num_operands; i++) {
    simple[i] = known ? hd_affine_term(arena, &parts[i]) : term->operands[i];
    changed |= simple[i] != term->operands[i];
  }
  set_constant(sum, 0);
  return hd_linear_add_term(
      sum, changed ? hd_flat_rebuild(arena, term, simple) : term, 1);
}

static const hd_term_t *simplify_operands(hd_arena_t *arena,
                                          const hd_term_t *term);

// A place that is read may be of another integer's type.
static const hd_term_t *as_number(hd_arena_t *arena, const hd_term_t *term) {
  return hd_flat_cast(arena, term, HD_I64);
}

bool hd_affine_of(hd_arena_t *arena, const hd_term_t *term, hd_linear_t *sum) {
  set_constant(sum, 0);
  if (term->kind == HD_TERM_CONST) {
    sum->constant = term->u.i;
    return true;
  }
  if (term->kind == HD_TERM_OPERATOR && is_arithmetic(term->u.op))
    return affine_operator(arena, term, sum);
  return hd_linear_add_term(
      sum, as_number(arena, simplify_operands(arena, term)), 1);
}

// --- Terms again ---

static const hd_term_t *simplify_operands(hd_arena_t *arena,
                                          const hd_term_t *term) {
  if (term->num_operands == 0 || term->num_operands > 16 ||
      term->kind == HD_TERM_REDUCE || term->kind == HD_TERM_SCAN)
    return term;
  const hd_term_t *operands[16];
  bool changed = false;
  for (unsigned i = 0; i < term->num_operands; i++) {
    const hd_term_t *x = term->operands[i];
    operands[i] = x->type.scalar == HD_I64 ? hd_index_simplify(arena, x)
                                           : simplify_operands(arena, x);
    changed |= operands[i] != x;
  }
  return changed ? hd_flat_rebuild(arena, term, operands) : term;
}

const hd_term_t *hd_affine_term(hd_arena_t *arena, const hd_linear_t *sum) {
  const hd_term_t *term = NULL;
  for (unsigned i = 0; i < sum->size; i++) {
    const hd_term_t *part = hd_flat_operate_int(
        arena, HD_EXPR_MUL, sum->terms[i].term, sum->terms[i].factor);
    term = term ? hd_flat_operate(arena, HD_EXPR_ADD, term, part) : part;
  }
  const hd_term_t *constant = hd_flat_int(arena, HD_I64, sum->constant);
  return term ? hd_flat_operate(arena, HD_EXPR_ADD, term, constant) : constant;
}

const hd_term_t *hd_index_simplify(hd_arena_t *arena, const hd_term_t *term) {
  hd_linear_t sum;
  if (term->kind == HD_TERM_CONST || term->kind == HD_TERM_INDEX)
    return term;
  return hd_affine_of(arena, term, &sum) ? hd_affine_term(arena, &sum) : term;
}

const hd_term_t *hd_index_simplify_load(hd_arena_t *arena,
                                        const hd_term_t *term) {
  if (!hd_flat_is_load(term))
    return term;
  const hd_term_t *operands[HD_MAX_RANK + 1];
  for (unsigned i = 0; i < term->num_operands; i++)
    operands[i] = i < term->u.value->rank
                      ? hd_index_simplify(arena, term->operands[i])
                      : term->operands[i];
  return hd_flat_rebuild(arena, term, operands);
}

const hd_term_t *hd_index_linear(hd_arena_t *arena, const int64_t *shape,
                                 unsigned rank,
                                 const hd_term_t *const *places) {
  const hd_term_t *number = hd_flat_int(arena, HD_I64, 0);
  for (unsigned i = 0; i < rank; i++)
    number = hd_flat_operate(
        arena, HD_EXPR_ADD,
        hd_flat_operate_int(arena, HD_EXPR_MUL, number, shape[i]), places[i]);
  return hd_index_simplify(arena, number);
}

void hd_index_places(hd_arena_t *arena, const hd_term_t *number,
                     const int64_t *shape, unsigned rank,
                     const hd_term_t **places) {
  for (unsigned i = rank; i-- > 0;) {
    const hd_term_t *size = hd_flat_int(arena, HD_I64, shape[i]);
    places[i] = hd_index_simplify(
        arena, i ? hd_flat_operate(arena, HD_EXPR_MOD, number, size) : number);
    number = hd_index_simplify(
        arena, hd_flat_operate(arena, HD_EXPR_DIV, number, size));
  }
}

// Axes of one element left aside.
static bool place_number(hd_arena_t *arena, const hd_index_place_t *place,
                         hd_linear_t *number) {
  const hd_term_t *places[HD_MAX_RANK];
  for (unsigned i = 0; i < place->rank; i++)
    places[i] =
        place->shape[i] == 1 ? hd_flat_int(arena, HD_I64, 0) : place->places[i];
  return hd_affine_of(
      arena, hd_index_linear(arena, place->shape, place->rank, places), number);
}

static bool has_part(const hd_linear_t *sum, const hd_linear_term_t *part) {
  for (unsigned i = 0; i < sum->size; i++)
    if (sum->terms[i].factor == part->factor &&
        sum->terms[i].term->kind == HD_TERM_INDEX &&
        part->term->kind == HD_TERM_INDEX &&
        sum->terms[i].term->u.index == part->term->u.index)
      return true;
  return false;
}

bool hd_index_same_number(hd_arena_t *arena, const hd_index_place_t *x,
                          const hd_index_place_t *y) {
  hd_linear_t a, b;
  if (!place_number(arena, x, &a) || !place_number(arena, y, &b) ||
      a.constant != b.constant || a.size != b.size)
    return false;
  for (unsigned i = 0; i < a.size; i++)
    if (!has_part(&b, &a.terms[i]))
      return false;
  return true;
}
