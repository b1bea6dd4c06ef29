// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks that IR keeps its rules (docs/IR.md). Reports every fault against the
// node; returns true where there is none.
#ifndef HIDET_IR_VERIFIER_H
#define HIDET_IR_VERIFIER_H

#include "IR/Module.h"

bool hd_module_verify(hd_module_t *module);
bool hd_func_verify(hd_context_t *context, const hd_func_t *func);

#endif
