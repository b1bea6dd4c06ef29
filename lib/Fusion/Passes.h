// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes of lib/Fusion.
#ifndef HIDET_FUSION_PASSES_H
#define HIDET_FUSION_PASSES_H

#include "IR/Passes/Pass.h"

#define HD_PASS HD_PASS_DECLARATION
#include "Fusion/Passes.def"
#undef HD_PASS

extern const hd_pass_t hd_fusion_passes[];
extern const size_t hd_fusion_num_passes;

#endif
