// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels as jobs: each is compiled by a thread of the pool, with a context of
// its own, as if by itself.
#ifndef HIDET_RUNTIME_COMPILE_H
#define HIDET_RUNTIME_COMPILE_H

#include "IR/Module.h"
#include "Support/ThreadPool.h"

// Compiles kernel number piece. module is empty and the job's own: what is
// reported to its context's diagnostics reaches the caller's, and its budget
// ends when the caller's does. IR of other modules may be read, not changed.
typedef bool (*hd_compile_fn_t)(void *argument, unsigned piece,
                                hd_module_t *module);

// Why a piece failed.
typedef struct hd_failure {
  hd_diagnostic_code_t code; // HD_DIAGNOSTIC_COUNT: it did not.
  char why[240];             // What was said first; it may be cut off.
} hd_failure_t;

// Calls compile for 0 .. count - 1 on the pool (NULL: on this thread). What is
// reported is what a loop would have reported that ends at the first failure,
// whatever the number of threads. Unwinds where a job used up its budget, after
// all have ended; the jobs have a part of the memory each. False after errors.
// failures, where that is not NULL, are set for all pieces.
bool hd_compile_all(hd_context_t *context, hd_thread_pool_t *pool,
                    unsigned count, hd_compile_fn_t compile, void *argument,
                    hd_failure_t *failures);

#endif
