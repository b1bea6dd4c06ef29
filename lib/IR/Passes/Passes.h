// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes of lib/IR by their functions, for pipelines and tests. What each
// does and requires stands at the head of its file.
#ifndef HIDET_IR_PASSES_PASSES_H
#define HIDET_IR_PASSES_PASSES_H

#include "IR/Passes/Pass.h"

#define HD_PASS HD_PASS_DECLARATION
#include "IR/Passes/Passes.def"
#undef HD_PASS

#endif
