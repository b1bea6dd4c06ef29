// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known of a form's term t:
//   keys that need not be looked at, where it is -inf from some j on, by a
//     condition that is affine in i and j (a causal mask) and in numbers that
//     are read (a length), and what is left of it for keys before these;
//   a number that it is a multiple of, which costs nothing where exponentials
//     are computed, and a multiplication an element else.
#include "Schedule/Attention/AttentionState.h"

#include "Schedule/Terms/Affine.h"

#include <math.h>

typedef struct limits {
  hd_arena_t *arena;
  const hd_attention_form_t *form;
  const hd_term_t *limit; // NULL: none yet.
} limits_t;

static void add_limit(limits_t *l, const hd_term_t *end) {
  l->limit =
      l->limit ? hd_flat_operate(l->arena, HD_EXPR_MIN, l->limit, end) : end;
}

// Whether a term grows with i: i, or i / constant.
static bool follows_query(const limits_t *l, const hd_term_t *term) {
  bool divides = term->kind == HD_TERM_OPERATOR && term->u.op == HD_EXPR_DIV &&
                 term->operands[1]->kind == HD_TERM_CONST &&
                 term->operands[1]->u.i > 0;
  const hd_term_t *of = divides ? term->operands[0] : term;
  return of->kind == HD_TERM_INDEX &&
         of->u.index == l->form->indices[HD_ATTENTION_QUERY];
}

// A number that is read as one that sums do not overflow by, and that is on the
// same side of every place.
static const hd_term_t *clamped(const limits_t *l, const hd_term_t *number) {
  static const int64_t FAR = INT64_C(1) << 40;
  const hd_term_t *low =
      hd_flat_operate_int(l->arena, HD_EXPR_MAX, number, -FAR);
  return hd_flat_operate_int(l->arena, HD_EXPR_MIN, low, FAR);
}

static const hd_term_t *add_multiple(const limits_t *l, const hd_term_t *sum,
                                     const hd_term_t *of, int64_t factor) {
  const hd_term_t *multiple =
      hd_flat_operate_int(l->arena, HD_EXPR_MUL, of, factor);
  return hd_flat_operate(l->arena, HD_EXPR_ADD, multiple, sum);
}

// An element that is the same for all i and j, which is what its places are
// made of, too: a length, or one of each request's.
static bool is_number(const limits_t *l, const hd_term_t *term) {
  bool is_one = term->kind == HD_TERM_LOAD;
  for (int axis = HD_ATTENTION_QUERY; is_one && axis < HD_ATTENTION_AXES;
       axis++)
    is_one = !hd_flat_uses(term, l->form->indices[axis]);
  return is_one;
}

// The sum without its multiple of j, times sign, and a constant. False: it
// would not grow with i.
static bool add_line(limits_t *l, const hd_linear_t *sum, int64_t sign,
                     int64_t more) {
  const hd_term_t *line =
      hd_flat_int(l->arena, HD_I64, sign * sum->constant + more);
  for (unsigned n = 0; n < sum->size; n++) {
    const hd_term_t *atom = sum->terms[n].term;
    int64_t factor = sign * sum->terms[n].factor;
    if (!is_number(l, atom) && !follows_query(l, atom))
      continue;
    if (factor < 0 && !is_number(l, atom))
      return false;
    line = add_multiple(l, line, is_number(l, atom) ? clamped(l, atom) : atom,
                        factor);
  }
  add_limit(l, line);
  return true;
}

// x > y, or x >= y where it is not strict, hides (or else shows) a key. True
// where the limit says as much.
static bool compare(limits_t *l, const hd_term_t *x, const hd_term_t *y,
                    bool strict, bool hides) {
  hd_linear_t sum;
  int64_t along = 0; // j
  unsigned rows = 0;
  if (x->type.scalar != HD_I64 ||
      !hd_affine_of(l->arena,
                    hd_index_simplify(
                        l->arena, hd_flat_operate(l->arena, HD_EXPR_SUB, x, y)),
                    &sum))
    return false;
  for (unsigned n = 0; n < sum.size; n++) {
    const hd_term_t *atom = sum.terms[n].term;
    bool is_i = follows_query(l, atom);
    bool is_j = atom->kind == HD_TERM_INDEX &&
                atom->u.index == l->form->indices[HD_ATTENTION_KEY];
    rows += is_i;
    if ((!is_i && !is_j && !is_number(l, atom)) || rows > 1)
      return false;
    if (is_j)
      along = sum.terms[n].factor;
  }
  if (hides && along == 1) // j > -(a i + c)
    return add_line(l, &sum, -1, strict);
  if (!hides && along == -1) // j < a i + c
    return add_line(l, &sum, 1, !strict);
  return false;
}

// True where a condition says nothing of keys before the limit.
static bool learn(limits_t *l, const hd_term_t *c, bool hides) {
  if (c->kind != HD_TERM_OPERATOR)
    return false;
  const hd_term_t *a = c->operands[0];
  const hd_term_t *b = c->num_operands > 1 ? c->operands[1] : NULL;
  hd_expr_kind_t op = c->u.op;
  if (op == HD_EXPR_NOT)
    return learn(l, a, !hides);
  if (op == (hides ? HD_EXPR_OR : HD_EXPR_AND)) {
    bool is_all = learn(l, a, hides);
    return learn(l, b, hides) && is_all;
  }
  if (op == HD_EXPR_GT || op == HD_EXPR_GE)
    return compare(l, a, b, op == HD_EXPR_GT, hides);
  if (op == HD_EXPR_LT || op == HD_EXPR_LE)
    return compare(l, b, a, op == HD_EXPR_LT, hides);
  return false;
}

// The operand of a choice that is not -inf; 0: there is none.
static unsigned shown(const hd_term_t *term) {
  if (term->kind != HD_TERM_SELECT)
    return 0;
  return hd_attention_is_lowest(term->operands[1])   ? 2
         : hd_attention_is_lowest(term->operands[2]) ? 1
                                                     : 0;
}

// A choice with another term in the place of that operand.
static const hd_term_t *put_shown(hd_arena_t *arena, const hd_term_t *choice,
                                  const hd_term_t *term) {
  const hd_term_t *lowest = hd_flat_float(arena, HD_F32, -INFINITY);
  bool is_then = shown(choice) == 1;
  term = hd_attention_wide(arena, term);
  return hd_flat_select(arena, choice->operands[0], is_then ? term : lowest,
                        is_then ? lowest : term);
}

// Learns what hides keys, and gives the term of those before the limit.
static const hd_term_t *look(limits_t *l, const hd_term_t *term) {
  const hd_term_t *choice = hd_attention_unrounded(term);
  unsigned at = shown(choice);
  if (!at)
    return term;
  bool is_known = learn(l, choice->operands[0], at == 2);
  const hd_term_t *inner = look(l, choice->operands[at]);
  if (is_known)
    return inner;
  return inner == choice->operands[at] ? term
                                       : put_shown(l->arena, choice, inner);
}

void hd_attention_limit(hd_arena_t *arena, hd_attention_form_t *form) {
  limits_t l = {arena, form, NULL};
  // What a weight of 0 becomes need not be 0.
  form->inside = hd_attention_wide(arena, form->weighed ? form->term
                                                        : look(&l, form->term));
  form->limit = hd_flat_int(arena, HD_I64, form->sizes[HD_ATTENTION_KEY]);
  if (l.limit)
    form->limit = hd_flat_operate_int(
        arena, HD_EXPR_MAX,
        hd_flat_operate(arena, HD_EXPR_MIN, l.limit, form->limit), 0);
}

// --- The factor ---

enum { MOST_FACTOR = 1 << 20 }; // And one over that the least.

// What a product by a constant, or a quotient, is a multiple of, and of what;
// *factor stays 1 where it is none.
static const hd_term_t *split(const hd_term_t *term, double *factor) {
  const hd_term_t *product = hd_attention_unrounded(term);
  bool divides =
      product->kind == HD_TERM_OPERATOR && product->u.op == HD_EXPR_DIV;
  bool multiplies =
      product->kind == HD_TERM_OPERATOR && product->u.op == HD_EXPR_MUL;
  for (unsigned i = 0; (divides || multiplies) && i < 2; i++) {
    const hd_term_t *by = hd_attention_unrounded(product->operands[1 - i]);
    if (by->kind != HD_TERM_CONST || (divides && i > 0))
      continue;
    double f = hd_float_round(HD_F32, divides ? 1 / by->u.f : by->u.f);
    if (!(f >= 1.0 / MOST_FACTOR && f <= MOST_FACTOR))
      continue;
    *factor = f;
    return product->operands[i];
  }
  return term;
}

static const hd_term_t *over_factor(hd_arena_t *arena, const hd_term_t *term,
                                    double *factor) {
  const hd_term_t *choice = hd_attention_unrounded(term);
  unsigned at = shown(choice);
  if (!at)
    return split(term, factor);
  const hd_term_t *inner = over_factor(arena, choice->operands[at], factor);
  return *factor == 1 ? term : put_shown(arena, choice, inner);
}

void hd_attention_factor(hd_arena_t *arena, hd_attention_form_t *form) {
  form->factor = 1;
  form->term =
      hd_attention_wide(arena, over_factor(arena, form->term, &form->factor));
  form->inside =
      hd_attention_wide(arena, over_factor(arena, form->inside, &form->factor));
}
