// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Schedule/Affine.h"

#include "Support/Gcd.h"

static const hd_span_t everything = {INT64_MIN, INT64_MAX};

// --- Spans ---

static bool add_span(hd_span_t *sum, hd_span_t span, int64_t factor) {
  int64_t a, b;
  if (__builtin_mul_overflow(span.least, factor, &a) ||
      __builtin_mul_overflow(span.most, factor, &b))
    return false;
  return !__builtin_add_overflow(sum->least, factor > 0 ? a : b, &sum->least) &&
         !__builtin_add_overflow(sum->most, factor > 0 ? b : a, &sum->most);
}

static bool is_op(const hd_term_t *term, hd_expr_kind_t op) {
  return term->kind == HD_TERM_OPERATOR && term->u.op == op;
}

// A quotient or remainder by a positive constant, of what is never below 0
// where that matters to the caller.
static bool is_digit(const hd_term_t *term, hd_expr_kind_t op) {
  return is_op(term, op) && term->operands[1]->kind == HD_TERM_CONST &&
         term->operands[1]->u.i > 0;
}

hd_span_t hd_term_span(const hd_term_t *term) {
  if (term->kind == HD_TERM_CONST)
    return (hd_span_t){term->u.i, term->u.i};
  if (term->kind == HD_TERM_INDEX)
    return (hd_span_t){0, hd_flat_range(term->u.index) - 1};
  if (term->kind != HD_TERM_OPERATOR || term->type.scalar != HD_I64)
    return everything;
  hd_span_t a = hd_term_span(term->operands[0]), sum = {0, 0};
  if (is_digit(term, HD_EXPR_DIV)) {
    int64_t d = term->operands[1]->u.i;
    return (hd_span_t){a.least / d, a.most / d};
  }
  if (is_digit(term, HD_EXPR_MOD)) {
    int64_t d = term->operands[1]->u.i;
    return (hd_span_t){a.least < 0 ? 1 - d : 0,
                       a.most >= 0 && a.most < d ? a.most : d - 1};
  }
  if (term->u.op == HD_EXPR_NEG)
    return add_span(&sum, a, -1) ? sum : everything;
  if (term->num_operands < 2)
    return everything;
  hd_span_t b = hd_term_span(term->operands[1]);
  bool adds = term->u.op == HD_EXPR_ADD || term->u.op == HD_EXPR_SUB;
  if (adds && add_span(&sum, a, 1) &&
      add_span(&sum, b, term->u.op == HD_EXPR_ADD ? 1 : -1))
    return sum;
  if (term->u.op == HD_EXPR_MUL && b.least == b.most &&
      add_span(&sum, a, b.least))
    return sum;
  if (term->u.op == HD_EXPR_MUL && a.least == a.most &&
      add_span(&sum, b, a.least))
    return sum;
  if (term->u.op == HD_EXPR_MIN)
    return (hd_span_t){a.least < b.least ? a.least : b.least,
                       a.most < b.most ? a.most : b.most};
  if (term->u.op == HD_EXPR_MAX)
    return (hd_span_t){a.least > b.least ? a.least : b.least,
                       a.most > b.most ? a.most : b.most};
  return everything;
}

hd_span_t hd_affine_span(const hd_affine_t *sum) {
  hd_span_t span = {sum->constant, sum->constant};
  for (unsigned i = 0; i < sum->num_parts; i++)
    if (!add_span(&span, hd_term_span(sum->parts[i].atom),
                  sum->parts[i].factor))
      return everything;
  return span;
}

// --- Sums ---

static bool add_atom(hd_affine_t *sum, const hd_term_t *atom, int64_t factor) {
  for (unsigned i = 0; i < sum->num_parts; i++) {
    hd_affine_part_t *part = &sum->parts[i];
    if (!hd_term_equal(part->atom, atom))
      continue;
    if (__builtin_add_overflow(part->factor, factor, &part->factor))
      return false;
    if (part->factor == 0)
      *part = sum->parts[--sum->num_parts];
    return true;
  }
  if (factor == 0)
    return true;
  if (sum->num_parts == HD_AFFINE_PARTS)
    return false;
  sum->parts[sum->num_parts++] = (hd_affine_part_t){atom, factor};
  return true;
}

static bool add_sum(hd_affine_t *sum, const hd_affine_t *other,
                    int64_t factor) {
  int64_t value;
  if (__builtin_mul_overflow(other->constant, factor, &value) ||
      __builtin_add_overflow(sum->constant, value, &sum->constant))
    return false;
  for (unsigned i = 0; i < other->num_parts; i++)
    if (__builtin_mul_overflow(other->parts[i].factor, factor, &value) ||
        !add_atom(sum, other->parts[i].atom, value))
      return false;
  return true;
}

static const hd_term_t *digit(hd_arena_t *arena, hd_expr_kind_t op,
                              const hd_term_t *x, int64_t d) {
  return hd_flat_operate(arena, op, x, hd_flat_int(arena, HD_I64, d));
}

static bool quotient(hd_arena_t *arena, const hd_affine_t *x, int64_t d,
                     hd_affine_t *q);

// (x / d) d + x % d is x: puts x in the place of the two.
static bool join_digits(hd_arena_t *arena, hd_affine_t *sum) {
  for (unsigned i = 0; i < sum->num_parts; i++) {
    hd_affine_part_t low = sum->parts[i];
    if (!is_digit(low.atom, HD_EXPR_MOD))
      continue;
    int64_t d = low.atom->operands[1]->u.i, factor;
    hd_affine_t x, q = {0};
    if (__builtin_mul_overflow(low.factor, d, &factor) ||
        !hd_affine_of(arena, low.atom->operands[0], &x) ||
        !quotient(arena, &x, d, &q) || q.num_parts != 1 || q.constant != 0 ||
        q.parts[0].factor != 1)
      continue;
    for (unsigned k = 0; k < sum->num_parts; k++) {
      if (sum->parts[k].factor != factor ||
          !hd_term_equal(sum->parts[k].atom, q.parts[0].atom))
        continue;
      hd_affine_t rest = {.constant = sum->constant};
      for (unsigned n = 0; n < sum->num_parts; n++)
        if (n != i && n != k)
          rest.parts[rest.num_parts++] = sum->parts[n];
      if (!add_sum(&rest, &x, low.factor))
        return false;
      *sum = rest;
      return join_digits(arena, sum);
    }
  }
  return true;
}

// --- Digits ---

// x = g (more) + rest, with 0 <= rest < g.
static bool split_sum(const hd_affine_t *x, int64_t g, hd_affine_t *more,
                      hd_affine_t *rest) {
  *more = (hd_affine_t){.constant = x->constant / g};
  *rest = (hd_affine_t){.constant = x->constant % g};
  if (rest->constant < 0) {
    rest->constant += g;
    more->constant--;
  }
  for (unsigned i = 0; i < x->num_parts; i++) {
    hd_affine_part_t part = x->parts[i];
    if (part.factor % g == 0) {
      part.factor /= g;
      more->parts[more->num_parts++] = part;
    } else {
      rest->parts[rest->num_parts++] = part;
    }
  }
  hd_span_t span = hd_affine_span(rest);
  return span.least >= 0 && span.most < g;
}

// The greatest g that divides d for which split_sum() works; 1 does where no
// constant is in the way.
static int64_t find_split(const hd_affine_t *x, int64_t d, hd_affine_t *more,
                          hd_affine_t *rest) {
  int64_t best = 0;
  if (split_sum(x, d, more, rest))
    return d;
  for (unsigned i = 0; i < x->num_parts; i++) {
    int64_t factor = x->parts[i].factor;
    int64_t g = hd_gcd(d, factor < 0 ? -factor : factor);
    hd_affine_t m, r;
    if (g > best && split_sum(x, g, &m, &r)) {
      best = g;
      *more = m;
      *rest = r;
    }
  }
  return best;
}

// The atom x / d or x % d, where x is never below 0.
static const hd_term_t *digit_atom(hd_arena_t *arena, hd_expr_kind_t op,
                                   const hd_affine_t *x, int64_t d) {
  const hd_term_t *term = hd_affine_term(arena, x);
  hd_span_t span = hd_affine_span(x);
  if (span.most < d)
    return op == HD_EXPR_MOD ? term : hd_flat_int(arena, HD_I64, 0);
  // (y / c) / d, (y % (c d)) % d, (y % (c d)) / d
  if (op == HD_EXPR_DIV && is_digit(term, HD_EXPR_DIV)) {
    int64_t product;
    if (!__builtin_mul_overflow(term->operands[1]->u.i, d, &product))
      return digit(arena, op, term->operands[0], product);
  }
  if (is_digit(term, HD_EXPR_MOD) && term->operands[1]->u.i % d == 0) {
    const hd_term_t *y = term->operands[0];
    if (op == HD_EXPR_MOD)
      return digit(arena, op, y, d);
    return hd_index_simplify(arena, digit(arena, HD_EXPR_MOD,
                                          digit(arena, HD_EXPR_DIV, y, d),
                                          term->operands[1]->u.i / d));
  }
  return digit(arena, op, term, d);
}

static bool add_digit(hd_arena_t *arena, hd_affine_t *sum, hd_expr_kind_t op,
                      const hd_affine_t *x, int64_t d, int64_t factor) {
  const hd_term_t *atom = digit_atom(arena, op, x, d);
  hd_affine_t part;
  if (atom->kind == HD_TERM_OPERATOR &&
      (atom->u.op == HD_EXPR_DIV || atom->u.op == HD_EXPR_MOD))
    return add_atom(sum, atom, factor);
  return hd_affine_of(arena, atom, &part) && add_sum(sum, &part, factor);
}

static bool quotient(hd_arena_t *arena, const hd_affine_t *x, int64_t d,
                     hd_affine_t *q) {
  hd_affine_t more, rest;
  if (hd_affine_span(x).least < 0)
    return false;
  int64_t g = find_split(x, d, &more, &rest);
  *q = (hd_affine_t){0};
  if (g == d)
    return add_sum(q, &more, 1);
  // (d m + r) / d is m + r / d.
  hd_affine_t m, r;
  split_sum(x, d, &m, &r);
  if (m.num_parts > 0 && hd_affine_span(&m).least >= 0 &&
      hd_affine_span(&r).least >= 0) {
    hd_affine_t low;
    return quotient(arena, &r, d, &low) && add_sum(q, &m, 1) &&
           add_sum(q, &low, 1);
  }
  return g > 1 && hd_affine_span(&more).least >= 0
             ? add_digit(arena, q, HD_EXPR_DIV, &more, d / g, 1)
             : add_digit(arena, q, HD_EXPR_DIV, x, d, 1);
}

static bool remainder_of(hd_arena_t *arena, const hd_affine_t *x, int64_t d,
                         hd_affine_t *r) {
  hd_affine_t more, rest;
  if (hd_affine_span(x).least < 0)
    return false;
  int64_t g = find_split(x, d, &more, &rest);
  *r = (hd_affine_t){0};
  if (g == d)
    return add_sum(r, &rest, 1);
  // Multiples of d do not matter.
  hd_affine_t y = {.constant = x->constant % d};
  for (unsigned i = 0; i < x->num_parts; i++)
    if (x->parts[i].factor % d != 0)
      y.parts[y.num_parts++] = x->parts[i];
  if (hd_affine_span(&y).least >= 0 && y.num_parts < x->num_parts)
    return remainder_of(arena, &y, d, r);
  if (g > 1 && hd_affine_span(&more).least >= 0)
    return add_digit(arena, r, HD_EXPR_MOD, &more, d / g, g) &&
           add_sum(r, &rest, 1);
  return add_digit(arena, r, HD_EXPR_MOD, x, d, 1);
}

static const hd_term_t *simplify_operands(hd_arena_t *arena,
                                          const hd_term_t *term);

static bool affine_operator(hd_arena_t *arena, const hd_term_t *term,
                            hd_affine_t *sum) {
  hd_affine_t a, b;
  hd_expr_kind_t op = term->u.op;
  if (!hd_affine_of(arena, term->operands[0], &a))
    return false;
  if (op == HD_EXPR_NEG)
    return add_sum(sum, &a, -1);
  if (term->num_operands < 2 || !hd_affine_of(arena, term->operands[1], &b))
    return false;
  if (op == HD_EXPR_ADD || op == HD_EXPR_SUB)
    return add_sum(sum, &a, 1) && add_sum(sum, &b, op == HD_EXPR_ADD ? 1 : -1);
  if (op == HD_EXPR_MUL && b.num_parts == 0)
    return add_sum(sum, &a, b.constant);
  if (op == HD_EXPR_MUL && a.num_parts == 0)
    return add_sum(sum, &b, a.constant);
  if (b.num_parts == 0 && b.constant > 0 && op == HD_EXPR_DIV)
    return quotient(arena, &a, b.constant, sum);
  if (b.num_parts == 0 && b.constant > 0 && op == HD_EXPR_MOD)
    return remainder_of(arena, &a, b.constant, sum);
  return false;
}

bool hd_affine_of(hd_arena_t *arena, const hd_term_t *term, hd_affine_t *sum) {
  *sum = (hd_affine_t){0};
  if (term->kind == HD_TERM_CONST) {
    sum->constant = term->u.i;
    return true;
  }
  if (term->kind == HD_TERM_OPERATOR && affine_operator(arena, term, sum))
    return join_digits(arena, sum);
  *sum = (hd_affine_t){0};
  return add_atom(sum, simplify_operands(arena, term), 1);
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

const hd_term_t *hd_affine_term(hd_arena_t *arena, const hd_affine_t *sum) {
  const hd_term_t *term = NULL;
  for (unsigned i = 0; i < sum->num_parts; i++) {
    const hd_term_t *part =
        hd_flat_operate(arena, HD_EXPR_MUL, sum->parts[i].atom,
                        hd_flat_int(arena, HD_I64, sum->parts[i].factor));
    term = term ? hd_flat_operate(arena, HD_EXPR_ADD, term, part) : part;
  }
  const hd_term_t *constant = hd_flat_int(arena, HD_I64, sum->constant);
  return term ? hd_flat_operate(arena, HD_EXPR_ADD, term, constant) : constant;
}

const hd_term_t *hd_index_simplify(hd_arena_t *arena, const hd_term_t *term) {
  hd_affine_t sum;
  if (term->kind == HD_TERM_CONST || term->kind == HD_TERM_INDEX)
    return term;
  return hd_affine_of(arena, term, &sum) ? hd_affine_term(arena, &sum) : term;
}

const hd_term_t *hd_index_linear(hd_arena_t *arena, const int64_t *shape,
                                 unsigned rank,
                                 const hd_term_t *const *places) {
  const hd_term_t *number = hd_flat_int(arena, HD_I64, 0);
  for (unsigned i = 0; i < rank; i++)
    number =
        hd_flat_operate(arena, HD_EXPR_ADD,
                        hd_flat_operate(arena, HD_EXPR_MUL, number,
                                        hd_flat_int(arena, HD_I64, shape[i])),
                        places[i]);
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
                         hd_affine_t *number) {
  const hd_term_t *places[HD_MAX_RANK];
  for (unsigned i = 0; i < place->rank; i++)
    places[i] =
        place->shape[i] == 1 ? hd_flat_int(arena, HD_I64, 0) : place->places[i];
  return hd_affine_of(
      arena, hd_index_linear(arena, place->shape, place->rank, places), number);
}

static bool has_part(const hd_affine_t *sum, const hd_affine_part_t *part) {
  for (unsigned i = 0; i < sum->num_parts; i++)
    if (sum->parts[i].factor == part->factor &&
        sum->parts[i].atom->kind == HD_TERM_INDEX &&
        part->atom->kind == HD_TERM_INDEX &&
        sum->parts[i].atom->u.index == part->atom->u.index)
      return true;
  return false;
}

bool hd_index_same_number(hd_arena_t *arena, const hd_index_place_t *x,
                          const hd_index_place_t *y) {
  hd_affine_t a, b;
  if (!place_number(arena, x, &a) || !place_number(arena, y, &b) ||
      a.constant != b.constant || a.num_parts != b.num_parts)
    return false;
  for (unsigned i = 0; i < a.num_parts; i++)
    if (!has_part(&b, &a.parts[i]))
      return false;
  return true;
}
