// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What threads were at, and when: spans of time with names, for a timeline. As
// LLVM's -ftime-trace. Any number of threads may add at once; who reads does so
// when they have ended.
#ifndef HIDET_SUPPORT_TRACE_H
#define HIDET_SUPPORT_TRACE_H

#include <stddef.h>
#include <stdint.h>

typedef struct hd_trace hd_trace_t;

typedef struct hd_trace_span {
  char *name;                // The trace's, as is
  char *detail;              // what it was done to; NULL: there is no more.
  unsigned lane;             // Of a thread; 0: of the one that began.
  uint64_t begin_ns, end_ns; // As hd_clock_ns() has it.
} hd_trace_span_t;

// NULL where memory runs out.
hd_trace_t *hd_trace_create(void);
// NULL is allowed.
void hd_trace_destroy(hd_trace_t *trace);

// The texts are copied. What finds no room is counted as lost. Nothing is done
// where trace is NULL.
void hd_trace_add(hd_trace_t *trace, unsigned lane, const char *name,
                  const char *detail, uint64_t begin_ns, uint64_t end_ns);

// In the order in which they ended.
const hd_trace_span_t *hd_trace_spans(const hd_trace_t *trace, size_t *count);
// Spans beyond a million, and those for which memory did not last.
size_t hd_trace_lost(const hd_trace_t *trace);

#endif
