// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Graph/Expand/Lower/Lower.h"
#include "Random.h"
#include "UnitTest.h"

enum { MOST = 300 };

static bool matches(const hd_spacing_t *s, const int64_t *places,
                    int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if ((i * s->step + s->add) / s->every != places[i])
      return false;
  return s->every > 0 && s->step >= 0;
}

// All that a spacing of up to 64 parts makes is found; that the one found is
// the same at the places asked for is all that counts.
static void what_goes_on_evenly_is_found(void **state) {
  (void)state;
  random_t random = random_begin("spacing");
  int64_t places[MOST];
  for (int i = 0; i < 2000; i++) {
    int64_t count = random_in(&random, 1, MOST);
    hd_spacing_t made = {random_in(&random, 0, 200), random_in(&random, 0, 500),
                         random_in(&random, 1, 64)};
    for (int64_t k = 0; k < count; k++)
      places[k] = (k * made.step + made.add) / made.every;
    hd_spacing_t found;
    assert_true(hd_spacing_find(places, count, &found));
    assert_true(matches(&found, places, count));
  }
}

// One place elsewhere: if anything is found, it gives that place, too.
static void what_does_not_is_not(void **state) {
  (void)state;
  random_t random = random_begin("spacing");
  int64_t places[MOST];
  unsigned refused = 0;
  for (int i = 0; i < 2000; i++) {
    int64_t count = random_in(&random, 4, MOST);
    int64_t step = random_in(&random, 1, 100);
    int64_t every = random_in(&random, 1, 64);
    for (int64_t k = 0; k < count; k++)
      places[k] = 300 + k * step / every;
    places[random_in(&random, 1, count - 2)] += random_in(&random, 0, 1)
                                                    ? random_in(&random, 2, 9)
                                                    : -random_in(&random, 2, 9);
    hd_spacing_t found;
    if (hd_spacing_find(places, count, &found))
      assert_true(matches(&found, places, count));
    else
      refused++;
  }
  assert_true(refused > 1900);
}

static void sizes_are_bounded(void **state) {
  (void)state;
  hd_spacing_t found;
  const int64_t back[] = {3, 2, 1}, far[] = {0, 1 << 30, (1 << 30) + 1};
  const int64_t one[] = {7}, same[] = {5, 5, 5}, late[] = {5, 5, 6, 6, 6};
  assert_false(hd_spacing_find(one, 0, &found));
  assert_false(hd_spacing_find(back, 3, &found));
  assert_false(hd_spacing_find(far, 3, &found));
  assert_true(hd_spacing_find(one, 1, &found) && matches(&found, one, 1));
  assert_true(hd_spacing_find(same, 3, &found) && matches(&found, same, 3));
  assert_true(hd_spacing_find(late, 5, &found) && matches(&found, late, 5));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_goes_on_evenly_is_found),
      cmocka_unit_test(what_does_not_is_not),
      cmocka_unit_test(sizes_are_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
