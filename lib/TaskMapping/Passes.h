// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes of lib/TaskMapping.
#ifndef HIDET_TASKMAPPING_PASSES_H
#define HIDET_TASKMAPPING_PASSES_H

#include "IR/Passes/Pass.h"

#define HD_PASS HD_PASS_DECLARATION
#include "TaskMapping/Passes.def"
#undef HD_PASS

extern const hd_pass_t hd_task_mapping_passes[];
extern const size_t hd_task_mapping_num_passes;

// The names of the passes that `lower` runs, in order; NULL ends them.
extern const char *const hd_lower_pipeline[];

#endif
