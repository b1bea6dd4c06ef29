// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's target machines, passes and output for a kernel. What LLVM allocates
// belongs to the emitter's state, which is freed however its work ends.
#ifndef HIDET_CODEGEN_LLVM_H
#define HIDET_CODEGEN_LLVM_H

#include "CodeGen/Emit.h"

#include <llvm-c/Error.h>

// Reports a message of LLVM's (E0504) and takes it; false where there is none.
bool hd_llvm_failed(hd_emit_t *e, char *message);
// The same of an error, which is consumed.
bool hd_llvm_error(hd_emit_t *e, LLVMErrorRef error);

// Takes or makes e->machine, instead of one that it has, and lays the module
// out for it. False after an error, as the next one.
bool hd_llvm_machine(hd_emit_t *e, const hd_llvm_machine_t *of);
// Hands e->machine back, for kernels to come. NULL is none.
void hd_llvm_machine_leave(hd_emit_t *e);
bool hd_llvm_run_passes(hd_emit_t *e, const char *passes);
// The module as text or object code: e->output. NULL after an error.
LLVMMemoryBufferRef hd_llvm_generate(hd_emit_t *e, LLVMCodeGenFileType type);

#endif
