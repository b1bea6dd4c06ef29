// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes of lib/IR by their functions, for pipelines and tests. What each
// does and requires stands at the head of its file.
#ifndef HIDET_IR_PASSES_H
#define HIDET_IR_PASSES_H

#include "IR/Pass.h"

#define HD_PASS(name, function, level, options, summary)                       \
  const hd_func_t *function(hd_module_t *module, const hd_func_t *func,        \
                            const hd_pass_args_t *args);
#include "IR/Passes.def"
#undef HD_PASS

#endif
