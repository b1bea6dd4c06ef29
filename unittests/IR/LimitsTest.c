// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts that are large in every direction end soon, by parsing or by a
// diagnostic; where a budget is used up nothing is lost (AddressSanitizer's
// leak check sees to that).
#include "IR/Text/Parser.h"
#include "IR/Text/Printer.h"
#include "UnitTest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZE = 1 << 20 };

// Of the processor's time, which others' work does not lengthen. A second is
// what a user waits; the sanitizers take several times that.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const double most_seconds = 20;
#else
static const double most_seconds = 1;
#endif

// Parses, prints and parses again; the result may be errors.
static void check_time(const char *what, const hd_buffer_t *text) {
  hd_context_t context;
  hd_context_init(&context);
  clock_t start = clock();
  hd_buffer_t print = {0};
  hd_module_t *module =
      hd_module_parse(&context, what, hd_buffer_text(text), text->size, 1);
  if (module)
    hd_module_print(module, &print);
  else
    hd_diagnostics_print(&context.diags, false, &print);
  double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  if (getenv("HIDET_TEST_TIMES"))
    print_message("%6.3f s  %s\n", seconds, what);
  if (seconds > most_seconds)
    fail_msg("%s: %g s", what, seconds);
  assert_true(module || context.diags.num_errors > 0);
  hd_buffer_fini(&print);
  hd_context_fini(&context);
}

// head, then middle again and again (%d is its number), then tail.
static const struct {
  const char *what, *head, *middle, *tail;
} texts[] = {
    {"opening parentheses", "const a = ", "(", ""},
    {"parentheses in a range", "fn f() {\n  for i in ", "(", "\n}\n"},
    {"closing parentheses", "", ")", ""},
    {"opening braces", "fn f() ", "{", ""},
    {"nested ifs", "fn f() {\n", "if true {\n", ""},
    {"else if", "fn f() {\n  if true {\n  }", " else if true {\n  }", "\n}\n"},
    {"a sum", "const a = 1", " + 1", "\n"},
    {"a sum of products", "const a = 1", " * 1 + 1", "\n"},
    {"a tower of sums", "const a = 1", " + 1) + (1", "\n"},
    {"negations", "const a = ", "-", "1\n"},
    {"conditions", "const a = 1", " ? 1 : 1", "\n"},
    {"ceildiv of ceildiv", "const a = ", "ceildiv(1, ", "1"},
    {"ceildivs side by side", "fn f(x: i32) -> i32 {\n  return x",
     " + ceildiv(x, x * x * x * x * x * x * x * x)", "\n}\n"},
    {"constants", "", "const a%d = 1\n", ""},
    {"one constant again", "", "const a = 1\n", ""},
    {"functions", "", "fn f%d() {\n}\n", ""},
    {"overloads", "fn f() {\n}\n", "fn f(a: i32) {\n}\n", ""},
    {"calls down", "fn f0() {\n}\n", "fn f%d() {\n  f%p()\n}\n", ""},
    {"calls up", "", "fn f%d() {\n  f%n()\n}\n", ""},
    {"calls of one function", "fn f() {\n}\nfn g() {\n", "f()\n", "}\n"},
    {"lets", "fn f() {\n", "let a%d = 1\n", "}\n"},
    {"lets that use the first", "fn f() {\n  let a = 1\n", "let b%d = a\n",
     "}\n"},
    {"a chain of lets", "fn f() {\n  let a0 = 1\n", "let a%d = a%p + a%p\n",
     "}\n"},
    {"one let again", "fn f() {\n", "let a = 1\n", "}\n"},
    {"unknown names", "fn f() {\n", "let a%d = b%d\n", "}\n"},
    {"unknown names in one statement", "fn f() {\n  let a = x",
     " + longer_name_%d", "\n}\n"},
    {"unknown characters", "", "$@", ""},
    {"unknown items", "", "x\n", ""},
    {"parameters", "fn f(a: i32", ", a%d: i32", ") {\n}\n"},
    {"kernels", "", "kernel k%d() {\n}\n", ""},
    {"launches", "kernel k() {\n}\nplan p() {\n", "launch k()\n", "}\n"},
    {"workspaces", "plan p() {\n", "workspace t%d: f32[4]\n", "}\n"},
    {"dimensions", "fn f(in a: f32[1", ", 1", "]) {\n}\n"},
    {"mapping dimensions", "const a = repeat(1", ", 1", ")\n"},
    {"mappings", "const a = repeat(1)", " * repeat(1)", "\n"},
    {"mappings of mappings", "const m0 = repeat(1)\n",
     "const m%d = m%p * m%p\n", ""},
    {"mappings in parentheses", "const a = ", "repeat(1) * (", ""},
    {"layout items", "fn f(in a: f32[4] layout(row", ", swizzle(128)",
     ")) {\n}\n"},
    {"statements on one line", "fn f() {\n", "f() ", "}\n"},
    {"a long name", "const a", "a", " = 1\n"},
    {"a long number", "const a = 1", "1", "\n"},
    {"a long float", "const a = 1.", "1", "\n"},
    {"a long string", "fn f() {\n  assert true, \"", "x", "\"\n}\n"},
    {"strings", "fn f() {\n", "assert true, \"\\n\"\n", "}\n"},
    {"open strings", "", "\"a\n", ""},
    {"empty lines", "", "\n", ""},
    {"comments", "", "//\n", ""},
    {"nested accesses", "fn f(in a: i32[4]) -> i32 {\n  return ", "a[", ""},
    {"nested defaults", "fn f(in a: i32[4]) -> i32 {\n  return ", "a[0] else ",
     "1\n}\n"},
    {"vector lanes", "fn f(v: f32x4) -> f32 {\n  return v", "[0]", "\n}\n"},
    {"nested task accesses",
     "task t(x: i64[n]) -> y: i64[n] {\n  y[i] = ", "x[", ""},
    {"nested reductions",
     "task t(x: i64[n]) -> y: i64[n] {\n  y[i] = ", "sum(a%d: n) ", "1\n}\n"},
    {"a sum in a task", "task t(x: i64[n]) -> y: i64[n] {\n  y[i] = 1", " + i",
     "\n}\n"},
    {"ceildivs in a task",
     "task t(x: i64[n]) -> y: i64[n] {\n  y[i] = ", "ceildiv(i, ", "1"},
    {"definitions", "task t(x: i64[n]) -> y: i64[n] {\n", "y[i] = x[i]\n",
     "}\n"},
    {"local tensors", "task t(x: i64[n]) -> y: i64[n] {\n", "a%d[i] = x[i]\n",
     "}\n"},
    {"inputs", "task t(x: i64[n]", ", x%d: i64[n%d]", ") -> y: i64[n] {\n}\n"},
    {"clauses", "kernel k() ", "grid(1) ", "{\n}\n"},
};

static void write_middle(hd_buffer_t *text, const char *middle, unsigned n) {
  for (; *middle; middle++) {
    if (*middle != '%') {
      hd_buffer_write(text, middle, 1);
      continue;
    }
    middle++;
    hd_buffer_printf(text, "%u",
                     *middle == 'd'   ? n
                     : *middle == 'p' ? n - 1
                                      : n + 1);
  }
}

static void large_texts_end_soon(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    hd_buffer_t text = {0};
    hd_buffer_puts(&text, texts[i].head);
    for (unsigned n = 1; text.size < SIZE; n++)
      write_middle(&text, texts[i].middle, n);
    hd_buffer_puts(&text, texts[i].tail);
    check_time(texts[i].what, &text);
    hd_buffer_fini(&text);
  }
}

typedef struct work {
  hd_context_t *context;
  const char *text;
} work_t;

static void parse_and_print(void *argument) {
  work_t *work = argument;
  hd_buffer_t out = {0};
  hd_module_t *module =
      hd_module_parse(work->context, "t", work->text, strlen(work->text), 1);
  if (module)
    hd_module_print(module, &out);
  hd_buffer_fini(&out);
}

static const char program[] =
    "const big = 0x1234_5678\n"
    "fn g(x: f32) -> f32 {\n  return exp(x) + 1.5\n}\n"
    "kernel k(n: i32, inout a: f32[n, 8]) grid(n) block(64) {\n"
    "  shared s: f32[64] layout(swizzle(128))\n"
    "  for i, j in repeat(4, 1) * spatial(8, 8) on thread {\n"
    "    a[i, j] = g(a[i, j] else 0.0) + s[thread] // \"comment\"\n"
    "    assert i < 32, \"inside\"\n"
    "  }\n"
    "}\n";

static void a_budget_of_memory_unwinds_cleanly(void **state) {
  (void)state;
  unsigned exhausted = 0, finished = 0;
  // To the last, which has room for the library's names and one of its texts.
  for (size_t limit = 512; limit < (1 << 20); limit += limit / 8) {
    hd_context_t context;
    hd_context_init(&context);
    context.budget.bytes_limit = limit;
    work_t work = {&context, program};
    hd_exhausted_t what =
        hd_budget_guard(&context.budget, parse_and_print, &work);
    assert_true(what == HD_EXHAUSTED_NOTHING || what == HD_EXHAUSTED_MEMORY);
    exhausted += what == HD_EXHAUSTED_MEMORY;
    finished += what == HD_EXHAUSTED_NOTHING;
    hd_context_fini(&context);
    assert_int_equal(context.budget.bytes_used, 0);
  }
  assert_true(exhausted > 10 && finished > 0);
}

// A limit below what is used already stops the next allocation.
static void a_budget_may_be_lowered(void **state) {
  (void)state;
  hd_context_t context;
  hd_context_init(&context);
  work_t work = {&context, program};
  assert_int_equal(hd_budget_guard(&context.budget, parse_and_print, &work),
                   HD_EXHAUSTED_NOTHING);
  context.budget.bytes_limit = context.budget.bytes_used / 2;
  assert_int_equal(hd_budget_guard(&context.budget, parse_and_print, &work),
                   HD_EXHAUSTED_MEMORY);
  hd_context_fini(&context);
}

static void time_and_interrupts_unwind(void **state) {
  (void)state;
  hd_context_t context;
  work_t work = {&context, program};
  hd_context_init(&context);
  context.budget.deadline_ns = 1;
  assert_int_equal(hd_budget_guard(&context.budget, parse_and_print, &work),
                   HD_EXHAUSTED_TIME);
  atomic_bool interrupted;
  atomic_init(&interrupted, true);
  context.budget.deadline_ns = 0;
  context.budget.interrupted = &interrupted;
  assert_int_equal(hd_budget_guard(&context.budget, parse_and_print, &work),
                   HD_EXHAUSTED_INTERRUPT);
  hd_context_fini(&context);
}

static void modules_may_end_in_any_order(void **state) {
  (void)state;
  hd_context_t context;
  hd_context_init(&context);
  hd_module_t *modules[5];
  for (int i = 0; i < 5; i++)
    modules[i] = hd_module_create(&context);
  hd_module_destroy(modules[2]);
  hd_module_destroy(modules[0]);
  hd_module_destroy(modules[4]);
  hd_module_destroy(NULL);
  hd_context_fini(&context); // The others.
  assert_int_equal(context.budget.bytes_used, 0);
}

static void items_are_found_by_name(void **state) {
  (void)state;
  hd_context_t context;
  hd_context_init(&context);
  const char *text =
      "const a = 1\nfn f() {\n}\nfn f(x: i32) {\n}\nkernel k() {\n}\n";
  hd_module_t *module = hd_module_parse(&context, "t", text, strlen(text), 1);
  size_t cursor = 0;
  assert_ptr_equal(hd_module_next(module, "f", &cursor),
                   &module->items.data[1]);
  assert_ptr_equal(hd_module_next(module, "f", &cursor),
                   &module->items.data[2]);
  assert_null(hd_module_next(module, "f", &cursor));
  assert_non_null(hd_module_find(module, "k", HD_FUNC_KERNEL));
  assert_null(hd_module_find(module, "k", HD_FUNC_PLAN));
  assert_null(hd_module_find(module, "a", -1));
  // What is added later is found, too.
  assert_true(hd_module_parse_into(module, "t", "plan p() {\n}\n", 13, 1));
  assert_ptr_equal(hd_module_entry(module),
                   hd_module_find(module, "p", HD_FUNC_PLAN));
  hd_context_fini(&context);
}

// A module whose kernel has compile-time parameters, and who asks for one.
typedef struct asking {
  hd_module_t *module;
  const hd_func_t *func;
} asking_t;

static void ask(void *argument) {
  asking_t *a = argument;
  a->func = hd_module_ask(a->module, "t", "k[N = 8]");
}

// Of what a kernel with values is read as, nothing is kept that is not whole:
// whoever asks after a call that was stopped gets what a fresh module gives.
static void instances_are_read_whole(void **state) {
  (void)state;
  enum { LINES = 2000, STEP = 1 << 14 }; // Many blocks of an arena.
  hd_buffer_t text = {0}, whole = {0};
  hd_buffer_puts(&text,
                 "kernel k[N: i32](inout a: f32[N]) grid(1) block(32) {\n"
                 "  if thread < N {\n");
  for (int i = 0; i < LINES; i++)
    hd_buffer_printf(&text, "    a[thread] = a[thread] * 8.0 + %d.0\n", i);
  hd_buffer_puts(&text, "  }\n}\n");
  bool fits = false;
  int stopped = -1;
  for (size_t extra = 1; !fits; extra += STEP, stopped++) {
    hd_context_t context;
    hd_buffer_t print = {0};
    hd_context_init(&context);
    asking_t a = {.module = hd_module_parse(
                      &context, "t", hd_buffer_text(&text), text.size, 1)};
    assert_non_null(a.module);
    context.budget.bytes_limit = context.budget.bytes_used + extra;
    fits = hd_budget_guard(&context.budget, ask, &a) == HD_EXHAUSTED_NOTHING;
    context.budget.bytes_limit = 0;
    ask(&a);
    assert_non_null(a.func);
    hd_module_print(a.module, &print);
    if (!whole.size)
      hd_buffer_write(&whole, hd_buffer_text(&print), print.size + 1);
    assert_string_equal(hd_buffer_text(&print), hd_buffer_text(&whole));
    assert_non_null(strstr(hd_buffer_text(&print), "* 8.0 + 1999.0"));
    hd_buffer_fini(&print);
    hd_context_fini(&context);
  }
  assert_true(stopped > 8);
  hd_buffer_fini(&text);
  hd_buffer_fini(&whole);
}

HD_UNIT_TESTS(cmocka_unit_test(large_texts_end_soon),
              cmocka_unit_test(instances_are_read_whole),
              cmocka_unit_test(a_budget_of_memory_unwinds_cleanly),
              cmocka_unit_test(a_budget_may_be_lowered),
              cmocka_unit_test(time_and_interrupts_unwind),
              cmocka_unit_test(modules_may_end_in_any_order),
              cmocka_unit_test(items_are_found_by_name))
