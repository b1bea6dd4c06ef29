// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Diagnostics, and what they are made of: arenas, buffers, suggestions.
#include "Support/Diagnostic.h"

#include "Support/Suggest.h"
#include "UnitTest.h"

#include <stdint.h>
#include <string.h>

static uint32_t add(hd_diagnostics_t *diags, const char *text,
                    uint32_t first_line) {
  hd_diagnostics_init(diags);
  return hd_diagnostics_add_source(diags, "a.hir", text, strlen(text),
                                   first_line);
}

static void expect_print(const hd_diagnostics_t *diags, const char *expected) {
  hd_buffer_t out = {0};
  hd_diagnostics_print(diags, false, &out);
  assert_string_equal(hd_buffer_text(&out), expected);
  hd_buffer_fini(&out);
}

static void an_error_has_a_place_and_a_caret(void **state) {
  (void)state;
  hd_diagnostics_t diags;
  uint32_t source = add(&diags, "one\n\ttwo three\nfour", 1);
  assert_false(hd_error(&diags, (hd_loc_t){source, 9}, HD_E0201, "three", ""));
  hd_note(&diags, (hd_loc_t){source, 15}, "declared %s", "here");
  expect_print(&diags, "a.hir:2:6: error[E0201]: unknown name 'three'\n"
                       "\ttwo three\n"
                       "\t    ^\n"
                       "a.hir:3:1: note: declared here\n"
                       "four\n"
                       "^\n");
  assert_int_equal(diags.exit_class, HD_EXIT_INVALID);
  hd_diagnostics_clear(&diags);
  assert_int_equal(diags.num_errors, 0);
  expect_print(&diags, "");
  hd_diagnostics_fini(&diags);
}

static void places_at_the_ends_are_places(void **state) {
  (void)state;
  hd_diagnostics_t diags;
  uint32_t source = add(&diags, "ab\n", 7);
  const char *name;
  uint32_t line, column;
  assert_true(hd_diagnostics_locate(&diags, (hd_loc_t){source, 0}, &name, &line,
                                    &column));
  assert_int_equal(line, 7);
  assert_int_equal(column, 1);
  assert_true(hd_diagnostics_locate(&diags, (hd_loc_t){source, 3}, &name, &line,
                                    &column));
  assert_int_equal(line, 8);
  assert_int_equal(column, 1);
  assert_false(
      hd_diagnostics_locate(&diags, (hd_loc_t){0, 0}, &name, &line, &column));
  assert_false(hd_diagnostics_locate(&diags, (hd_loc_t){source + 1, 0}, &name,
                                     &line, &column));
  // At the end of the text there is nothing to point at but the place.
  hd_error(&diags, (hd_loc_t){source, 3}, HD_E0104);
  expect_print(&diags,
               "a.hir:8:1: error[E0104]: string does not end on its line\n"
               "\n^\n");
  hd_diagnostics_fini(&diags);
}

// A text may try to write to the terminal of who reads the message.
static void control_characters_are_not_shown(void **state) {
  (void)state;
  hd_diagnostics_t diags;
  uint32_t source = add(&diags, "a \x1b[2J\x7f b\r", 1);
  hd_error(&diags, (hd_loc_t){source, 0}, HD_E0104);
  expect_print(&diags,
               "a.hir:1:1: error[E0104]: string does not end on its line\n"
               "a ?[2J? b?\n^\n");
  hd_diagnostics_fini(&diags);
}

static void only_so_many_errors_are_kept(void **state) {
  (void)state;
  hd_diagnostics_t diags;
  hd_diagnostics_init(&diags);
  diags.max_errors = 3;
  for (int i = 0; i < 10; i++) {
    assert_int_equal(hd_diagnostics_full(&diags), i > 3);
    hd_error(&diags, (hd_loc_t){0, 0}, HD_E0310, "x");
    hd_note(&diags, (hd_loc_t){0, 0}, "n");
  }
  assert_int_equal(diags.num_errors, 10);
  expect_print(&diags,
               "error[E0310]: x\nnote: n\nerror[E0310]: x\nnote: n\n"
               "error[E0310]: x\nnote: n\n"
               "error[E0106]: too many errors; the rest is not shown\n");
  hd_diagnostics_fini(&diags);
}

static void the_first_error_decides_the_exit(void **state) {
  (void)state;
  hd_diagnostics_t diags;
  hd_diagnostics_init(&diags);
  hd_warning(&diags, (hd_loc_t){0, 0}, "w");
  assert_int_equal(diags.exit_class, HD_EXIT_OK);
  hd_error(&diags, (hd_loc_t){0, 0}, HD_E0901, 5LL);
  hd_error(&diags, (hd_loc_t){0, 0}, HD_E0104);
  assert_int_equal(diags.exit_class, HD_EXIT_RESOURCE);
  hd_diagnostics_fini(&diags);
}

static const char *suggest(const char *wanted, const char *const *names,
                           size_t count) {
  static char text[64];
  hd_suggestion_t near = {.wanted = wanted};
  for (size_t i = 0; i < count; i++)
    hd_suggestion_add(&near, names[i]);
  return hd_suggestion_text(&near, "", text, sizeof text);
}

static bool all(hd_diagnostic_code_t code) {
  (void)code;
  return true;
}

static void the_innermost_node_is_named(void **state) {
  (void)state;
  hd_diagnostics_t from, to;
  hd_diagnostics_init(&from);
  hd_diagnostics_init(&to);
  hd_error(&from, (hd_loc_t){0}, HD_E0101, "before");
  hd_diagnostics_mark_t outer = hd_diagnostics_mark(&from);
  hd_error(&from, (hd_loc_t){0}, HD_E0101, "outer");
  hd_diagnostics_mark_t inner = hd_diagnostics_mark(&from);
  hd_error(&from, (hd_loc_t){0}, HD_E0101, "inner");
  hd_note(&from, (hd_loc_t){0}, "of it");
  char name[] = "conv";
  hd_diagnostics_name_node(&from, inner, name);
  name[0] = '?';
  hd_diagnostics_name_node(&from, outer, "loop");
  hd_diagnostics_take(&to, &from);
  hd_diagnostics_fini(&from);
  hd_diagnostics_sift(&to, (hd_diagnostics_mark_t){0}, all);
  const hd_diagnostic_t *d = to.first;
  assert_null(d->node);
  assert_string_equal(d->next->node, "loop");
  assert_string_equal(d->next->next->node, "conv");
  assert_string_equal(d->next->next->next->node, "conv");
  hd_diagnostics_fini(&to);
}

static void the_nearest_name_is_suggested(void **state) {
  (void)state;
  static const char *const names[] = {"thread", "block", "x", "threads_2"};
  assert_string_equal(suggest("thraed", names, 4), "; did you mean 'thread'?");
  assert_string_equal(suggest("blok", names, 4), "; did you mean 'block'?");
  assert_string_equal(suggest("warp", names, 4), "");
  assert_string_equal(suggest("y", names, 4), "");
  char longest[200];
  memset(longest, 'a', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  assert_string_equal(suggest(longest, names, 4), "");
}

static void arenas_give_zeroed_aligned_memory(void **state) {
  (void)state;
  hd_budget_t budget = {0};
  hd_arena_t arena;
  hd_arena_init(&arena, &budget);
  for (size_t size = 0; size < 5000; size += 7) {
    unsigned char *memory = hd_arena_alloc(&arena, size);
    assert_int_equal((uintptr_t)memory % _Alignof(max_align_t), 0);
    for (size_t i = 0; i < size; i++)
      assert_int_equal(memory[i], 0);
    memset(memory, 0xff, size);
  }
  memset(hd_arena_alloc(&arena, 3 << 20), 1, 3 << 20);
  assert_string_equal(hd_arena_strndup(&arena, "abcdef", 3), "abc");
  assert_string_equal(hd_arena_printf(&arena, "%d%s", 12, "x"), "12x");
  assert_true(budget.bytes_used > 3 << 20);
  hd_arena_fini(&arena);
  assert_int_equal(budget.bytes_used, 0);
}

static void buffers_grow(void **state) {
  (void)state;
  hd_buffer_t buffer = {0};
  assert_string_equal(hd_buffer_text(&buffer), "");
  for (int i = 0; i < 1000; i++)
    hd_buffer_printf(&buffer, "%03d", i);
  hd_buffer_write(&buffer, "", 0);
  assert_int_equal(buffer.size, 3000);
  assert_memory_equal(hd_buffer_text(&buffer) + 2997, "999", 4);
  hd_buffer_fini(&buffer);
}

HD_UNIT_TESTS(cmocka_unit_test(an_error_has_a_place_and_a_caret),
              cmocka_unit_test(places_at_the_ends_are_places),
              cmocka_unit_test(control_characters_are_not_shown),
              cmocka_unit_test(only_so_many_errors_are_kept),
              cmocka_unit_test(the_first_error_decides_the_exit),
              cmocka_unit_test(the_innermost_node_is_named),
              cmocka_unit_test(the_nearest_name_is_suggested),
              cmocka_unit_test(arenas_give_zeroed_aligned_memory),
              cmocka_unit_test(buffers_grow))
