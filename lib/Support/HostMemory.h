// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Large blocks of host memory, refused before the system's killer would step
// in.
#ifndef HIDET_SUPPORT_HOSTMEMORY_H
#define HIDET_SUPPORT_HOSTMEMORY_H

#include "Support/Diagnostic.h"

// Zeroed memory, aligned to 1024 bytes as the simulator's tensors want it, at
// least one byte. Takes the bytes from the budget (may be NULL) without
// unwinding. NULL after an error: E0901 where the budget is used up, E0904
// where the machine has not that much left. name is for messages.
void *hd_host_memory_alloc(hd_diagnostics_t *diags, hd_budget_t *budget,
                           const char *name, size_t bytes);
void hd_host_memory_free(hd_budget_t *budget, void *memory, size_t bytes);

// Bytes that the process holds in pages of its own (heap, stacks, code made
// here), whoever asked for them. 0: not known, for the system does not say or a
// sanitizer's memory would be counted. Allocates nothing.
size_t hd_host_memory_held(void);

#endif
