// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Support/Budget.h"

#include <stdlib.h>
#include <time.h>

uint64_t hd_clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

_Noreturn void hd_budget_exhausted(hd_budget_t *budget, hd_exhausted_t what) {
  if (!budget || !budget->recovery)
    abort();
  budget->exhausted = what;
  while (budget->cleanups) {
    hd_cleanup_t *cleanup = budget->cleanups;
    budget->cleanups = cleanup->outer;
    cleanup->run(cleanup->argument);
  }
  longjmp(*budget->recovery, 1);
}

void hd_budget_defer(hd_budget_t *budget, hd_cleanup_t *cleanup,
                     void (*run)(void *argument), void *argument) {
  *cleanup = (hd_cleanup_t){run, argument, budget->cleanups};
  budget->cleanups = cleanup;
}

void hd_budget_keep(hd_budget_t *budget, hd_cleanup_t *cleanup) {
  hd_cleanup_t **at = &budget->cleanups;
  while (*at && *at != cleanup)
    at = &(*at)->outer;
  if (*at)
    *at = cleanup->outer;
}

void hd_budget_clean(hd_budget_t *budget, hd_cleanup_t *cleanup) {
  hd_budget_keep(budget, cleanup);
  cleanup->run(cleanup->argument);
}

void hd_budget_take(hd_budget_t *budget, size_t bytes) {
  if (!budget)
    return;
  if (budget->bytes_limit && (budget->bytes_used > budget->bytes_limit ||
                              bytes > budget->bytes_limit - budget->bytes_used))
    hd_budget_exhausted(budget, HD_EXHAUSTED_MEMORY);
  budget->bytes_used += bytes;
}

void hd_budget_check(hd_budget_t *budget) {
  if (!budget)
    return;
  if (budget->interrupted && atomic_load(budget->interrupted))
    hd_budget_exhausted(budget, HD_EXHAUSTED_INTERRUPT);
  if (budget->deadline_ns && hd_clock_ns() > budget->deadline_ns)
    hd_budget_exhausted(budget, HD_EXHAUSTED_TIME);
}

hd_exhausted_t hd_budget_guard(hd_budget_t *budget, void (*body)(void *),
                               void *argument) {
  jmp_buf point;
  jmp_buf *outer = budget->recovery;
  hd_cleanup_t *cleanups = budget->cleanups; // Theirs is the outer point.
  budget->exhausted = HD_EXHAUSTED_NOTHING;
  if (setjmp(point) == 0) {
    budget->recovery = &point;
    budget->cleanups = NULL;
    body(argument);
  }
  budget->recovery = outer;
  budget->cleanups = cleanups;
  return budget->exhausted;
}
