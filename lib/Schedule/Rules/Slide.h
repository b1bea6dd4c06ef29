// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A definition that is a function of one small reduction, and which neighbours
// one thread makes of it (Slide.c says how).
#ifndef HIDET_SCHEDULE_RULES_SLIDE_H
#define HIDET_SCHEDULE_RULES_SLIDE_H

#include "Schedule/Rules/Rules.h"

typedef struct hd_slide {
  const hd_definition_t *definition;
  hd_reduced_t reduced;
  // lanes elements along the last axis lie side by side, and aligned, wherever
  // that is used; 1: they do not.
  const hd_index_t *last;
  int64_t lanes;
  // tile elements along `at` share what they read: that is a function of
  // at * step + in * dilation, `in` being the innermost index of the reduction.
  // NULL: nothing moves so, and tile is 1.
  const hd_index_t *in, *at;
  int64_t step, dilation, tile;
} hd_slide_t;

// False where a thread would have one element, or it is no such definition.
bool hd_slide_find(hd_arena_t *arena, const hd_definition_t *d, hd_slide_t *s);

// How far a tile reaches along `in`, from the first place to the last.
int64_t hd_slide_width(const hd_slide_t *s, int64_t tile);
// Whether a place among them is read, and by which of the tile first.
bool hd_slide_reader(const hd_slide_t *s, int64_t tile, int64_t place,
                     int64_t *t, int64_t *q);
// How many are; bits of those and of what they are combined to.
int64_t hd_slide_count(const hd_slide_t *s, int64_t tile);
int64_t hd_slide_bits(const hd_slide_t *s, int64_t tile);

#endif
