// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Index arithmetic: i64 in the task, i32 in the kernel where the range says
// that nothing is lost.
#include "Schedule/TranslateState.h"

typedef struct range {
  int64_t least, most;
} range_t;

static const range_t everything = {INT64_MIN, INT64_MAX};

static bool fits_i32(range_t r) {
  return r.least >= INT32_MIN && r.most <= INT32_MAX;
}

static range_t type_range(hd_type_t type) {
  if (hd_type_is_bool(type))
    return (range_t){0, 1};
  unsigned bits = hd_type_is_integer(type) ? hd_type_bits(type) : 64;
  if (hd_type_is_unsigned(type))
    return bits < 64 ? (range_t){0, (INT64_C(1) << bits) - 1} : everything;
  return bits < 64 ? (range_t){-(INT64_C(1) << (bits - 1)),
                               (INT64_C(1) << (bits - 1)) - 1}
                   : everything;
}

hd_worth_t hd_translate_any(const hd_expr_t *e) {
  range_t r = type_range(e->type);
  return (hd_worth_t){e, r.least, r.most};
}

hd_worth_t hd_translate_number(hd_translator_t *t, int64_t value) {
  hd_scalar_t type = fits_i32((range_t){value, value}) ? HD_I32 : HD_I64;
  return (hd_worth_t){hd_b_int(t->b, type, value), value, value};
}

// What facts say of a value.
static hd_worth_t refine(const hd_translator_t *t, hd_worth_t value) {
  for (size_t i = 0; i < t->facts.size; i++) {
    const hd_fact_t *fact = &t->facts.data[i];
    if (!hd_expr_equal(fact->e, value.e))
      continue;
    if (fact->least > value.least)
      value.least = fact->least;
    if (fact->most < value.most)
      value.most = fact->most;
  }
  return value;
}

hd_worth_t hd_translate_index(hd_translator_t *t, const hd_index_t *index) {
  const hd_expr_t *e = hd_ptr_map_get(&t->indices, index);
  int64_t known;
  if (hd_expr_is_const(e) && hd_expr_fold_int(e, &known))
    return hd_translate_number(t, known);
  return refine(t, (hd_worth_t){e, 0, hd_flat_range(index) - 1});
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

// --- Ranges of results; false: any ---

static bool add_ranges(range_t a, range_t b, range_t *r) {
  return !__builtin_add_overflow(a.least, b.least, &r->least) &&
         !__builtin_add_overflow(a.most, b.most, &r->most);
}

static bool sub_ranges(range_t a, range_t b, range_t *r) {
  return !__builtin_sub_overflow(a.least, b.most, &r->least) &&
         !__builtin_sub_overflow(a.most, b.least, &r->most);
}

static bool mul_ranges(range_t a, range_t b, range_t *r) {
  int64_t corners[4];
  if (__builtin_mul_overflow(a.least, b.least, &corners[0]) ||
      __builtin_mul_overflow(a.least, b.most, &corners[1]) ||
      __builtin_mul_overflow(a.most, b.least, &corners[2]) ||
      __builtin_mul_overflow(a.most, b.most, &corners[3]))
    return false;
  *r = (range_t){corners[0], corners[0]};
  for (int i = 1; i < 4; i++) {
    r->least = corners[i] < r->least ? corners[i] : r->least;
    r->most = corners[i] > r->most ? corners[i] : r->most;
  }
  return true;
}

// By a positive constant.
static bool divide_range(hd_expr_kind_t op, range_t a, range_t b, range_t *r) {
  int64_t d = b.least;
  if (b.least != b.most || d <= 0)
    return false;
  if (op == HD_EXPR_DIV) {
    *r = (range_t){a.least / d, a.most / d};
    return true;
  }
  r->least = a.least >= 0 ? 0 : a.least > -d ? a.least : 1 - d;
  r->most = a.most <= 0 ? 0 : a.most < d ? a.most : d - 1;
  return true;
}

static bool range_of(hd_expr_kind_t op, range_t a, range_t b, range_t *r) {
  switch (op) {
  case HD_EXPR_ADD:
    return add_ranges(a, b, r);
  case HD_EXPR_SUB:
    return sub_ranges(a, b, r);
  case HD_EXPR_MUL:
    return mul_ranges(a, b, r);
  case HD_EXPR_DIV:
  case HD_EXPR_MOD:
    return divide_range(op, a, b, r);
  case HD_EXPR_MIN:
    *r = (range_t){a.least < b.least ? a.least : b.least,
                   a.most < b.most ? a.most : b.most};
    return true;
  case HD_EXPR_MAX:
    *r = (range_t){a.least > b.least ? a.least : b.least,
                   a.most > b.most ? a.most : b.most};
    return true;
  default:
    return false;
  }
}

// 1: always, 0: never, -1: it depends.
static int decide(hd_expr_kind_t op, range_t a, range_t b) {
  switch (op) {
  case HD_EXPR_LT:
    return a.most < b.least ? 1 : a.least >= b.most ? 0 : -1;
  case HD_EXPR_LE:
    return a.most <= b.least ? 1 : a.least > b.most ? 0 : -1;
  case HD_EXPR_GT:
    return decide(HD_EXPR_LT, b, a);
  case HD_EXPR_GE:
    return decide(HD_EXPR_LE, b, a);
  case HD_EXPR_EQ:
    return a.most < b.least || b.most < a.least                           ? 0
           : a.least == a.most && b.least == b.most && a.least == b.least ? 1
                                                                          : -1;
  case HD_EXPR_NE: {
    int equal = decide(HD_EXPR_EQ, a, b);
    return equal < 0 ? -1 : !equal;
  }
  default:
    return -1;
  }
}

static hd_worth_t translate_two(hd_translator_t *t, hd_expr_kind_t op,
                                hd_worth_t a, hd_worth_t b) {
  range_t ra = {a.least, a.most}, rb = {b.least, b.most}, r = everything;
  if (hd_expr_info(op)->form == HD_FORM_COMPARE) {
    int known = decide(op, ra, rb);
    if (known >= 0)
      return (hd_worth_t){hd_expr_bool(t->b->arena, known), known, known};
    hd_translate_unify(t, &a, &b);
    return (hd_worth_t){hd_expr_binary(t->b->arena, op, a.e, b.e), 0, 1};
  }
  if (!range_of(op, ra, rb, &r))
    r = everything;
  // The remainder of what is smaller, the smaller of what is known to be.
  if (op == HD_EXPR_MOD && r.least == a.least && r.most == a.most &&
      a.least >= 0)
    return a;
  if ((op == HD_EXPR_MIN && a.most <= b.least) ||
      (op == HD_EXPR_MAX && a.least >= b.most))
    return a;
  if ((op == HD_EXPR_MIN && b.most <= a.least) ||
      (op == HD_EXPR_MAX && b.least >= a.most))
    return b;
  bool narrow =
      fits_i32(r) && a.e->type.scalar == HD_I32 && b.e->type.scalar == HD_I32;
  if (!narrow) {
    a = widen(t, a);
    b = widen(t, b);
  }
  hd_worth_t result = {hd_b_op(t->b, op, a.e, b.e), r.least, r.most};
  return refine(t, result);
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

// To i64 from what has fewer bits; from an i64 that is an i32 already.
hd_worth_t hd_translate_cast(hd_translator_t *t, const hd_term_t *term) {
  hd_worth_t a = hd_translate_worth(t, term->operands[0]);
  hd_type_t from = hd_type(term->operands[0]->type.scalar);
  hd_scalar_t to = term->type.scalar;
  if (to == HD_I64 && !hd_type_is_float(from)) {
    range_t r = {a.least, a.most};
    if (hd_type_is_unsigned(from) && hd_type_bits(from) == 64)
      r = everything;
    bool narrow = fits_i32(r) && hd_type_bits(a.e->type) <= 32;
    return (hd_worth_t){hd_b_cast(t->b, narrow ? HD_I32 : HD_I64, a.e), r.least,
                        r.most};
  }
  return hd_translate_any(hd_b_cast(t->b, to, a.e));
}

hd_worth_t hd_translate_axis(hd_translator_t *t, const hd_term_t *term) {
  hd_worth_t a = hd_translate_worth(t, term);
  if (a.e->type.scalar == HD_I32 || a.e->type.scalar == HD_I64)
    return a;
  bool is_u64 = a.e->type.scalar == HD_U64;
  bool narrow = fits_i32((range_t){a.least, a.most}) && !is_u64;
  a.e = hd_b_cast(t->b, narrow ? HD_I32 : HD_I64, a.e);
  return a;
}

// --- Facts ---

static void add_fact(hd_translator_t *t, hd_worth_t a, int64_t least,
                     int64_t most) {
  if (hd_expr_is_const(a.e) || (least <= a.least && most >= a.most))
    return;
  hd_fact_t fact = {a.e, least, most};
  hd_vec_push(t->b->arena, &t->facts, fact);
}

static hd_expr_kind_t opposite(hd_expr_kind_t op) {
  return op == HD_EXPR_LT   ? HD_EXPR_GE
         : op == HD_EXPR_LE ? HD_EXPR_GT
         : op == HD_EXPR_GT ? HD_EXPR_LE
         : op == HD_EXPR_GE ? HD_EXPR_LT
         : op == HD_EXPR_EQ ? HD_EXPR_NE
                            : HD_EXPR_EQ;
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
  if (op == HD_EXPR_GT || op == HD_EXPR_GE) {
    assume_order(t, op == HD_EXPR_GT ? HD_EXPR_LT : HD_EXPR_LE, b, a);
  } else if (op == HD_EXPR_LT || op == HD_EXPR_LE) {
    int64_t strict = op == HD_EXPR_LT;
    if (b.most > INT64_MIN)
      add_fact(t, a, INT64_MIN, b.most - strict);
    if (a.least < INT64_MAX)
      add_fact(t, b, a.least + strict, INT64_MAX);
  } else if (op == HD_EXPR_EQ) {
    add_fact(t, a, b.least, b.most);
    add_fact(t, b, a.least, a.most);
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
  assume_order(t, holds ? op : opposite(op), a, b);
}
