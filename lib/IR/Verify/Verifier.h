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
// Likewise of items that were written, for which there are more rules.
bool hd_module_verify_text(hd_module_t *module, size_t first);
// The rules of one function; that it does not call itself is the module's.
bool hd_func_verify(hd_context_t *context, const hd_func_t *func);
// That no index which is a constant lies outside of a shape that is one, where
// the access is certain; a warning where a condition is settled at run time,
// and nothing where a constant one rules the access out. Asked of what was
// written: passes may leave such code where nobody comes.
bool hd_func_verify_bounds(hd_context_t *context, const hd_func_t *func);
// Functions from an item on call each other without recursion and not in chains
// of unreasonable length.
bool hd_calls_verify(const hd_module_t *module, size_t first);

#endif
