// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The GPU that schedules are chosen for, as far as choosing looks at it.
#ifndef HIDET_SCHEDULE_TEMPLATE_MACHINE_H
#define HIDET_SCHEDULE_TEMPLATE_MACHINE_H

#include "IR/Scalar.h"
#include "Support/Buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Machines.def says what each field is.
typedef struct hd_machine {
#define HD_MACHINE(type, field, t4, a100, rtx3090, rtx4090, h200, text)        \
  type field;
#define HD_ALIKE(type, field, value, text) type field;
#include "Schedule/Template/Machines.def"
#undef HD_MACHINE
#undef HD_ALIKE
  bool native; // Code is for this GPU alone, with all that it can (sm_90a).
} hd_machine_t;

struct hd_falls; // Falls.h
struct hd_module;
struct hd_tunables;

// Chooses for the groups of a graph before they are scheduled
// (Fusion/Form/Choose.h); what it makes lies in the module's arena. False after
// an error.
typedef bool (*hd_choose_fn_t)(void *argument, struct hd_module *module,
                               const struct hd_tunables *groups);

// What schedules are chosen by.
typedef struct hd_schedule_options {
  hd_machine_t machine; // count 0: no GPU is meant, and templates are left out.
  bool simulated;       // A host takes the GPU's place: threads cost it time.
  // Whose templates count beside the library's; NULL: nobody's.
  struct hd_module *module;
  const char *const *disabled; // Names of templates.
  size_t num_disabled;
  bool explain;          // Say by remarks what was chosen, and why nothing was.
  hd_choose_fn_t choose; // NULL: the model of the hardware does.
  void *choose_argument;
  // Candidates that were found not to do in the compilation at work; NULL: it
  // has not begun.
  struct hd_falls *falls;
} hd_schedule_options_t;

// The machine of an architecture (90 or 901 for sm_90a), or the last one below
// it; false where there is none.
bool hd_machine_find(int sm, hd_machine_t *machine);
// The same as its driver describes it: multiprocessors, bytes of L2 cache, GB/s
// that its memory carries; 0: not known, and as it is.
void hd_machine_fit(hd_machine_t *machine, int count, int64_t cache,
                    double carried);
// The same for where none is meant, and something is to be weighed all the
// same: the largest.
void hd_machine_find_largest(hd_machine_t *machine);
// Appends all properties: two machines' texts differ where anything does.
void hd_machine_print(const hd_machine_t *machine, hd_buffer_t *text);
// Multiply-adds of operands of a type that the tensor cores of a multiprocessor
// do in a cycle, by instructions of a warp or of a warpgroup; 0: they do none.
int hd_machine_mma(const hd_machine_t *machine, hd_scalar_t type);
int hd_machine_wgmma(const hd_machine_t *machine, hd_scalar_t type);
// Blocks that a multiprocessor has room for at a time, of so many threads,
// registers and bytes of shared memory each.
double hd_machine_residents(const hd_machine_t *machine, double threads,
                            double registers, double shared);
// Bytes that one kernel leaves in the L2 cache for the next, more or less.
int64_t hd_machine_kept(const hd_machine_t *machine);
// Cycles of a reduction over a cluster beside its sums: until its blocks have
// begun, and then one of them has what the others have sent.
double hd_machine_cluster_reduce(const hd_machine_t *machine);
// Multiprocessors that blocks in clusters of so many may be on.
int hd_machine_reach(const hd_machine_t *machine, int64_t cluster);

#endif
