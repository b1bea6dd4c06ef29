// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is kept of candidates that did not do, and what spilling costs.
#include "Schedule/Template/Falls.h"
#include "CodeGen/CodeGen.h"
#include "UnitTest.h"

#include <math.h>

// A block has as much shared memory for choosing as for making code.
static void machines_are_targets(void **state) {
  (void)state;
  const hd_target_t *target;
  for (size_t i = 0; (target = hd_target_get(i)); i++) {
    hd_machine_t machine;
    if (target->arch != HD_ARCH_NVPTX)
      continue;
    assert_true(hd_machine_find(target->sm, &machine));
    assert_int_equal(machine.block_shared, target->max_shared_bytes);
  }
}

// 4 tiles of 128 x 128 and 8 steps of 64, by 256 threads: 4 * (1 + 8) * 256
// bytes for each byte of a thread, 128 a cycle, on 2 multiprocessors of 1 MHz:
// 36 microseconds.
static void a_byte_costs_what_moves(void **state) {
  (void)state;
  const hd_machine_t machine = {.count = 2, .mhz = 1};
  const hd_form_t form = {.kind = HD_FORM_KIND_PRODUCT,
                          .sizes = {1, 200, 256, 512}};
  const hd_candidate_t candidate = {.figures = {[HD_FIGURE_TILE_M] = 128,
                                                [HD_FIGURE_TILE_N] = 128,
                                                [HD_FIGURE_TILE_K] = 64,
                                                [HD_FIGURE_THREADS] = 256}};
  assert_true(fabs(hd_candidate_byte_us(&machine, &form, &candidate) - 36) <
              1e-9);
}

static void spills_are_compared(void **state) {
  (void)state;
  hd_context_t context;
  hd_context_init(&context);
  hd_arena_t arena;
  hd_arena_init(&arena, &context.budget);
  hd_falls_t falls = {.arena = &arena};
  hd_chosen_t chosen = {
      .key = "k", .name = "t(A = 1)", .us = 10, .next_us = 11, .byte_us = 0.01};
  // Up to the next candidate's price it stays.
  assert_true(hd_chosen_spill(&chosen, &falls, 64) == 0);
  assert_true(hd_chosen_spill(&chosen, &falls, 100) == 0);
  assert_true(fabs(hd_chosen_spill(&chosen, &falls, 128) - 1.28) < 1e-9);
  // Nor is it given up for next to nothing.
  chosen.next_us = 10;
  assert_true(hd_chosen_spill(&chosen, &falls, 16) == 0);
  assert_true(fabs(hd_chosen_spill(&chosen, &falls, 32) - 0.32) < 1e-9);
  // Where there is no other, whatever it costs.
  chosen.next_us = INFINITY;
  assert_true(hd_chosen_spill(&chosen, &falls, 100000) == 0);
  chosen.next_us = 11;
  // What the text names, or was measured, is as it is.
  chosen.is_pinned = true;
  assert_true(hd_chosen_spill(&chosen, &falls, 128) == 0);
  chosen.is_pinned = false;
  chosen.is_measured = true;
  assert_true(hd_chosen_spill(&chosen, &falls, 128) == 0);
  chosen.is_measured = false;
  // What is known is part of the price.
  const hd_fall_t fall = {.key = "k", .name = "t", .why = "w", .us = 1.28};
  hd_falls_add(&falls, &arena, &fall);
  assert_true(hd_chosen_spill(&chosen, &falls, 128) == 0);
  hd_arena_fini(&arena);
  hd_context_fini(&context);
}

// One of a key, which a round that begins again tells anew.
static void falls_are_kept(void **state) {
  (void)state;
  hd_context_t context;
  hd_context_init(&context);
  hd_arena_t arena;
  hd_arena_init(&arena, &context.budget);
  hd_falls_t falls = {.arena = &arena};
  char key[] = "k";
  hd_fall_t fall = {.key = key, .name = "t", .why = "first", .us = 1};
  assert_null(hd_falls_find(NULL, "k"));
  assert_null(hd_falls_find(&falls, "k"));
  hd_falls_begin(&falls, false);
  hd_fall_t *kept = hd_falls_add(&falls, &arena, &fall);
  key[0] = 'x'; // The texts are copies.
  assert_ptr_equal(hd_falls_find(&falls, "k"), kept);
  fall = (hd_fall_t){.key = "k", .name = "t", .why = "then", .us = INFINITY};
  assert_ptr_equal(hd_falls_add(&falls, &arena, &fall), kept);
  assert_string_equal(kept->why, "then");
  assert_int_equal(falls.list.size, 1);
  kept->told = falls.rounds + 1;
  hd_falls_begin(&falls, true);
  assert_int_equal(kept->told, 0);
  kept->told = falls.rounds + 1;
  hd_falls_begin(&falls, false);
  assert_int_not_equal(kept->told, 0);
  hd_falls_begin(&falls, true); // It was another round's.
  assert_int_not_equal(kept->told, 0);
  hd_arena_fini(&arena);
  hd_context_fini(&context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(machines_are_targets),
      cmocka_unit_test(a_byte_costs_what_moves),
      cmocka_unit_test(spills_are_compared),
      cmocka_unit_test(falls_are_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
