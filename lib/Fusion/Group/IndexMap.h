// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inverses of index maps. What an operator reads, x[p(i)], says for each
// element i of its result where in x it comes from. Fusion needs the opposite:
// given a place in x, which element of the result does it become, if any?
#ifndef HIDET_FUSION_GROUP_INDEXMAP_H
#define HIDET_FUSION_GROUP_INDEXMAP_H

#include "Schedule/Terms/Affine.h"

// A name for a term that is known to be 0 .. index->range - 1 where the map's
// condition holds.
typedef struct hd_index_let {
  const hd_index_t *index;
  const hd_term_t *term;
} hd_index_let_t;

typedef struct hd_index_map {
  const hd_term_t *places[HD_MAX_RANK]; // One for each index.
  // Where there is such an element; NULL: everywhere. Over the lets, too, of
  // which it does not use one before it has said that it is in its range.
  const hd_term_t *condition;
  unsigned num_lets;
  hd_index_let_t lets[HD_MAX_RANK];
} hd_index_map_t;

// Solves p(i) = at for the indices i: map->places are terms over whatever `at`
// is made of, and of those i there is exactly one where the condition holds.
// False where p is no mixed-radix map of the indices, one to one: sums of
// multiples of digits (i / a) % b, from which every digit of every index can be
// read off. count: of indices; rank: of p.
bool hd_index_invert(hd_arena_t *arena, const hd_term_t *const *p,
                     unsigned rank, const hd_index_t *const *indices,
                     unsigned count, const hd_term_t *const *at,
                     hd_index_map_t *map);

#endif
