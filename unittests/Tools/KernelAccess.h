// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replaces the accesses to a kernel's parameters by accesses to others of the
// same kind at the same places, which changes nothing.
#ifndef HIDET_UNITTESTS_TOOLS_KERNELACCESS_H
#define HIDET_UNITTESTS_TOOLS_KERNELACCESS_H

#include "IR/Module.h"

// Of all parameters without an obstacle; functions are inlined before. The new
// ones stand where the old ones stood. False where there are none.
bool hd_kernel_replace_accesses(hd_module_t *module, hd_func_t *kernel);

#endif
