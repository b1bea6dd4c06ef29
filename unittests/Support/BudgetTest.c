// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Support/Arena.h"
#include "Support/Buffer.h"
#include "UnitTest.h"

#include <string.h>

typedef struct trace {
  char text[16];
} trace_t;

static trace_t trace;

static void say(void *argument) { strcat(trace.text, argument); }

static void unwind_with_two(void *argument) {
  hd_budget_t *budget = argument;
  hd_cleanup_t first, second, third;
  char a[] = "a", b[] = "b", c[] = "c";
  hd_budget_defer(budget, &first, say, a);
  hd_budget_defer(budget, &second, say, b);
  hd_budget_defer(budget, &third, say, c);
  hd_budget_keep(budget, &second); // Not in the order of registration.
  hd_budget_exhausted(budget, HD_EXHAUSTED_TIME);
}

static void unwinding_cleans_up(void **state) {
  (void)state;
  hd_budget_t budget = {0};
  trace = (trace_t){""};
  assert_int_equal(hd_budget_guard(&budget, unwind_with_two, &budget),
                   HD_EXHAUSTED_TIME);
  assert_string_equal(trace.text, "ca");
  assert_null(budget.cleanups);
}

static void clean_one(void *argument) {
  hd_budget_t *budget = argument;
  hd_cleanup_t cleanup;
  char a[] = "a";
  hd_budget_defer(budget, &cleanup, say, a);
  hd_budget_clean(budget, &cleanup);
}

static void cleaning_runs_once(void **state) {
  (void)state;
  hd_budget_t budget = {0};
  trace = (trace_t){""};
  assert_int_equal(hd_budget_guard(&budget, clean_one, &budget),
                   HD_EXHAUSTED_NOTHING);
  assert_string_equal(trace.text, "a");
}

// An inner guard cleans up what came after it, and nothing else.
static void nest(void *argument) {
  hd_budget_t *budget = argument;
  hd_cleanup_t outer;
  char o[] = "o", then[] = "|";
  hd_budget_defer(budget, &outer, say, o);
  assert_int_equal(hd_budget_guard(budget, unwind_with_two, budget),
                   HD_EXHAUSTED_TIME);
  say(then);
  hd_budget_exhausted(budget, HD_EXHAUSTED_MEMORY);
}

static void guards_nest(void **state) {
  (void)state;
  hd_budget_t budget = {0};
  trace = (trace_t){""};
  assert_int_equal(hd_budget_guard(&budget, nest, &budget),
                   HD_EXHAUSTED_MEMORY);
  assert_string_equal(trace.text, "ca|o");
}

// Leaks are found by AddressSanitizer; the account is looked at here.
static void fill_arena(void *argument) {
  hd_budget_t *budget = argument;
  hd_arena_t arena;
  hd_buffer_t text = {0};
  hd_cleanup_t cleanup;
  hd_budget_defer(budget, &cleanup, hd_buffer_end, &text);
  hd_buffer_puts(&text, "on the heap");
  hd_arena_init_local(&arena, budget);
  for (;;)
    hd_arena_alloc(&arena, 100);
}

static void local_arenas_end(void **state) {
  (void)state;
  hd_budget_t budget = {.bytes_limit = 100000};
  assert_int_equal(hd_budget_guard(&budget, fill_arena, &budget),
                   HD_EXHAUSTED_MEMORY);
  assert_int_equal(budget.bytes_used, 0);
}

// Work that looks at nothing but takes memory ends in time.
static void allocating_ends_in_time(void **state) {
  (void)state;
  hd_budget_t late = {.deadline_ns = 1};
  assert_int_equal(hd_budget_guard(&late, fill_arena, &late),
                   HD_EXHAUSTED_TIME);
  assert_int_equal(late.bytes_used, 0);
  const atomic_bool interrupted = true;
  hd_budget_t stopped = {.interrupted = &interrupted};
  assert_int_equal(hd_budget_guard(&stopped, fill_arena, &stopped),
                   HD_EXHAUSTED_INTERRUPT);
  assert_int_equal(stopped.bytes_used, 0);
}

// What reports it may still take memory.
static void reports_take_memory_when_it_is_late(void **state) {
  (void)state;
  hd_budget_t late = {.deadline_ns = 1};
  hd_arena_t arena;
  hd_arena_init(&arena, &late);
  assert_non_null(hd_arena_alloc(&arena, 100));
  hd_arena_fini(&arena);
}

HD_UNIT_TESTS(cmocka_unit_test(unwinding_cleans_up),
              cmocka_unit_test(cleaning_runs_once),
              cmocka_unit_test(guards_nest), cmocka_unit_test(local_arenas_end),
              cmocka_unit_test(allocating_ends_in_time),
              cmocka_unit_test(reports_take_memory_when_it_is_late))
