// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Index arithmetic: i64 in the task, i32 in the kernel where the range says
// that nothing is lost.
#include "Schedule/Translate/TranslateState.h"

#include <math.h>

static bool fits_i32(hd_range_t range) {
  return hd_range_inside(range, hd_type_range(hd_type(HD_I32)));
}

hd_worth_t hd_translate_any(const hd_expr_t *e) {
  return (hd_worth_t){e, hd_type_range(e->type)};
}

hd_worth_t hd_translate_number(hd_translator_t *t, int64_t value) {
  hd_range_t range = hd_range_one(value);
  hd_scalar_t type = fits_i32(range) ? HD_I32 : HD_I64;
  return (hd_worth_t){hd_b_int(t->b, type, value), range};
}

// What facts say of a value.
static hd_worth_t refine(const hd_translator_t *t, hd_worth_t value) {
  for (size_t i = 0; i < t->facts.size; i++)
    if (hd_expr_equal(t->facts.data[i].e, value.e))
      value.range = hd_range_meet(value.range, t->facts.data[i].range);
  return value;
}

hd_worth_t hd_translate_index(hd_translator_t *t, const hd_index_t *index) {
  const hd_expr_t *e = hd_ptr_map_get(&t->indices, index);
  int64_t known;
  if (hd_expr_is_const(e) && hd_expr_fold_int(e, &known))
    return hd_translate_number(t, known);
  return refine(t, (hd_worth_t){e, {0, hd_flat_range(index) - 1}});
}

static hd_worth_t widen(hd_translator_t *t, hd_worth_t a) {
  a.e = hd_b_cast(t->b, HD_I64, a.e);
  return a;
}

void hd_translate_unify(hd_translator_t *t, hd_worth_t *a, hd_worth_t *b) {
  if (hd_type_equal(a->e->type, b->e->type))
    return;
  *a = widen(t, *a);
  *b = widen(t, *b);
}

static bool is_same(hd_range_t a, hd_range_t b) {
  return a.least == b.least && a.greatest == b.greatest;
}

static hd_worth_t translate_two(hd_translator_t *t, hd_expr_kind_t op,
                                hd_worth_t a, hd_worth_t b) {
  if (hd_expr_info(op)->form == HD_FORM_COMPARE) {
    int known = hd_range_compare(op, a.range, b.range);
    if (known >= 0)
      return (hd_worth_t){hd_expr_bool(t->b->arena, known),
                          hd_range_one(known)};
    hd_translate_unify(t, &a, &b);
    return hd_translate_any(hd_expr_binary(t->b->arena, op, a.e, b.e));
  }
  hd_range_t all = hd_type_range(hd_type(HD_I64));
  hd_range_t range = hd_range_operate(op, a.range, b.range, all);
  if (!hd_range_inside(range, all))
    range = all; // It may wrap.
  // The remainder of what is smaller, the smaller of what is known to be.
  if (op == HD_EXPR_MOD && is_same(range, a.range) && range.least >= 0)
    return a;
  if (op == HD_EXPR_MIN || op == HD_EXPR_MAX) {
    if (hd_range_compare(HD_EXPR_LE, a.range, b.range) == 1)
      return op == HD_EXPR_MIN ? a : b;
    if (hd_range_compare(HD_EXPR_GE, a.range, b.range) == 1)
      return op == HD_EXPR_MIN ? b : a;
  }
  bool narrow = fits_i32(range) && a.e->type.scalar == HD_I32 &&
                b.e->type.scalar == HD_I32;
  if (!narrow) {
    a = widen(t, a);
    b = widen(t, b);
  }
  return refine(t, (hd_worth_t){hd_b_op(t->b, op, a.e, b.e), range});
}

hd_worth_t hd_translate_integers(hd_translator_t *t, const hd_term_t *term) {
  hd_worth_t a = hd_translate_worth(t, term->operands[0]);
  if (term->u.op == HD_EXPR_NEG)
    return translate_two(t, HD_EXPR_SUB, hd_translate_number(t, 0), a);
  if (term->num_operands == 1)
    return hd_translate_any(
        hd_expr_unary(t->b->arena, term->u.op, widen(t, a).e));
  return translate_two(t, term->u.op, a,
                       hd_translate_worth(t, term->operands[1]));
}

// By 1.5 * 2^23, and back, an f32 is rounded.
static const double SHIFT = 12582912;

static bool is_byte(const hd_term_t *term) {
  hd_scalar_t type = term->type.scalar;
  return hd_type_is_integer(hd_type(type)) && hd_scalar_bits(type) <= 8;
}

// Whether an operand leaves what is rounded about as large as a byte; bounds
// may be any number.
static bool is_of_bytes(hd_expr_kind_t op, const hd_term_t *by) {
  static const double MOST = 256;
  if (hd_flat_is_operator(by, HD_EXPR_SUB) &&
      by->operands[0]->kind == HD_TERM_CONST && by->operands[0]->u.f == SHIFT)
    by = by->operands[1];
  while (by->kind == HD_TERM_CAST && !is_byte(by))
    by = by->operands[0];
  if (by->kind != HD_TERM_CONST || is_byte(by))
    return is_byte(by);
  double number =
      hd_type_is_integer(hd_type(by->type.scalar)) ? (double)by->u.i : by->u.f;
  return op == HD_EXPR_MIN || op == HD_EXPR_MAX || fabs(number) <= MOST ||
         fabs(number - SHIFT) <= MOST;
}

// Whether a number is rounded to an integer, be it by SHIFT, then moved by no
// more than a byte and clamped: so much of it as a byte takes is less than 16
// bits tell.
static bool is_rounded(const hd_term_t *term) {
  while (term->kind == HD_TERM_OPERATOR) {
    hd_expr_kind_t op = term->u.op;
    if (op != HD_EXPR_ADD && op != HD_EXPR_SUB && op != HD_EXPR_MIN &&
        op != HD_EXPR_MAX)
      return false;
    const hd_term_t *by = term->operands[1];
    if (op == HD_EXPR_ADD && by->kind == HD_TERM_CONST && by->u.f == SHIFT)
      return true;
    if (!is_of_bytes(op, by))
      return false;
    term = term->operands[0];
  }
  return term->kind == HD_TERM_FUNCTION &&
         term->u.function == HD_TASK_ROUND_EVEN;
}

bool hd_translate_rounds(const hd_term_t *cast) {
  hd_scalar_t to = cast->type.scalar;
  return (to == HD_I8 || to == HD_U8) && is_rounded(cast->operands[0]);
}

// To i64 from what has fewer bits; from an i64 that is an i32 already. What is
// rounded to 16 bits, or to a byte, may be coarse.
hd_worth_t hd_translate_cast(hd_translator_t *t, const hd_term_t *term) {
  hd_scalar_t to = term->type.scalar;
  bool was_coarse = t->is_coarse;
  t->is_coarse |= to == HD_F16 || to == HD_BF16 || hd_translate_rounds(term);
  hd_worth_t a = hd_translate_worth(t, term->operands[0]);
  t->is_coarse = was_coarse;
  hd_type_t from = hd_type(term->operands[0]->type.scalar);
  if (to == HD_I64 && !hd_type_is_float(from)) {
    hd_range_t all = hd_type_range(hd_type(HD_I64));
    hd_range_t range = hd_range_inside(a.range, all) ? a.range : all;
    bool narrow = fits_i32(range) && hd_type_bits(a.e->type) <= 32;
    return (hd_worth_t){hd_b_cast(t->b, narrow ? HD_I32 : HD_I64, a.e), range};
  }
  return hd_translate_any(hd_b_cast(t->b, to, a.e));
}

hd_worth_t hd_translate_axis(hd_translator_t *t, const hd_term_t *term) {
  hd_worth_t a = hd_translate_worth(t, term);
  if (a.e->type.scalar == HD_I32 || a.e->type.scalar == HD_I64)
    return a;
  hd_range_t all = hd_type_range(hd_type(HD_I64));
  if (!hd_range_inside(a.range, all))
    a.range = all; // An u64 wraps.
  a.e = hd_b_cast(t->b, fits_i32(a.range) ? HD_I32 : HD_I64, a.e);
  return a;
}

// --- Facts ---

static void add_fact(hd_translator_t *t, hd_worth_t a, hd_range_t range) {
  if (hd_expr_is_const(a.e) || hd_range_inside(a.range, range))
    return;
  hd_worth_t fact = {a.e, range};
  hd_vec_push(t->b->arena, &t->facts, fact);
}

// Looking at a condition again must put no statements.
static bool is_plain(void *argument, const hd_term_t *term) {
  bool *plain = argument;
  bool good = term->kind == HD_TERM_CONST || term->kind == HD_TERM_INDEX ||
              term->kind == HD_TERM_OPERATOR || term->kind == HD_TERM_BOUND;
  *plain &= good;
  return good;
}

static void assume_order(hd_translator_t *t, hd_expr_kind_t op, hd_worth_t a,
                         hd_worth_t b) {
  hd_range_t all = hd_type_range(hd_type(HD_I64));
  if (op == HD_EXPR_GT || op == HD_EXPR_GE) {
    assume_order(t, op == HD_EXPR_GT ? HD_EXPR_LT : HD_EXPR_LE, b, a);
  } else if (op == HD_EXPR_LT || op == HD_EXPR_LE) {
    bool strict = op == HD_EXPR_LT;
    add_fact(t, a, (hd_range_t){all.least, b.range.greatest - strict});
    add_fact(t, b, (hd_range_t){a.range.least + strict, all.greatest});
  } else if (op == HD_EXPR_EQ) {
    add_fact(t, a, b.range);
    add_fact(t, b, a.range);
  }
}

void hd_translate_assume(hd_translator_t *t, const hd_term_t *condition,
                         bool holds) {
  if (condition->kind != HD_TERM_OPERATOR)
    return;
  hd_expr_kind_t op = condition->u.op;
  if (op == HD_EXPR_NOT) {
    hd_translate_assume(t, condition->operands[0], !holds);
  } else if (op == (holds ? HD_EXPR_AND : HD_EXPR_OR)) {
    hd_translate_assume(t, condition->operands[0], holds);
    hd_translate_assume(t, condition->operands[1], holds);
  }
  bool plain = true;
  hd_flat_walk(condition, is_plain, &plain);
  if (!plain || hd_expr_info(op)->form != HD_FORM_COMPARE ||
      condition->operands[0]->type.scalar != HD_I64)
    return;
  hd_worth_t a = hd_translate_worth(t, condition->operands[0]);
  hd_worth_t b = hd_translate_worth(t, condition->operands[1]);
  assume_order(t, holds ? op : hd_comparison_opposite(op), a, b);
}
