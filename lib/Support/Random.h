// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HIDET_SUPPORT_RANDOM_H
#define HIDET_SUPPORT_RANDOM_H

#include <stdint.h>

// 32 bits that nobody can guess, from the kernel. It is arc4random(), which
// glibc has since 2.36 only: the static library names it in its place, so that
// it runs with older ones. Any thread may call it.
uint32_t hd_random_word(void);

#endif
