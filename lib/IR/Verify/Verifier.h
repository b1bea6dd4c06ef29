// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks that IR keeps its rules (docs/IR.md). Reports every fault against the
// node; returns true where there is none.
#ifndef HIDET_IR_VERIFY_VERIFIER_H
#define HIDET_IR_VERIFY_VERIFIER_H

#include "IR/Module.h"

bool hd_module_verify(hd_module_t *module);
// Likewise for the items from one on.
bool hd_module_verify_from(hd_module_t *module, size_t first);
// The rules of one function; that it does not call itself is the module's.
bool hd_func_verify(hd_context_t *context, const hd_func_t *func);
// Functions from an item on call each other without recursion and not in chains
// of unreasonable length.
bool hd_calls_verify(const hd_module_t *module, size_t first);

#endif
