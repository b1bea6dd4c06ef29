// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much memory and time a piece of work may take. Code that allocates does
// not check each result: when a budget is used up, control unwinds to the
// recovery point that the library's entry set, and the arenas free the rest.
#ifndef HIDET_SUPPORT_BUDGET_H
#define HIDET_SUPPORT_BUDGET_H

#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum hd_exhausted {
  HD_EXHAUSTED_NOTHING,
  HD_EXHAUSTED_MEMORY,
  HD_EXHAUSTED_TIME,
  HD_EXHAUSTED_DEPTH,
  HD_EXHAUSTED_INTERRUPT,
} hd_exhausted_t;

// Something outside the arenas that work in progress owns: a buffer, a driver's
// object. The node lies in the owner's frame or object.
typedef struct hd_cleanup {
  void (*run)(void *argument);
  void *argument;
  struct hd_cleanup *outer;
} hd_cleanup_t;

typedef struct hd_budget {
  size_t bytes_used;
  size_t bytes_limit;     // 0: none.
  uint64_t deadline_ns;   // On the monotonic clock; 0: none.
  jmp_buf *recovery;      // Where to unwind to; belongs to the running thread.
  hd_cleanup_t *cleanups; // Since the recovery point; the innermost first.
  hd_exhausted_t exhausted;
  const atomic_bool *interrupted; // Set by a signal handler; may be NULL.
} hd_budget_t;

// Takes bytes from the budget, or unwinds.
void hd_budget_take(hd_budget_t *budget, size_t bytes);

// To be called now and then by loops that a user's numbers drive and that take
// no memory (arenas look themselves): unwinds when the deadline has passed or
// the work was interrupted.
void hd_budget_check(hd_budget_t *budget);

// From here on unwinding runs run(argument), the last registered first, before
// it leaves the frames: the node may be a local variable. It must not allocate
// from the budget. One of the next two calls ends it, before the node does:
void hd_budget_defer(hd_budget_t *budget, hd_cleanup_t *cleanup,
                     void (*run)(void *argument), void *argument);
// runs it now;
void hd_budget_clean(hd_budget_t *budget, hd_cleanup_t *cleanup);
// or does not run it: what it would have freed has another owner.
void hd_budget_keep(hd_budget_t *budget, hd_cleanup_t *cleanup);

// Unwinds to the recovery point; without one it aborts, for that is our bug.
_Noreturn void hd_budget_exhausted(hd_budget_t *budget, hd_exhausted_t what);

uint64_t hd_clock_ns(void); // The monotonic clock.

// Runs body(argument) with a recovery point. Returns what was exhausted.
// Nests: the inner point is restored at return.
hd_exhausted_t hd_budget_guard(hd_budget_t *budget, void (*body)(void *),
                               void *argument);

#endif
