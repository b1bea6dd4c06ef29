// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The shared memory of a kernel.
#ifndef HIDET_IR_SHAREDPLAN_H
#define HIDET_IR_SHAREDPLAN_H

#include "IR/Module.h"

// An offset in bytes for each shared tensor, in order of declaration, and the
// whole size. Expressions over size parameters.
typedef struct hd_shared_plan {
  uint32_t num_tensors;
  const hd_var_t *const *tensors;
  const hd_expr_t *const *offsets;
  const hd_expr_t *size;
} hd_shared_plan_t;

const hd_shared_plan_t *hd_shared_plan(hd_arena_t *arena,
                                       const hd_func_t *kernel);

#endif
