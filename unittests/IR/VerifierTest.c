// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Faults that no text can have, for the parser builds none of them: what passes
// may leave behind. Each is made by hand, and found.
#include "IR/Verify/Verifier.h"
#include "IR/Graph/Task.h"
#include "IR/Intrinsic.h"
#include "IR/Mapping.h"
#include "IR/Module.h"
#include "IR/Passes/Pass.h"
#include "UnitTest.h"

#include <stdlib.h>
#include <string.h>

typedef struct fixture {
  hd_context_t context;
  hd_arena_t *arena;
  hd_func_t func; // fn f(n: i32, x: f32, in t: f32[8])
  const hd_var_t *n, *x, *t;
} fixture_t;

static const hd_loc_t nowhere;

static int set_up(void **state) {
  fixture_t *f = calloc(1, sizeof *f);
  hd_context_init(&f->context);
  f->arena = &hd_module_create(&f->context)->arena;
  f->n = hd_var_make(f->arena, "n", HD_VAR_PARAM, hd_type(HD_I32), nowhere);
  f->x = hd_var_make(f->arena, "x", HD_VAR_PARAM, hd_type(HD_F32), nowhere);
  hd_tensor_t *tensor = HD_ARENA_NEW(f->arena, hd_tensor_t);
  const hd_expr_t **shape = HD_ARENA_ARRAY(f->arena, const hd_expr_t *, 1);
  shape[0] = hd_expr_i32(f->arena, 8);
  *tensor =
      (hd_tensor_t){.element = hd_type(HD_F32), .rank = 1, .shape = shape};
  hd_var_t *t = hd_var_make_tensor(f->arena, "t", tensor, nowhere);
  t->direction = HD_DIR_IN;
  f->t = t;
  const hd_var_t **params = HD_ARENA_ARRAY(f->arena, const hd_var_t *, 3);
  params[0] = f->n;
  params[1] = f->x;
  params[2] = t;
  f->func = (hd_func_t){.kind = HD_FUNC_FN,
                        .name = "f",
                        .params = params,
                        .num_params = 3,
                        .has_body = true};
  f->func.result = hd_type(HD_VOID);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture_t *f = *state;
  hd_context_fini(&f->context);
  free(f);
  return 0;
}

static bool verify(fixture_t *f, const hd_stmt_t *stmt) {
  hd_diagnostics_clear(&f->context.diags);
  f->func.body = hd_block_make(f->arena, &stmt, 1);
  return hd_func_verify(&f->context, &f->func);
}

static const hd_stmt_t *let(fixture_t *f, const hd_expr_t *value) {
  hd_stmt_t *stmt = hd_stmt_make(f->arena, HD_STMT_LET, nowhere);
  stmt->u.let.value = value;
  stmt->u.let.var =
      hd_var_make(f->arena, "v", HD_VAR_LET, value->type, nowhere);
  return stmt;
}

static void accept(fixture_t *f, const hd_expr_t *value) {
  assert_true(verify(f, let(f, value)));
}

static void expect_stmt(fixture_t *f, const hd_stmt_t *stmt,
                        hd_diagnostic_code_t code, const char *text) {
  assert_false(verify(f, stmt));
  const hd_diagnostic_t *first = f->context.diags.first;
  assert_int_equal(first->code, code);
  assert_non_null(strstr(first->message, text));
}

static void expect(fixture_t *f, const hd_expr_t *value,
                   hd_diagnostic_code_t code, const char *text) {
  expect_stmt(f, let(f, value), code, text);
}

static void variables_are_in_scope(void **state) {
  fixture_t *f = *state;
  const hd_var_t *other =
      hd_var_make(f->arena, "n", HD_VAR_LET, hd_type(HD_I32), nowhere);
  accept(f, hd_expr_var(f->arena, f->n));
  expect(f, hd_expr_var(f->arena, other), HD_E0301, "'n' is used outside");
  hd_expr_t like = {.u.var = f->x};
  const hd_expr_t *zero = hd_expr_i32(f->arena, 0);
  expect(f,
         hd_expr_make(f->arena, HD_EXPR_LOAD, hd_type(HD_F32), &like, &zero, 1),
         HD_E0208, "'x' is not a tensor");
  hd_stmt_t *store = hd_stmt_make(f->arena, HD_STMT_STORE, nowhere);
  store->u.store.var = f->x;
  store->u.store.value = hd_expr_var(f->arena, f->x);
  expect_stmt(f, store, HD_E0208, "'x' is not a tensor");
}

static void constants_are_values_of_their_type(void **state) {
  fixture_t *f = *state;
  hd_arena_t *a = f->arena;
  accept(f, hd_expr_int(a, hd_type(HD_U8), 255));
  expect(f, hd_expr_int(a, hd_type(HD_U8), 256), HD_E0310, "no value of u8");
  expect(f, hd_expr_int(a, hd_type(HD_U8), -1), HD_E0310, "no value of u8");
  accept(f, hd_expr_int(a, hd_type(HD_I4), -8));
  expect(f, hd_expr_int(a, hd_type(HD_I4), 8), HD_E0310, "no value of i4");
  expect(f, hd_expr_int(a, hd_type(HD_BOOL), 2), HD_E0310, "no value of bool");
  accept(f, hd_expr_float(a, hd_type(HD_F16), 0.5));
  expect(f, hd_expr_float(a, hd_type(HD_F16), 0.1), HD_E0310, "value of f16");
  expect(f, hd_expr_int(a, hd_type_vector(HD_I32, 4), 1), HD_E0310,
         "no value of i32x4");
}

static void operators_fit_their_operands(void **state) {
  fixture_t *f = *state;
  hd_arena_t *a = f->arena;
  const hd_expr_t *n = hd_expr_var(a, f->n), *x = hd_expr_var(a, f->x);
  const hd_expr_t *mixed[] = {x, n}, *three[] = {x, x, x};
  hd_type_t f32 = hd_type(HD_F32);
  expect(f, hd_expr_binary(a, HD_EXPR_MOD, x, x), HD_E0205, "%");
  expect(f, hd_expr_binary(a, HD_EXPR_AND, n, n), HD_E0205, "&&");
  expect(f, hd_expr_unary(a, HD_EXPR_BITNOT, x), HD_E0205, "~");
  expect(f, hd_expr_make(a, HD_EXPR_ADD, f32, NULL, mixed, 2), HD_E0310,
         "VAR has type i32 where f32 is needed");
  expect(f, hd_expr_make(a, HD_EXPR_ADD, f32, NULL, three, 3), HD_E0310,
         "ADD has 3 operands");
  expect(f, hd_expr_make(a, HD_EXPR_LT, f32, NULL, three, 2), HD_E0310,
         "LT has type f32 where bool is needed");
  expect(f, hd_expr_make(a, HD_EXPR_SELECT, f32, NULL, three, 3), HD_E0310,
         "where bool is needed");
  expect(f, hd_expr_make(a, HD_EXPR_CAST, f32, NULL, three, 1), HD_E0310,
         "a conversion from f32 to f32");
  expect(f, hd_expr_make(a, HD_EXPR_BITCAST, hd_type(HD_F16), NULL, three, 1),
         HD_E0310, "a bitcast from f32 to f16");
  expect(f,
         hd_expr_make(a, HD_EXPR_VECTOR, hd_type_vector(HD_F32, 4), NULL, three,
                      3),
         HD_E0310, "a vector of 4 lanes from 3 values");
  expect(f, hd_expr_make(a, HD_EXPR_VECTOR, f32, NULL, three, 1), HD_E0310,
         "a vector of 1 lanes");
  const hd_expr_t *v = hd_expr_make(a, HD_EXPR_VECTOR,
                                    hd_type_vector(HD_F32, 3), NULL, three, 3);
  hd_expr_t lane = {.u.i = 3};
  accept(f, v);
  expect(f, hd_expr_make(a, HD_EXPR_LANE, f32, &lane, &v, 1), HD_E0310,
         "lane 3 of f32x3");
}

static void accesses_have_the_tensors_rank(void **state) {
  fixture_t *f = *state;
  hd_arena_t *a = f->arena;
  const hd_expr_t *n = hd_expr_var(a, f->n), *x = hd_expr_var(a, f->x);
  const hd_expr_t *indices[] = {n, n};
  accept(f, hd_expr_access(a, HD_EXPR_LOAD, f->t, 1, indices, 1));
  expect(f, hd_expr_access(a, HD_EXPR_LOAD, f->t, 1, indices, 2), HD_E0310,
         "rank 1, and is accessed with 2 indices");
  expect(f, hd_expr_access(a, HD_EXPR_LOAD, f->t, 1, &x, 1), HD_E0310,
         "an index has type f32");
  expect(f, hd_expr_access(a, HD_EXPR_LOADELSE, f->t, 1, indices, 2), HD_E0310,
         "where f32 is needed");
  expect(f, hd_expr_access(a, HD_EXPR_LOAD, f->t, 8, indices, 1), HD_E0304,
         "more than 16 bytes");
  hd_stmt_t *store = hd_stmt_make(a, HD_STMT_STORE, nowhere);
  store->u.store.var = f->t;
  store->u.store.value = x;
  store->u.store.indices = indices;
  store->u.store.num_indices = 1;
  expect_stmt(f, store, HD_E0209, "'in' parameter");
}

static void intrinsics_have_their_operands(void **state) {
  fixture_t *f = *state;
  hd_arena_t *a = f->arena;
  hd_type_t f32 = hd_type(HD_F32);
  const hd_expr_t *x = hd_expr_var(a, f->x), *n = hd_expr_var(a, f->n);
  const hd_expr_t *place = hd_expr_access(a, HD_EXPR_REF, f->t, 1, &n, 1);
  hd_expr_t sqrt = {.u.intrinsic = HD_INTRINSIC_SQRT};
  hd_expr_t load = {.u.intrinsic = HD_INTRINSIC_ATOMIC_LOAD};
  const hd_expr_t *zero = hd_expr_i32(a, 0), *far = hd_expr_i32(a, 99);
  accept(f, hd_expr_make(a, HD_EXPR_INTRINSIC, f32, &sqrt, &x, 1));
  expect(f, hd_expr_make(a, HD_EXPR_INTRINSIC, f32, &sqrt, &x, 0), HD_E0206,
         "sqrt takes 1 arguments, found 0");
  expect(f, hd_expr_make(a, HD_EXPR_INTRINSIC, f32, &sqrt, &n, 1), HD_E0310,
         "VAR has type i32 where f32 is needed");
  const hd_expr_t *good[] = {place, zero, zero};
  const hd_expr_t *no_place[] = {x, zero, zero};
  const hd_expr_t *no_constant[] = {place, n, zero};
  const hd_expr_t *no_name[] = {place, far, zero};
  accept(f, hd_expr_make(a, HD_EXPR_INTRINSIC, f32, &load, good, 3));
  expect(f, hd_expr_make(a, HD_EXPR_INTRINSIC, f32, &load, no_place, 3),
         HD_E0310, "operand 1 of 'atomic_load' must be a place");
  expect(f, hd_expr_make(a, HD_EXPR_INTRINSIC, f32, &load, no_constant, 3),
         HD_E0310, "operand 2 of 'atomic_load' must be a constant");
  expect(f, hd_expr_make(a, HD_EXPR_INTRINSIC, f32, &load, no_name, 3),
         HD_E0310, "operand 2 of 'atomic_load' names nothing");
}

static void returns_fit_the_function(void **state) {
  fixture_t *f = *state;
  hd_stmt_t *stmt = hd_stmt_make(f->arena, HD_STMT_RETURN, nowhere);
  assert_true(verify(f, stmt));
  stmt->u.eval.value = hd_expr_var(f->arena, f->x);
  expect_stmt(f, stmt, HD_E0310, "'f' returns no value");
  f->func.result = hd_type(HD_F32);
  assert_true(verify(f, stmt));
  stmt->u.eval.value = NULL;
  expect_stmt(f, stmt, HD_E0310, "'f' returns a value");
  f->func.kind = HD_FUNC_PLAN;
  expect_stmt(f, stmt, HD_E0302, "'return' is not allowed in a plan");
}

static void loops_alone_are_left(void **state) {
  fixture_t *f = *state;
  hd_stmt_t *leave = hd_stmt_make(f->arena, HD_STMT_BREAK, nowhere);
  const hd_stmt_t *body = leave;
  expect_stmt(f, leave, HD_E0302, "'break' is not allowed outside a loop");
  leave->kind = HD_STMT_CONTINUE;
  expect_stmt(f, leave, HD_E0302, "'continue' is not allowed outside a loop");
  hd_stmt_t *loop = hd_stmt_make(f->arena, HD_STMT_WHILE, nowhere);
  loop->u.branch.condition = hd_expr_bool(f->arena, true);
  loop->u.branch.then = hd_block_make(f->arena, &body, 1);
  assert_true(verify(f, loop));
}

static void calls_fit_their_function(void **state) {
  fixture_t *f = *state;
  hd_arena_t *a = f->arena;
  hd_func_t callee = f->func;
  callee.result = hd_type(HD_F32);
  hd_expr_t like = {.u.func = &callee};
  const hd_expr_t *x = hd_expr_var(a, f->x), *n = hd_expr_var(a, f->n);
  const hd_expr_t *good[] = {n, x, hd_expr_var(a, f->t)}, *bad[] = {n, x, x};
  accept(f, hd_expr_make(a, HD_EXPR_CALL, callee.result, &like, good, 3));
  expect(f, hd_expr_make(a, HD_EXPR_CALL, callee.result, &like, good, 2),
         HD_E0206, "f takes 3 arguments, found 2");
  expect(f, hd_expr_make(a, HD_EXPR_CALL, callee.result, &like, bad, 3),
         HD_E0310, "'t' of 'f' must be a tensor");
  expect(f, hd_expr_make(a, HD_EXPR_CALL, hd_type(HD_I32), &like, good, 3),
         HD_E0310, "CALL has type i32 where f32 is needed");
}

static void a_declaration_stands_once(void **state) {
  fixture_t *f = *state;
  const hd_stmt_t *stmt = let(f, hd_expr_var(f->arena, f->n));
  const hd_stmt_t *twice[] = {stmt, stmt};
  assert_true(verify(f, stmt));
  f->func.body = hd_block_make(f->arena, twice, 2);
  assert_false(hd_func_verify(&f->context, &f->func));
  assert_non_null(
      strstr(f->context.diags.first->message, "'v' is declared twice"));
}

// An index outside the definition that binds it.
static void indices_of_tasks_are_bound(void **state) {
  fixture_t *f = *state;
  hd_arena_t *a = f->arena;
  hd_task_type_t i64 = {HD_I64, NULL};
  hd_term_t *four = hd_term_make(a, HD_TERM_CONST, i64, NULL, 0);
  four->u.i = 4;
  const hd_term_t *shape[] = {four};
  hd_task_value_t y = {.name = "y",
                       .kind = HD_VALUE_OUTPUT,
                       .type = i64,
                       .rank = 1,
                       .shape = shape};
  hd_index_t i = {.name = "i", .range = four}, j = {.name = "j", .range = four};
  const hd_index_t *indices[] = {&i};
  const hd_task_value_t *targets[] = {&y};
  hd_term_t *term = hd_term_make(a, HD_TERM_INDEX, i64, NULL, 0);
  hd_definition_t definition = {.kind = HD_DEFINE,
                                .num_targets = 1,
                                .targets = targets,
                                .num_indices = 1,
                                .indices = indices,
                                .term = term};
  hd_task_t task = {.name = "t"};
  hd_vec_push(a, &task.outputs, &y);
  hd_vec_push(a, &task.definitions, &definition);
  term->u.index = &i;
  assert_true(hd_task_verify(&f->context, &task));
  term->u.index = &j;
  assert_false(hd_task_verify(&f->context, &task));
  assert_int_equal(f->context.diags.first->code, HD_E0301);
}

static const hd_func_t *break_it(hd_module_t *module, const hd_func_t *func,
                                 const hd_pass_args_t *args) {
  (void)args;
  hd_func_t *broken = HD_ARENA_NEW(&module->arena, hd_func_t);
  const hd_stmt_t *stmt = hd_stmt_make(&module->arena, HD_STMT_BREAK, nowhere);
  *broken = *func;
  broken->kind = HD_FUNC_KERNEL;
  broken->body = hd_block_make(&module->arena, &stmt, 1);
  return broken;
}

static void a_pass_that_breaks_the_rules_is_named(void **state) {
  fixture_t *f = *state;
  static const hd_pass_t pass = {.name = "break",
                                 .run = break_it,
                                 .level = HD_LEVEL_KERNEL,
                                 .options = "",
                                 .summary = "Breaks"};
  hd_module_t *module = hd_module_create(&f->context);
  hd_item_t item = {.kind = HD_ITEM_FUNC, .u.func = &f->func};
  hd_vec_push(&module->arena, &module->items, item);
  hd_pass_args_t args = {0};
  hd_pass_config_t config = {.verify_each = true};
  assert_false(hd_pass_run(module, &pass, &args, &config).ok);
  bool found = false;
  for (const hd_diagnostic_t *d = f->context.diags.first; d; d = d->next)
    found |= d->code == HD_E0311 && strstr(d->message, "'break'");
  assert_true(found);
  assert_int_equal(hd_diagnostic_exit(HD_E0311), HD_EXIT_INTERNAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
HD_UNIT_TESTS(TEST(variables_are_in_scope),
              TEST(constants_are_values_of_their_type),
              TEST(operators_fit_their_operands),
              TEST(accesses_have_the_tensors_rank),
              TEST(intrinsics_have_their_operands),
              TEST(returns_fit_the_function), TEST(loops_alone_are_left),
              TEST(calls_fit_their_function), TEST(a_declaration_stands_once),
              TEST(indices_of_tasks_are_bound),
              TEST(a_pass_that_breaks_the_rules_is_named))
