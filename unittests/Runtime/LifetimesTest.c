// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Runtime/Lifetimes.h"
#include "UnitTest.h"

enum { ALIGN = 16 };

static int64_t place(hd_lifetime_t *lives, size_t count) {
  hd_arena_t arena;
  hd_arena_init(&arena, NULL);
  int64_t total = hd_lifetimes_place(&arena, lives, count, ALIGN);
  hd_arena_fini(&arena);
  return total;
}

static int64_t bound(const hd_lifetime_t *lives, size_t count, size_t steps) {
  hd_arena_t arena;
  hd_arena_init(&arena, NULL);
  int64_t most = hd_lifetimes_bound(&arena, lives, count, steps, ALIGN);
  hd_arena_fini(&arena);
  return most;
}

// What lives at the same time does not overlap and lies in the block.
static void check(const hd_lifetime_t *lives, size_t count, int64_t total) {
  for (size_t i = 0; i < count; i++) {
    const hd_lifetime_t *a = &lives[i];
    assert_int_equal(a->offset % ALIGN, 0);
    assert_true(a->offset >= 0 && a->offset + a->bytes <= total);
    for (size_t k = 0; k < i; k++) {
      const hd_lifetime_t *b = &lives[k];
      bool apart = a->last < b->first || b->last < a->first ||
                   a->offset + a->bytes <= b->offset ||
                   b->offset + b->bytes <= a->offset;
      assert_true(apart);
    }
  }
}

static void a_chain_needs_two(void **state) {
  (void)state;
  // Of a chain two live at once: two blocks of 100 (112 aligned) hold ten.
  hd_lifetime_t lives[10];
  for (size_t i = 0; i < 10; i++)
    lives[i] = (hd_lifetime_t){.bytes = 100, .first = i, .last = i + 1};
  int64_t total = place(lives, 10);
  check(lives, 10, total);
  assert_int_equal(total, 224);
  assert_int_equal(bound(lives, 10, 11), 224);
}

static void gaps_are_filled(void **state) {
  (void)state;
  // The small one fits where the first was, beneath the long one.
  hd_lifetime_t lives[] = {
      {.bytes = 64, .first = 0, .last = 1},
      {.bytes = 128, .first = 1, .last = 5},
      {.bytes = 32, .first = 2, .last = 3},
  };
  int64_t total = place(lives, 3);
  check(lives, 3, total);
  assert_int_equal(total, 192);
}

static void nothing_needs_nothing(void **state) {
  (void)state;
  assert_int_equal(place(NULL, 0), 0);
  hd_lifetime_t lives[] = {{.bytes = 0, .first = 0, .last = 3},
                           {.bytes = 5, .first = 2, .last = 1}};
  assert_int_equal(place(lives, 2), 16);
}

static void random_ones_are_near_the_bound(void **state) {
  (void)state;
  enum { COUNT = 200, STEPS = 120 };
  uint64_t seed = 7;
  for (int round = 0; round < 20; round++) {
    hd_lifetime_t lives[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      size_t first = (seed >> 33) % STEPS;
      size_t last = first + (seed >> 45) % 6;
      lives[i] = (hd_lifetime_t){.bytes = (int64_t)((seed >> 20) % 5000),
                                 .first = first,
                                 .last = last < STEPS ? last : STEPS - 1};
    }
    int64_t total = place(lives, COUNT);
    check(lives, COUNT, total);
    int64_t least = bound(lives, COUNT, STEPS);
    assert_true(total >= least && total <= least + least / 4);
  }
}

static void many_that_live_together_lie_side_by_side(void **state) {
  (void)state;
  enum { COUNT = 2000 };
  static hd_lifetime_t lives[COUNT];
  int64_t sum = 0;
  for (size_t i = 0; i < COUNT; i++) {
    lives[i] = (hd_lifetime_t){.bytes = (int64_t)(i % 7 + 1) * ALIGN,
                               .first = i % 3,
                               .last = 10 + i % 5};
    sum += lives[i].bytes;
  }
  int64_t total = place(lives, COUNT);
  check(lives, COUNT, total);
  assert_int_equal(total, sum);
  assert_int_equal(bound(lives, COUNT, 15), sum);
}

HD_UNIT_TESTS(cmocka_unit_test(a_chain_needs_two),
              cmocka_unit_test(gaps_are_filled),
              cmocka_unit_test(nothing_needs_nothing),
              cmocka_unit_test(random_ones_are_near_the_bound),
              cmocka_unit_test(many_that_live_together_lie_side_by_side))
