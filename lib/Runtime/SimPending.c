// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Intrinsics that the simulator does not have yet: a diagnostic.
#include "Runtime/SimFunctions.h"
#include "Runtime/SimState.h"

_Noreturn static void refuse(const hd_sim_thread_t *thread, const char *name) {
  const hd_sim_task_t *task = (const hd_sim_task_t *)thread;
  hd_sim_run_t *run = hd_sim_run_of(task);
  hd_error(run->diags, hd_sim_site_loc(thread->site), HD_E0609, name, "sim");
  hd_sim_fail(run);
  hd_sim_leave();
}

static hd_sim_thread_t *first_of(const hd_sim_warp_t *warp) {
  int lane = 0;
  while (!warp->threads[lane])
    lane++;
  return warp->threads[lane];
}

#define BODY_THREAD(function, name)                                            \
  void function(hd_sim_thread_t *thread, uint64_t *slots) {                    \
    (void)slots;                                                               \
    refuse(thread, name);                                                      \
  }
#define BODY_BLOCK(function, name)                                             \
  bool function(hd_sim_thread_t *thread, uint64_t *slots) {                    \
    (void)slots;                                                               \
    refuse(thread, name);                                                      \
  }
#define BODY_WARP(function, name)                                              \
  void function(hd_sim_warp_t *warp) { refuse(first_of(warp), name); }
#define HD_SIM_PENDING(kind, function, name) BODY_##kind(function, name)
#include "Runtime/SimPending.def"
