// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// graph_fuzz as it runs: what was asked for, and what its processes have found
// so far.
#ifndef HIDET_FUZZ_GRAPHS_SESSION_H
#define HIDET_FUZZ_GRAPHS_SESSION_H

#include "Fuzz.h"

#include <stdatomic.h>

enum { FUZZ_MAX_JOBS = 64 };

// Shared by the processes.
typedef struct fuzz_board {
  _Atomic int64_t next, verdicts[FUZZ_VERDICTS], died, nodes, launches;
  _Atomic int64_t taken[FUZZ_MAX_TASKS];
  _Atomic uint32_t types[FUZZ_MAX_TASKS]; // Of first results, a bit for each.
  _Atomic int64_t rewrites[FUZZ_MAX_RULES];
  _Atomic int64_t noticed[FUZZ_FAULTS], missed[FUZZ_FAULTS];
  int64_t current[FUZZ_MAX_JOBS];
} fuzz_board_t;

typedef struct fuzz_session {
  fuzz_options_t options;
  int64_t first, count, time, jobs, least;
  bool print, tasks;
  uint64_t start;
  fuzz_board_t *board;
} fuzz_session_t;

static inline double fuzz_seconds_since(uint64_t start) {
  return (double)(hd_clock_ns() - start) * 1e-9;
}

// Says what was found; the exit status. Of planted faults what was noticed.
int fuzz_conclude(const fuzz_session_t *f);
int fuzz_conclude_planted(const fuzz_session_t *f);

#endif
