// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the facts about values keep to be fast changes no answer: a range that
// was found before is the range that is found anew, and a sum that calls itself
// final is what deeper modes give. On random expressions of loops' variables
// and lets, while conditions come and go.
#include "IR/Module.h"
#include "IR/Passes/LinearExpr.h"
#include "IR/Rewrite.h"
#include "Random.h"
#include "UnitTest.h"

enum { LOOPS = 3, LETS = 4, ASKED = 12, STEPS = 10, ROUNDS = 400 };

static const hd_loc_t nowhere;

typedef struct world {
  random_t *random;
  hd_arena_t *arena;
  hd_facts_t *facts;
  const hd_var_t *vars[LOOPS + LETS];
  unsigned num_vars;
} world_t;

static const hd_expr_t *number(world_t *w, int64_t value) {
  return hd_expr_i32(w->arena, value);
}

static const hd_expr_t *integer(world_t *w, unsigned depth) {
  static const hd_expr_kind_t by_number[] = {
      HD_EXPR_MUL, HD_EXPR_MUL, HD_EXPR_DIV, HD_EXPR_MOD,
      HD_EXPR_SHL, HD_EXPR_SHR, HD_EXPR_ADD};
  static const hd_expr_kind_t others[] = {HD_EXPR_ADD, HD_EXPR_ADD, HD_EXPR_SUB,
                                          HD_EXPR_MIN, HD_EXPR_MUL};
  if (depth == 0)
    return random_in(w->random, 0, 5) == 0
               ? number(w, random_in(w->random, 0, 40))
               : hd_expr_var(w->arena,
                             w->vars[random_in(w->random, 0, w->num_vars - 1)]);
  const hd_expr_t *a = integer(w, depth - 1);
  if (random_in(w->random, 0, 8) == 0)
    return hd_expr_binary(
        w->arena, HD_EXPR_BITAND, a,
        number(w, (INT64_C(1) << random_in(w->random, 0, 6)) - 1));
  if (random_in(w->random, 0, 1))
    return hd_expr_binary(w->arena, by_number[random_in(w->random, 0, 6)], a,
                          number(w, random_in(w->random, 1, 6)));
  return hd_expr_binary(w->arena, others[random_in(w->random, 0, 4)], a,
                        integer(w, depth - 1));
}

static const hd_expr_t *copied(hd_arena_t *arena, const hd_expr_t *e) {
  const hd_expr_t *operands[2];
  for (unsigned i = 0; i < e->num_operands; i++)
    operands[i] = copied(arena, e->operands[i]);
  return hd_expr_make(arena, (hd_expr_kind_t)e->kind, e->type, e, operands,
                      e->num_operands);
}

static void check_range(world_t *w, const hd_expr_t *e) {
  hd_range_t kept = hd_facts_range(w->facts, e);
  hd_range_t found = hd_facts_range(w->facts, copied(w->arena, e));
  assert_true(kept.least == found.least && kept.greatest == found.greatest);
}

// Returns how often a sum was final before the last mode.
static size_t check_sums(world_t *w, const hd_expr_t *e) {
  hd_linear_t sums[HD_LINEAR_EXPAND + 1];
  bool made[HD_LINEAR_EXPAND + 1];
  size_t final = 0;
  for (int mode = HD_LINEAR_SHALLOW; mode <= HD_LINEAR_EXPAND; mode++) {
    made[mode] = hd_linear_of(w->facts, e, mode, &sums[mode]);
    for (int before = 0; before < mode; before++) {
      if (!made[before] || !sums[before].is_final)
        continue;
      assert_true(made[mode]);
      assert_true(hd_linear_equal(&sums[before], &sums[mode]));
      final++;
    }
  }
  return final;
}

static void change(world_t *w, const hd_expr_t *e, hd_facts_mark_t start) {
  if (random_in(w->random, 0, 3) == 0) {
    hd_facts_reset(w->facts, start);
  } else if (w->num_vars < LOOPS + LETS && random_in(w->random, 0, 2) == 0) {
    const hd_var_t *let =
        hd_var_make(w->arena, "x", HD_VAR_LET, hd_type(HD_I32), nowhere);
    hd_facts_let(w->facts, let, e);
    w->vars[w->num_vars++] = let;
  } else {
    static const hd_expr_kind_t kinds[] = {HD_EXPR_LT, HD_EXPR_GE, HD_EXPR_EQ,
                                           HD_EXPR_NE};
    const hd_expr_t *limit = number(w, random_in(w->random, 0, 50));
    hd_facts_assume(
        w->facts,
        hd_expr_binary(w->arena, kinds[random_in(w->random, 0, 3)], e, limit),
        random_in(w->random, 0, 1));
  }
}

static void what_is_kept_is_what_is_found(void **state) {
  (void)state;
  random_t r = random_begin("what_is_kept_is_what_is_found");
  size_t final = 0;
  for (int round = 0; round < ROUNDS; round++) {
    hd_context_t context;
    hd_context_init(&context);
    hd_module_t *module = hd_module_create(&context);
    const hd_func_t func = {.kind = HD_FUNC_FN, .name = "f"};
    world_t w = {.random = &r,
                 .arena = &module->arena,
                 .facts = hd_facts_create(&module->arena, &func)};
    for (; w.num_vars < LOOPS; w.num_vars++) {
      w.vars[w.num_vars] =
          hd_var_make(w.arena, "i", HD_VAR_LOOP, hd_type(HD_I32), nowhere);
      hd_facts_loop(w.facts, w.vars[w.num_vars], number(&w, 0),
                    number(&w, random_in(&r, 1, 300)), NULL);
    }
    hd_facts_mark_t start = hd_facts_mark(w.facts);
    const hd_expr_t *asked[ASKED];
    for (int i = 0; i < ASKED; i++)
      asked[i] = integer(&w, (unsigned)random_in(&r, 0, 4));
    for (int step = 0; step < STEPS; step++) {
      for (int i = 0; i < ASKED; i++) {
        check_range(&w, asked[i]);
        final += check_sums(&w, asked[i]);
      }
      change(&w, asked[random_in(&r, 0, ASKED - 1)], start);
      asked[random_in(&r, 0, ASKED - 1)] = integer(&w, 3);
    }
    hd_context_fini(&context);
  }
  assert_true(final > ROUNDS);
}

HD_UNIT_TESTS(cmocka_unit_test(what_is_kept_is_what_is_found))
