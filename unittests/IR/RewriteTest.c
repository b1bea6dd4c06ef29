// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Rewrite.h"

#include "IR/Generator.h"
#include "IR/Text/Parser.h"
#include "IR/Text/Printer.h"
#include "IR/Verify/Verifier.h"
#include "IR/Visible.h"
#include "UnitTest.h"

#include <string.h>

static hd_module_t *parse(hd_context_t *context, const char *text) {
  hd_context_init(context);
  hd_module_t *module = hd_module_parse(context, "test", text, strlen(text), 1);
  assert_non_null(module);
  return module;
}

static void expect_text(const hd_func_t *func, const char *expected) {
  hd_buffer_t text = {0};
  hd_func_print(func, &text);
  assert_string_equal(hd_buffer_text(&text), expected);
  hd_buffer_fini(&text);
}

// Gives every function of 300 generated modules to `check`.
static void for_generated(void (*check)(hd_module_t *module,
                                        const hd_func_t *func)) {
  static hd_generated_t counts;
  for (uint64_t seed = 0; seed < 300; seed++) {
    hd_context_t context;
    hd_context_init(&context);
    hd_module_t *module = hd_generate_module(&context, seed, &counts);
    for (size_t i = 0; i < module->items.size; i++)
      if (module->items.data[i].kind == HD_ITEM_FUNC)
        check(module, module->items.data[i].u.func);
    hd_context_fini(&context);
  }
}

static void check_unchanged(hd_module_t *module, const hd_func_t *func) {
  hd_rewriter_t rewriter = {.arena = &module->arena};
  assert_ptr_equal(hd_rewrite_func(&rewriter, func), func);
}

static void without_a_change_it_is_the_same_pointer(void **state) {
  (void)state;
  for_generated(check_unchanged);
}

// Every variable anew: the copy is valid, prints the same, shares no variable.
static const hd_var_t *copy_var(hd_rewriter_t *rewriter, const hd_var_t *var) {
  hd_var_t *copy = HD_ARENA_NEW(rewriter->arena, hd_var_t);
  *copy = *var;
  return copy;
}

static bool collect(void *argument, const hd_expr_t *e) {
  hd_visible_t *seen = argument;
  if (e->kind == HD_EXPR_VAR && e->u.var->kind != HD_VAR_MAPPING)
    assert_null(hd_visible_name(seen, e->u.var));
  return true;
}

static bool remember(void *argument, const hd_expr_t *e) {
  if (hd_expr_info((hd_expr_kind_t)e->kind)->payload == HD_PAYLOAD_VAR)
    hd_visible_push(argument, e->u.var, e->u.var->name);
  return true;
}

static void check_copied(hd_module_t *module, const hd_func_t *func) {
  hd_rewriter_t rewriter = {.arena = &module->arena, .declare = copy_var};
  const hd_func_t *copy = hd_rewrite_func(&rewriter, func);
  assert_true(hd_func_verify(module->context, copy));
  hd_buffer_t text = {0};
  hd_func_print(func, &text);
  expect_text(copy, hd_buffer_text(&text));
  hd_buffer_fini(&text);
  hd_visible_t seen = {.arena = &module->arena};
  hd_walk_block(func->body, NULL, remember, &seen);
  hd_walk_block(copy->body, NULL, collect, &seen);
}

static void declarations_and_their_uses_are_replaced(void **state) {
  (void)state;
  for_generated(check_copied);
}

static void types_follow_the_variables_they_mention(void **state) {
  (void)state;
  hd_context_t context;
  hd_module_t *module = parse(
      &context, "kernel k(n: i32, m: i32, inout a: f32[n, m] layout(strides(m, "
                "1))) grid(n) block(32) {\n"
                "  shared s: f32[n + m] layout(strides(m))\n"
                "  for i in 0..n {\n"
                "    for j, l in within(repeat(2, 2), n, m) {\n"
                "      a[i, l] = s[j] + f32(n)\n"
                "    }\n"
                "  }\n"
                "}\n");
  const hd_func_t *func = module->items.data[0].u.func;
  hd_rewriter_t rewriter = {.arena = &module->arena};
  hd_rewriter_substitute(&rewriter, func->params[0],
                         hd_expr_i32(&module->arena, 7));
  hd_rewriter_substitute(&rewriter, func->params[1],
                         hd_expr_i32(&module->arena, 5));
  const hd_func_t *bound = hd_rewrite_func(&rewriter, func);
  expect_text(bound, "kernel k(n: i32, m: i32, inout a: f32[7, 5] "
                     "layout(strides(5, 1))) grid(7) block(32) {\n"
                     "  shared s: f32[7 + 5] layout(strides(5))\n"
                     "  for i in 0..7 {\n"
                     "    for j, l in within(repeat(2, 2), 7, 5) {\n"
                     "      a[i, l] = s[j] + f32(i32(7))\n"
                     "    }\n"
                     "  }\n"
                     "}\n");
  assert_true(hd_func_verify(&context, bound));
  hd_context_fini(&context);
}

static bool drop_asserts(hd_rewriter_t *rewriter, const hd_stmt_t *stmt,
                         hd_stmt_list_t *out) {
  (void)rewriter;
  (void)out;
  return stmt->kind == HD_STMT_ASSERT;
}

// A loop gives way to its body, twice.
static bool double_loops(hd_rewriter_t *rewriter, const hd_stmt_t *stmt,
                         hd_stmt_list_t *out) {
  if (stmt->kind != HD_STMT_FOR)
    return false;
  for (int64_t i = 0; i < 2; i++) {
    hd_rewriter_substitute(rewriter, stmt->u.loop.var,
                           hd_expr_i32(rewriter->arena, i));
    hd_rewrite_into(rewriter, stmt->u.loop.body, out);
  }
  return true;
}

static void statements_are_replaced(void **state) {
  (void)state;
  hd_context_t context;
  hd_module_t *module = parse(&context, "fn f(inout a: f32[8]) {\n"
                                        "  assert true\n"
                                        "  for i in 0..2 {\n"
                                        "    assert i < 2\n"
                                        "    a[i] = f32(i)\n"
                                        "  }\n"
                                        "}\n");
  hd_rewriter_t rewriter = {
      .arena = &module->arena, .enter = double_loops, .leave = drop_asserts};
  const hd_func_t *func =
      hd_rewrite_func(&rewriter, module->items.data[0].u.func);
  expect_text(func, "fn f(inout a: f32[8]) {\n"
                    "  a[0] = f32(i32(0))\n"
                    "  a[1] = f32(i32(1))\n"
                    "}\n");
  hd_context_fini(&context);
}

static bool count_vars(void *argument, const hd_expr_t *e) {
  if (e->kind == HD_EXPR_VAR)
    ++*(int *)argument;
  return true;
}

static bool stop_at_vars(void *argument, const hd_expr_t *e) {
  ++*(int *)argument;
  return e->kind != HD_EXPR_VAR;
}

// A size is used wherever it stands: in a shape, in a layout, in a bound.
static void a_walk_sees_every_expression(void **state) {
  (void)state;
  hd_context_t context;
  hd_module_t *module =
      parse(&context, "kernel k(n: i32) grid(n) block(32) {\n"
                      "  shared s: f32[n] layout(strides(n))\n"
                      "  for i in n..n step n {\n"
                      "    for j in within(repeat(2), n) on n {\n"
                      "      s[n] = f32(n)\n"
                      "    }\n"
                      "  }\n"
                      "}\n");
  int count = 0;
  hd_walk_block(module->items.data[0].u.func->body, NULL, count_vars, &count);
  assert_int_equal(count, 9);
  count = 0;
  assert_false(hd_walk_block(module->items.data[0].u.func->body, NULL,
                             stop_at_vars, &count));
  assert_int_equal(count, 1);
  hd_context_fini(&context);
}

HD_UNIT_TESTS(cmocka_unit_test(without_a_change_it_is_the_same_pointer),
              cmocka_unit_test(declarations_and_their_uses_are_replaced),
              cmocka_unit_test(types_follow_the_variables_they_mention),
              cmocka_unit_test(statements_are_replaced),
              cmocka_unit_test(a_walk_sees_every_expression))
