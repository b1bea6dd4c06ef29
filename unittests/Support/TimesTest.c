// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "UnitTest.h"

#include "Support/Budget.h"
#include "Support/Times.h"

static uint64_t sum(const hd_times_t *times) {
  uint64_t ns = 0;
  for (size_t i = 0; i < times->size; i++)
    ns += times->parts[i].ns;
  return ns;
}

static void nothing_is_kept_before_it_begins(void **state) {
  (void)state;
  hd_times_t times = {0};
  hd_times_leave(&times, hd_times_enter(&times, "a"));
  assert_int_equal(times.size, 0);
  assert_int_equal(hd_times_total(&times), 0);
}

static void wait_ns(uint64_t ns) {
  for (uint64_t end = hd_clock_ns() + ns; hd_clock_ns() < end;)
    ;
}

static void parts_add_up_to_what_passed(void **state) {
  (void)state;
  hd_times_t times;
  uint64_t start = hd_clock_ns();
  hd_times_begin(&times, "rest", start);
  size_t outer = hd_times_enter(&times, "outer");
  wait_ns(1000000);
  size_t inner = hd_times_enter(&times, "inner");
  wait_ns(3000000);
  hd_times_leave(&times, inner);
  size_t again = hd_times_enter(&times, "inner");
  hd_times_leave(&times, again);
  hd_times_leave(&times, outer);
  uint64_t total = hd_times_total(&times), passed = hd_clock_ns() - start;
  assert_int_equal(times.size, 3);
  assert_int_equal(total, sum(&times));
  assert_true(total <= passed);
  assert_true(times.parts[1].ns >= 1000000);
  assert_true(times.parts[2].ns >= 3000000);
  assert_true(total >= 4000000);
}

static void what_unwinding_left_ends(void **state) {
  (void)state;
  hd_times_t times;
  hd_times_begin(&times, "rest", hd_clock_ns());
  hd_times_enter(&times, "a");
  hd_times_enter(&times, "b");
  hd_times_total(&times);
  assert_int_equal(times.now, 0);
}

static void one_part_too_many_is_of_the_rest(void **state) {
  (void)state;
  static char names[HD_TIMES_PARTS + 1][2];
  hd_times_t times;
  hd_times_begin(&times, "rest", hd_clock_ns());
  for (int i = 0; i <= HD_TIMES_PARTS; i++) {
    names[i][0] = (char)(i + 1);
    hd_times_leave(&times, hd_times_enter(&times, names[i]));
  }
  assert_int_equal(times.size, HD_TIMES_PARTS);
  uint64_t total = hd_times_total(&times);
  assert_int_equal(total, sum(&times));
}

// 400 ns passed while two threads did 600 and 200 ns of work.
static void threads_have_their_shares(void **state) {
  (void)state;
  hd_times_t times,
      jobs[2] = {{.size = 2, .parts = {{"code", 500}, {"emit", 100}}},
                 {.size = 1, .parts = {{"emit", 200}}}};
  const hd_times_t *const all[] = {&jobs[0], &jobs[1]};
  hd_times_begin(&times, "rest", hd_clock_ns());
  size_t before = hd_times_enter(&times, "pool");
  wait_ns(1000);
  hd_times_leave(&times, before);
  uint64_t pool = times.parts[1].ns;
  before = hd_times_enter(&times, "pool");
  times.since = hd_clock_ns(); // Of the clock alone: it goes on.
  hd_times_share(&times, 400, 2, all, 2);
  assert_string_equal(times.parts[2].name, "code");
  assert_int_equal(times.parts[2].ns, 250); // 500 of 800.
  assert_string_equal(times.parts[3].name, "emit");
  assert_int_equal(times.parts[3].ns, 150);
  assert_true(times.parts[1].ns >= pool - 400);
  assert_int_equal(times.work_ns, 800);
  assert_int_equal(times.shared_ns, 400);
  assert_int_equal(times.threads, 2);
  hd_times_leave(&times, before);
  uint64_t total = hd_times_total(&times);
  assert_int_equal(total, sum(&times));
}

HD_UNIT_TESTS(cmocka_unit_test(nothing_is_kept_before_it_begins),
              cmocka_unit_test(parts_add_up_to_what_passed),
              cmocka_unit_test(what_unwinding_left_ends),
              cmocka_unit_test(one_part_too_many_is_of_the_rest),
              cmocka_unit_test(threads_have_their_shares))
