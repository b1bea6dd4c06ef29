// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What hidet-opt writes.
#ifndef HIDET_TOOLS_EMIT_H
#define HIDET_TOOLS_EMIT_H

#include "CodeGen/CodeGen.h"

typedef enum hd_emit_format { // In the order of the choices of --emit.
  HD_EMIT_HIR,
  HD_EMIT_LLVM,
  HD_EMIT_PTX,
  HD_EMIT_CUBIN,
  HD_EMIT_DOT,
} hd_emit_format_t;

// Appends the module as text, or the code of its kernels (of the one named
// entry, where that is not NULL), to out. The module has been lowered where it
// is code. cubin takes one kernel. False after an error.
bool hd_emit_module(hd_module_t *module, hd_emit_format_t what,
                    const hd_target_t *target, const char *entry,
                    hd_buffer_t *out);

// The target of that name; NULL, and an error that names the nearest one.
const hd_target_t *hd_tools_find_target(hd_diagnostics_t *diags,
                                        const char *name);
// The one to use where none is named: the GPU that is present, else sm_90a.
const hd_target_t *hd_tools_default_target(void);

#endif
