// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Without --sanitize a kernel's wrong index goes straight to memory. Where that
// faults, a signal follows, and signals are the program's that we are part of:
// nothing is installed here. Its handler gives the fault to
// hd_sim_handle_fault(), which ends the kernel and not the process.
#include "Sim/State.h"

#include <setjmp.h>

typedef struct guard {
  sigjmp_buf point;
  hd_sim_fault_t fault;
} guard_t;

// A handler may look at it in any thread: in this model that allocates nothing.
static _Thread_local guard_t *volatile active
    __attribute__((tls_model("initial-exec")));

void hd_sim_handle_fault(void) {
  guard_t *guard = active;
  if (!guard)
    return;
  guard->fault = HD_SIM_BAD_ACCESS;
  siglongjmp(guard->point, 1);
}

// A handler runs with signals blocked, which come back with the point.
hd_sim_fault_t hd_sim_guard(void (*body)(void *), void *argument) {
  guard_t guard = {.fault = HD_SIM_WHOLE};
  guard_t *outer = active;
  if (sigsetjmp(guard.point, 1) == 0) {
    active = &guard;
    body(argument);
  }
  active = outer;
  return guard.fault;
}

_Noreturn void hd_sim_leave(void) {
  active->fault = HD_SIM_LEFT;
  siglongjmp(active->point, 1);
}
