// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Flat tasks: a task for one binding. Type variables, sizes, packs and
// attributes are replaced by what they are; an index over a pack is an index
// for each of its axes. What is left is a task again, which can be printed and
// verified; the rules of the scheduler know no other form.
//
// Of a flat task, beyond what Task.h says:
//   every type.var and pack is NULL; shapes and ranges are constants
//   inputs are tensors
//   no index that runs over one value alone stands in a term: it is 0
//   a reduction has indices, and none of an empty range
//   of definitions of tensors without elements, scatters that send something
//   are left alone; these, and what reads such a tensor, fail where they are
//   run
#ifndef HIDET_SCHEDULE_TERMS_FLATTEN_H
#define HIDET_SCHEDULE_TERMS_FLATTEN_H

#include "Graph/Bind/Binding.h"

// Reports E1104 at loc where a size depends on data; then NULL.
hd_task_t *hd_task_flatten(hd_context_t *context, hd_arena_t *arena,
                           const hd_task_binding_t *binding, hd_loc_t loc);

#endif
