// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes of lib/Schedule.
#ifndef HIDET_SCHEDULE_PASSES_H
#define HIDET_SCHEDULE_PASSES_H

#include "IR/Pass.h"

#define HD_PASS HD_PASS_DECLARATION
#include "Schedule/Passes.def"
#undef HD_PASS

extern const hd_pass_t hd_schedule_passes[];
extern const size_t hd_schedule_num_passes;

#endif
