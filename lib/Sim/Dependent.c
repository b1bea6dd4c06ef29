// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programmatic launches, which may begin while those before still run. The
// simulator runs launches one after the other; the sanitizer knows what the
// ones before read and write, and looks whether a wait orders each access after
// them. The wait of one thread counts for all who have learned of it since.
#include "Sim/Functions.h"
#include "Sim/Sanitizer.h"

#include <stdio.h>

bool hd_sim_griddepcontrol_wait(hd_sim_thread_t *thread, uint64_t *slots) {
  (void)slots;
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  if (run->sanitizer && run->kernel->programmatic) {
    run->sanitizer->waited = true;
    hd_sim_memo_t memo = {0};
    hd_sim_sync_mark(fiber, hd_sim_entry(run, HD_SIM_ENTRY_BEFORE, 0), 1,
                     &memo);
    hd_sim_memo_drop(&memo);
  }
  return true;
}

// The next launch begins when this one has ended, whatever is said.
void hd_sim_griddepcontrol_launch(hd_sim_thread_t *thread, uint64_t *slots) {
  (void)thread;
  (void)slots;
}

void hd_sim_dependent_access(const hd_sim_access_info_t *access,
                             const hd_sim_buffer_t *buffer) {
  const hd_sim_fiber_t *fiber = access->fiber;
  bool writes = access->touch & HD_SIM_WRITES;
  bool written = buffer->before & HD_SIM_BEFORE_WRITTEN;
  uint32_t entry = hd_sim_entry(hd_sim_run_of(fiber), HD_SIM_ENTRY_BEFORE, 0);
  if ((!writes && !written) || hd_sim_knows_of_any(fiber, entry, 1))
    return;
  char me[HD_SIM_NAME_SIZE], place[HD_SIM_PLACE_SIZE];
  hd_sim_finding(fiber, HD_E0715, access->site, NULL,
                 "%s %s %s, which a launch before %s and may not have ended: "
                 "no griddepcontrol_wait comes before",
                 hd_sim_thread_name(fiber, me), writes ? "writes" : "reads",
                 hd_sim_place_name(access->site, access->indices, place),
                 written ? "writes" : "reads");
}

void hd_sim_dependent_conclude(hd_sim_sanitizer_t *s) {
  const hd_sim_run_t *run = s->run;
  if (!run->kernel->programmatic || s->waited || run->num_blocks == 0 ||
      atomic_load(&run->failed))
    return;
  char text[256];
  snprintf(
      text, sizeof text,
      "no thread of kernel '%.80s' calls griddepcontrol_wait, so who waits "
      "for it knows nothing of the launches before it",
      run->kernel->name);
  hd_error(run->diags, (hd_loc_t){0}, HD_E0715, text);
  s->total_findings++;
}
