// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the places of a scatter say of its points: which of them never meet, and
// which lie side by side.
#ifndef HIDET_SCHEDULE_RULES_SCATTERAXES_H
#define HIDET_SCHEDULE_RULES_SCATTERAXES_H

#include "Schedule/Rules/Rules.h"

// Whether points that differ in the index go to different elements: it stands
// alone in an axis of the target, within it, or in a sum, index + p, with p
// that other indices alone decide that do.
bool hd_scatter_tells_apart(hd_arena_t *arena, const hd_definition_t *d,
                            const hd_index_t *index);

// The axis of the target that is this index, which no other place depends on:
// whoever wins there wins for all of it. -1: none.
int hd_scatter_own_axis(const hd_definition_t *d, const hd_index_t *index);

// How many neighbours a thread may bring, along the last index, where that is
// the last axis, 16 bytes at most: rows divide into so many. 1: none.
int64_t hd_scatter_neighbours(const hd_definition_t *d);

#endif
