// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random numbers for property tests: from HIDET_TEST_SEED, or a fixed seed. A
// test prints its seed, so that a failure can be had again.

#ifndef HIDET_UNITTESTS_RANDOM_H
#define HIDET_UNITTESTS_RANDOM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct random_state {
  uint64_t state;
} random_t;

static inline random_t random_begin(const char *test) {
  const char *seed = getenv("HIDET_TEST_SEED");
  random_t random = {seed ? strtoull(seed, NULL, 0) : 20230325};
  printf("%s: HIDET_TEST_SEED=%llu\n", test, (unsigned long long)random.state);
  return random;
}

static inline uint64_t random_bits(random_t *random) { // splitmix64
  uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

// least .. greatest, both included.
static inline int64_t random_in(random_t *random, int64_t least,
                                int64_t greatest) {
  return least + (int64_t)(random_bits(random) %
                           ((uint64_t)greatest - (uint64_t)least + 1));
}

#endif
