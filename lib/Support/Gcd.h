// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HIDET_SUPPORT_GCD_H
#define HIDET_SUPPORT_GCD_H

#include <stdint.h>

// The greatest number that divides both, by Euclid; that of 0 and a is |a|.
// Neither may be INT64_MIN, whose magnitude is no int64_t.
static inline int64_t hd_gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

#endif
