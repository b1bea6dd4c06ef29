// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Scalar.h"
#include "Support/Float.h"

#include <assert.h>
#include <math.h>

static_assert(HD_F64 - HD_F4E2M1 == HD_FLOAT_F64 - HD_FLOAT_F4E2M1,
              "the formats stand in the order of Scalars.def");

int64_t hd_int_wrap(hd_scalar_t type, int64_t value) {
  unsigned bits = hd_scalar_bits(type);
  if (type == HD_BOOL)
    return value != 0;
  if (bits >= 64)
    return value;
  uint64_t low = (uint64_t)value & ((UINT64_C(1) << bits) - 1);
  if (hd_scalar_class(type) == HD_CLASS_SIGNED && low >> (bits - 1))
    return (int64_t)(low | ~UINT64_C(0) << bits);
  return (int64_t)low;
}

int64_t hd_int_saturate(hd_scalar_t type, double value) {
  unsigned bits = hd_scalar_bits(type);
  bool is_signed = hd_scalar_class(type) == HD_CLASS_SIGNED;
  if (isnan(value))
    return 0;
  double low = is_signed ? -ldexp(1, (int)bits - 1) : 0;
  double high = ldexp(1, (int)bits - is_signed);
  value = trunc(value);
  if (value < low)
    value = low;
  if (value >= high)
    return is_signed ? (int64_t)((UINT64_C(1) << (bits - 1)) - 1)
                     : hd_int_wrap(type, -1);
  return is_signed ? (int64_t)value : (int64_t)(uint64_t)value;
}

double hd_float_round(hd_scalar_t scalar, double value) {
  if (scalar == HD_F64)
    return value;
  hd_float_format_t format =
      (hd_float_format_t)(scalar - HD_F4E2M1 + HD_FLOAT_F4E2M1);
  double rounded = hd_float_decode(format, hd_float_encode(format, value));
  // Not every format has a NaN; where one has, a NaN keeps its payload.
  return isnan(rounded) && isnan(value) ? value : rounded;
}

static int64_t shift(hd_expr_kind_t op, hd_scalar_t type, int64_t a,
                     int64_t amount) {
  bool over = amount < 0 || amount >= (int64_t)hd_scalar_bits(type);
  if (op == HD_EXPR_SHL)
    return over ? 0 : (int64_t)((uint64_t)a << amount);
  if (hd_scalar_class(type) == HD_CLASS_SIGNED)
    return a >> (over ? 63 : amount);
  return over ? 0 : (int64_t)((uint64_t)a >> amount);
}

static bool divide(hd_expr_kind_t op, hd_scalar_t type, int64_t a, int64_t b,
                   int64_t *out) {
  if (b == 0)
    return false;
  if (hd_scalar_class(type) == HD_CLASS_UNSIGNED) {
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    *out = (int64_t)(op == HD_EXPR_DIV ? x / y : x % y);
  } else if (b == -1) { // The least integer has no negative.
    *out = op == HD_EXPR_DIV ? (int64_t)(0 - (uint64_t)a) : 0;
  } else {
    *out = op == HD_EXPR_DIV ? a / b : a % b;
  }
  return true;
}

static bool operate_on_integers(hd_expr_kind_t op, hd_scalar_t type, int64_t a,
                                int64_t b, int64_t *out) {
  bool is_unsigned = hd_scalar_class(type) == HD_CLASS_UNSIGNED;
  bool less = is_unsigned ? (uint64_t)a < (uint64_t)b : a < b;
  uint64_t x = (uint64_t)a, y = (uint64_t)b;
#define RESULT(value)                                                          \
  *out = (int64_t)(value);                                                     \
  return true
  // clang-format off
  switch (op) {
  case HD_EXPR_ADD: RESULT(x + y);
  case HD_EXPR_SUB: RESULT(x - y);
  case HD_EXPR_MUL: RESULT(x * y);
  case HD_EXPR_DIV:
  case HD_EXPR_MOD: return divide(op, type, a, b, out);
  case HD_EXPR_SHL:
  case HD_EXPR_SHR: RESULT(shift(op, type, a, b));
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

static bool compare_floats(hd_expr_kind_t op, double a, double b,
                           int64_t *out) {
  // clang-format off
  switch (op) {
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

static bool operate_on_floats(hd_expr_kind_t op, double a, double b,
                              double *out) {
  // clang-format off
  switch (op) {
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

bool hd_scalar_operate(hd_expr_kind_t op, hd_scalar_t type, hd_number_t a,
                       hd_number_t b, hd_number_t *out) {
  int64_t i;
  double f;
  if (hd_scalar_class(type) != HD_CLASS_FLOAT) {
    if (!operate_on_integers(op, type, a.i, b.i, &i))
      return false;
    bool compares = hd_expr_info(op)->form == HD_FORM_COMPARE;
    out->i = compares ? i : hd_int_wrap(type, i);
    return true;
  }
  if (compare_floats(op, a.f, b.f, &i)) {
    out->i = i;
    return true;
  }
  if (!operate_on_floats(op, a.f, b.f, &f))
    return false;
  // A double holds more than twice an f32's digits, so that it rounds as an
  // f32 would at once; what is narrower is computed in f32.
  if (type != HD_F64)
    f = (double)(float)f;
  out->f = type == HD_F64 || type == HD_F32 ? f : hd_float_round(type, f);
  return true;
}

// An integer as a double that rounds on as the integer itself would: bits that
// do not fit are gathered into the lowest that does (rounding to odd).
static double odd_double(int64_t value, bool is_unsigned) {
  bool negative = !is_unsigned && value < 0;
  uint64_t magnitude = negative ? 0 - (uint64_t)value : (uint64_t)value;
  if (magnitude >> 53)
    magnitude = (magnitude & ~UINT64_C(0x7ff)) |
                (uint64_t)((magnitude & 0x7ff) != 0) << 11;
  return negative ? -(double)magnitude : (double)magnitude;
}

static double int_to_float(hd_scalar_t to, int64_t value, bool is_unsigned) {
  if (to == HD_F64)
    return is_unsigned ? (double)(uint64_t)value : (double)value;
  if (to == HD_F32)
    return (double)(is_unsigned ? (float)(uint64_t)value : (float)value);
  return hd_float_round(to, odd_double(value, is_unsigned));
}

hd_number_t hd_scalar_convert(hd_scalar_t to, hd_scalar_t from, hd_number_t a) {
  bool from_float = hd_scalar_class(from) == HD_CLASS_FLOAT;
  if (hd_scalar_class(to) == HD_CLASS_FLOAT) {
    if (!from_float)
      return (hd_number_t){
          .f = int_to_float(to, a.i,
                            hd_scalar_class(from) == HD_CLASS_UNSIGNED)};
    return (hd_number_t){.f = to == HD_F64   ? a.f
                              : to == HD_F32 ? (double)(float)a.f
                                             : hd_float_round(to, a.f)};
  }
  if (to == HD_BOOL)
    return (hd_number_t){.i = from_float ? a.f != 0 : a.i != 0};
  return (hd_number_t){.i = from_float ? hd_int_saturate(to, a.f)
                                       : hd_int_wrap(to, a.i)};
}

// f8e4m3 has no number with all bits set: that is NaN.
static double largest_float(hd_scalar_t type) {
  double digits = 2 - ldexp(1, 1 - (int)hd_scalar_digits(type));
  return hd_float_round(type, ldexp(digits, hd_scalar_max_exponent(type)));
}

hd_number_t hd_scalar_limit(hd_limit_t limit, hd_scalar_t type) {
  bool largest = limit == HD_LIMIT_LARGEST;
  if (hd_scalar_class(type) == HD_CLASS_FLOAT)
    return (hd_number_t){.f = largest ? largest_float(type)
                                      : ldexp(1, hd_scalar_min_exponent(type))};
  if (!largest)
    return (hd_number_t){.i = 1};
  bool is_signed = hd_scalar_class(type) == HD_CLASS_SIGNED;
  uint64_t bits = UINT64_MAX >> (64 - hd_scalar_bits(type) + is_signed);
  return (hd_number_t){.i = (int64_t)bits};
}
