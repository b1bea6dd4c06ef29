// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Support/Steps.h"
#include "UnitTest.h"

#include <stdio.h>
#include <string.h>

static void every_step_is_done_without_a_limit(void **state) {
  (void)state;
  hd_steps_t steps = {0};
  assert_true(hd_step(&steps, HD_STEP_REWRITE, "of %s", "a"));
  assert_true(hd_step(&steps, HD_STEP_PASS, "%s on '%s'", "cse", "k"));
  assert_int_equal(steps.count, 2);
}

static void steps_beyond_the_limit_are_not(void **state) {
  (void)state;
  hd_steps_t steps = {.limited = true, .limit = 2};
  assert_true(hd_step(&steps, HD_STEP_REWRITE, "a"));
  assert_true(hd_step(&steps, HD_STEP_FUSION, "b"));
  assert_false(hd_step(&steps, HD_STEP_KERNEL, "c"));
  steps = (hd_steps_t){.limited = true};
  assert_false(hd_step(&steps, HD_STEP_REWRITE, "a"));
}

static void note(void *argument, const hd_step_info_t *step) {
  char *text = argument;
  sprintf(text + strlen(text), "%d %s %s %d\n", (int)step->number,
          hd_step_kind_name(step->kind), step->name, step->done);
}

static void a_watcher_sees_each(void **state) {
  (void)state;
  char seen[200] = "";
  hd_steps_t steps = {
      .limited = true, .limit = 1, .watch = note, .watch_argument = seen};
  hd_step(&steps, HD_STEP_PRECISION, "f16 for '%s'", "conv");
  hd_step(&steps, HD_STEP_KERNEL, "'%s'", "conv");
  assert_string_equal(seen,
                      "1 precision f16 for 'conv' 1\n2 kernel 'conv' 0\n");
}

static const void *replace(void *argument, const hd_step_info_t *step,
                           void *module, const void *made) {
  assert_null(module);
  return strcmp(step->name, "bad") == 0 ? argument : made;
}

static void a_fault_is_planted_where_the_step_is_done(void **state) {
  (void)state;
  int good, bad;
  hd_steps_t steps = {
      .limited = true, .limit = 2, .plant = replace, .plant_argument = &bad};
  hd_step(&steps, HD_STEP_PASS, "good");
  assert_ptr_equal(hd_step_made(&steps, NULL, &good), &good);
  hd_step(&steps, HD_STEP_PASS, "bad");
  assert_ptr_equal(hd_step_made(&steps, NULL, &good), &bad);
  hd_step(&steps, HD_STEP_PASS, "bad"); // Not done.
  assert_ptr_equal(hd_step_made(&steps, NULL, &good), &good);
}

HD_UNIT_TESTS(cmocka_unit_test(every_step_is_done_without_a_limit),
              cmocka_unit_test(steps_beyond_the_limit_are_not),
              cmocka_unit_test(a_watcher_sees_each),
              cmocka_unit_test(a_fault_is_planted_where_the_step_is_done))
