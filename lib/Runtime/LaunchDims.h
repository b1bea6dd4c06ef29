// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HIDET_RUNTIME_LAUNCHDIMS_H
#define HIDET_RUNTIME_LAUNCHDIMS_H

#include "IR/Eval.h"

// Works out what a kernel's launch says of its dimensions; what it leaves out
// is 1. env holds its sizes. False where one divides by zero or does not fit
// (E0608, with the sizes that it comes from).
bool hd_launch_dims(hd_diagnostics_t *diags, const hd_env_t *env,
                    const hd_func_t *kernel, int32_t grid[3], int32_t block[3],
                    int32_t cluster[3]);

#endif
