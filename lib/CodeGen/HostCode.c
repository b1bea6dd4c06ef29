// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Host code, from bytes into this process. The bytes (Host.c) are the kernel's
// form ('c': a coroutine, 'l': a loop), the names of the functions that it
// calls, each with a zero, an empty name, and an object file.
#include "CodeGen/Llvm.h"
#include "IR/Generic.h"

#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct hd_host_code {
  LLVMOrcLLJITRef jit;
  void *entry;
  bool is_coroutine;
};

// Set by each device that is opened, by whichever thread.
static _Atomic(hd_symbol_lookup_t) symbols;

void hd_host_code_set_symbols(hd_symbol_lookup_t lookup) {
  atomic_store(&symbols, lookup);
}

typedef struct loading {
  hd_context_t *context;
  const hd_func_t *kernel;
  const char *symbol;
  hd_host_code_t *code;
} loading_t;

// Whether that is no error; else it is reported, and consumed.
static bool is_fine(const loading_t *l, LLVMErrorRef error) {
  if (!error)
    return true;
  char *text = LLVMGetErrorMessage(error);
  hd_error(&l->context->diags, l->kernel->loc, HD_E0504, text);
  LLVMDisposeErrorMessage(text);
  return false;
}

static bool fail(const loading_t *l, const char *why) {
  return hd_error(&l->context->diags, l->kernel->loc, HD_E0504, why);
}

static bool define(const loading_t *l, LLVMOrcJITDylibRef dylib,
                   const char *name, void *address) {
  LLVMOrcCSymbolMapPair pair = {
      LLVMOrcLLJITMangleAndIntern(l->code->jit, name),
      {(LLVMOrcJITTargetAddress)(uintptr_t)address,
       {LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable,
        0}}};
  return is_fine(
      l, LLVMOrcJITDylibDefine(dylib, LLVMOrcAbsoluteSymbols(&pair, 1)));
}

// Tells the JIT where the simulator's functions are. Those that are not there
// are looked for in the process (memset, fmaf and the like). *names goes on
// behind the last.
static bool define_symbols(const loading_t *l, const char **names,
                           const char *end) {
  LLVMOrcJITDylibRef dylib = LLVMOrcLLJITGetMainJITDylib(l->code->jit);
  hd_symbol_lookup_t lookup = atomic_load(&symbols);
  for (; *names < end && **names; *names += strlen(*names) + 1) {
    if (!memchr(*names, 0, (size_t)(end - *names)))
      return fail(l, "its names do not end");
    void *address = lookup ? lookup(*names) : NULL;
    if (address && !define(l, dylib, *names, address))
      return false;
  }
  if (*names >= end)
    return fail(l, "its names do not end");
  ++*names;
  LLVMOrcDefinitionGeneratorRef process;
  if (!is_fine(l, LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
                      &process, LLVMOrcLLJITGetGlobalPrefix(l->code->jit), NULL,
                      NULL)))
    return false;
  LLVMOrcJITDylibAddGenerator(dylib, process);
  return true;
}

static bool load(const loading_t *l, const char *at, size_t size) {
  hd_host_code_t *code = l->code;
  const char *end = at + size;
  if (size == 0)
    return fail(l, "it is empty");
  code->is_coroutine = *at++ == 'c';
  if (!is_fine(l, LLVMOrcCreateLLJIT(&code->jit, NULL)) ||
      !define_symbols(l, &at, end))
    return false;
  LLVMMemoryBufferRef object = LLVMCreateMemoryBufferWithMemoryRangeCopy(
      at, (size_t)(end - at), "kernel");
  LLVMOrcJITDylibRef dylib = LLVMOrcLLJITGetMainJITDylib(code->jit);
  if (!is_fine(l, LLVMOrcLLJITAddObjectFile(code->jit, dylib, object)))
    return false;
  hd_arena_t scratch;
  hd_arena_init_local(&scratch, &l->context->budget);
  const char *name = hd_arena_printf(
      &scratch, HD_EMIT_HOST_PREFIX "%s",
      l->symbol ? l->symbol : hd_func_symbol(&scratch, l->kernel));
  LLVMOrcExecutorAddress address = 0;
  bool ok = is_fine(l, LLVMOrcLLJITLookup(code->jit, &address, name));
  hd_arena_fini(&scratch);
  code->entry = (void *)(uintptr_t)address;
  return ok;
}

static void end_code(void *code) { hd_host_code_destroy(code); }

hd_host_code_t *hd_host_code_load(hd_context_t *context,
                                  const hd_func_t *kernel, const char *symbol,
                                  const char *bytes, size_t size) {
  hd_llvm_init();
  hd_host_code_t *code = calloc(1, sizeof *code);
  if (!code)
    hd_budget_exhausted(&context->budget, HD_EXHAUSTED_MEMORY);
  hd_cleanup_t cleanup;
  hd_budget_defer(&context->budget, &cleanup, end_code, code);
  size_t part = hd_times_enter(&context->times, "link");
  bool ok = load(&(loading_t){context, kernel, symbol, code}, bytes, size);
  hd_times_leave(&context->times, part);
  hd_budget_keep(&context->budget, &cleanup);
  if (ok)
    return code;
  hd_host_code_destroy(code);
  return NULL;
}

hd_host_code_t *hd_host_code_create(hd_module_t *module,
                                    const hd_func_t *kernel,
                                    const hd_codegen_options_t *options) {
  hd_budget_t *budget = &module->context->budget;
  hd_buffer_t bytes = {0};
  hd_cleanup_t cleanup;
  hd_budget_defer(budget, &cleanup, hd_buffer_end, &bytes);
  hd_host_code_t *code = NULL;
  if (hd_host_code_make(module, kernel, options, &bytes))
    code = hd_host_code_load(module->context, kernel, NULL, bytes.data,
                             bytes.size);
  hd_budget_clean(budget, &cleanup);
  return code;
}

void hd_host_code_destroy(hd_host_code_t *code) {
  if (!code)
    return;
  if (code->jit)
    LLVMConsumeError(LLVMOrcDisposeLLJIT(code->jit));
  free(code);
}

void *hd_host_code_entry(const hd_host_code_t *code) { return code->entry; }

bool hd_host_code_is_coroutine(const hd_host_code_t *code) {
  return code->is_coroutine;
}
