// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Support/Hash.h"

#include <string.h>
#include <sys/auxv.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

// The kernel leaves 16 random bytes beside the process's environment.
static uint64_t seed(void) {
  const void *random = (const void *)(uintptr_t)getauxval(AT_RANDOM);
  uint64_t value = 0;
  if (random)
    memcpy(&value, random, sizeof value);
  return value;
}

uint32_t hd_hash_bytes(const void *bytes, size_t size) {
  return (uint32_t)XXH3_64bits_withSeed(bytes, size, seed());
}
