// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Support/Budget.h"
#include "Support/Times.h"
#include "UnitTest.h"

#include <pthread.h>

static void begin(hd_times_t *times, hd_trace_t *trace) {
  hd_times_begin(times, "rest", hd_clock_ns());
  times->trace = trace;
}

static void expect(const hd_trace_span_t *span, const char *name) {
  assert_string_equal(span->name, name);
  assert_true(span->begin_ns <= span->end_ns);
}

static void parts_leave_spans(void **state) {
  (void)state;
  size_t count;
  hd_times_t times;
  hd_trace_t *trace = hd_trace_create();
  begin(&times, trace);
  times.lane = 3;
  size_t outer = hd_times_enter(&times, "outer");
  for (int i = 0; i < 2; i++)
    hd_times_leave(&times, hd_times_enter(&times, "inner"));
  hd_times_leave(&times, outer);
  const hd_trace_span_t *spans = hd_trace_spans(trace, &count);
  assert_int_equal(count, 3);
  expect(&spans[0], "inner");
  expect(&spans[1], "inner");
  expect(&spans[2], "outer");
  assert_true(spans[0].end_ns <= spans[1].begin_ns);
  assert_true(spans[2].begin_ns <= spans[0].begin_ns);
  assert_true(spans[1].end_ns <= spans[2].end_ns);
  assert_int_equal(spans[2].lane, 3);
  assert_null(spans[2].detail);
  hd_trace_destroy(trace);
}

static void what_unwinding_left_ends_once(void **state) {
  (void)state;
  size_t count;
  hd_times_t times;
  hd_trace_t *trace = hd_trace_create();
  begin(&times, trace);
  hd_times_enter(&times, "a");
  hd_times_enter(&times, "b");
  hd_times_total(&times);
  hd_times_total(&times);
  const hd_trace_span_t *spans = hd_trace_spans(trace, &count);
  assert_int_equal(count, 2);
  expect(&spans[0], "b");
  expect(&spans[1], "a");
  hd_trace_destroy(trace);
}

static void parts_too_deep_leave_none(void **state) {
  (void)state;
  size_t count, before[HD_TIMES_DEPTH + 2];
  hd_times_t times;
  hd_trace_t *trace = hd_trace_create();
  begin(&times, trace);
  for (int i = 0; i < HD_TIMES_DEPTH + 2; i++)
    before[i] = hd_times_enter(&times, i % 2 ? "a" : "b");
  for (int i = HD_TIMES_DEPTH + 1; i >= 0; i--)
    hd_times_leave(&times, before[i]);
  hd_trace_spans(trace, &count);
  assert_int_equal(count, HD_TIMES_DEPTH);
  assert_int_equal(times.depth, 0);
  hd_trace_destroy(trace);
}

enum { THREADS = 4, SPANS = 1000 };

static void *add_many(void *argument) {
  for (uint64_t i = 0; i < SPANS; i++)
    hd_trace_add(argument, 1, "span", "detail", i, i + 1);
  return NULL;
}

static void threads_add_at_once(void **state) {
  (void)state;
  size_t count;
  pthread_t threads[THREADS];
  hd_trace_t *trace = hd_trace_create();
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, add_many, trace), 0);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  const hd_trace_span_t *spans = hd_trace_spans(trace, &count);
  assert_int_equal(count, THREADS * SPANS);
  assert_int_equal(hd_trace_lost(trace), 0);
  for (size_t i = 0; i < count; i++)
    assert_string_equal(spans[i].detail, "detail");
  hd_trace_destroy(trace);
  hd_trace_add(NULL, 0, "nowhere", NULL, 0, 1);
}

HD_UNIT_TESTS(cmocka_unit_test(parts_leave_spans),
              cmocka_unit_test(what_unwinding_left_ends_once),
              cmocka_unit_test(parts_too_deep_leave_none),
              cmocka_unit_test(threads_add_at_once))
