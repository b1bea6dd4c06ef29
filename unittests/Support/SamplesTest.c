// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Support/Samples.h"

#include "UnitTest.h"

static void finds_percentiles(void **state) {
  (void)state;
  double samples[] = {40, 10, 30, 20, 50};
  hd_samples_sort(samples, 5);
  for (int i = 0; i < 5; i++)
    assert_true(samples[i] == 10 * (i + 1));
  assert_true(hd_samples_percentile(samples, 5, 0) == 10);
  assert_true(hd_samples_percentile(samples, 5, 0.5) == 30);
  assert_true(hd_samples_percentile(samples, 5, 1) == 50);
  // Half way between the first two; and where there is one alone.
  assert_true(hd_samples_percentile(samples, 5, 0.125) == 15);
  assert_true(hd_samples_percentile(samples, 4, 0.5) == 25);
  assert_true(hd_samples_percentile(samples, 1, 0.9) == 10);
}

HD_UNIT_TESTS(cmocka_unit_test(finds_percentiles))
