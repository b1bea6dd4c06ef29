// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The algebra of task mappings: which tasks a worker does, in which order, and
// what is true of a mapping as a whole. The paper (Hidet, ASPLOS'23, section
// 5.1) defines spatial, repeat and their composition; docs/IR.md has the rest.
#ifndef HIDET_TASKMAPPING_TASKMAPPING_H
#define HIDET_TASKMAPPING_TASKMAPPING_H

#include "IR/Module.h"
#include "IR/Passes/Pass.h"

// Tasks in order; task t's index along axis a is indices[t * rank + a].
typedef struct hd_tasks {
  unsigned rank;
  int64_t count;
  const int64_t *indices;
} hd_tasks_t;

// The tasks of a worker (0 <= worker < mapping->workers), in order. Bounds and
// custom expressions are folded, by fold where they are not constant (may be
// NULL). False where one of them has no value, or divides by zero.
bool hd_mapping_tasks(hd_arena_t *arena, const hd_mapping_t *mapping,
                      int64_t worker, const hd_fold_t *fold, hd_tasks_t *tasks);

// The most tasks that one worker does; bounds of `within` are not looked at.
int64_t hd_mapping_tasks_per_worker(const hd_mapping_t *mapping);

// What auto_map stands for: repeat(d / spatial) * spatial(spatial), where
// spatial is, from the last axis back, gcd(workers left, d). left_over (may be
// NULL): the factor of the workers that found no tasks; 1 where all did.
const hd_mapping_t *hd_mapping_expand_auto(hd_arena_t *arena,
                                           const hd_mapping_t *mapping,
                                           int64_t *left_over);

typedef enum hd_mapping_fault {
  HD_MAPPING_EXACT,     // Each task is done exactly once.
  HD_MAPPING_OUTSIDE,   // A worker is given a task outside the task shape.
  HD_MAPPING_TWICE,     // A task is done twice.
  HD_MAPPING_MISSED,    // A task is done by no worker.
  HD_MAPPING_LEFT_OVER, // auto_map: no tasks for some of the workers.
  HD_MAPPING_UNKNOWN,   // Too many tasks to look at, or not constant.
} hd_mapping_fault_t;

typedef struct hd_mapping_facts {
  hd_mapping_fault_t fault;    // The first one found.
  const hd_mapping_t *mapping; // The part that has the fault.
  int64_t task[HD_MAPPING_MAX_RANK];
  int64_t worker; // OUTSIDE, TWICE
} hd_mapping_facts_t;

// Whether each task is done exactly once. `within` is looked through: it leaves
// tasks out on purpose. Decided from the form for spatial, repeat, auto_map and
// compositions (which are exact when their parts are); custom mappings are
// enumerated, up to 2^20 tasks.
hd_mapping_facts_t hd_mapping_analyze(const hd_mapping_t *mapping);

// Reports what is wrong with a mapping that is used at loc; true where nothing
// is.
bool hd_mapping_verify(hd_context_t *context, const hd_mapping_t *mapping,
                       hd_loc_t loc);

// Verifies every mapping of a function: its own rules, and that a loop's worker
// takes as many values as the mapping has workers, where that can be known.
bool hd_func_verify_mappings(hd_context_t *context, const hd_func_t *func);

#endif
