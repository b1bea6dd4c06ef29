// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measurements of one thing, and what stands between them.
#ifndef HIDET_SUPPORT_SAMPLES_H
#define HIDET_SUPPORT_SAMPLES_H

#include <stddef.h>

// The least first.
void hd_samples_sort(double *samples, size_t count);
// Of sorted samples, one at least: the value that a share p (0 .. 1) of them
// lies below, between the two next to it. 0.5 is the median.
double hd_samples_percentile(const double *samples, size_t count, double p);

#endif
