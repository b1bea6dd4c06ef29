// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hidet-opt's reports: times and statistics, as text on standard error and as
// JSON.
#ifndef HIDET_TOOLS_REPORT_H
#define HIDET_TOOLS_REPORT_H

#include "Graph/Rewrite/Rewrite.h"
#include "Tools/Json.h"
#include "Tools/Passes.h"

typedef struct hd_module_counts {
  unsigned kernels, functions, plans, constants, tasks, graphs, groups, anchors;
  uint64_t statements;
} hd_module_counts_t;

// Adds what a module holds.
void hd_module_count(const hd_module_t *module, hd_module_counts_t *counts);

// Where the time went, the parts in the order in which they began; ends what is
// at work.
void hd_report_times(hd_times_t *times);
// The same for --json: [{"name", "ms"}, ...].
json_t *hd_report_times_json(hd_times_t *times);
void hd_report_stats(const hd_pass_log_t *log, const hd_module_counts_t *counts,
                     const hd_rewrite_stats_t *rewrites);

// What a launch of each of its kernels must give (Interface.h), appended to an
// array.
void hd_report_entries(hd_module_t *module, json_t *entries);

// Writes one object, with the keys of `hidet-opt --stats --json`. Takes the
// array of entries.
bool hd_report_opt_json(hd_context_t *context, const char *path,
                        const hd_pass_log_t *log,
                        const hd_module_counts_t *counts,
                        const hd_rewrite_stats_t *rewrites, json_t *entries,
                        int exit_code);

#endif
