// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types; equality, hash and size of expressions.
#include "IR/Generator.h"
#include "UnitTest.h"

#include <math.h>
#include <string.h>

static void type_names_read_back(void **state) {
  (void)state;
  for (int scalar = 0; scalar < HD_SCALAR_COUNT; scalar++)
    for (unsigned lanes = 1; lanes <= HD_MAX_LANES; lanes++) {
      hd_type_t type = hd_type_vector((hd_scalar_t)scalar, lanes), back;
      hd_scalar_class_t class = hd_scalar_class((hd_scalar_t)scalar);
      bool is_value = class != HD_CLASS_VOID && class != HD_CLASS_OPAQUE;
      bool ok = hd_type_parse(hd_type_name(type), &back);
      assert_int_equal(ok, lanes == 1 || is_value);
      if (ok)
        assert_true(hd_type_equal(type, back));
      assert_int_equal(hd_type_bits(type),
                       hd_scalar_bits((hd_scalar_t)scalar) * lanes);
    }
  static const char *const wrong[] = {
      "",       "f",      "f33", "f32x", "f32x0",  "f32x1", "f32x33",
      "f32x04", "f32x4 ", "x4",  "F32",  "f32x-2", "f8",    "f16x2x2"};
  hd_type_t type;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    assert_false(hd_type_parse(wrong[i], &type));
}

typedef struct fixture {
  hd_context_t context;
  hd_module_t *module;
  hd_func_t func;
  hd_generated_t counts;
} fixture_t;

static hd_generator_t start(fixture_t *f, uint64_t seed) {
  return (hd_generator_t){.arena = &f->module->arena,
                          .module = f->module,
                          .counts = &f->counts,
                          .func = &f->func,
                          .state = seed};
}

static void init(fixture_t *f) {
  memset(f, 0, sizeof *f);
  hd_context_init(&f->context);
  f->module = hd_module_create(&f->context);
}

// The same seed gives the same tree, in other nodes.
static void equal_trees_are_equal_and_hash_so(void **state) {
  (void)state;
  fixture_t f;
  init(&f);
  unsigned different = 0;
  for (uint64_t seed = 0; seed < 3000; seed++) {
    hd_generator_t g = start(&f, seed), h = start(&f, seed),
                   other = start(&f, seed + 100000);
    hd_type_t type = hd_random_type(&g);
    assert_true(hd_type_equal(type, hd_random_type(&h)));
    const hd_expr_t *a = hd_generate_expr(&g, type, 5);
    const hd_expr_t *b = hd_generate_expr(&h, type, 5);
    const hd_expr_t *c = hd_generate_expr(&other, type, 5);
    assert_ptr_not_equal(a, b);
    assert_true(hd_expr_equal(a, b));
    assert_true(hd_expr_hash(a) == hd_expr_hash(b));
    if (!hd_expr_equal(a, c)) {
      different++;
      assert_true(hd_expr_hash(a) != hd_expr_hash(c));
    }
  }
  assert_true(different > 2000);
  hd_context_fini(&f.context);
}

static void payloads_tell_trees_apart(void **state) {
  (void)state;
  fixture_t f;
  init(&f);
  hd_arena_t *a = &f.module->arena;
  hd_type_t f32 = hd_type(HD_F32);
  hd_loc_t nowhere = {0};
  const hd_var_t *x = hd_var_make(a, "x", HD_VAR_LET, f32, nowhere);
  const hd_var_t *y = hd_var_make(a, "x", HD_VAR_LET, f32, nowhere);
  const hd_expr_t *vx = hd_expr_var(a, x), *vy = hd_expr_var(a, y);
  const hd_expr_t *trees[] = {hd_expr_float(a, f32, 0.0),
                              hd_expr_float(a, f32, -0.0),
                              hd_expr_float(a, hd_type(HD_F64), 0.0),
                              hd_expr_float(a, f32, NAN),
                              hd_expr_i32(a, 0),
                              hd_expr_bool(a, false),
                              vx,
                              vy,
                              hd_expr_binary(a, HD_EXPR_SUB, vx, vy),
                              hd_expr_binary(a, HD_EXPR_SUB, vy, vx),
                              hd_expr_binary(a, HD_EXPR_ADD, vx, vy),
                              hd_expr_binary(a, HD_EXPR_LT, vx, vy),
                              hd_expr_builtin(a, HD_BUILTIN_THREAD),
                              hd_expr_builtin(a, HD_BUILTIN_BLOCK),
                              hd_expr_unary(a, HD_EXPR_NEG, vx)};
  enum { N = sizeof trees / sizeof trees[0] };
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      assert_int_equal(hd_expr_equal(trees[i], trees[j]), i == j);
      assert_int_equal(hd_expr_hash(trees[i]) == hd_expr_hash(trees[j]),
                       i == j);
    }
  // A NaN equals itself, wherever it was made; places do not matter.
  assert_true(hd_expr_equal(trees[3], hd_expr_float(a, f32, NAN)));
  hd_expr_t like = {.loc = {1, 5}};
  assert_true(hd_expr_equal(trees[14],
                            hd_expr_make(a, HD_EXPR_NEG, f32, &like, &vx, 1)));
  hd_context_fini(&f.context);
}

static void linear_accesses_differ(void **state) {
  (void)state;
  fixture_t f;
  init(&f);
  hd_arena_t *a = &f.module->arena;
  const hd_expr_t *i = hd_expr_i32(a, 3);
  const hd_expr_t *shape[] = {hd_expr_i32(a, 8)};
  hd_tensor_t tensor = {.scope = HD_SCOPE_SHARED,
                        .element = hd_type(HD_F32),
                        .rank = 1,
                        .shape = shape};
  const hd_var_t *t = hd_var_make_tensor(a, "t", &tensor, (hd_loc_t){0});
  const hd_expr_t *by_index = hd_expr_access(a, HD_EXPR_LOAD, t, 1, &i, 1);
  const hd_expr_t *by_offset = hd_expr_access_linear(a, HD_EXPR_LOAD, t, 1, i);
  assert_false(hd_expr_equal(by_index, by_offset));
  assert_true(hd_expr_hash(by_index) != hd_expr_hash(by_offset));
  assert_false(
      hd_expr_equal(by_index, hd_expr_access(a, HD_EXPR_LOAD, t, 2, &i, 1)));
  hd_context_fini(&f.context);
}

static void height_and_count_are_those_of_the_tree(void **state) {
  (void)state;
  fixture_t f;
  init(&f);
  hd_arena_t *a = &f.module->arena;
  const hd_expr_t *e = hd_expr_i32(a, 1);
  assert_int_equal(e->height, 1);
  for (int i = 0; i < 10; i++) // The same operand twice: 2^11 - 1 nodes.
    e = hd_expr_binary(a, HD_EXPR_ADD, e, e);
  assert_int_equal(e->height, 11);
  assert_int_equal(hd_expr_count(e, 1 << 20), 2047);
  assert_int_equal(hd_expr_count(e, 100), 100);
  for (int i = 0; i < 100; i++) // Not walked to the end.
    e = hd_expr_binary(a, HD_EXPR_ADD, e, e);
  assert_int_equal(hd_expr_count(e, 1000), 1000);
  // A conversion to the type at hand is none.
  assert_ptr_equal(hd_expr_cast(a, hd_type(HD_I32), e), e);
  hd_context_fini(&f.context);
}

HD_UNIT_TESTS(cmocka_unit_test(type_names_read_back),
              cmocka_unit_test(equal_trees_are_equal_and_hash_so),
              cmocka_unit_test(payloads_tell_trees_apart),
              cmocka_unit_test(linear_accesses_differ),
              cmocka_unit_test(height_and_count_are_those_of_the_tree))
