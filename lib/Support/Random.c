// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Support/Random.h"

#include <sys/random.h>

uint32_t hd_random_word(void) {
  uint32_t word = 0;
  // So few bytes come whole or, while a signal is handled, not at all.
  while (getrandom(&word, sizeof word, 0) != sizeof word)
    ;
  return word;
}
