// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels to code: LLVM IR, PTX, or functions of this process for the
// simulator. One emitter serves both targets. Functions must have gone through
// the kernel-level lowering (--lower) first: no mapping is left.
#ifndef HIDET_CODEGEN_CODEGEN_H
#define HIDET_CODEGEN_CODEGEN_H

#include "IR/Module.h"

typedef enum hd_arch { HD_ARCH_HOST, HD_ARCH_NVPTX } hd_arch_t;

typedef struct hd_target {
  hd_arch_t arch;
  int sm;           // 75, 80, 86, 89, 90; 901 is sm_90a. 0 for the host.
  const char *name; // "sm_90a", "host"
  int64_t max_shared_bytes; // A block's, with the opt-in.
  int64_t max_param_bytes;  // Of a kernel's parameters.
} hd_target_t;

// NULL where there is none of that name.
const hd_target_t *hd_target_find(const char *name);
// The targets one by one, in the table's order; NULL past the last.
const hd_target_t *hd_target_get(size_t i);
// "sm_75, sm_80, ..., host" for messages.
const char *hd_target_names(void);

typedef struct hd_codegen_options {
  const hd_target_t *target;
  bool sanitize;            // Host: emit the simulator's checks.
  bool quick;               // Host: code that is soon made, and slow.
  bool keep_names;          // Of values in the IR, for a reader.
  int64_t max_instructions; // Of LLVM's IR for a kernel; 0: the default.
} hd_codegen_options_t;

// Text of LLVM IR (before LLVM's passes) or PTX for one kernel. False after an
// error (reported).
bool hd_codegen_llvm(hd_module_t *module, const hd_func_t *kernel,
                     const hd_codegen_options_t *options, hd_buffer_t *out);
bool hd_codegen_ptx(hd_module_t *module, const hd_func_t *kernel,
                    const hd_codegen_options_t *options, hd_buffer_t *out);

// "LLVM 19.1.7".
const char *hd_codegen_version(void);

// This CPU and its features, as host code is made for them. NULL: out of
// memory.
const char *hd_codegen_host(void);

// What LLVM does where it cannot go on: report(reason) is called, and is to end
// the process. NULL: LLVM's own way. For programs, not for libraries: there is
// one for the whole process.
void hd_codegen_on_fatal(void (*report)(const char *reason));

// The same where memory runs out inside LLVM, or in any C++ of the process.
void hd_codegen_on_no_memory(void (*report)(void));

// Host code of one kernel, as CodeGen/SimAbi.h describes it: as bytes, which
// any process of this build on this CPU may load (hd_codegen_host()), and
// loaded into this one. create does both. symbol: what the kernel is called
// there; NULL: hd_func_symbol(). False or NULL after errors, which are
// reported.
typedef struct hd_host_code hd_host_code_t;
bool hd_host_code_make(hd_module_t *module, const hd_func_t *kernel,
                       const hd_codegen_options_t *options, hd_buffer_t *out);
hd_host_code_t *hd_host_code_load(hd_context_t *context,
                                  const hd_func_t *kernel, const char *symbol,
                                  const char *bytes, size_t size);
hd_host_code_t *hd_host_code_create(hd_module_t *module,
                                    const hd_func_t *kernel,
                                    const hd_codegen_options_t *options);
void hd_host_code_destroy(hd_host_code_t *code);
void *hd_host_code_entry(const hd_host_code_t *code);
bool hd_host_code_is_coroutine(const hd_host_code_t *code);

// Symbols that host code calls are looked up here (the simulator's table).
// Set once, before the first hd_host_code_create. NULL: no such symbol.
typedef void *(*hd_symbol_lookup_t)(const char *name);
void hd_host_code_set_symbols(hd_symbol_lookup_t lookup);

#endif
