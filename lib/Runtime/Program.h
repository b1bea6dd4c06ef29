// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel or a plan made ready for a device and one set of sizes: kernels
// specialized and loaded, workspaces allocated, every launch worked out.
// Running it is then a walk over a list, with loops in it. The module that it
// comes from is left as it is.
#ifndef HIDET_RUNTIME_PROGRAM_H
#define HIDET_RUNTIME_PROGRAM_H

#include "IR/Eval.h"
#include "IR/Passes/Specialize.h"
#include "Runtime/Device.h"
#include "Support/Map.h"

// Memory of one tensor; of a workspace that shares a block, its address is the
// offset in that.
typedef struct hd_slot {
  const hd_var_t *var;
  hd_address_t address;
  size_t bytes;
} hd_slot_t;

typedef struct hd_action hd_action_t;

// A workspace of a plan: whether it lies in memory that is another tensor's.
typedef struct hd_view {
  int base; // That tensor's slot, never a view's; -1: it is no view.
  size_t offset;
  bool moves;   // With the turns of a loop: offset is of the last.
  int64_t loop; // The action that begins the loop that declares it; -1: none.
} hd_view_t;

// A launch of the entry, in order.
typedef struct hd_call_site {
  const hd_stmt_t *stmt; // Of a plan; NULL where the entry is the kernel.
  hd_env_t env;          // Values of the kernel's own scalar parameters.
  size_t variant;
} hd_call_site_t;

// A kernel made for one set of sizes.
typedef struct hd_variant {
  const hd_func_t *source;
  const hd_known_t *known; // The sizes, as they stand among the parameters.
  size_t num_known;
  hd_func_t *func; // In the program's module.
  size_t next;     // The number + 1 of another one of the source; 0: none.
} hd_variant_t;

typedef struct hd_program_options {
  bool specialize; // Make kernels for the sizes that they are launched with.
  bool explain;    // Say by remarks where that was not possible.
  // Workspaces share no memory, so that reading what another one left there is
  // found.
  bool apart;
} hd_program_options_t;

typedef struct hd_program {
  hd_device_t *device;
  hd_module_t *module; // Of its own: the variants, and the functions they call.
  const hd_func_t *entry;
  hd_env_t env; // Values of the entry's scalar parameters.
  hd_arena_t arena;
  HD_VEC(hd_call_site_t) sites;
  HD_VEC(hd_variant_t) variants; // Each once.
  hd_kernel_t **kernels;         // One for each variant.
  hd_ptr_map_t slots; // Variables of the entry to their slots' numbers + 1.
  HD_VEC(hd_slot_t) workspaces;
  HD_VEC(hd_view_t) views; // One for each workspace.
  hd_address_t block;      // That the workspaces share; 0: none, or apart.
  int64_t block_bytes, block_bound; // Its size, and the least possible.
  bool apart;
  bool owns_block;
  bool borrows; // The kernels, sites and variants are another program's.
  HD_VEC(hd_action_t *) actions;
  int64_t open_loop;    // While they are made: the one around; -1: none.
  int64_t num_launches; // Of a run.
} hd_program_t;

// Binds the sizes that a tensor's shape gives: n of f32[n, 64] by [10, 64].
// Reports E0806 where the rank differs and E0809 where a size does not fit its
// type. Shapes are compared by hd_bind_check(), when every size is known.
bool hd_bind_shape(hd_context_t *context, hd_env_t *env, hd_arena_t *arena,
                   const hd_var_t *tensor, const int64_t *shape, unsigned rank);
// Whether the tensor's shape, all sizes known, is this one; reports E0806.
bool hd_bind_check(hd_context_t *context, const hd_env_t *env,
                   const hd_var_t *tensor, const int64_t *shape, unsigned rank);
// Gives an integer parameter its value; reports E0809 where that does not fit.
bool hd_bind_int(hd_context_t *context, hd_env_t *env, hd_arena_t *arena,
                 const hd_var_t *var, int64_t value);

// Takes what is to run out of the module: program->module gets a copy of every
// kernel that the entry launches, for its sizes, to be lowered by the caller.
// env has a value for every scalar parameter of the entry. In any case
// hd_program_fini() is to be called before the device and the entry's module
// end. False after an error.
//
// Specialized are the integer parameters that are sizes (hd_func_is_size()),
// and device.sms; other scalars stay arguments of the launch, since they may
// take many values and tell the compiler little. A kernel that breaks a rule of
// the language at these sizes (a dimension of 0, behind a condition) stays
// general.
bool hd_program_init(hd_program_t *program, hd_device_t *device,
                     const hd_module_t *module, const hd_func_t *entry,
                     const hd_env_t *env, const hd_program_options_t *options);
// Makes it ready to run; program->module has been lowered.
bool hd_program_load(hd_program_t *program);
// The first half of that: its code is on the device, for hd_program_share().
// codes: of each variant, as hd_device_ops_t.load has it, or NULL. failures:
// for each variant, as hd_device_load() has it, or NULL.
bool hd_program_load_kernels(hd_program_t *program, const hd_code_t *codes,
                             hd_failure_t *failures);
// The second half.
bool hd_program_make_ready(hd_program_t *program);
// Whether the device has room for a launch, whose kernel is loaded; else it is
// reported (E0606, E0608).
bool hd_program_fits(hd_program_t *program, const hd_call_site_t *site);
// Makes of it another one that may run at the same time: it has the code of the
// first, which outlives it, and of its own all that a run changes. device: the
// same or a fork of it. Workspaces that share a block have none yet:
// hd_program_place(). To be ended by hd_program_fini() in any case; false after
// an error.
bool hd_program_share(hd_program_t *program, const hd_program_t *of,
                      hd_device_t *device);
// The workspaces lie in this memory of program->block_bytes, which is the
// caller's.
void hd_program_place(hd_program_t *program, hd_address_t block);
void hd_program_fini(hd_program_t *program);

// Does every action. params[i] is the memory of the entry's parameter i
// (scalars: not looked at), of the size that hd_storage_bytes() says. What is
// written may not lie in the memory of another parameter: E0809.
bool hd_program_run(hd_program_t *program, const hd_slot_t *params);

// Gives the launches of a recording of a run, which was the program's last, the
// parameters' memory as it is now. *updated: false where it has to be recorded
// anew, since it has loops. False after an error.
bool hd_program_update(hd_program_t *program, const hd_slot_t *params,
                       hd_recording_t *recording, bool *updated);

// A launch, or a loop of launches: then the first of its kernels stands for
// all.
typedef struct hd_profile_row {
  const hd_kernel_t *kernel;
  const hd_kernel_launch_t *launch;
  int64_t launches; // In one run.
  int64_t bytes;    // That they read and write.
  double us;        // By which a run takes longer; noise may be negative.
} hd_profile_row_t;

typedef struct hd_profile {
  HD_VEC(hd_profile_row_t) rows; // In order; in the arena that was given.
  double us;                     // Of a run.
} hd_profile_t;

// Measures what each launch adds to the time of a run, on a device that records
// (ops->replay). What the program writes is written again and again. False
// after an error.
bool hd_program_profile(hd_program_t *program, const hd_slot_t *params,
                        hd_arena_t *arena, hd_profile_t *profile);

typedef struct hd_moved {
  int64_t activations, constants; // In bytes.
} hd_moved_t;

// Bytes that the launches of one run read and write, by the parameters they are
// given: in and out once, inout twice. The entry's parameters from number first
// on to end, which it leaves out, are constants; all else is activations.
hd_moved_t hd_program_moved(const hd_program_t *program, uint32_t first,
                            uint32_t end);

// The first half of hd_program_init(): sites, variants and the module.
bool hd_program_make_variants(hd_program_t *program, const hd_module_t *module,
                              const hd_program_options_t *options);

#endif
