// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sanitizer's own data. It runs on one thread, so nothing here is locked.
#ifndef HIDET_RUNTIME_SIMSANITIZER_H
#define HIDET_RUNTIME_SIMSANITIZER_H

#include "Runtime/SimCheck.h"

enum { HD_SIM_MAX_FINDINGS = 32 };

// A finding that was reported: what, and the places in the text.
typedef struct hd_sim_known {
  hd_diagnostic_code_t code;
  hd_loc_t here, there;
} hd_sim_known_t;

struct hd_sim_sanitizer {
  hd_sim_run_t *run;
  uint32_t num_findings, total_findings;
  hd_sim_known_t findings[HD_SIM_MAX_FINDINGS];
};

#endif
