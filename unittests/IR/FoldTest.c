// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Folding against an evaluation of its own: integers in 128 bits, reduced to
// their width after each step; floats by the compiler that builds the test.
#include "IR/Generator.h"
#include "UnitTest.h"

#include <math.h>

typedef __int128 wide_t;

static unsigned bits_of(hd_type_t type) {
  return hd_scalar_bits((hd_scalar_t)type.scalar);
}

// A value modulo 2^bits, in the type's range.
static wide_t reduce(hd_type_t type, wide_t value) {
  if (hd_type_is_bool(type))
    return value != 0;
  wide_t modulus = (wide_t)1 << bits_of(type);
  value %= modulus;
  if (value < 0)
    value += modulus;
  if (hd_type_is_signed(type) && value >= modulus / 2)
    value -= modulus;
  return value;
}

static bool divide(hd_expr_kind_t kind, wide_t a, wide_t b, wide_t *result) {
  if (b == 0)
    return false;
  wide_t quotient = (a < 0 ? -a : a) / (b < 0 ? -b : b);
  if ((a < 0) != (b < 0))
    quotient = -quotient;
  *result = kind == HD_EXPR_DIV ? quotient : a - quotient * b;
  return true;
}

static wide_t shift(hd_expr_kind_t kind, hd_type_t type, wide_t a, wide_t n) {
  bool over = n < 0 || n >= (wide_t)bits_of(type);
  if (kind == HD_EXPR_SHL)
    return over ? 0 : a * ((wide_t)1 << n);
  if (over)
    return a < 0 ? -1 : 0;
  wide_t power = (wide_t)1 << n; // Rounded down, as arithmetic shifts are.
  return a >= 0 ? a / power : -((-a + power - 1) / power);
}

static bool evaluate(const hd_expr_t *e, wide_t *result);

static bool evaluate_binary(const hd_expr_t *e, wide_t a, wide_t b,
                            wide_t *result) {
  hd_expr_kind_t kind = (hd_expr_kind_t)e->kind;
  hd_type_t type = e->operands[0]->type;
  // clang-format off
  switch (kind) {
  case HD_EXPR_ADD: *result = a + b; break;
  case HD_EXPR_SUB: *result = a - b; break;
  case HD_EXPR_MUL:
    // Reduced first, for two values of 64 bits do not multiply in 128 signed.
    *result = (wide_t)((unsigned __int128)a * (unsigned __int128)b);
    break;
  case HD_EXPR_DIV:
  case HD_EXPR_MOD: return divide(kind, a, b, result);
  case HD_EXPR_SHL:
  case HD_EXPR_SHR: *result = shift(kind, type, a, b); break;
  case HD_EXPR_BITAND: *result = a & b; break;
  case HD_EXPR_BITOR: *result = a | b; break;
  case HD_EXPR_BITXOR: *result = a ^ b; break;
  case HD_EXPR_MIN: *result = a < b ? a : b; break;
  case HD_EXPR_MAX: *result = a < b ? b : a; break;
  case HD_EXPR_LT: *result = a < b; break;
  case HD_EXPR_LE: *result = a <= b; break;
  case HD_EXPR_GT: *result = a > b; break;
  case HD_EXPR_GE: *result = a >= b; break;
  case HD_EXPR_EQ: *result = a == b; break;
  case HD_EXPR_NE: *result = a != b; break;
  default: return false;
  }
  // clang-format on
  return true;
}

static bool evaluate(const hd_expr_t *e, wide_t *result) {
  wide_t v[2];
  if (e->kind == HD_EXPR_CONST) {
    *result = hd_type_is_unsigned(e->type) ? (wide_t)(uint64_t)e->u.i
                                           : (wide_t)e->u.i;
    return !hd_type_is_float(e->type);
  }
  if (e->kind != HD_EXPR_CAST && (e->num_operands == 0 || e->num_operands > 3))
    return false;
  if (hd_type_is_float(e->operands[0]->type) || e->type.lanes > 1 ||
      e->operands[0]->type.lanes > 1 || !evaluate(e->operands[0], &v[0]))
    return false;
  hd_expr_kind_t kind = (hd_expr_kind_t)e->kind;
  if (kind == HD_EXPR_SELECT)
    return evaluate(e->operands[v[0] ? 1 : 2], result);
  if (kind == HD_EXPR_AND || kind == HD_EXPR_OR) {
    *result = v[0];
    return v[0] == (kind == HD_EXPR_OR) || evaluate(e->operands[1], result);
  }
  bool ok = true;
  if (e->num_operands == 2)
    ok = evaluate(e->operands[1], &v[1]) &&
         evaluate_binary(e, v[0], v[1], result);
  else if (kind == HD_EXPR_NEG)
    *result = -v[0];
  else if (kind == HD_EXPR_BITNOT)
    *result = -v[0] - 1;
  else if (kind == HD_EXPR_NOT)
    *result = !v[0];
  else if (kind == HD_EXPR_CAST)
    *result = v[0];
  else
    return false;
  if (ok)
    *result = reduce(e->type, *result);
  return ok;
}

static hd_generator_t generator(hd_context_t *context, hd_func_t *plan,
                                hd_generated_t *counts) {
  hd_module_t *module = hd_module_create(context);
  *plan = (hd_func_t){.kind = HD_FUNC_PLAN};
  return (hd_generator_t){.arena = &module->arena,
                          .module = module,
                          .counts = counts,
                          .func = plan,
                          .state = 1};
}

static void integers_fold_as_in_wide_arithmetic(void **state) {
  (void)state;
  hd_context_t context;
  hd_func_t plan;
  static hd_generated_t counts;
  hd_context_init(&context);
  hd_generator_t g = generator(&context, &plan, &counts);
  unsigned folded = 0, by_type[HD_SCALAR_COUNT] = {0};
  for (int i = 0; i < 200000; i++) {
    hd_type_t type = hd_type_lane(hd_random_type(&g));
    if (hd_type_is_float(type))
      continue;
    const hd_expr_t *e = hd_generate_expr(&g, type, 4);
    wide_t expected;
    int64_t value;
    bool ours = hd_expr_fold_int(e, &value);
    if (!evaluate(e, &expected))
      continue; // A float or a vector is inside, or a division by zero.
    assert_true(ours);
    assert_true(value == (int64_t)expected);
    folded++;
    by_type[type.scalar]++;
  }
  assert_true(folded > 20000);
  for (int i = HD_BOOL; i <= HD_U64; i++)
    assert_true(by_type[i] > 0);
  hd_context_fini(&context);
}

static void division_by_zero_is_not_folded(void **state) {
  (void)state;
  hd_context_t context;
  hd_context_init(&context);
  hd_arena_t *a = &hd_module_create(&context)->arena;
  const hd_expr_t *one = hd_expr_i32(a, 1), *zero = hd_expr_i32(a, 0);
  const hd_expr_t *bad = hd_expr_binary(a, HD_EXPR_DIV, one, zero);
  const hd_expr_t *is_bad = hd_expr_binary(a, HD_EXPR_EQ, bad, one);
  int64_t value;
  assert_false(hd_expr_fold_int(bad, &value));
  assert_false(
      hd_expr_fold_int(hd_expr_binary(a, HD_EXPR_MOD, one, zero), &value));
  // What is not evaluated divides nothing.
  const hd_expr_t *no = hd_expr_bool(a, false), *yes = hd_expr_bool(a, true);
  assert_true(
      hd_expr_fold_int(hd_expr_binary(a, HD_EXPR_AND, no, is_bad), &value));
  assert_int_equal(value, 0);
  assert_true(
      hd_expr_fold_int(hd_expr_binary(a, HD_EXPR_OR, yes, is_bad), &value));
  assert_int_equal(value, 1);
  assert_true(hd_expr_fold_int(hd_expr_select(a, no, bad, one), &value));
  assert_false(
      hd_expr_fold_int(hd_expr_binary(a, HD_EXPR_AND, yes, is_bad), &value));
  hd_context_fini(&context);
}

static double fold2(hd_arena_t *a, hd_expr_kind_t kind, hd_type_t type,
                    double x, double y) {
  const hd_expr_t *e =
      hd_expr_fold(a, hd_expr_binary(a, kind, hd_expr_float(a, type, x),
                                     hd_expr_float(a, type, y)));
  assert_non_null(e);
  return e->u.f;
}

static void same(double a, double b) {
  assert_true((isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b)));
}

static void floats_fold_as_the_compiler_computes(void **state) {
  (void)state;
  hd_context_t context;
  hd_func_t plan;
  static hd_generated_t counts;
  hd_context_init(&context);
  hd_generator_t g = generator(&context, &plan, &counts);
  for (int i = 0; i < 100000; i++) {
    union {
      uint64_t bits;
      double d;
      float f[2];
    } x = {hd_random(&g)}, y = {hd_random(&g)};
    if (i % 3 == 0)
      y.bits = x.bits ^ (hd_random(&g) & 3); // Near each other: cancellation.
    volatile float a = x.f[0], b = y.f[0];
    volatile double c = x.d, d = y.d;
    hd_type_t f32 = hd_type(HD_F32), f64 = hd_type(HD_F64);
    same(fold2(g.arena, HD_EXPR_ADD, f32, a, b), (float)(a + b));
    same(fold2(g.arena, HD_EXPR_SUB, f32, a, b), (float)(a - b));
    same(fold2(g.arena, HD_EXPR_MUL, f32, a, b), (float)(a * b));
    same(fold2(g.arena, HD_EXPR_DIV, f32, a, b), (float)(a / b));
    same(fold2(g.arena, HD_EXPR_ADD, f64, c, d), c + d);
    same(fold2(g.arena, HD_EXPR_MUL, f64, c, d), c * d);
    same(fold2(g.arena, HD_EXPR_DIV, f64, c, d), c / d);
  }
  hd_type_t f32 = hd_type(HD_F32);
  same(fold2(g.arena, HD_EXPR_MIN, f32, NAN, 1), 1);
  same(fold2(g.arena, HD_EXPR_MAX, f32, 1, NAN), 1);
  same(fold2(g.arena, HD_EXPR_MIN, f32, 0.0, -0.0), -0.0);
  same(fold2(g.arena, HD_EXPR_MIN, f32, -0.0, 0.0), -0.0);
  same(fold2(g.arena, HD_EXPR_MAX, f32, -0.0, 0.0), 0.0);
  same(fold2(g.arena, HD_EXPR_MAX, f32, 0.0, -0.0), 0.0);
  same(fold2(g.arena, HD_EXPR_MAX, f32, -2, -3), -2);
  hd_context_fini(&context);
}

static int64_t cast_to(hd_arena_t *a, hd_scalar_t to, double value) {
  int64_t result;
  assert_true(hd_expr_fold_int(
      hd_expr_cast(a, hd_type(to), hd_expr_float(a, hd_type(HD_F64), value)),
      &result));
  return result;
}

// The rule of docs/IR.md: truncation, saturation, NaN gives 0.
static void floats_convert_to_integers_with_saturation(void **state) {
  (void)state;
  hd_context_t context;
  hd_context_init(&context);
  hd_arena_t *a = &hd_module_create(&context)->arena;
  assert_int_equal(cast_to(a, HD_I32, -2.9), -2);
  assert_int_equal(cast_to(a, HD_I32, 2.9), 2);
  assert_int_equal(cast_to(a, HD_I32, 1e10), INT32_MAX);
  assert_int_equal(cast_to(a, HD_I32, -INFINITY), INT32_MIN);
  assert_int_equal(cast_to(a, HD_I64, 9.3e18), INT64_MAX);
  assert_int_equal(cast_to(a, HD_U8, 300), 255);
  assert_int_equal(cast_to(a, HD_U8, -1), 0);
  assert_int_equal(cast_to(a, HD_U64, 1e30), -1);
  assert_int_equal(cast_to(a, HD_U64, 9223372036854775808.0), INT64_MIN);
  assert_int_equal(cast_to(a, HD_I4, 9), 7);
  assert_int_equal(cast_to(a, HD_I2, -9), -2);
  assert_int_equal(cast_to(a, HD_I32, NAN), 0);
  // Straight from integer to f32: one rounding.
  const hd_expr_t *big =
      hd_expr_int(a, hd_type(HD_I64), (INT64_C(1) << 60) + (1 << 29) + 1);
  const hd_expr_t *e = hd_expr_fold(a, hd_expr_cast(a, hd_type(HD_F32), big));
  same(e->u.f, (float)((INT64_C(1) << 60) + (1 << 29) + 1));
  hd_context_fini(&context);
}

static bool is_seven(void *argument, const hd_expr_t *leaf,
                     hd_number_t *value) {
  (void)argument;
  value->i = 7;
  return leaf->kind == HD_EXPR_VAR;
}

static void leaves_are_looked_up(void **state) {
  (void)state;
  hd_context_t context;
  hd_context_init(&context);
  hd_arena_t *a = &hd_module_create(&context)->arena;
  const hd_var_t *n =
      hd_var_make(a, "n", HD_VAR_PARAM, hd_type(HD_I32), (hd_loc_t){0});
  const hd_expr_t *e =
      hd_expr_binary(a, HD_EXPR_MUL, hd_expr_var(a, n), hd_expr_i32(a, 6));
  const hd_fold_t fold = {.leaf = is_seven};
  hd_number_t value;
  assert_true(hd_expr_value(&fold, e, &value));
  assert_int_equal(value.i, 42);
  assert_null(hd_expr_fold(a, e));
  const hd_expr_t *sum =
      hd_expr_binary(a, HD_EXPR_ADD, e, hd_expr_builtin(a, HD_BUILTIN_THREAD));
  assert_false(hd_expr_value(&fold, sum, &value));
  hd_context_fini(&context);
}

HD_UNIT_TESTS(cmocka_unit_test(integers_fold_as_in_wide_arithmetic),
              cmocka_unit_test(division_by_zero_is_not_folded),
              cmocka_unit_test(floats_fold_as_the_compiler_computes),
              cmocka_unit_test(floats_convert_to_integers_with_saturation),
              cmocka_unit_test(leaves_are_looked_up))
