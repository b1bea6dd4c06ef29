// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of a program share (Program.c: memory, ProgramPlan.c: the
// actions, ProgramRun.c: a run).
#ifndef HIDET_RUNTIME_PROGRAMSTATE_H
#define HIDET_RUNTIME_PROGRAMSTATE_H

#include "Runtime/Program.h"

typedef enum hd_action_does {
  HD_ACTION_LAUNCHES,
  HD_ACTION_FILLS,       // A workspace.
  HD_ACTION_PLACES,      // A view that lies elsewhere in each turn.
  HD_ACTION_BEGINS_LOOP, // Its turns are the actions up to its end.
  HD_ACTION_ENDS_LOOP,
} hd_action_does_t;

// An argument that is another in each turn.
typedef struct hd_moving {
  uint32_t arg;
  const hd_expr_t *value;
} hd_moving_t;

// A tensor is named by its slot: the entry's parameters first, then the
// workspaces.
struct hd_action {
  hd_action_does_t does;
  int64_t loop; // The action that begins the loop around it; -1: none.
  // LAUNCHES
  hd_kernel_t *kernel;
  hd_kernel_launch_t launch;
  bool programmatic; // Unless nothing was launched right before.
  int64_t times;     // In one run.
  uint32_t num_args;
  int *slots;       // For each argument; -1: a scalar.
  uint64_t *values; // For each argument.
  void **args;      // args[i] points at values[i].
  int *tensor_args; // For each of launch.tensors: its argument.
  hd_launch_tensor_t *tensors;
  hd_tensor_map_t *maps;
  uint32_t *map_args; // For each of maps: its tensor's argument.
  uint32_t num_moving;
  hd_moving_t *moving;
  int slot; // FILLS, PLACES
  // FILLS
  uint64_t bits;
  unsigned element_bytes;
  size_t count;
  const hd_stmt_t *stmt;     // PLACES: the view; BEGINS_LOOP: the loop.
  size_t other;              // Where the loop ends; ENDS_LOOP: where it begins.
  int64_t turn, limit, step; // BEGINS_LOOP: of the run at work.
};

static inline hd_diagnostics_t *hd_program_diags(const hd_program_t *p) {
  return &p->device->context->diags;
}

// Reports E0608; returns false.
bool hd_program_fail(const hd_program_t *p, const hd_func_t *kernel,
                     const char *why);

// --- ProgramPlan.c ---

// Makes the actions; the kernels have been loaded. False after an error.
bool hd_program_plan(hd_program_t *p);
uint64_t hd_program_encode(hd_type_t type, hd_number_t value);
// The bytes of a slot, as the entry's sizes say.
bool hd_program_slot_bytes(hd_program_t *p, int slot, int64_t *bytes);
// Where a view lies now, if that is in its base and aligned.
bool hd_program_place_view(hd_program_t *p, const hd_stmt_t *stmt,
                           const hd_slot_t *slot, hd_view_t *view);

// --- ProgramRun.c ---

// The actions of a run up to one, which is left out and in no loop.
bool hd_program_run_until(hd_program_t *program, const hd_slot_t *params,
                          size_t end);

// Goes through all turns of the loops, launches nothing, and counts: views lie
// where they may, and no launch is given what it writes twice. False after an
// error.
bool hd_program_check_turns(hd_program_t *p);

#endif
