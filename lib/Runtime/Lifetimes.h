// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One block of memory for tensors that do not all live at once.
#ifndef HIDET_RUNTIME_LIFETIMES_H
#define HIDET_RUNTIME_LIFETIMES_H

#include "Support/Vec.h"

// A tensor lives from step first to step last, both included; first > last: it
// is never used.
typedef struct hd_lifetime {
  int64_t bytes;
  size_t first, last;
  int64_t offset; // In the block, a multiple of the alignment.
} hd_lifetime_t;

// Settles every offset, so that tensors that live at the same step do not
// overlap; returns the size of the block. The largest first, each in the
// smallest gap that holds it, as in Pisarchyk and Lee, "Efficient memory
// management for deep neural net inference", 2020 (greedy by size). Where more
// than 250 live at once they are put on top of each other, gaps or not. align
// is a power of two.
int64_t hd_lifetimes_place(hd_arena_t *scratch, hd_lifetime_t *lives,
                           size_t count, int64_t align);

// The most bytes that live at one step: no block is smaller. Steps are below
// the number given.
int64_t hd_lifetimes_bound(hd_arena_t *scratch, const hd_lifetime_t *lives,
                           size_t count, size_t steps, int64_t align);

#endif
