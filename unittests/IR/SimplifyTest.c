// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Simplification changes no value: random functions over integers run before
// and after, for all values of their variables. Variables have random ranges
// (loops), some near the ends of their type, where arithmetic wraps.

#include "Interpret.h"
#include "Random.h"
#include "UnitTest.h"

#include "IR/Passes/Facts.h"
#include "IR/Passes/Passes.h"
#include "IR/Rewrite.h"
#include "IR/Text/Printer.h"
#include "IR/Verify/Verifier.h"

enum { NUM_VARS = 3, ROUNDS = 3000, THREADS = 12 };

typedef struct generator {
  random_t *random;
  hd_arena_t *arena;
  hd_type_t type;
  const hd_var_t *vars[NUM_VARS + 4]; // Loops', then lets'.
  unsigned num_vars;
  const hd_var_t *out;
} generator_t;

static const hd_loc_t nowhere;

static int64_t small_constant(generator_t *g) {
  static const int64_t usual[] = {1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 32, 64, 100};
  return usual[random_in(g->random, 0, sizeof usual / sizeof usual[0] - 1)];
}

static const hd_expr_t *number(generator_t *g, int64_t value) {
  return hd_expr_int(g->arena, g->type, value);
}

static const hd_expr_t *leaf(generator_t *g) {
  int64_t pick = random_in(g->random, 0, 9);
  if (pick == 0)
    return number(g, random_in(g->random, 0, 40));
  if (pick == 1 && g->type.scalar == HD_I32)
    return hd_expr_builtin(g->arena, random_in(g->random, 0, 1)
                                         ? HD_BUILTIN_THREAD
                                         : HD_BUILTIN_LANE_ID);
  return hd_expr_var(g->arena,
                     g->vars[random_in(g->random, 0, g->num_vars - 1)]);
}

static const hd_expr_t *integer(generator_t *g, unsigned depth);

static const hd_expr_t *condition(generator_t *g, unsigned depth) {
  static const hd_expr_kind_t kinds[] = {HD_EXPR_LT, HD_EXPR_LE, HD_EXPR_GT,
                                         HD_EXPR_GE, HD_EXPR_EQ, HD_EXPR_NE};
  int64_t pick = random_in(g->random, 0, 9);
  if (depth > 0 && pick == 0)
    return hd_expr_unary(g->arena, HD_EXPR_NOT, condition(g, depth - 1));
  if (depth > 0 && pick < 3)
    return hd_expr_binary(g->arena, pick == 1 ? HD_EXPR_AND : HD_EXPR_OR,
                          condition(g, depth - 1), condition(g, depth - 1));
  const hd_expr_t *a = integer(g, depth);
  const hd_expr_t *b = random_in(g->random, 0, 1)
                           ? integer(g, depth)
                           : number(g, random_in(g->random, 0, 100));
  return hd_expr_binary(g->arena, kinds[random_in(g->random, 0, 5)], a, b);
}

static const hd_expr_t *through_another_type(generator_t *g,
                                             const hd_expr_t *e) {
  static const hd_scalar_t types[] = {HD_I8,  HD_U8,  HD_I16, HD_U16,
                                      HD_I32, HD_U32, HD_I64, HD_U64};
  hd_type_t type = hd_type(types[random_in(g->random, 0, 7)]);
  return hd_expr_cast(g->arena, g->type, hd_expr_cast(g->arena, type, e));
}

// An operation with a constant, as index arithmetic has them.
static const hd_expr_t *with_constant(generator_t *g, unsigned depth) {
  static const hd_expr_kind_t kinds[] = {
      HD_EXPR_MUL, HD_EXPR_MUL, HD_EXPR_DIV,   HD_EXPR_DIV,
      HD_EXPR_MOD, HD_EXPR_MOD, HD_EXPR_ADD,   HD_EXPR_SUB,
      HD_EXPR_SHL, HD_EXPR_SHR, HD_EXPR_BITAND};
  hd_expr_kind_t kind = kinds[random_in(g->random, 0, 10)];
  int64_t value = small_constant(g);
  if (kind == HD_EXPR_SHL || kind == HD_EXPR_SHR)
    value = random_in(g->random, 0, 6);
  if (kind == HD_EXPR_BITAND)
    value = (INT64_C(1) << random_in(g->random, 0, 6)) - 1;
  return hd_expr_binary(g->arena, kind, integer(g, depth), number(g, value));
}

static const hd_expr_t *integer(generator_t *g, unsigned depth) {
  static const hd_expr_kind_t kinds[] = {
      HD_EXPR_ADD, HD_EXPR_ADD,    HD_EXPR_ADD,  HD_EXPR_SUB, HD_EXPR_MUL,
      HD_EXPR_DIV, HD_EXPR_MOD,    HD_EXPR_MIN,  HD_EXPR_MAX, HD_EXPR_BITXOR,
      HD_EXPR_SHR, HD_EXPR_BITAND, HD_EXPR_BITOR};
  if (depth == 0)
    return leaf(g);
  int64_t pick = random_in(g->random, 0, 19);
  if (pick < 9)
    return with_constant(g, depth - 1);
  if (pick == 9)
    return hd_expr_select(g->arena, condition(g, depth - 1),
                          integer(g, depth - 1), integer(g, depth - 1));
  if (pick == 10)
    return through_another_type(g, integer(g, depth - 1));
  if (pick == 11)
    return hd_expr_unary(
        g->arena, random_in(g->random, 0, 1) ? HD_EXPR_NEG : HD_EXPR_BITNOT,
        integer(g, depth - 1));
  return hd_expr_binary(g->arena, kinds[random_in(g->random, 0, 12)],
                        integer(g, depth - 1), integer(g, depth - 1));
}

static hd_block_t body(generator_t *g, unsigned depth) {
  hd_stmt_list_t list = {0};
  unsigned vars = g->num_vars;
  if (random_in(g->random, 0, 1) && g->num_vars < NUM_VARS + 4) {
    hd_stmt_t *let = hd_stmt_make(g->arena, HD_STMT_LET, nowhere);
    let->u.let.value = integer(g, 2);
    let->u.let.var = hd_var_make(g->arena, "x", HD_VAR_LET, g->type, nowhere);
    g->vars[g->num_vars++] = let->u.let.var;
    hd_stmt_list_push(g->arena, &list, let);
  }
  if (depth > 0 && random_in(g->random, 0, 1)) {
    hd_stmt_t *branch = hd_stmt_make(g->arena, HD_STMT_IF, nowhere);
    branch->u.branch.condition = condition(g, 2);
    branch->u.branch.then = body(g, depth - 1);
    if (random_in(g->random, 0, 1))
      branch->u.branch.otherwise = body(g, depth - 1);
    hd_stmt_list_push(g->arena, &list, branch);
  }
  hd_stmt_t *store = hd_stmt_make(g->arena, HD_STMT_STORE, nowhere);
  const hd_expr_t **zero = HD_ARENA_NEW(g->arena, const hd_expr_t *);
  *zero = hd_expr_i32(g->arena, 0);
  store->u.store.var = g->out;
  store->u.store.num_indices = 1;
  store->u.store.indices = zero;
  store->u.store.value = integer(g, 4);
  hd_stmt_list_push(g->arena, &list, store);
  g->num_vars = vars;
  return hd_block_make(g->arena, list.data, list.size);
}

// A few values, most often small ones from 0 up.
static hd_stmt_t *random_loop(generator_t *g, unsigned v) {
  hd_range_t all = hd_type_range(g->type);
  int64_t least = 0, step = 1, count = random_in(g->random, 1, 6);
  int64_t pick = random_in(g->random, 0, 9);
  if (pick < 3)
    step = small_constant(g);
  if (pick == 8 && all.greatest <= INT64_MAX)
    least = (int64_t)all.greatest - 40 * (count + 1);
  if (pick == 9)
    least = hd_type_is_signed(g->type) ? -random_in(g->random, 1, 70) : 3;
  hd_stmt_t *loop = hd_stmt_make(g->arena, HD_STMT_FOR, nowhere);
  loop->u.loop.var = g->vars[v];
  loop->u.loop.first = number(g, least);
  loop->u.loop.limit = number(g, least + count * (step > 40 ? 40 : step));
  loop->u.loop.step = step == 1 ? NULL : number(g, step);
  return loop;
}

static hd_func_t *random_kernel(generator_t *g) {
  hd_tensor_t *type = HD_ARENA_NEW(g->arena, hd_tensor_t);
  const hd_expr_t **one = HD_ARENA_NEW(g->arena, const hd_expr_t *);
  *one = hd_expr_i32(g->arena, 1);
  *type = (hd_tensor_t){
      .scope = HD_SCOPE_GLOBAL, .element = g->type, .rank = 1, .shape = one};
  hd_var_t *out = hd_var_make_tensor(g->arena, "out", type, nowhere);
  out->direction = HD_DIR_OUT;
  g->out = out;
  for (g->num_vars = 0; g->num_vars < NUM_VARS; ++g->num_vars)
    g->vars[g->num_vars] =
        hd_var_make(g->arena, "i", HD_VAR_LOOP, g->type, nowhere);
  hd_block_t block = body(g, 2);
  for (unsigned v = NUM_VARS; v-- > 0;) {
    hd_stmt_t *loop = random_loop(g, v);
    loop->u.loop.body = block;
    const hd_stmt_t *stmt = loop;
    block = hd_block_make(g->arena, &stmt, 1);
  }
  hd_func_t *func = HD_ARENA_NEW(g->arena, hd_func_t);
  const hd_var_t **params = HD_ARENA_NEW(g->arena, const hd_var_t *);
  params[0] = out;
  *func = (hd_func_t){.kind = HD_FUNC_KERNEL,
                      .name = "k",
                      .result = hd_type(HD_VOID),
                      .num_params = 1,
                      .params = params,
                      .has_body = true,
                      .body = block};
  func->launch.block[0] = hd_expr_i32(g->arena, THREADS);
  return func;
}

static void run(interpreter_t *in, const hd_func_t *func, int64_t thread) {
  interpreter_init(in);
  in->builtins[HD_BUILTIN_THREAD] = hd_expr_i32(&in->arena, thread);
  in->builtins[HD_BUILTIN_LANE_ID] = hd_expr_i32(&in->arena, thread);
  interpret(in, func->body);
}

static void fail_for(const hd_func_t *before, const hd_func_t *after,
                     const char *why) {
  hd_buffer_t text = {0};
  hd_func_print(before, &text);
  hd_buffer_puts(&text, "became\n");
  hd_func_print(after, &text);
  fail_msg("%s\n%s", why, hd_buffer_text(&text));
}

// What divides by zero has no meaning, so only what comes before counts.
static void assert_same(const hd_func_t *before, const hd_func_t *after,
                        size_t *values) {
  for (int64_t thread = 0; thread < THREADS; thread += 5) {
    interpreter_t x, y;
    run(&x, before, thread);
    run(&y, after, thread);
    if (!x.trapped && (y.trapped || x.trace.size != y.trace.size))
      fail_for(before, after, "the trace ends elsewhere");
    for (size_t i = 0; !x.trapped && i < x.trace.size; ++i)
      if (x.trace.data[i] != y.trace.data[i])
        fail_for(before, after, "a value differs");
    *values += x.trapped ? 0 : x.trace.size;
    interpreter_fini(&x);
    interpreter_fini(&y);
  }
}

typedef const hd_func_t *(*pass_t)(hd_module_t *, const hd_func_t *,
                                   const hd_pass_args_t *);

static void keeps_values(const char *test, const pass_t *passes, size_t count) {
  static const hd_scalar_t types[] = {HD_I32, HD_I32, HD_I32,
                                      HD_U32, HD_I64, HD_U64};
  random_t r = random_begin(test);
  hd_pass_args_t args = {0};
  size_t values = 0, changed = 0;
  for (int round = 0; round < ROUNDS; ++round) {
    hd_context_t context;
    hd_context_init(&context);
    hd_module_t *module = hd_module_create(&context);
    generator_t g = {.random = &r,
                     .arena = &module->arena,
                     .type = hd_type(types[random_in(&r, 0, 5)])};
    const hd_func_t *func = random_kernel(&g), *after = func;
    for (size_t i = 0; i < count; ++i)
      after = passes[i](module, after, &args);
    if (!hd_func_verify(&context, after))
      fail_for(func, after, "not valid");
    assert_same(func, after, &values);
    changed += after != func;
    hd_context_fini(&context);
  }
  assert_true(values > 10 * ROUNDS);
  assert_true(changed > ROUNDS / 2);
}

static void simplify_keeps_values(void **state) {
  (void)state;
  keeps_values("simplify_keeps_values", (const pass_t[]){hd_pass_simplify}, 1);
}

static void pipeline_keeps_values(void **state) {
  (void)state;
  keeps_values("pipeline_keeps_values",
               (const pass_t[]){hd_pass_simplify, hd_pass_unroll,
                                hd_pass_resolve_layouts, hd_pass_cse,
                                hd_pass_simplify, hd_pass_dce},
               6);
}

// What simplify gives, it leaves.
static void simplify_is_stable(void **state) {
  (void)state;
  random_t r = random_begin("simplify_is_stable");
  hd_pass_args_t args = {0};
  for (int round = 0; round < ROUNDS / 10; ++round) {
    hd_context_t context;
    hd_context_init(&context);
    hd_module_t *module = hd_module_create(&context);
    generator_t g = {
        .random = &r, .arena = &module->arena, .type = hd_type(HD_I32)};
    const hd_func_t *func = random_kernel(&g);
    for (int i = 0; i < 8; ++i)
      func = hd_pass_simplify(module, func, &args);
    const hd_func_t *again = hd_pass_simplify(module, func, &args);
    if (again != func)
      fail_for(func, again, "not stable");
    hd_context_fini(&context);
  }
}

HD_UNIT_TESTS(cmocka_unit_test(simplify_keeps_values),
              cmocka_unit_test(pipeline_keeps_values),
              cmocka_unit_test(simplify_is_stable))
