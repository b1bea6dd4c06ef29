// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Support/Times.h"
#include "Support/Budget.h"

#include <string.h>

void hd_times_begin(hd_times_t *times, const char *name, uint64_t start) {
  *times = (hd_times_t){.since = start, .size = 1};
  times->parts[0].name = name;
}

static void switch_to(hd_times_t *times, size_t part) {
  uint64_t now = hd_clock_ns();
  times->parts[times->now].ns += now - times->since;
  times->since = now;
  times->now = part;
}

static size_t find_part(hd_times_t *times, const char *name) {
  for (size_t i = 0; i < times->size; i++)
    if (times->parts[i].name == name || strcmp(times->parts[i].name, name) == 0)
      return i;
  if (times->size == HD_TIMES_PARTS)
    return 0;
  times->parts[times->size].name = name;
  return times->size++;
}

static void open_span(hd_times_t *times, const char *name, size_t before) {
  if (times->depth < HD_TIMES_DEPTH) {
    times->open[times->depth].name = name;
    times->open[times->depth].before = before;
    times->open[times->depth].begin_ns = times->since;
  }
  times->depth++;
}

// Up to the one that began when `before` was at work: unwinding ends several.
static void end_spans(hd_times_t *times, size_t before) {
  while (times->depth) {
    size_t at = --times->depth;
    if (at >= HD_TIMES_DEPTH)
      return;
    hd_trace_add(times->trace, times->lane, times->open[at].name, NULL,
                 times->open[at].begin_ns, times->since);
    if (times->open[at].before == before)
      return;
  }
}

size_t hd_times_enter(hd_times_t *times, const char *name) {
  size_t before = times->now;
  if (times->since) {
    switch_to(times, find_part(times, name));
    open_span(times, name, before);
  }
  return before;
}

void hd_times_leave(hd_times_t *times, size_t before) {
  if (times->since) {
    switch_to(times, before);
    end_spans(times, before);
  }
}

uint64_t hd_times_total(hd_times_t *times) {
  uint64_t total = 0;
  hd_times_leave(times, 0);
  for (size_t i = 0; i < times->size; i++)
    total += times->parts[i].ns;
  return total;
}

void hd_times_share(hd_times_t *times, uint64_t ns, unsigned threads,
                    const hd_times_t *const *jobs, size_t count) {
  uint64_t work = 0, given = 0;
  if (!times->since)
    return;
  switch_to(times, times->now);
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < jobs[i]->size; k++)
      work += jobs[i]->parts[k].ns;
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < jobs[i]->size; k++) {
      const hd_time_part_t *part = &jobs[i]->parts[k];
      uint64_t share =
          (uint64_t)((double)part->ns / (double)(work ? work : 1) * (double)ns);
      times->parts[find_part(times, part->name)].ns += share;
      given += share;
    }
  uint64_t *own = &times->parts[times->now].ns;
  *own -= given < *own ? given : *own;
  times->shared_ns += ns;
  times->work_ns += work;
  times->threads = threads > times->threads ? threads : times->threads;
}
