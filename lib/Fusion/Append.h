// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Definitions that keep most of a tensor, as scatters onto it:
//
//   y[i, j] = j < p ? x[i, j] : u[i, j - p]
//   scatter last(i: m, r: n) y[i, r + p < p ? -1 : r + p] else drop
//     = u[i, r] onto x
//
// What is kept is no work then where y lies where x does.
#ifndef HIDET_FUSION_APPEND_H
#define HIDET_FUSION_APPEND_H

#include "Schedule/Terms/Terms.h"

// Whether the definition, of a flat task (Schedule/Terms/Flatten.h), gives
// elements of `onto` in their own places, or of one other tensor, along an axis
// that it is shorter in. Sets *scatter to the same as a scatter onto that
// tensor; terms are made in the arena. `onto` may be shorter than the target,
// where nothing of it is read past its end.
bool hd_append_find(hd_arena_t *arena, const hd_definition_t *d,
                    const hd_task_value_t *onto, hd_definition_t *scatter);

#endif
