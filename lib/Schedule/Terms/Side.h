// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An axis of an image that windows run along.
#ifndef HIDET_SCHEDULE_TERMS_SIDE_H
#define HIDET_SCHEDULE_TERMS_SIDE_H

#include "Schedule/Terms/Terms.h"

// The places at * step + in * dilation + first, where in is summed over. at and
// in may be NULL: one value.
typedef struct hd_side {
  uint32_t axis; // Of the image.
  const hd_index_t *at, *in;
  int64_t step, dilation, first;
} hd_side_t;

// What a load's place along an axis is; false where it is nothing that windows
// read.
bool hd_side_read(hd_arena_t *arena, const hd_term_t *load, uint32_t axis,
                  const hd_reduction_t *sum, hd_side_t *side);
// Whether it is an index alone, or one value.
bool hd_side_is_plain(const hd_side_t *side);
// How many places the windows reach, from the first to the last.
int64_t hd_side_reach(const hd_side_t *side);

// Whether a load is of a tensor, with zeros for what is outside if anything.
bool hd_is_image(const hd_term_t *load);

#endif
