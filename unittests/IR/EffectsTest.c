// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which operands are lazy, and what expressions do besides giving a value:
// asked of each `let` of a program that says the answers in its names.
#include "IR/Effects.h"
#include "IR/Rewrite.h"
#include "IR/Text/Parser.h"
#include "UnitTest.h"

#include <string.h>

// A name's letters are what holds: p pure, s stable, r repeatable, m reads
// memory.
static const char text[] =
    "fn plain(x: i32) -> i32 {\n"
    "  register t: i32[2] = 0\n"
    "  t[0] = x\n"
    "  return t[0]\n"
    "}\n"
    "fn looks(register t: i32[4]) -> i32 {\n"
    "  return t[0]\n"
    "}\n"
    "fn sets(register t: i32[4]) -> i32 {\n"
    "  t[0] = 1\n"
    "  return 0\n"
    "}\n"
    "fn looks_into(shared t: u16[64]) -> i32 {\n"
    "  register r: u16[8]\n"
    "  ldmatrix_x4(r[0], t[0])\n"
    "  return i32(r[0])\n"
    "}\n"
    "fn stores_into(shared t: u16[64]) -> i32 {\n"
    "  register r: u16[8] = 0\n"
    "  stmatrix_x4(t[0], r[0])\n"
    "  return 0\n"
    "}\n"
    "fn loops(x: i32) -> i32 {\n"
    "  register i: i32 = x\n"
    "  while i > 0 {\n"
    "    i -= 1\n"
    "  }\n"
    "  return i\n"
    "}\n"
    "fn passes(register t: i32[4], register u: i32[4]) -> i32 {\n"
    "  return sets(u) + looks(t)\n"
    "}\n"
    "kernel k(inout c: i32[4]) grid(1) block(32) {\n"
    "  shared s: i32[4]\n"
    "  register t: i32[4] = 0\n"
    "  register q: i32[4] = 0\n"
    "  let psr_1 = thread * 3 + (thread > 3 ? 1 : 2)\n"
    "  let psr_2 = plain(thread)\n"
    "  let psr_3 = min(popc(thread), 4)\n"
    "  let prm_1 = c[0]\n"
    "  let prm_2 = s[1] + 1\n"
    "  let prm_3 = t[1] else thread\n"
    "  let rm_1 = looks(t)\n"
    "  let m_1 = sets(t)\n"
    "  let m_2 = passes(t, q)\n"
    "  let r_1 = loops(thread)\n"
    "  let m_3 = atomic_add(c[0], 1)\n"
    "  let x_1 = shfl_xor(thread, 1)\n"
    "}\n";

static hd_module_t *parse(hd_context_t *context) {
  hd_context_init(context);
  hd_module_t *module = hd_module_parse(context, "test", text, strlen(text), 1);
  if (!module)
    print_error("%s\n", context->diags.first->message);
  assert_non_null(module);
  return module;
}

static bool says(const char *name, char letter) {
  return memchr(name, letter, strcspn(name, "_")) != NULL;
}

static void expressions_do_what_their_names_say(void **state) {
  (void)state;
  hd_context_t context;
  const hd_func_t *func = hd_module_find(parse(&context), "k", HD_FUNC_KERNEL);
  unsigned seen = 0;
  for (uint32_t i = 0; i < func->body.size; i++) {
    const hd_stmt_t *stmt = func->body.stmts[i];
    if (stmt->kind != HD_STMT_LET)
      continue;
    const char *name = stmt->u.let.var->name;
    const hd_expr_t *e = stmt->u.let.value;
    if (hd_expr_is_pure(e) != says(name, 'p') ||
        hd_expr_is_stable(e) != says(name, 's') ||
        hd_expr_is_repeatable(e) != says(name, 'r') ||
        hd_expr_reads_memory(e) != says(name, 'm'))
      fail_msg("%s is not so", name);
    seen++;
  }
  assert_int_equal(seen, 12);
  hd_context_fini(&context);
}

static void functions_write_what_they_or_others_store(void **state) {
  (void)state;
  static const struct {
    const char *name;
    unsigned param;
    bool writes;
  } cases[] = {{"looks", 0, false},      {"sets", 0, true},
               {"looks_into", 0, false}, {"stores_into", 0, true},
               {"passes", 0, false},     {"passes", 1, true}};
  hd_context_t context;
  hd_module_t *module = parse(&context);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const hd_func_t *func = hd_module_find(module, cases[i].name, HD_FUNC_FN);
    assert_int_equal(hd_func_writes(func, func->params[cases[i].param]),
                     cases[i].writes);
  }
  hd_context_fini(&context);
}

// An operand is lazy where folding with it unknown may still give a value.
static void lazy_operands_are_those_folding_can_spare(void **state) {
  (void)state;
  hd_arena_t arena;
  hd_arena_init(&arena, NULL);
  hd_type_t boolean = hd_type(HD_BOOL);
  const hd_expr_t *unknown = hd_expr_var(
      &arena, hd_var_make(&arena, "u", HD_VAR_LET, boolean, (hd_loc_t){0}));
  static const hd_expr_kind_t kinds[] = {
      HD_EXPR_AND,    HD_EXPR_OR,     HD_EXPR_BITAND, HD_EXPR_BITOR,
      HD_EXPR_BITXOR, HD_EXPR_SELECT, HD_EXPR_EQ,     HD_EXPR_NE};
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
    unsigned count = kinds[k] == HD_EXPR_SELECT ? 3 : 2;
    for (unsigned lazy = 0; lazy < count; lazy++) {
      bool spared = false, asked = false;
      for (unsigned bits = 0; bits < 8; bits++) {
        const hd_expr_t *operands[3];
        for (unsigned i = 0; i < 3; i++)
          operands[i] =
              i == lazy ? unknown : hd_expr_bool(&arena, bits >> i & 1);
        const hd_expr_t *e =
            hd_expr_make(&arena, kinds[k], boolean, NULL, operands, count);
        spared |= hd_expr_fold(&arena, e) != NULL;
        asked = hd_expr_is_lazy(e, lazy);
      }
      assert_int_equal(spared, asked);
    }
  }
  hd_arena_fini(&arena);
}

static void the_else_of_an_access_is_lazy(void **state) {
  (void)state;
  hd_context_t context;
  const hd_func_t *func = hd_module_find(parse(&context), "k", HD_FUNC_KERNEL);
  for (uint32_t i = 0; i < func->body.size; i++) {
    const hd_stmt_t *stmt = func->body.stmts[i];
    if (stmt->kind != HD_STMT_LET ||
        stmt->u.let.value->kind != HD_EXPR_LOADELSE)
      continue;
    assert_false(hd_expr_is_lazy(stmt->u.let.value, 0));
    assert_true(hd_expr_is_lazy(stmt->u.let.value, 1));
    hd_context_fini(&context);
    return;
  }
  fail();
}

HD_UNIT_TESTS(cmocka_unit_test(expressions_do_what_their_names_say),
              cmocka_unit_test(functions_write_what_they_or_others_store),
              cmocka_unit_test(lazy_operands_are_those_folding_can_spare),
              cmocka_unit_test(the_else_of_an_access_is_lazy))
