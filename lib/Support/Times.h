// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the time of a piece of work goes: at each moment one part of it is at
// work, so the parts add up to all of it. A part that begins inside another
// takes the time for itself until it ends.
#ifndef HIDET_SUPPORT_TIMES_H
#define HIDET_SUPPORT_TIMES_H

#include "Support/Trace.h"

enum { HD_TIMES_PARTS = 64, HD_TIMES_DEPTH = 32 };

typedef struct hd_time_part {
  const char *name; // Lives as long as the program.
  uint64_t ns;
} hd_time_part_t;

// Zero: no time is kept, and the functions do nothing.
typedef struct hd_times {
  uint64_t since; // When the part at work began, or came back.
  size_t now, size;
  // In the order in which they began first. The first is all that has no name,
  // and what is one part too many.
  hd_time_part_t parts[HD_TIMES_PARTS];
  // Of what threads did side by side: how long that took, how much work it was,
  // and on how many threads at most.
  uint64_t shared_ns, work_ns;
  unsigned threads;
  // Set after it has begun: where each part that ends leaves a span, too, and
  // the thread's lane there. NULL: nowhere.
  hd_trace_t *trace;
  unsigned lane;
  const char *label; // What a thread's job is about, for the span of all of it.
  // Parts inside each other that have not ended; those too deep leave no span.
  size_t depth;
  struct {
    const char *name;
    size_t before;
    uint64_t begin_ns;
  } open[HD_TIMES_DEPTH];
} hd_times_t;

// Begins with a part of that name, at a moment of hd_clock_ns().
void hd_times_begin(hd_times_t *times, const char *name, uint64_t start);

// Returns the part that was at work, for hd_times_leave().
size_t hd_times_enter(hd_times_t *times, const char *name);
void hd_times_leave(hd_times_t *times, size_t before);

// Up to now. What unwinding has left unfinished ends: the first part is at
// work.
uint64_t hd_times_total(hd_times_t *times);

// What threads did inside the part at work, which took ns: that time is taken
// from it and given to their parts, to each its share of all their work. jobs:
// of which hd_times_total() was asked.
void hd_times_share(hd_times_t *times, uint64_t ns, unsigned threads,
                    const hd_times_t *const *jobs, size_t count);

#endif
