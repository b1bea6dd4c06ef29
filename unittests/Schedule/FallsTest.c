// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is kept of candidates that did not do, and what spilling costs.
#include "Schedule/Template/Falls.h"
#include "Schedule/Product/Product.h"
#include "UnitTest.h"

#include <math.h>

typedef struct fixture {
  hd_context_t context;
  hd_arena_t arena;
  hd_falls_t falls;
} fixture_t;

static void begin(fixture_t *f) {
  hd_context_init(&f->context);
  hd_arena_init(&f->arena, &f->context.budget);
  f->falls = (hd_falls_t){.arena = &f->arena};
}

static void end(fixture_t *f) {
  hd_arena_fini(&f->arena);
  hd_context_fini(&f->context);
}

// 4 tiles of 128 x 128 and 8 steps of 64, by 256 threads: 4 * (1 + 8) * 256
// bytes for each byte of a thread, 128 a cycle, on 2 multiprocessors of 1 MHz:
// 36 microseconds.
static void a_byte_costs_what_moves(void **state) {
  (void)state;
  fixture_t f;
  begin(&f);
  const hd_machine_t machine = {.count = 2, .mhz = 1, .l1_bytes = 128};
  const hd_product_form_t product = {.type = HD_F16,
                                     .sizes = {1, 200, 256, 512}};
  const hd_form_t form = hd_product_form_ask(&f.arena, &product);
  const hd_candidate_t candidate = {.figures = {[HD_FIGURE_TILE_M] = 128,
                                                [HD_FIGURE_TILE_N] = 128,
                                                [HD_FIGURE_TILE_K] = 64,
                                                [HD_FIGURE_THREADS] = 256}};
  assert_true(fabs(hd_candidate_byte_us(&machine, &form, &candidate) - 36) <
              1e-9);
  end(&f);
}

static hd_fall_t fall_of(const char *form, const char *name, double us) {
  return (hd_fall_t){.of = {.form = form, .template = "t", .name = name},
                     .why = "why",
                     .code = HD_E0219,
                     .us = us};
}

static void spills_are_compared(void **state) {
  (void)state;
  fixture_t f;
  begin(&f);
  hd_chosen_t chosen = {.of = {"f", "t", "t(A = 1)", 0, false},
                        .us = 10,
                        .next_us = 11,
                        .byte_us = 0.01};
  // Up to the next candidate's price it stays.
  assert_true(hd_chosen_spill(&chosen, &f.falls, 64) == 0);
  assert_true(hd_chosen_spill(&chosen, &f.falls, 100) == 0);
  assert_true(fabs(hd_chosen_spill(&chosen, &f.falls, 128) - 1.28) < 1e-9);
  // Nor is it given up for next to nothing.
  chosen.next_us = 10;
  assert_true(hd_chosen_spill(&chosen, &f.falls, 16) == 0);
  assert_true(fabs(hd_chosen_spill(&chosen, &f.falls, 32) - 0.32) < 1e-9);
  // Where there is no other, whatever it costs.
  chosen.next_us = INFINITY;
  assert_true(hd_chosen_spill(&chosen, &f.falls, 100000) == 0);
  chosen.next_us = 11;
  // What the text names, or was measured, is as it is.
  chosen.is_pinned = true;
  assert_true(hd_chosen_spill(&chosen, &f.falls, 128) == 0);
  chosen.is_pinned = false;
  chosen.is_measured = true;
  assert_true(hd_chosen_spill(&chosen, &f.falls, 128) == 0);
  chosen.is_measured = false;
  // What is known is part of the price.
  const hd_fall_t fall = fall_of("f", "t(A = 1)", 1.28);
  hd_falls_add(&f.falls, &fall);
  assert_true(hd_chosen_spill(&chosen, &f.falls, 128) == 0);
  end(&f);
}

// One of a key, which is told anew in the next round.
static void falls_are_kept(void **state) {
  (void)state;
  fixture_t f;
  begin(&f);
  char name[] = "t(A = 1)";
  hd_fall_t fall = fall_of("f", name, 1), same = fall_of("f", "t(A = 1)", 0);
  assert_null(hd_falls_find(&f.falls, &same.of));
  hd_fall_t *kept = hd_falls_add(&f.falls, &fall);
  name[0] = 'x'; // The texts are copies.
  assert_ptr_equal(hd_falls_find(&f.falls, &same.of), kept);
  fall = fall_of("f", "t(A = 1)", INFINITY);
  fall.why = "then";
  assert_ptr_equal(hd_falls_add(&f.falls, &fall), kept);
  assert_string_equal(kept->why, "then");
  assert_int_equal(f.falls.list.size, 1);
  assert_ptr_equal(hd_falls_first(&f.falls, "f"), kept);
  assert_null(hd_falls_first(&f.falls, "g"));
  kept->is_told = true;
  hd_falls_begin(&f.falls);
  assert_false(kept->is_told);
  end(&f);
}

static const hd_fall_t *find_any(const fixture_t *f, const char *form,
                                 const char *name) {
  return hd_falls_find_any(&f->falls, &(hd_candidate_key_t){
                                          .form = form,
                                          .template = "t",
                                          .name = name,
                                      });
}

static void add(fixture_t *f, const char *form, int i,
                hd_diagnostic_code_t code) {
  hd_fall_t fall =
      fall_of(form, hd_arena_printf(&f->arena, "t(A = %d)", i), INFINITY);
  fall.code = code;
  hd_falls_add(&f->falls, &fall);
}

// Of one form, for one kind of reason.
static void templates_fall(void **state) {
  (void)state;
  fixture_t f;
  begin(&f);
  int i = 0;
  for (; i < HD_FALLS_OF_TEMPLATE - 1; i++) {
    add(&f, "f", i, HD_E0219);
    add(&f, "f", i + 100, HD_E0505);
  }
  add(&f, "g", i, HD_E0219);
  hd_falls_add(&f.falls, &(hd_fall_t){.of = {"f", "t", "t(A = 200)", 0, false},
                                      .why = "spills",
                                      .code = HD_E0219,
                                      .us = 1});
  assert_null(find_any(&f, "f", "t(A = 50)"));
  add(&f, "f", i, HD_E0219);
  const hd_fall_t *all = find_any(&f, "f", "t(A = 50)");
  assert_non_null(all);
  assert_string_equal(hd_fall_name(all), "t");
  assert_string_equal(
      all->why, "8 of its candidates do not do, among them t(A = 7): why");
  assert_true(isinf(all->us));
  // What is known of a candidate itself goes before.
  assert_string_equal(hd_fall_name(find_any(&f, "f", "t(A = 3)")), "t(A = 3)");
  assert_null(find_any(&f, "g", "t(A = 50)"));
  end(&f);
}

// After too many rounds.
static void forms_fall(void **state) {
  (void)state;
  fixture_t f;
  begin(&f);
  for (int i = 0; i < HD_FALLS_ROUNDS; i++) {
    assert_null(find_any(&f, "f", "t(A = 50)"));
    if (i == 0)
      add(&f, "f", i, HD_E0505);
    hd_falls_begin(&f.falls);
  }
  add(&f, "g", 1, HD_E0505);
  assert_null(find_any(&f, "f", "t(A = 50)"));
  assert_string_equal(hd_fall_name(find_any(&f, "g", "t(A = 50)")),
                      "any template");
  end(&f);
}

// What falls once has to be another the next time, or rounds would not end.
static void what_may_fall(void **state) {
  (void)state;
  fixture_t f;
  begin(&f);
  hd_chosen_t chosen = {.of = {"f", "t", "t(A = 1)", 0, false}};
  const hd_chosen_t of_rule = {.of = {.form = "f"}};
  assert_false(hd_chosen_may_fall(NULL, &f.falls, HD_E0505));
  assert_false(hd_chosen_may_fall(&of_rule, &f.falls, HD_E0505));
  assert_false(hd_chosen_may_fall(&chosen, &f.falls, HD_E0201));
  assert_true(hd_chosen_may_fall(&chosen, &f.falls, HD_E0505));
  chosen.is_pinned = true;
  assert_false(hd_chosen_may_fall(&chosen, &f.falls, HD_E0505));
  chosen.is_pinned = false;
  hd_fall_t fall = fall_of("f", "t(A = 1)", 1);
  hd_falls_add(&f.falls, &fall);
  assert_true(hd_chosen_may_fall(&chosen, &f.falls, HD_E0505));
  fall.us = INFINITY;
  hd_falls_add(&f.falls, &fall);
  assert_false(hd_chosen_may_fall(&chosen, &f.falls, HD_E0505));
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_byte_costs_what_moves),
      cmocka_unit_test(spills_are_compared),
      cmocka_unit_test(falls_are_kept),
      cmocka_unit_test(templates_fall),
      cmocka_unit_test(forms_fall),
      cmocka_unit_test(what_may_fall),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
