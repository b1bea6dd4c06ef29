// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A function of the math library, compiled for the simulator as a kernel that
// applies it to arrays.
#ifndef HIDET_UNITTESTS_MATH_BATCH_H
#define HIDET_UNITTESTS_MATH_BATCH_H

#include "CodeGen/CodeGen.h"

#include <stdint.h>

typedef struct batch {
  hd_context_t context;
  hd_module_t *module;
  hd_host_code_t *code;
} batch_t;

// The test fails where it does not compile. type: "f32".
void batch_init(batch_t *b, const char *name, const char *type,
                unsigned arguments);
void batch_fini(batch_t *b);

// y[i] = name(x[i]) or name(x[i], z[i]). From several threads at once.
void batch_call(batch_t *b, int32_t n, const void *x, const void *z, void *y);

#endif
