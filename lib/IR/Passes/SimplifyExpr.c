// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules of simplify for expressions. Integers follow their ranges; floats
// only identities that keep every bit (x * 1, x - 0, x + -0, division by a
// power of two), for nothing may be approximated behind the program's back.

#include "IR/Intrinsic.h"
#include "IR/Passes/Simplifier.h"

#include <math.h>

static bool is_integer(const hd_expr_t *e) {
  return e->type.lanes == 1 && hd_type_is_integer(e->type);
}

static bool is_float_constant(const hd_expr_t *e, double value) {
  return hd_expr_is_const(e) && hd_type_is_float(e->type) && e->u.f == value &&
         signbit(e->u.f) == signbit(value);
}

static const hd_expr_t *boolean(hd_simplifier_t *s, bool value) {
  return hd_expr_bool(s->arena, value);
}

static const hd_expr_t *simplify_float(hd_simplifier_t *s, const hd_expr_t *e) {
  const hd_expr_t *a = e->operands[0], *b = e->operands[1];
  int exponent;
  switch ((hd_expr_kind_t)e->kind) {
  case HD_EXPR_MUL:
    return is_float_constant(b, 1.0) ? a : e;
  case HD_EXPR_DIV:
    if (is_float_constant(b, 1.0))
      return a;
    // 1 / 2^n is exact and normal, so both round the same number once.
    if (hd_expr_is_const(b) && e->type.scalar == HD_F32 && b->u.f > 0 &&
        frexp(b->u.f, &exponent) == 0.5 && exponent > -100 && exponent < 100)
      return hd_expr_binary(s->arena, HD_EXPR_MUL, a,
                            hd_expr_float(s->arena, e->type, 1 / b->u.f));
    return e;
  case HD_EXPR_ADD:
    return is_float_constant(b, -0.0) ? a : hd_simplify_shifted(s, e);
  case HD_EXPR_SUB:
    return is_float_constant(b, 0.0) ? a : hd_simplify_shifted(s, e);
  default:
    return e;
  }
}

static const hd_expr_t *simplify_unary(hd_simplifier_t *s, const hd_expr_t *e) {
  const hd_expr_t *a = e->operands[0];
  if (a->kind == e->kind)
    return a->operands[0]; // --x, !!x, ~~x
  if (e->kind != HD_EXPR_NOT || a->num_operands != 2 ||
      !is_integer(a->operands[0])) // NaN is not less and not greater.
    return e;
  hd_expr_kind_t kind = (hd_expr_kind_t)a->kind;
  return hd_expr_info(kind)->form == HD_FORM_COMPARE
             ? hd_expr_binary(s->arena, hd_comparison_opposite(kind),
                              a->operands[0], a->operands[1])
             : e;
}

static const hd_expr_t *simplify_logic(hd_simplifier_t *s, const hd_expr_t *e) {
  bool settles = e->kind == HD_EXPR_OR;
  const hd_expr_t *a = e->operands[0], *b = e->operands[1];
  if (hd_expr_is_const(a))
    return (a->u.i != 0) == settles ? boolean(s, settles) : b;
  if (hd_expr_is_const(b)) {
    if ((b->u.i != 0) != settles)
      return a;
    return hd_expr_is_pure(a) ? boolean(s, settles) : e;
  }
  return hd_expr_is_pure(a) && hd_expr_equal(a, b) ? a : e;
}

// x / c < d is x < c * d, for x >= 0.
static const hd_expr_t *undo_division(hd_simplifier_t *s, const hd_expr_t *e) {
  const hd_expr_t *a = e->operands[0], *b = e->operands[1];
  bool less = e->kind == HD_EXPR_LT || e->kind == HD_EXPR_GE;
  hd_linear_t sum;
  int64_t limit;
  if (!less || !hd_expr_is_const(b) ||
      !hd_linear_of(s->facts, a, HD_LINEAR_DEEP, &sum) || sum.size != 1 ||
      sum.constant != 0 || sum.terms[0].factor != 1)
    return e;
  const hd_expr_t *div = sum.terms[0].expr;
  if (div->kind != HD_EXPR_DIV || !hd_expr_is_const(div->operands[1]) ||
      div->operands[1]->u.i < 1 || b->u.i < 0 ||
      !hd_facts_nonnegative(s->facts, div->operands[0]) ||
      __builtin_mul_overflow(div->operands[1]->u.i, b->u.i, &limit) ||
      limit > INT32_MAX)
    return e;
  return hd_expr_binary(s->arena, (hd_expr_kind_t)e->kind, div->operands[0],
                        hd_expr_int(s->arena, a->type, limit));
}

static const hd_expr_t *simplify_comparison(hd_simplifier_t *s,
                                            const hd_expr_t *e) {
  if (!is_integer(e->operands[0]) || !hd_expr_is_pure(e))
    return e;
  int known = hd_facts_decide(s->facts, e);
  return known >= 0 ? boolean(s, known) : undo_division(s, e);
}

static const hd_expr_t *simplify_extremum(hd_simplifier_t *s,
                                          const hd_expr_t *e) {
  const hd_expr_t *a = e->operands[0], *b = e->operands[1];
  if (!hd_expr_is_pure(e))
    return e;
  if (hd_expr_equal(a, b))
    return a;
  if (!is_integer(e))
    return hd_simplify_clamp(s, e);
  const hd_expr_t *first = hd_expr_binary(
      s->scratch, e->kind == HD_EXPR_MIN ? HD_EXPR_LE : HD_EXPR_GE, a, b);
  int known = hd_facts_decide(s->facts, first);
  if (known < 0) { // The other way round, equality may be what is not known.
    first = hd_expr_binary(
        s->scratch, e->kind == HD_EXPR_MIN ? HD_EXPR_GE : HD_EXPR_LE, a, b);
    known = hd_facts_decide(s->facts, first) == 1 ? 0 : -1;
  }
  return known < 0 ? e : known ? a : b;
}

static const hd_expr_t *simplify_select(hd_simplifier_t *s,
                                        const hd_expr_t *e) {
  const hd_expr_t *c = e->operands[0];
  const hd_expr_t *then = e->operands[1], *otherwise = e->operands[2];
  if (hd_expr_is_const(c))
    return c->u.i ? then : otherwise;
  if (hd_expr_equal(then, otherwise) && hd_expr_is_pure(e))
    return then;
  if (hd_type_is_bool(e->type) && e->type.lanes == 1 &&
      hd_expr_is_const(then) && hd_expr_is_const(otherwise) &&
      !hd_expr_equal(then, otherwise))
    return then->u.i
               ? c
               : hd_simplify_node(s, hd_expr_unary(s->arena, HD_EXPR_NOT, c));
  return s->resolve ? hd_resolve_select(s, e) : e;
}

// 1: every index of the access is in bounds; 0: one never is, for any lane;
// -1: not known.
static int decide_bounds(hd_simplifier_t *s, const hd_expr_t *e) {
  const hd_tensor_t *tensor = e->u.var->tensor;
  unsigned lanes = e->type.lanes / tensor->element.lanes;
  int result = 1;
  if (e->linear)
    return -1;
  for (unsigned a = 0; a < tensor->rank; ++a) {
    const hd_expr_t *index = e->operands[a], *last = index;
    if (a + 1 == tensor->rank && lanes > 1)
      last = hd_expr_binary(s->scratch, HD_EXPR_ADD, index,
                            hd_expr_int(s->scratch, index->type, lanes - 1));
    int low = hd_facts_decide(
        s->facts, hd_expr_binary(s->scratch, HD_EXPR_GE, index,
                                 hd_expr_int(s->scratch, index->type, 0)));
    int high =
        hd_facts_decide(s->facts, hd_expr_binary(s->scratch, HD_EXPR_LT, last,
                                                 tensor->shape[a]));
    // A lane of a vector may be in bounds where its first or last is not.
    if (last == index && (low == 0 || high == 0))
      return 0;
    if (low < 1 || high < 1)
      result = -1;
  }
  return result;
}

static const hd_expr_t *simplify_loadelse(hd_simplifier_t *s,
                                          const hd_expr_t *e) {
  int inside = hd_expr_is_pure(e) ? decide_bounds(s, e) : -1;
  unsigned indices = hd_expr_num_indices(e);
  if (inside == 0)
    return e->operands[indices];
  if (inside < 0)
    return e;
  return hd_expr_make(s->arena, HD_EXPR_LOAD, e->type, e, e->operands, indices);
}

static const hd_expr_t *simplify_lane(const hd_expr_t *e) {
  const hd_expr_t *v = e->operands[0];
  if (v->kind != HD_EXPR_VECTOR || !hd_expr_is_pure(v))
    return e;
  return v->operands[v->num_operands == 1 ? 0 : e->u.i];
}

// Constants stand on the right.
static const hd_expr_t *order_operands(hd_simplifier_t *s, const hd_expr_t *e) {
  if (!hd_expr_info((hd_expr_kind_t)e->kind)->commutative ||
      !hd_expr_is_const(e->operands[0]) || hd_expr_is_const(e->operands[1]))
    return e;
  const hd_expr_t *swapped[] = {e->operands[1], e->operands[0]};
  return hd_expr_with(s->arena, e, swapped);
}

static const hd_expr_t *by_kind(hd_simplifier_t *s, const hd_expr_t *e) {
  switch ((hd_expr_kind_t)e->kind) {
  case HD_EXPR_ADD:
  case HD_EXPR_SUB:
  case HD_EXPR_MUL:
  case HD_EXPR_DIV:
    if (hd_type_is_float(e->type))
      return e->type.lanes == 1 ? simplify_float(s, e) : e;
    return is_integer(e) ? hd_simplify_index(s, e) : e;
  case HD_EXPR_MOD:
  case HD_EXPR_SHL:
  case HD_EXPR_SHR:
  case HD_EXPR_BITAND:
  case HD_EXPR_BITXOR:
  case HD_EXPR_BITOR:
    return is_integer(e) ? hd_simplify_index(s, e) : e;
  case HD_EXPR_NEG:
    if (is_integer(e) && e->operands[0]->kind != HD_EXPR_NEG)
      return hd_simplify_index(s, e);
    return simplify_unary(s, e);
  case HD_EXPR_NOT:
  case HD_EXPR_BITNOT:
    return simplify_unary(s, e);
  case HD_EXPR_AND:
  case HD_EXPR_OR:
    return simplify_logic(s, e);
  case HD_EXPR_LT:
  case HD_EXPR_LE:
  case HD_EXPR_GT:
  case HD_EXPR_GE:
  case HD_EXPR_EQ:
  case HD_EXPR_NE:
    return simplify_comparison(s, e);
  case HD_EXPR_MIN:
  case HD_EXPR_MAX:
    return simplify_extremum(s, e);
  case HD_EXPR_SELECT:
    return simplify_select(s, e);
  case HD_EXPR_CAST:
  case HD_EXPR_BITCAST:
    return hd_simplify_cast(s, e);
  case HD_EXPR_LOADELSE:
    return simplify_loadelse(s, e);
  case HD_EXPR_LANE:
    return simplify_lane(e);
  case HD_EXPR_CONST:
  case HD_EXPR_VAR:
  case HD_EXPR_BUILTIN:
  case HD_EXPR_VECTOR:
  case HD_EXPR_LOAD:
  case HD_EXPR_REF:
  case HD_EXPR_TENSOR:
  case HD_EXPR_CALL:
  case HD_EXPR_INTRINSIC:
  case HD_EXPR_COUNT:
    break;
  }
  return e;
}

const hd_expr_t *hd_simplify_node(hd_simplifier_t *s, const hd_expr_t *e) {
  int64_t value;
  hd_number_t number;
  bool wrapped = false;
  if (e->kind == HD_EXPR_CONST)
    return e;
  // Left as it is for --sanitize: what an index would be without wrapping could
  // not be told from a number.
  if (hd_expr_value(&(hd_fold_t){.wrapped = &wrapped}, e, &number), wrapped)
    return e;
  // Names of orders and the like are constants already; only values here.
  if (is_integer(e) && hd_facts_constant(s->facts, e, &value) &&
      hd_expr_is_pure(e))
    return hd_expr_int(s->arena, e->type, value);
  const hd_expr_t *folded = hd_expr_fold(s->arena, e);
  if (folded)
    return folded;
  e = by_kind(s, order_operands(s, e));
  return s->resolve && hd_expr_is_access(e) ? hd_resolve_access(s, e) : e;
}

// Operands that are evaluated only where a condition holds are simplified
// knowing it.
static const hd_expr_t *under(hd_simplifier_t *s, const hd_expr_t *condition,
                              bool holds, const hd_expr_t *e) {
  hd_facts_mark_t mark = hd_facts_mark(s->facts);
  hd_facts_assume(s->facts, condition, holds);
  e = hd_simplify_expr(s, e);
  hd_facts_reset(s->facts, mark);
  return e;
}

static bool is_matrix(const hd_expr_t *call, unsigned i) {
  return call->kind == HD_EXPR_INTRINSIC &&
         hd_intrinsic_of(call)->params[i].form == HD_PARAM_MATRIX;
}

const hd_expr_t *hd_simplify_expr(hd_simplifier_t *s, const hd_expr_t *e) {
  if (!e)
    return NULL;
  if (e->kind == HD_EXPR_VAR) {
    const hd_expr_t *value = hd_ptr_map_get(&s->values, e->u.var);
    e = value ? value : e;
  }
  if (e->num_operands == 0)
    return hd_simplify_node(s, e);
  const hd_expr_t *few[4];
  const hd_expr_t **operands =
      e->num_operands <= 4
          ? few
          : HD_ARENA_ARRAY(s->scratch, const hd_expr_t *, e->num_operands);
  for (unsigned i = 0; i < e->num_operands; ++i) {
    bool lazy = i > 0 && (e->kind == HD_EXPR_SELECT || e->kind == HD_EXPR_AND ||
                          e->kind == HD_EXPR_OR);
    bool holds = e->kind == HD_EXPR_OR ? false : i == 1;
    operands[i] = lazy ? under(s, operands[0], holds, e->operands[i])
                  : s->resolve && is_matrix(e, i)
                      ? hd_resolve_matrix(s, e->operands[i])
                      : hd_simplify_expr(s, e->operands[i]);
  }
  return hd_simplify_node(s, hd_expr_with(s->arena, e, operands));
}
