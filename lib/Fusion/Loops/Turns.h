// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Flat tasks of a loop's body, for all of its turns at once.
#ifndef HIDET_FUSION_LOOPS_TURNS_H
#define HIDET_FUSION_LOOPS_TURNS_H

#include "Schedule/Terms/Terms.h"

// The task computed once a turn, of which inputs have a slice for each turn
// where `turned` says so, behind a new first axis; results, too. NULL where it
// has definitions that cannot be so (scatters, sorts).
hd_task_t *hd_turns_task(hd_arena_t *arena, const hd_task_t *flat,
                         const bool *turned, int64_t steps);

// What a state, an input of the task, is after each turn, or after the last
// alone, where the task's result is what it becomes by one: multiplied and
// added to, element by element. Another input, the last one, is the state
// before the first turn, unless that is 0. NULL where it is something else.
hd_task_t *hd_turns_fading(hd_arena_t *arena, const hd_task_t *flat,
                           size_t state, const bool *turned, int64_t steps,
                           bool from_zeros, bool each);

// Of what it is after each turn: what it was before each; the first: before the
// first turn, y(xs, first). And after the last, y(xs). Both of a tensor of that
// type and shape.
hd_task_t *hd_turns_before(hd_arena_t *arena, hd_scalar_t type,
                           const int64_t *shape, unsigned rank, int64_t steps);
hd_task_t *hd_turns_last(hd_arena_t *arena, hd_scalar_t type,
                         const int64_t *shape, unsigned rank, int64_t steps);

#endif
