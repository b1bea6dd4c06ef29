// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The numbered steps of a compilation: each thing that a compiler does to a
// program and could as well leave undone. A limit leaves all steps after the
// first so many undone; `hidet-run --bisect` looks for the one that changes a
// result. As LLVM's -opt-bisect-limit.
//
// Whoever does a step asks first, and does the plain thing instead where the
// answer is no: no rewrite, nodes unfused, a kernel's nodes evaluated as they
// are written, a pass skipped. What precedes a step decides alone whether it
// comes up and under which number, so the steps up to a limit are those of the
// whole compilation. One in rounds (Runtime/ModelCompile.c) counts on through
// all of them, and the last one's steps stand; what a round finds ends with the
// compilation, so another one does the same up to the limit.
#ifndef HIDET_SUPPORT_STEPS_H
#define HIDET_SUPPORT_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum hd_step_kind {
  HD_STEP_REWRITE,   // A rewrite at one place in a graph.
  HD_STEP_PRECISION, // A node that computes in another type.
  HD_STEP_FUSION,    // A node that joins a group.
  HD_STEP_KERNEL,    // A node or a group that becomes a kernel.
  HD_STEP_PASS,      // A pass over a kernel that is not needed for it to run.
  HD_STEP_KINDS
} hd_step_kind_t;

typedef struct hd_step_info {
  uint64_t number; // From 1 on.
  hd_step_kind_t kind;
  const char *name; // As long as the call that it is given to.
  bool done;
} hd_step_info_t;

// Zero: every step is done.
typedef struct hd_steps {
  uint64_t count; // Steps that came up.
  bool limited;
  uint64_t limit; // Where limited: how many are done.
  // Where set, sees each step as it comes up.
  void (*watch)(void *argument, const hd_step_info_t *step);
  void *watch_argument;
  // Where set, may put something else in the place of what a step made; for
  // tests of --bisect, which plant faults.
  const void *(*plant)(void *argument, const hd_step_info_t *step, void *module,
                       const void *made);
  void *plant_argument;
  hd_step_info_t last;
  char name[200]; // Of the last; longer ones are cut.
} hd_steps_t;

// Whether anybody wants to know of steps, or to leave some undone.
static inline bool hd_steps_matter(const hd_steps_t *steps) {
  return steps->limited || steps->watch || steps->plant;
}

// Whether to do the step that the rest names, as a sentence would: "of
// fold_scale at 'conv1'", "simplify on 'matmul_3'".
bool hd_step(hd_steps_t *steps, hd_step_kind_t kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// To be called with what the last step made, where it was done: the graph after
// a rewrite; the node that is to compute in another type, to join a group, or
// to be scheduled; the function (hd_func_t) after a pass. Returns what to go on
// with: the same where no test asks for another. module: that it lives in.
const void *hd_step_made(hd_steps_t *steps, void *module, const void *made);

const char *hd_step_kind_name(hd_step_kind_t kind); // "rewrite"

#endif
