// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel or a plan made ready for a device and one set of sizes: code loaded,
// workspaces allocated, every launch worked out. Running it is then a walk over
// a list.
#ifndef HIDET_RUNTIME_PROGRAM_H
#define HIDET_RUNTIME_PROGRAM_H

#include "Runtime/Device.h"
#include "Runtime/Eval.h"

// Memory of one tensor.
typedef struct hd_slot {
  const hd_var_t *var;
  hd_address_t address;
  size_t bytes;
} hd_slot_t;

typedef struct hd_step hd_step_t;

typedef struct hd_program {
  hd_device_t *device;
  hd_module_t *module;
  const hd_func_t *entry;
  hd_env_t env; // Values of the entry's scalar parameters.
  hd_arena_t arena;
  HD_VEC(const hd_func_t *) funcs; // The kernels, each once.
  hd_kernel_t **kernels;
  HD_VEC(hd_slot_t) workspaces;
  HD_VEC(hd_step_t *) steps;
  unsigned num_launches;
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

// env has a value for every scalar parameter of the entry. The kernels have
// been lowered. In any case hd_program_fini() is to be called before the device
// and the module end. False after an error.
bool hd_program_init(hd_program_t *program, hd_device_t *device,
                     hd_module_t *module, const hd_func_t *entry,
                     const hd_env_t *env);
void hd_program_fini(hd_program_t *program);

// Does every step. params[i] is the memory of the entry's parameter i (scalars:
// not looked at), of the size that hd_storage_bytes() says.
bool hd_program_run(hd_program_t *program, const hd_slot_t *params);

// Bytes that the launches of one run read and write, by the parameters they are
// given: in and out once, inout twice.
int64_t hd_program_moved_bytes(const hd_program_t *program);

#endif
