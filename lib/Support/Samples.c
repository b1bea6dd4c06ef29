// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Support/Samples.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void hd_samples_sort(double *samples, size_t count) {
  qsort(samples, count, sizeof(double), by_value);
}

double hd_samples_percentile(const double *samples, size_t count, double p) {
  double at = p * (double)(count - 1);
  size_t low = (size_t)at, high = low + (low + 1 < count);
  return samples[low] + (at - (double)low) * (samples[high] - samples[low]);
}
