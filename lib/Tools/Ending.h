// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a tool's process ends in the middle of its work: where a limit is passed
// and the work does not look, where memory runs out inside LLVM, where code
// aborts. One line says why; --json is written.
#ifndef HIDET_TOOLS_ENDING_H
#define HIDET_TOOLS_ENDING_H

#include "IR/Module.h"

typedef struct hd_ending {
  const char *name;          // The tool's.
  const hd_budget_t *budget; // Its limit on memory is named.
  int64_t time_limit_ms;
  const char *json;        // The file of the report; NULL: none is wanted.
  _Atomic(void *) reserve; // Memory for the ending itself.
} hd_ending_t;

// Takes SIGABRT, and what LLVM and C++ do where they cannot go on, for this
// process, until hd_ending_fini(). One at a time.
void hd_ending_init(hd_ending_t *ending, const char *name,
                    const hd_budget_t *budget);
void hd_ending_fini(hd_ending_t *ending);

// Gives the reserve back: the work is over, and what follows may need it.
void hd_ending_release(hd_ending_t *ending);

// Ends the process. For any thread, while others work: it looks at nothing of
// theirs.
_Noreturn void hd_ending_run(hd_ending_t *ending, hd_exhausted_t why);

#endif
