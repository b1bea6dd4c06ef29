// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the simulator tells of a kernel's faults.
#include "Sim/Sanitizer.h"

#include <stdarg.h>
#include <stdio.h>

static bool same_place(hd_loc_t a, hd_loc_t b) {
  return a.source == b.source && a.offset == b.offset;
}

// Whether such a finding is new; notes it.
static bool is_new(hd_sim_sanitizer_t *sanitizer, hd_diagnostic_code_t code,
                   hd_loc_t here, hd_loc_t there) {
  sanitizer->total_findings++;
  for (uint32_t i = 0; i < sanitizer->num_findings; i++) {
    const hd_sim_known_t *known = &sanitizer->findings[i];
    if (known->code == code &&
        ((same_place(known->here, here) && same_place(known->there, there)) ||
         (same_place(known->here, there) && same_place(known->there, here))))
      return false;
  }
  if (sanitizer->num_findings == HD_SIM_MAX_FINDINGS)
    return false;
  sanitizer->findings[sanitizer->num_findings++] =
      (hd_sim_known_t){code, here, there};
  return true;
}

bool hd_sim_finding(const hd_sim_fiber_t *fiber, hd_diagnostic_code_t code,
                    const hd_sim_site_t *site, const hd_sim_site_t *other,
                    const char *text, ...) {
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  hd_loc_t here = hd_sim_site_loc(site), there = hd_sim_site_loc(other);
  if (run->sanitizer && !is_new(run->sanitizer, code, here, there))
    return false;
  char message[512];
  va_list args;
  va_start(args, text);
  vsnprintf(message, sizeof message, text, args);
  va_end(args);
  hd_error(run->diags, here, code, message);
  return true;
}

void hd_sim_assert_failed(hd_sim_thread_t *thread, hd_sim_block_t *block,
                          const hd_sim_site_t *site) {
  hd_sim_resident_t *resident = hd_sim_resident(block);
  hd_sim_run_t *run = resident->worker->run;
  const char *message = site->tensor ? site->tensor : "";
  char name[HD_SIM_NAME_SIZE], text[512];
  if (thread) {
    hd_sim_finding(hd_sim_fiber(thread), HD_E0708, site, NULL,
                   "%s (kernel '%s', %s)", message, run->kernel->name,
                   hd_sim_thread_name(hd_sim_fiber(thread), name));
  } else {
    snprintf(text, sizeof text, "%s (kernel '%s')", message, run->kernel->name);
    hd_error(run->diags, hd_sim_site_loc(site), HD_E0708, text);
  }
  hd_sim_fail(run);
  hd_sim_leave();
}

void hd_sim_divided_by_zero(hd_sim_thread_t *thread,
                            const hd_sim_site_t *site) {
  const hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  char name[HD_SIM_NAME_SIZE];
  hd_sim_finding(fiber, HD_E0709, site, NULL, "by %s",
                 hd_sim_thread_name(fiber, name));
}
