// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Modules: programs in the language of docs/IR.md.

#ifndef HIDET_MODULE_H
#define HIDET_MODULE_H

#include "hidet/Context.h"

HIDET_C_BEGIN

typedef struct hidet_module hidet_module_t;

// Parses and verifies a text of size bytes; name is for messages and may be
// NULL. On HIDET_OK *module is a new module, which hidet_module_destroy() ends;
// else it is NULL.
HIDET_API hidet_status_t hidet_module_parse(hidet_context_t *context,
                                            const char *name, const char *text,
                                            size_t size,
                                            hidet_module_t **module);
HIDET_API void hidet_module_destroy(hidet_module_t *module);

// Runs one pass (docs/PASSES.md), verifies the module after it. options may be
// NULL; else they are those of --PASS=options. After an error the module is
// only good for being destroyed.
HIDET_API hidet_status_t hidet_module_run_pass(hidet_module_t *module,
                                               const char *pass,
                                               const char *options);

// The module as text, which parses back to it. *text is new, zero-terminated,
// and the caller's (hidet_text_free()); NULL after an error.
HIDET_API hidet_status_t hidet_module_print(hidet_module_t *module,
                                            char **text);

// Code of the kernels as text: format is "llvm" or "ptx", target one of
// "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "host" (llvm alone).
// kernel may be NULL: then it is every kernel; "k[BM = 64]" is the instance of
// one with compile-time parameters, made where there is none yet. Lowers the
// module (the pass "lower"). *text as above.
HIDET_API hidet_status_t hidet_module_emit(hidet_module_t *module,
                                           const char *format,
                                           const char *target,
                                           const char *kernel, char **text);

HIDET_C_END

#endif
