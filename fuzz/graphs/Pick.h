// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A task's signature while a node of it is made: what its names stand for so
// far. Shapes of inputs are matched one after the other; what is left open is
// drawn.
#ifndef HIDET_FUZZ_GRAPHS_PICK_H
#define HIDET_FUZZ_GRAPHS_PICK_H

#include "Fuzz.h"

enum { FUZZ_MAX_NAMES = 16, FUZZ_MAX_AXES = 6 };

typedef struct fuzz_pick {
  fuzz_graph_t *g;
  const hd_task_t *task;
  const char *rule;
  hd_scalar_t types[FUZZ_MAX_NAMES]; // HD_VOID: open.
  int64_t sizes[FUZZ_MAX_NAMES];     // -1: open.
  int ranks[FUZZ_MAX_NAMES];         // Of packs, -1: open.
  bool bound[FUZZ_MAX_NAMES];        // Whether a pack's sizes are known.
  bool said[FUZZ_MAX_NAMES];         // Its rank does not follow from inputs.
  int64_t packs[FUZZ_MAX_NAMES][FUZZ_MAX_AXES];
  // Of the task's inputs: a tensor's value, or an attribute's numbers.
  fuzz_value_t *values[FUZZ_MAX_INPUTS];
  hd_tensor_type_t leaves[FUZZ_MAX_INPUTS]; // Where there is no value yet.
  unsigned counts[FUZZ_MAX_INPUTS];         // Of numbers; 0: not known.
  double numbers[FUZZ_MAX_INPUTS][FUZZ_MAX_AXES];
} fuzz_pick_t;

void fuzz_pick_begin(fuzz_pick_t *p, fuzz_graph_t *g, const hd_task_t *task);
// Takes a tensor for input number i; false, and nothing is changed, where it
// does not fit.
bool fuzz_pick_match(fuzz_pick_t *p, size_t i, const hd_tensor_type_t *type);
// Draws what input number i leaves open; false where its shape cannot be known.
bool fuzz_pick_complete(fuzz_pick_t *p, size_t i, hd_tensor_type_t *type);
// Whether type and shape of input number i are settled.
bool fuzz_pick_is_settled(const fuzz_pick_t *p, size_t i);
// Draws the type variables that are open; the attribute that says so is due.
hd_scalar_t fuzz_pick_type(fuzz_pick_t *p, const hd_task_type_t *type);
unsigned fuzz_pick_rank(const fuzz_pick_t *p, const hd_pack_t *pack);
// For fuzz_rule_range(); the argument is the pick.
bool fuzz_pick_lookup(void *argument, const char *name, size_t size,
                      unsigned axis, double *value);

#endif
