// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "IR/Eval.h"
#include "IR/Rewrite.h"
#include "Runtime/Program.h"
#include "UnitTest.h"

enum { NUM_VARS = 4 };

typedef struct fixture {
  hd_arena_t arena;
  hd_env_t env;
  const hd_var_t *vars[NUM_VARS];
  uint64_t random;
} fixture_t;

static uint64_t draw(fixture_t *f, uint64_t below) {
  f->random = f->random * 6364136223846793005u + 1442695040888963407u;
  return (f->random >> 33) % below;
}

// Numbers near the edges, and small ones.
static int64_t draw_value(fixture_t *f, hd_type_t type) {
  static const int64_t values[] = {
      0,  1,  -1,        2,         7,          31,        32,       33,
      63, 64, INT32_MAX, INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN};
  int64_t value = values[draw(f, sizeof(values) / sizeof(values[0]))];
  return type.scalar == HD_I32    ? (int32_t)value
         : type.scalar == HD_U32  ? (int64_t)(uint32_t)value
         : type.scalar == HD_BOOL ? value & 1
                                  : value;
}

static void init(fixture_t *f) {
  static const hd_scalar_t types[NUM_VARS] = {HD_I32, HD_I64, HD_U32, HD_BOOL};
  *f = (fixture_t){.random = 1, .env.sms = 132};
  hd_arena_init(&f->arena, NULL);
  for (int i = 0; i < NUM_VARS; i++) {
    f->vars[i] = hd_var_make(&f->arena, "v", HD_VAR_PARAM, hd_type(types[i]),
                             (hd_loc_t){0});
    hd_env_add(&f->arena, &f->env, f->vars[i],
               (hd_number_t){.i = draw_value(f, f->vars[i]->type)});
  }
}

static const hd_expr_t *generate(fixture_t *f, hd_type_t type, int depth);

static const hd_expr_t *leaf(fixture_t *f, hd_type_t type) {
  for (int i = 0; i < NUM_VARS; i++)
    if (hd_type_equal(f->vars[i]->type, type) && draw(f, 2))
      return hd_expr_var(&f->arena, f->vars[i]);
  return hd_expr_int(&f->arena, type, draw_value(f, type));
}

static const hd_expr_t *generate_bool(fixture_t *f, int depth) {
  static const hd_expr_kind_t kinds[] = {HD_EXPR_LT, HD_EXPR_LE, HD_EXPR_GT,
                                         HD_EXPR_GE, HD_EXPR_EQ, HD_EXPR_NE};
  static const hd_scalar_t types[] = {HD_I32, HD_I64, HD_U32};
  hd_type_t b = hd_type(HD_BOOL), t = hd_type(types[draw(f, 3)]);
  switch (draw(f, 4)) {
  case 0:
    return hd_expr_binary(&f->arena, HD_EXPR_AND, generate(f, b, depth),
                          generate(f, b, depth));
  case 1:
    return hd_expr_binary(&f->arena, HD_EXPR_OR, generate(f, b, depth),
                          generate(f, b, depth));
  case 2:
    return hd_expr_unary(&f->arena, HD_EXPR_NOT, generate(f, b, depth));
  default:
    return hd_expr_binary(&f->arena, kinds[draw(f, 6)], generate(f, t, depth),
                          generate(f, t, depth));
  }
}

static const hd_expr_t *generate(fixture_t *f, hd_type_t type, int depth) {
  static const hd_expr_kind_t kinds[] = {
      HD_EXPR_ADD, HD_EXPR_SUB,    HD_EXPR_MUL,   HD_EXPR_DIV,
      HD_EXPR_MOD, HD_EXPR_SHL,    HD_EXPR_SHR,   HD_EXPR_BITAND,
      HD_EXPR_MIN, HD_EXPR_BITXOR, HD_EXPR_BITOR, HD_EXPR_MAX};
  static const hd_scalar_t types[] = {HD_I32, HD_I64, HD_U32, HD_BOOL};
  if (depth == 0 || draw(f, 8) == 0)
    return leaf(f, type);
  depth--;
  if (type.scalar == HD_BOOL)
    return generate_bool(f, depth);
  switch (draw(f, 8)) {
  case 0:
    return hd_expr_cast(&f->arena, type,
                        generate(f, hd_type(types[draw(f, 4)]), depth));
  case 1:
    return hd_expr_select(&f->arena, generate_bool(f, depth),
                          generate(f, type, depth), generate(f, type, depth));
  case 2:
    return hd_expr_unary(&f->arena, draw(f, 2) ? HD_EXPR_NEG : HD_EXPR_BITNOT,
                         generate(f, type, depth));
  default:
    return hd_expr_binary(&f->arena, kinds[draw(f, 12)],
                          generate(f, type, depth), generate(f, type, depth));
  }
}

// A variable is what it is bound to: as with its value in its place, where
// FoldTest says what the expression is worth.
static void variables_have_their_values(void **state) {
  (void)state;
  fixture_t f;
  init(&f);
  hd_rewriter_t rewriter = {.arena = &f.arena};
  for (int i = 0; i < NUM_VARS; i++)
    hd_rewriter_substitute(&rewriter, f.vars[i],
                           hd_expr_int(&f.arena, f.vars[i]->type,
                                       hd_env_find(&f.env, f.vars[i])->i));
  int evaluated = 0;
  for (int i = 0; i < 20000; i++) {
    hd_type_t type = hd_type(i % 2 ? HD_I64 : HD_I32);
    const hd_expr_t *e = generate(&f, type, 4);
    int64_t value, folded;
    bool known = hd_expr_fold_int(hd_rewrite_expr(&rewriter, e), &folded);
    assert_int_equal(hd_eval_int(&f.env, e, &value), known);
    if (!known)
      continue; // It divides by zero.
    assert_int_equal(value, folded);
    evaluated++;
  }
  assert_in_range(evaluated, 10000, 20000);
  hd_arena_fini(&f.arena);
}

static void names_what_is_not_known(void **state) {
  (void)state;
  fixture_t f;
  init(&f);
  const hd_var_t *n =
      hd_var_make(&f.arena, "n", HD_VAR_PARAM, hd_type(HD_I32), (hd_loc_t){0});
  const hd_expr_t *e =
      hd_expr_binary(&f.arena, HD_EXPR_ADD, hd_expr_var(&f.arena, n),
                     hd_expr_builtin(&f.arena, HD_BUILTIN_DEVICE_SMS));
  int64_t value;
  assert_false(hd_eval_int(&f.env, e, &value));
  hd_env_add(&f.arena, &f.env, n, (hd_number_t){.i = 3});
  assert_true(hd_eval_int(&f.env, e, &value));
  assert_int_equal(value, 135);
  hd_arena_fini(&f.arena);
}

static void floats_are_evaluated(void **state) {
  (void)state;
  fixture_t f;
  init(&f);
  const hd_var_t *alpha = hd_var_make(&f.arena, "alpha", HD_VAR_PARAM,
                                      hd_type(HD_F32), (hd_loc_t){0});
  hd_number_t value;
  hd_env_add(&f.arena, &f.env, alpha, (hd_number_t){.f = 1.5});
  const hd_expr_t *e =
      hd_expr_binary(&f.arena, HD_EXPR_MUL, hd_expr_var(&f.arena, alpha),
                     hd_expr_float(&f.arena, hd_type(HD_F32), 2.0));
  assert_true(hd_eval(&f.env, e, &value));
  assert_true(value.f == 3.0);
  hd_arena_fini(&f.arena);
}

// Which integers a size of a type can be.
static void sizes_fit_their_types(void **state) {
  (void)state;
  static const struct {
    hd_scalar_t type;
    int64_t least, greatest;
  } rows[] = {{HD_I32, INT32_MIN, INT32_MAX}, {HD_U32, 0, UINT32_MAX},
              {HD_I64, INT64_MIN, INT64_MAX}, {HD_I8, -128, 127},
              {HD_U64, 0, INT64_MAX},         {HD_BOOL, 0, 1}};
  hd_context_t context;
  hd_context_init(&context);
  hd_arena_t arena;
  hd_arena_init(&arena, NULL);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    hd_env_t env = {0};
    const hd_var_t *var = hd_var_make(&arena, "n", HD_VAR_PARAM,
                                      hd_type(rows[i].type), (hd_loc_t){0});
    assert_true(hd_bind_int(&context, &env, &arena, var, rows[i].least));
    assert_true(hd_bind_int(&context, &env, &arena, var, rows[i].greatest));
    assert_int_equal(context.diags.num_errors, 0);
    if (rows[i].least > INT64_MIN)
      assert_false(hd_bind_int(&context, &env, &arena, var, rows[i].least - 1));
    if (rows[i].greatest < INT64_MAX)
      assert_false(
          hd_bind_int(&context, &env, &arena, var, rows[i].greatest + 1));
    hd_diagnostics_clear(&context.diags);
  }
  hd_arena_fini(&arena);
  hd_context_fini(&context);
}

HD_UNIT_TESTS(cmocka_unit_test(variables_have_their_values),
              cmocka_unit_test(names_what_is_not_known),
              cmocka_unit_test(floats_are_evaluated),
              cmocka_unit_test(sizes_fit_their_types))
