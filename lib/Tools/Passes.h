// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes of every folder, as one list in the order of the folders.
#ifndef HIDET_TOOLS_PASSES_H
#define HIDET_TOOLS_PASSES_H

#include "IR/Passes/Pass.h"

enum { HD_TOOLS_MAX_PASSES = 128 };

typedef struct hd_pass_list {
  size_t size;
  const hd_pass_t *passes[HD_TOOLS_MAX_PASSES];
  // The same as parallel arrays, for hd_command_t.
  const char *names[HD_TOOLS_MAX_PASSES];
  const char *summaries[HD_TOOLS_MAX_PASSES];
} hd_pass_list_t;

void hd_pass_list_init(hd_pass_list_t *list);

// NULL where there is none of that name.
const hd_pass_t *hd_pass_list_find(const hd_pass_list_t *list,
                                   const char *name);

// "kernel" or "graph".
const char *hd_pass_level_name(hd_pass_level_t level);

// What a run of a pass did, for --time-passes and --stats.
typedef struct hd_pass_record {
  const char *name;
  uint64_t ns;
  bool changed;
} hd_pass_record_t;

typedef struct hd_pass_log {
  HD_VEC(hd_pass_record_t) records;
  hd_arena_t *arena;
} hd_pass_log_t;

// Where, on standard error, IR is printed around a pass; NULL or false: not.
typedef struct hd_pass_prints {
  const char *before, *after;
  bool after_all, after_change;
} hd_pass_prints_t;

// Runs the pass, but for one that the config leaves out, of `lower`, too;
// prints as asked, and adds to the log (NULL: there is none). False after an
// error.
bool hd_tools_run_pass(hd_module_t *module, const hd_pass_t *pass,
                       const hd_pass_args_t *args,
                       const hd_pass_config_t *config,
                       const hd_pass_prints_t *prints, hd_pass_log_t *log);

#endif
