// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches that may begin before the one before them has ended (programmatic):
// the proof that griddepcontrol_wait() comes first, on every way through the
// kernel and for every thread.
#ifndef HIDET_IR_EARLYLAUNCH_H
#define HIDET_IR_EARLYLAUNCH_H

#include "IR/Module.h"

typedef enum hd_early_answer {
  HD_EARLY_YES,
  HD_EARLY_NO,
  HD_EARLY_UNKNOWN, // Counts as no: some ways there pass a wait, some do not.
} hd_early_answer_t;

typedef struct hd_early_proof {
  hd_early_answer_t answer;
  const char *why; // Where not YES: "it reads 's' before ...".
  hd_loc_t place;  // The access, or the end of the kernel.
  hd_loc_t wait;   // UNKNOWN: one that is not on every way there.
} hd_early_proof_t;

// What the launches of a plan have in common, so that each kernel is walked
// once. Lives in the arena, like the answers.
typedef struct hd_early_launches hd_early_launches_t;
hd_early_launches_t *hd_early_launches_make(hd_arena_t *arena, hd_block_t plan);

// Whether what a launch of the plan is given is the same whatever runs: a
// number, or a tensor that is given to the plan and that no launch of it
// writes.
bool hd_early_launch_is_constant(const hd_early_launches_t *launches,
                                 const hd_expr_t *arg);

// Whether a launch of the plan may be programmatic: the wait dominates each
// access to global memory but those to constants, tensors that are given to the
// plan and that no launch of it writes, and it dominates each end of the
// kernel, on which the launches after this one rely. Functions are looked into,
// once each, so that the time is that of the text's size. Answers for faulty
// IR, too.
hd_early_proof_t hd_early_launch_prove(hd_early_launches_t *launches,
                                       const hd_stmt_t *launch);

// Whether a function calls griddepcontrol_wait() at all, by itself or by what
// it calls: it may begin before the launch before it has ended. Takes a little
// of the arena.
bool hd_func_waits(hd_arena_t *arena, const hd_func_t *func);

#endif
