// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tasks over rows of a few neighbours, which the kernel of an anchor may have
// side by side.
#ifndef HIDET_FUSION_GROUP_GROUPROWS_H
#define HIDET_FUSION_GROUP_GROUPROWS_H

#include "Schedule/Rows/Rows.h"

// Whether all of a flat task is rows of its only input's last axis, a power of
// 2 of elements; then its steps, in order.
bool hd_group_rows_find(hd_arena_t *arena, const hd_task_t *flat,
                        hd_rows_t *rows);

#endif
