// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constant folding: what an expression over constants is worth, by the rules of
// docs/IR.md, the same as the emitted code would give.
#include "IR/Expr.h"
#include "IR/Tensor.h"
#include "Support/Float.h"

#include <assert.h>
#include <math.h>

static_assert(HD_F64 - HD_F4E2M1 == HD_FLOAT_F64 - HD_FLOAT_F4E2M1,
              "the formats stand in the order of Scalars.def");

static int64_t wrap(hd_type_t type, int64_t value) {
  unsigned bits = hd_scalar_bits((hd_scalar_t)type.scalar);
  if (hd_type_is_bool(type))
    return value != 0;
  if (bits >= 64)
    return value;
  uint64_t low = (uint64_t)value & ((UINT64_C(1) << bits) - 1);
  if (hd_type_is_signed(type) && low >> (bits - 1))
    return (int64_t)(low | ~UINT64_C(0) << bits);
  return (int64_t)low;
}

static bool shift(hd_expr_kind_t kind, hd_type_t type, int64_t a,
                  int64_t amount, int64_t *out) {
  unsigned bits = hd_scalar_bits((hd_scalar_t)type.scalar);
  bool over = amount < 0 || amount >= (int64_t)bits;
  if (kind == HD_EXPR_SHL)
    *out = over ? 0 : (int64_t)((uint64_t)a << amount);
  else if (hd_type_is_signed(type))
    *out = a >> (over ? 63 : amount);
  else
    *out = over ? 0 : (int64_t)((uint64_t)a >> amount);
  return true;
}

static bool divide(hd_expr_kind_t kind, hd_type_t type, int64_t a, int64_t b,
                   int64_t *out) {
  if (b == 0)
    return false;
  if (hd_type_is_unsigned(type)) {
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    *out = (int64_t)(kind == HD_EXPR_DIV ? x / y : x % y);
  } else if (b == -1) { // The least integer has no negative.
    *out = kind == HD_EXPR_DIV ? (int64_t)(0 - (uint64_t)a) : 0;
  } else {
    *out = kind == HD_EXPR_DIV ? a / b : a % b;
  }
  return true;
}

static bool fold_integers(hd_expr_kind_t kind, hd_type_t type, int64_t a,
                          int64_t b, int64_t *out) {
  bool is_unsigned = hd_type_is_unsigned(type);
  bool less = is_unsigned ? (uint64_t)a < (uint64_t)b : a < b;
  uint64_t x = (uint64_t)a, y = (uint64_t)b;
#define RESULT(value)                                                          \
  *out = (int64_t)(value);                                                     \
  return true
  // clang-format off
  switch (kind) {
  case HD_EXPR_ADD: RESULT(x + y);
  case HD_EXPR_SUB: RESULT(x - y);
  case HD_EXPR_MUL: RESULT(x * y);
  case HD_EXPR_DIV:
  case HD_EXPR_MOD: return divide(kind, type, a, b, out);
  case HD_EXPR_SHL:
  case HD_EXPR_SHR: return shift(kind, type, a, b, out);
  case HD_EXPR_BITAND: RESULT(x & y);
  case HD_EXPR_BITOR: RESULT(x | y);
  case HD_EXPR_BITXOR: RESULT(x ^ y);
  case HD_EXPR_MIN: RESULT(less ? a : b);
  case HD_EXPR_MAX: RESULT(less ? b : a);
  case HD_EXPR_LT: RESULT(less);
  case HD_EXPR_GE: RESULT(!less);
  case HD_EXPR_LE: RESULT(less || a == b);
  case HD_EXPR_GT: RESULT(!less && a != b);
  case HD_EXPR_EQ: RESULT(a == b);
  case HD_EXPR_NE: RESULT(a != b);
  case HD_EXPR_AND: RESULT(a && b);
  case HD_EXPR_OR: RESULT(a || b);
  case HD_EXPR_NEG: RESULT(0 - x);
  case HD_EXPR_BITNOT: RESULT(~x);
  case HD_EXPR_NOT: RESULT(!a);
  default: return false; // Not arithmetic.
  }
  // clang-format on
#undef RESULT
}

static bool compare_floats(hd_expr_kind_t kind, double a, double b,
                           int64_t *out) {
  // clang-format off
  switch (kind) {
  case HD_EXPR_LT: *out = a < b; return true;
  case HD_EXPR_LE: *out = a <= b; return true;
  case HD_EXPR_GT: *out = a > b; return true;
  case HD_EXPR_GE: *out = a >= b; return true;
  case HD_EXPR_EQ: *out = a == b; return true;
  case HD_EXPR_NE: *out = a != b; return true;
  default: return false;
  }
  // clang-format on
}

// The number where one is NaN; -0.0 is below 0.0.
static double least(double a, double b) {
  if (isnan(a) || isnan(b))
    return isnan(a) ? b : a;
  return a < b || (a == b && signbit(a)) ? a : b;
}

static bool fold_floats(hd_expr_kind_t kind, double a, double b, double *out) {
  // clang-format off
  switch (kind) {
  case HD_EXPR_ADD: *out = a + b; return true;
  case HD_EXPR_SUB: *out = a - b; return true;
  case HD_EXPR_MUL: *out = a * b; return true;
  case HD_EXPR_DIV: *out = a / b; return true;
  case HD_EXPR_MIN: *out = least(a, b); return true;
  case HD_EXPR_MAX: *out = -least(-a, -b); return true;
  case HD_EXPR_NEG: *out = -a; return true;
  default: return false;
  }
  // clang-format on
}

double hd_float_round(hd_scalar_t scalar, double value) {
  if (scalar == HD_F64 || isnan(value))
    return value;
  hd_float_format_t format =
      (hd_float_format_t)(scalar - HD_F4E2M1 + HD_FLOAT_F4E2M1);
  return hd_float_decode(format, hd_float_encode(format, value));
}

// Types whose arithmetic in double and one more rounding is right: a double
// holds more than twice an f32's digits, and division and the sum of two f32
// round the same (double rounding is innocuous at 2p + 2 digits).
static bool is_folded_float(hd_type_t type) {
  return type.scalar == HD_F32 || type.scalar == HD_F64;
}

// What an expression is worth: i or f, as its type says.
typedef struct value {
  hd_type_t type;
  int64_t i;
  double f;
} value_t;

static bool integer_result(value_t *out, hd_type_t type, int64_t i) {
  *out = (value_t){.type = type, .i = i};
  return true;
}

static bool float_result(value_t *out, hd_type_t type, double f) {
  double rounded = type.scalar == HD_F32 ? (double)(float)f : f;
  *out = (value_t){.type = type, .f = rounded};
  return true;
}

static int64_t saturate(hd_type_t type, double value) {
  unsigned bits = hd_scalar_bits((hd_scalar_t)type.scalar);
  if (isnan(value))
    return 0;
  double low = hd_type_is_signed(type) ? -ldexp(1, (int)bits - 1) : 0;
  double high = ldexp(1, (int)bits - hd_type_is_signed(type));
  value = trunc(value);
  if (value < low)
    value = low;
  if (value >= high)
    return hd_type_is_signed(type) ? (int64_t)((UINT64_C(1) << (bits - 1)) - 1)
                                   : wrap(type, -1);
  return hd_type_is_signed(type) ? (int64_t)value : (int64_t)(uint64_t)value;
}

static bool fold_cast(value_t *out, hd_type_t to, const value_t *a) {
  bool from_float = hd_type_is_float(a->type);
  if (from_float && !is_folded_float(a->type))
    return false;
  if (hd_type_is_float(to)) {
    if (!is_folded_float(to))
      return false;
    if (from_float)
      return float_result(out, to, a->f);
    // Straight to float: by way of a double it might be rounded twice.
    bool is_unsigned = hd_type_is_unsigned(a->type);
    double value =
        to.scalar == HD_F32
            ? (double)(is_unsigned ? (float)(uint64_t)a->i : (float)a->i)
        : is_unsigned ? (double)(uint64_t)a->i
                      : (double)a->i;
    return float_result(out, to, value);
  }
  if (hd_type_is_bool(to))
    return integer_result(out, to, from_float ? a->f != 0 : a->i != 0);
  return integer_result(out, to,
                        from_float ? saturate(to, a->f) : wrap(to, a->i));
}

static bool fold_node(value_t *out, const hd_expr_t *e,
                      const value_t *operands) {
  hd_expr_form_t form = hd_expr_info((hd_expr_kind_t)e->kind)->form;
  if (e->kind == HD_EXPR_CAST)
    return fold_cast(out, e->type, &operands[0]);
  if (form == HD_FORM_OTHER || form == HD_FORM_LEAF)
    return false;
  const value_t *a = &operands[0];
  const value_t *b = e->num_operands > 1 ? &operands[1] : a;
  int64_t i;
  double f;
  if (!hd_type_is_float(a->type))
    return fold_integers((hd_expr_kind_t)e->kind, a->type, a->i, b->i, &i) &&
           integer_result(out, e->type, wrap(e->type, i));
  if (!is_folded_float(a->type))
    return false;
  if (compare_floats((hd_expr_kind_t)e->kind, a->f, b->f, &i))
    return integer_result(out, e->type, i);
  return fold_floats((hd_expr_kind_t)e->kind, a->f, b->f, &f) &&
         float_result(out, e->type, f);
}

static bool fold_leaf(const hd_expr_t *e, hd_lookup_t lookup, void *argument,
                      value_t *out) {
  if (e->kind != HD_EXPR_CONST)
    e = lookup ? lookup(argument, e) : NULL;
  if (!e)
    return false;
  *out = (value_t){.type = e->type};
  if (hd_type_is_float(e->type))
    out->f = e->u.f;
  else
    out->i = e->u.i;
  return true;
}

// Takes no memory: it is asked of every shape and every bound.
static bool fold(const hd_expr_t *e, hd_lookup_t lookup, void *argument,
                 value_t *out) {
  if (e->kind == HD_EXPR_CONST || e->kind == HD_EXPR_VAR ||
      e->kind == HD_EXPR_BUILTIN)
    return fold_leaf(e, lookup, argument, out);
  if (e->type.lanes != 1 || e->num_operands == 0 || e->num_operands > 3)
    return false;
  value_t operands[3];
  if (!fold(e->operands[0], lookup, argument, &operands[0]))
    return false;
  if (e->kind == HD_EXPR_SELECT)
    return fold(e->operands[operands[0].i ? 1 : 2], lookup, argument, out);
  // The right side counts only where the left one leaves it open.
  bool settles = e->kind == HD_EXPR_AND
                     ? !operands[0].i
                     : e->kind == HD_EXPR_OR && operands[0].i;
  if (settles) {
    *out = operands[0];
    return true;
  }
  for (unsigned i = 1; i < e->num_operands; i++)
    if (!fold(e->operands[i], lookup, argument, &operands[i]))
      return false;
  return fold_node(out, e, operands);
}

const hd_expr_t *hd_expr_fold(hd_arena_t *arena, const hd_expr_t *e,
                              hd_lookup_t lookup, void *argument) {
  value_t value;
  if (e->kind == HD_EXPR_CONST)
    return e;
  if (!fold(e, lookup, argument, &value))
    return NULL;
  return hd_type_is_float(value.type)
             ? hd_expr_float(arena, value.type, value.f)
             : hd_expr_int(arena, value.type, value.i);
}

bool hd_expr_fold_int(const hd_expr_t *e, int64_t *value) {
  value_t result;
  bool ok = fold(e, NULL, NULL, &result) && !hd_type_is_float(result.type);
  if (ok)
    *value = result.i;
  return ok;
}
