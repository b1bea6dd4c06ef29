// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic on strips, lane by lane: the same numbers as IR/Scalar.h, by loops
// that a compiler can make vectors of.
#include "Graph/Reference/ReferenceState.h"

#include "Support/Float.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") // gcc makes no vectors of such loops below.
#endif

static hd_float_format_t format_of(hd_scalar_t type) {
  return (hd_float_format_t)(type - HD_F4E2M1);
}
static_assert(HD_F64 - HD_F4E2M1 == HD_FLOAT_F64, "formats are in order");

static double round_to(hd_scalar_t type, double value) {
  hd_float_format_t format = format_of(type);
  return hd_float_decode(format, hd_float_encode(format, value));
}

void hd_ref_round(hd_scalar_t type, int count, float *values) {
  if (type == HD_F32)
    return;
  if (type == HD_F16) {
    for (int i = 0; i < count; i++)
      values[i] = hd_f16_to_f32(hd_f16_from_f32(values[i]));
  } else if (type == HD_BF16) {
    for (int i = 0; i < count; i++)
      values[i] = hd_bf16_to_f32(hd_bf16_from_f32(values[i]));
  } else {
    for (int i = 0; i < count; i++)
      values[i] = (float)round_to(type, (double)values[i]);
  }
}

static void wrap(hd_scalar_t type, int count, int64_t *values) {
  unsigned shift = 64 - hd_scalar_bits(type);
  if (type == HD_BOOL) {
    for (int i = 0; i < count; i++)
      values[i] = values[i] != 0;
  } else if (shift && hd_scalar_class(type) == HD_CLASS_SIGNED) {
    for (int i = 0; i < count; i++)
      values[i] = (int64_t)((uint64_t)values[i] << shift) >> shift;
  } else if (shift) {
    for (int i = 0; i < count; i++)
      values[i] = (int64_t)((uint64_t)values[i] << shift >> shift);
  }
}

void hd_ref_fill(hd_ref_form_t form, int count, hd_ref_lanes_t out,
                 hd_ref_lanes_t value) {
  if (form == HD_REF_FLOAT) {
    float x = value.f[0];
    for (int i = 0; i < count; i++)
      out.f[i] = x;
  } else {
    int64_t x = value.i[0]; // A double's bits do as well.
    for (int i = 0; i < count; i++)
      out.i[i] = x;
  }
}

void hd_ref_set(hd_ref_form_t form, hd_ref_lanes_t out, hd_number_t number) {
  if (form == HD_REF_FLOAT)
    out.f[0] = (float)number.f;
  else if (form == HD_REF_DOUBLE)
    out.d[0] = number.f;
  else
    out.i[0] = number.i;
}

// One loop for each way in which the operands vary, so that each is simple.
#define EACH(T, R, a_, b_, out_, expression)                                   \
  do {                                                                         \
    const T *a = (a_), *b = (b_);                                              \
    R *out = (out_);                                                           \
    if (a_varies && b_varies) {                                                \
      for (int i = 0; i < count; i++) {                                        \
        T x = a[i], y = b[i];                                                  \
        (void)y;                                                               \
        out[i] = (R)(expression);                                              \
      }                                                                        \
    } else if (a_varies) {                                                     \
      T y = b[0];                                                              \
      (void)y;                                                                 \
      for (int i = 0; i < count; i++) {                                        \
        T x = a[i];                                                            \
        out[i] = (R)(expression);                                              \
      }                                                                        \
    } else {                                                                   \
      T x = a[0];                                                              \
      for (int i = 0; i < count; i++) {                                        \
        T y = b[b_varies ? i : 0];                                             \
        (void)y;                                                               \
        out[i] = (R)(expression);                                              \
      }                                                                        \
    }                                                                          \
  } while (0)

// min and max give the number where one is NaN.
#define FLOAT_CASES(T, member)                                                 \
  case HD_EXPR_ADD:                                                            \
    EACH(T, T, p.member, q.member, o.member, x + y);                           \
    return true;                                                               \
  case HD_EXPR_SUB:                                                            \
    EACH(T, T, p.member, q.member, o.member, x - y);                           \
    return true;                                                               \
  case HD_EXPR_MUL:                                                            \
    EACH(T, T, p.member, q.member, o.member, x *y);                            \
    return true;                                                               \
  case HD_EXPR_DIV:                                                            \
    EACH(T, T, p.member, q.member, o.member, x / y);                           \
    return true;                                                               \
  case HD_EXPR_MIN:                                                            \
    EACH(T, T, p.member, q.member, o.member, x < y || y != y ? x : y);         \
    return true;                                                               \
  case HD_EXPR_MAX:                                                            \
    EACH(T, T, p.member, q.member, o.member, x > y || y != y ? x : y);         \
    return true;                                                               \
  case HD_EXPR_NEG:                                                            \
    EACH(T, T, p.member, q.member, o.member, -x);                              \
    return true;                                                               \
  case HD_EXPR_LT:                                                             \
    EACH(T, int64_t, p.member, q.member, o.i, x < y);                          \
    return true;                                                               \
  case HD_EXPR_LE:                                                             \
    EACH(T, int64_t, p.member, q.member, o.i, x <= y);                         \
    return true;                                                               \
  case HD_EXPR_GT:                                                             \
    EACH(T, int64_t, p.member, q.member, o.i, x > y);                          \
    return true;                                                               \
  case HD_EXPR_GE:                                                             \
    EACH(T, int64_t, p.member, q.member, o.i, x >= y);                         \
    return true;                                                               \
  case HD_EXPR_EQ:                                                             \
    EACH(T, int64_t, p.member, q.member, o.i, x == y);                         \
    return true;                                                               \
  case HD_EXPR_NE:                                                             \
    EACH(T, int64_t, p.member, q.member, o.i, x != y);                         \
    return true;

static bool operate_on_floats(hd_expr_kind_t op, int count, hd_ref_lanes_t o,
                              hd_ref_lanes_t p, bool a_varies, hd_ref_lanes_t q,
                              bool b_varies) {
  switch (op) {
    FLOAT_CASES(float, f)
  default:
    return false; // The verifier lets no other through.
  }
}

static bool operate_on_doubles(hd_expr_kind_t op, int count, hd_ref_lanes_t o,
                               hd_ref_lanes_t p, bool a_varies,
                               hd_ref_lanes_t q, bool b_varies) {
  switch (op) {
    FLOAT_CASES(double, d)
  default:
    return false;
  }
}

// The operators that are the same for signed and unsigned integers, before they
// are wrapped, and the comparisons of signed ones.
static bool operate_on_words(hd_expr_kind_t op, bool is_unsigned, int count,
                             hd_ref_lanes_t o, hd_ref_lanes_t p, bool a_varies,
                             hd_ref_lanes_t q, bool b_varies) {
#define WORDS(expression)                                                      \
  EACH(uint64_t, uint64_t, (const uint64_t *)p.any, (const uint64_t *)q.any,   \
       (uint64_t *)o.any, expression);                                         \
  return true
#define SIGNED(expression)                                                     \
  if (is_unsigned)                                                             \
    return false;                                                              \
  EACH(int64_t, int64_t, p.i, q.i, o.i, expression);                           \
  return true
  // clang-format off
  switch (op) {
  case HD_EXPR_ADD: WORDS(x + y);
  case HD_EXPR_SUB: WORDS(x - y);
  case HD_EXPR_MUL: WORDS(x * y);
  case HD_EXPR_BITAND: WORDS(x & y);
  case HD_EXPR_BITOR: WORDS(x | y);
  case HD_EXPR_BITXOR: WORDS(x ^ y);
  case HD_EXPR_BITNOT: WORDS(~x);
  case HD_EXPR_NEG: WORDS(0 - x);
  case HD_EXPR_NOT: WORDS(!x);
  case HD_EXPR_EQ: WORDS(x == y);
  case HD_EXPR_NE: WORDS(x != y);
  case HD_EXPR_AND: WORDS(x && y);
  case HD_EXPR_OR: WORDS(x || y);
  case HD_EXPR_LT: SIGNED(x < y);
  case HD_EXPR_LE: SIGNED(x <= y);
  case HD_EXPR_GT: SIGNED(x > y);
  case HD_EXPR_GE: SIGNED(x >= y);
  case HD_EXPR_MIN: SIGNED(x < y ? x : y);
  case HD_EXPR_MAX: SIGNED(x < y ? y : x);
  default: return false;
  }
  // clang-format on
#undef WORDS
#undef SIGNED
}

static bool is_comparison(hd_expr_kind_t op) {
  return hd_expr_info(op)->form == HD_FORM_COMPARE;
}

// Divisions, shifts, and what compares unsigned integers.
static void operate_singly(hd_expr_kind_t op, hd_scalar_t type, int count,
                           hd_ref_lanes_t out, hd_ref_lanes_t a, bool a_varies,
                           hd_ref_lanes_t b, bool b_varies) {
  bool is_signed = hd_scalar_class(type) == HD_CLASS_SIGNED;
  for (int i = 0; i < count; i++) {
    int64_t x = a.i[a_varies ? i : 0], y = b.i[b_varies ? i : 0];
    hd_number_t result = {0}; // What a division by zero gives.
    if (is_signed && op == HD_EXPR_DIV && y > 0)
      result.i = x / y;
    else if (is_signed && op == HD_EXPR_MOD && y > 0)
      result.i = x % y;
    else
      hd_scalar_operate(op, type, (hd_number_t){.i = x}, (hd_number_t){.i = y},
                        &result);
    out.i[i] = result.i;
  }
}

void hd_ref_operate(hd_expr_kind_t op, hd_scalar_t result, hd_scalar_t type,
                    int count, hd_ref_lanes_t out, hd_ref_lanes_t a,
                    bool a_varies, hd_ref_lanes_t b, bool b_varies) {
  bool done = true;
  switch (hd_ref_form(type)) {
  case HD_REF_FLOAT:
    done = operate_on_floats(op, count, out, a, a_varies, b, b_varies);
    if (!is_comparison(op))
      hd_ref_round(result, count, out.f);
    break;
  case HD_REF_DOUBLE:
    done = operate_on_doubles(op, count, out, a, a_varies, b, b_varies);
    break;
  case HD_REF_INT: {
    bool is_unsigned = hd_scalar_class(type) == HD_CLASS_UNSIGNED;
    if (!operate_on_words(op, is_unsigned, count, out, a, a_varies, b,
                          b_varies))
      operate_singly(op, type, count, out, a, a_varies, b, b_varies);
    else if (!is_comparison(op))
      wrap(result, count, out.i);
    break;
  }
  }
  assert(done && "an operator that the type has not");
  (void)done;
}

// --- Functions ---

static double call(hd_task_function_t function, double x, double y, double z) {
  // clang-format off
  switch (function) {
  case HD_TASK_ABS: return fabs(x);
  case HD_TASK_ACOS: return acos(x);
  case HD_TASK_ACOSH: return acosh(x);
  case HD_TASK_ASIN: return asin(x);
  case HD_TASK_ASINH: return asinh(x);
  case HD_TASK_ATAN: return atan(x);
  case HD_TASK_ATAN2: return atan2(x, y);
  case HD_TASK_ATANH: return atanh(x);
  case HD_TASK_CEIL: return ceil(x);
  case HD_TASK_COS: return cos(x);
  case HD_TASK_COSH: return cosh(x);
  case HD_TASK_ERF: return erf(x);
  case HD_TASK_EXP: return exp(x);
  case HD_TASK_EXPM1: return expm1(x);
  case HD_TASK_FLOOR: return floor(x);
  case HD_TASK_FMA: return fma(x, y, z);
  case HD_TASK_FMOD: return fmod(x, y);
  case HD_TASK_LOG: return log(x);
  case HD_TASK_LOG1P: return log1p(x);
  case HD_TASK_POW: return pow(x, y);
  case HD_TASK_ROUND_EVEN: return roundeven(x);
  case HD_TASK_RSQRT: return 1 / sqrt(x);
  case HD_TASK_SIN: return sin(x);
  case HD_TASK_SINH: return sinh(x);
  case HD_TASK_SQRT: return sqrt(x);
  case HD_TASK_TAN: return tan(x);
  case HD_TASK_TANH: return tanh(x);
  case HD_TASK_TRUNC: return trunc(x);
  case HD_TASK_FUNCTION_COUNT: break;
  }
  // clang-format on
  return 0;
}

static double number_at(hd_ref_form_t form, hd_ref_lanes_t lanes, int i) {
  return form == HD_REF_FLOAT ? (double)lanes.f[i] : lanes.d[i];
}

void hd_ref_call(hd_task_function_t function, hd_scalar_t type, int count,
                 hd_ref_lanes_t out, const hd_ref_lanes_t *args,
                 const bool *varies) {
  hd_ref_form_t form = hd_ref_form(type);
  unsigned arity = hd_task_function_info(function)->arity;
  for (int i = 0; i < count; i++) {
    double x[3] = {0};
    for (unsigned n = 0; n < arity; n++)
      x[n] = number_at(form, args[n], varies[n] ? i : 0);
    if (form == HD_REF_DOUBLE)
      out.d[i] = call(function, x[0], x[1], x[2]);
    else if (function == HD_TASK_FMA) // Once: a double would round twice.
      out.f[i] = fmaf((float)x[0], (float)x[1], (float)x[2]);
    else
      out.f[i] = (float)call(function, x[0], x[1], x[2]);
  }
  if (form == HD_REF_FLOAT)
    hd_ref_round(type, count, out.f);
}

// --- Conversions ---

static void convert_to_int(hd_scalar_t to, hd_scalar_t from, int count,
                           hd_ref_lanes_t out, hd_ref_lanes_t a) {
  hd_ref_form_t form = hd_ref_form(from);
  if (form == HD_REF_INT) {
    memmove(out.i, a.i, (size_t)count * sizeof(int64_t));
    wrap(to, count, out.i);
    return;
  }
  bool small = hd_scalar_class(to) == HD_CLASS_SIGNED || to != HD_U64;
  double least = (double)hd_int_saturate(to, -INFINITY);
  double most = (double)(hd_scalar_bits(to) < 64 ? hd_int_saturate(to, INFINITY)
                                                 : INT64_MAX);
  for (int i = 0; i < count; i++) {
    double x = number_at(form, a, i);
    if (to == HD_BOOL)
      out.i[i] = x != 0;
    else if (small && x >= least && x < most) // Towards zero.
      out.i[i] = (int64_t)x;
    else
      out.i[i] = hd_int_saturate(to, x);
  }
}

static void convert_from_int(hd_scalar_t to, hd_scalar_t from, int count,
                             hd_ref_lanes_t out, hd_ref_lanes_t a) {
  if (to == HD_F32 && from != HD_U64) {
    for (int i = 0; i < count; i++)
      out.f[i] = (float)a.i[i];
    return;
  }
  for (int i = 0; i < count; i++) {
    hd_number_t number =
        hd_scalar_convert(to, from, (hd_number_t){.i = a.i[i]});
    hd_ref_set(hd_ref_form(to), hd_ref_lane(out, hd_ref_form(to), (size_t)i),
               number);
  }
}

void hd_ref_convert(hd_scalar_t to, hd_scalar_t from, int count,
                    hd_ref_lanes_t out, hd_ref_lanes_t a) {
  hd_ref_form_t form = hd_ref_form(from);
  if (hd_ref_form(to) == HD_REF_INT) {
    convert_to_int(to, from, count, out, a);
  } else if (form == HD_REF_INT) {
    convert_from_int(to, from, count, out, a);
  } else if (to == HD_F64) {
    for (int i = 0; i < count; i++)
      out.d[i] = number_at(form, a, i);
  } else if (form == HD_REF_FLOAT) {
    memmove(out.f, a.f, (size_t)count * sizeof(float));
    hd_ref_round(to, count, out.f);
  } else if (to == HD_F32) {
    for (int i = 0; i < count; i++)
      out.f[i] = (float)a.d[i];
  } else { // By way of an f32 it would be rounded twice.
    for (int i = 0; i < count; i++)
      out.f[i] = (float)round_to(to, a.d[i]);
  }
}

// A value by way of memory, where it has the bits of its type.
void hd_ref_bitcast(hd_scalar_t to, hd_scalar_t from, int count,
                    hd_ref_lanes_t out, hd_ref_lanes_t a) {
  uint64_t bits;
  hd_host_tensor_t cell = {.data = (unsigned char *)&bits, .count = 1};
  for (int i = 0; i < count; i++) {
    bits = 0;
    cell.type = from;
    if (from == HD_F32) // NaN keeps its payload.
      memcpy(&bits, &a.f[i], sizeof a.f[i]);
    else if (hd_ref_form(from) == HD_REF_INT)
      hd_host_tensor_set_int(&cell, 0, a.i[i]);
    else
      hd_host_tensor_set(&cell, 0, number_at(hd_ref_form(from), a, i));
    cell.type = to;
    if (to == HD_F32)
      memcpy(&out.f[i], &bits, sizeof out.f[i]);
    else if (hd_ref_form(to) == HD_REF_INT)
      out.i[i] = hd_host_tensor_get_int(&cell, 0);
    else if (hd_ref_form(to) == HD_REF_DOUBLE)
      out.d[i] = hd_host_tensor_get(&cell, 0);
    else
      out.f[i] = (float)hd_host_tensor_get(&cell, 0);
  }
}
