// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Support/Trace.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SPANS = 1000000, FIRST_SPANS = 256 };

struct hd_trace {
  pthread_mutex_t lock;
  hd_trace_span_t *spans;
  size_t count, capacity, lost;
};

hd_trace_t *hd_trace_create(void) {
  hd_trace_t *trace = calloc(1, sizeof(*trace));
  if (trace)
    pthread_mutex_init(&trace->lock, NULL);
  return trace;
}

static void free_span(hd_trace_span_t *span) {
  free(span->name);
  free(span->detail);
}

void hd_trace_destroy(hd_trace_t *trace) {
  if (!trace)
    return;
  for (size_t i = 0; i < trace->count; i++)
    free_span(&trace->spans[i]);
  free(trace->spans);
  pthread_mutex_destroy(&trace->lock);
  free(trace);
}

static hd_trace_span_t *find_room(hd_trace_t *trace) {
  if (trace->count == MOST_SPANS)
    return NULL;
  if (trace->count == trace->capacity) {
    size_t capacity = trace->capacity ? trace->capacity * 2 : FIRST_SPANS;
    void *spans = realloc(trace->spans, capacity * sizeof(hd_trace_span_t));
    if (!spans)
      return NULL;
    trace->spans = spans;
    trace->capacity = capacity;
  }
  return &trace->spans[trace->count];
}

void hd_trace_add(hd_trace_t *trace, unsigned lane, const char *name,
                  const char *detail, uint64_t begin_ns, uint64_t end_ns) {
  if (!trace)
    return;
  hd_trace_span_t span = {strdup(name), detail ? strdup(detail) : NULL, lane,
                          begin_ns, end_ns};
  bool is_whole = span.name && (span.detail || !detail);
  pthread_mutex_lock(&trace->lock);
  hd_trace_span_t *room = is_whole ? find_room(trace) : NULL;
  if (room) {
    *room = span;
    trace->count++;
  } else {
    trace->lost++;
  }
  pthread_mutex_unlock(&trace->lock);
  if (!room)
    free_span(&span);
}

const hd_trace_span_t *hd_trace_spans(const hd_trace_t *trace, size_t *count) {
  *count = trace->count;
  return trace->spans;
}

size_t hd_trace_lost(const hd_trace_t *trace) { return trace->lost; }
