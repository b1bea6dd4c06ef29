// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Index terms of flat tasks in a normal form: sums (IR/Linear.h) of multiples
// of atoms, where an atom is an index, or a quotient or remainder of such a sum
// by a constant, or anything else as it is. Everything is computed without
// overflow or left alone. These are the quasi-affine mixed-radix maps of
// permutations, reshapes, slices and repetitions.
#ifndef HIDET_SCHEDULE_TERMS_AFFINE_H
#define HIDET_SCHEDULE_TERMS_AFFINE_H

#include "IR/Linear.h"
#include "Schedule/Terms/Terms.h"

// What an i64 may be, by the ranges of its indices; any i64 where that does not
// tell.
hd_range_t hd_term_range(const hd_term_t *term);

// The sum that an i64 term is; false where it has too many parts.
bool hd_affine_of(hd_arena_t *arena, const hd_term_t *term, hd_linear_t *sum);
const hd_term_t *hd_affine_term(hd_arena_t *arena, const hd_linear_t *sum);

// An equal i64 term; equal ones of the maps above mostly become the same, up to
// addresses.
const hd_term_t *hd_index_simplify(hd_arena_t *arena, const hd_term_t *term);
// A load whose places are simplified so; any other term as it is.
const hd_term_t *hd_index_simplify_load(hd_arena_t *arena,
                                        const hd_term_t *term);

// The row-major number of a place in a tensor; the place of a number.
const hd_term_t *hd_index_linear(hd_arena_t *arena, const int64_t *shape,
                                 unsigned rank, const hd_term_t *const *places);
void hd_index_places(hd_arena_t *arena, const hd_term_t *number,
                     const int64_t *shape, unsigned rank,
                     const hd_term_t **places);

// A place in a tensor of that shape.
typedef struct hd_index_place {
  unsigned rank;
  const int64_t *shape;
  const hd_term_t *const *places;
} hd_index_place_t;

// Whether two places have the same row-major number, each in its tensor, as a
// sum of multiples of the same indices; false where that is not to be seen.
bool hd_index_same_number(hd_arena_t *arena, const hd_index_place_t *x,
                          const hd_index_place_t *y);

#endif
