// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Jobs of the pool: what they report and where they end, by any number of
// threads.
#include "Runtime/Compile.h"
#include "Support/BuildId.h"
#include "UnitTest.h"

#include <string.h>

enum { JOBS = 12 };

typedef struct plan {
  int fail, exhaust; // Numbers of jobs, or -1.
  char done[JOBS];
} plan_t;

static bool compile(void *argument, unsigned piece, hd_module_t *module) {
  plan_t *plan = argument;
  hd_context_t *context = module->context;
  char name[8] = {(char)('a' + piece)};
  for (int i = 0; i < 100; i++)
    HD_ARENA_ARRAY(&module->arena, char, 100);
  plan->done[piece]++;
  hd_remark(&context->diags, (hd_loc_t){0}, "compiled %s", name);
  if ((int)piece == plan->exhaust)
    for (;;)
      HD_ARENA_ARRAY(&module->arena, char, 1000);
  return (int)piece != plan->fail ||
         hd_error(&context->diags, (hd_loc_t){0}, HD_E0504, name);
}

typedef struct trial {
  hd_context_t context;
  hd_thread_pool_t *pool;
  plan_t plan;
  bool ok;
} trial_t;

static void run(void *argument) {
  trial_t *trial = argument;
  trial->ok = hd_compile_all(&trial->context, trial->pool, JOBS, compile,
                             &trial->plan, NULL);
}

// What was reported, as one text.
static hd_exhausted_t try(unsigned threads, plan_t plan, bool *ok,
                          hd_buffer_t *text) {
  trial_t trial = {.plan = plan};
  hd_context_init(&trial.context);
  trial.context.budget.bytes_limit = 10 << 20;
  trial.pool = threads ? hd_thread_pool_create(threads) : NULL;
  hd_exhausted_t result = hd_budget_guard(&trial.context.budget, run, &trial);
  *ok = trial.ok;
  hd_diagnostics_print(&trial.context.diags, false, text);
  assert_int_equal(trial.context.budget.bytes_used, 0);
  for (int i = 0; i < JOBS && plan.fail < 0 && plan.exhaust < 0; i++)
    assert_int_equal(trial.plan.done[i], 1);
  hd_thread_pool_destroy(trial.pool);
  hd_context_fini(&trial.context);
  return result;
}

static void all_is_well(void **state) {
  (void)state;
  for (unsigned threads = 0; threads < 6; threads++) {
    bool ok;
    hd_buffer_t text = {0};
    assert_int_equal(try(threads, (plan_t){-1, -1, ""}, &ok, &text),
                     HD_EXHAUSTED_NOTHING);
    assert_true(ok);
    assert_non_null(strstr(hd_buffer_text(&text), "remark: compiled a\n"));
    assert_non_null(
        strstr(hd_buffer_text(&text), "compiled k\nremark: compiled l\n"));
    hd_buffer_fini(&text);
  }
}

static void the_first_failure_is_told(void **state) {
  (void)state;
  for (unsigned threads = 0; threads < 6; threads++) {
    bool ok;
    hd_buffer_t text = {0};
    assert_int_equal(try(threads, (plan_t){2, 5, ""}, &ok, &text),
                     HD_EXHAUSTED_NOTHING);
    assert_false(ok);
    assert_string_equal(hd_buffer_text(&text),
                        "remark: compiled a\nremark: compiled b\n"
                        "remark: compiled c\nerror[E0504]: LLVM: c\n");
    hd_buffer_fini(&text);
  }
}

// Whoever asks hears of all pieces, whatever is told.
static void all_failures_are_kept(void **state) {
  (void)state;
  hd_context_t context;
  hd_context_init(&context);
  plan_t plan = {4, -1, ""};
  hd_failure_t failures[JOBS];
  assert_false(hd_compile_all(&context, NULL, JOBS, compile, &plan, failures));
  for (int i = 0; i < JOBS; i++)
    assert_int_equal(failures[i].code, i == 4 ? HD_E0504 : HD_DIAGNOSTIC_COUNT);
  assert_string_equal(failures[4].why, "LLVM: e");
  hd_context_fini(&context);
}

static void a_limit_unwinds_the_caller(void **state) {
  (void)state;
  for (unsigned threads = 0; threads < 6; threads++) {
    bool ok;
    hd_buffer_t text = {0};
    assert_int_equal(try(threads, (plan_t){7, 1, ""}, &ok, &text),
                     HD_EXHAUSTED_MEMORY);
    assert_string_equal(hd_buffer_text(&text),
                        "remark: compiled a\nremark: compiled b\n");
    hd_buffer_fini(&text);
  }
}

static void a_build_has_an_id(void **state) {
  (void)state;
  char text[128], again[128], narrow[4];
  assert_non_null(hd_build_id(text, sizeof(text)));
  assert_true(strlen(text) >= 16);
  assert_int_equal(strspn(text, "0123456789abcdef"), strlen(text));
  assert_string_equal(hd_build_id(again, sizeof(again)), text);
  assert_null(hd_build_id(narrow, sizeof(narrow)));
}

HD_UNIT_TESTS(cmocka_unit_test(all_is_well),
              cmocka_unit_test(the_first_failure_is_told),
              cmocka_unit_test(all_failures_are_kept),
              cmocka_unit_test(a_limit_unwinds_the_caller),
              cmocka_unit_test(a_build_has_an_id))
