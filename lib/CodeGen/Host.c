// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Host code: a kernel through LLVM for this CPU, into this process. Coroutines
// are split by LLVM's passes; before the split, values that live across a
// suspension are brought out of memory (SROA) and into vectors (SLP), so that
// frames hold few and wide things.
#include "CodeGen/Llvm.h"

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

static const char loop_passes[] =
    "function(sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-"
    "fixpoint>,loop-mssa(licm),loop-vectorize,instcombine<no-verify-fixpoint>,"
    "slp-vectorizer,early-cse<memssa>,simplifycfg,dce)";
static const char coroutine_passes[] =
    "coro-early,function(sroa,early-cse<memssa>,simplifycfg,"
    "instcombine<no-verify-fixpoint>,loop-mssa(licm),"
    "slp-vectorizer,instcombine<no-verify-fixpoint>),"
    "cgscc(coro-split),coro-cleanup,"
    "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,"
    "simplifycfg,dce)";
// For code that runs once: what counts is the time to compile it.
static const char quick_passes[] =
    "coro-early,function(sroa,early-cse,simplifycfg),cgscc(coro-split),"
    "coro-cleanup,function(sroa,early-cse,simplifycfg)";

// LLVM's machine scheduler looks at each pair of a store and another access to
// memory of a block, however many there are.
enum { MOST_PAIRS = 500000 };

static bool is_vast(LLVMBasicBlockRef block) {
  uint64_t stores = 0, accesses = 0;
  for (LLVMValueRef i = LLVMGetFirstInstruction(block); i;
       i = LLVMGetNextInstruction(i)) {
    bool writes = LLVMIsAStoreInst(i) || LLVMIsACallInst(i);
    stores += writes;
    accesses += writes || LLVMIsALoadInst(i);
  }
  return stores * accesses > MOST_PAIRS;
}

static bool has_vast_block(const hd_emit_t *e) {
  for (LLVMValueRef f = LLVMGetFirstFunction(e->llvm); f;
       f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block;
         block = LLVMGetNextBasicBlock(block))
      if (is_vast(block))
        return true;
  return false;
}

static const char *passes_of(const hd_emit_t *e) {
  return e->quick       ? quick_passes
         : e->coroutine ? coroutine_passes
                        : loop_passes;
}

static bool make_machine(hd_emit_t *e, LLVMCodeGenOptLevel level) {
  const hd_llvm_machine_t machine = {
      hd_host_triple(), hd_host_cpu(),          hd_host_features(), level,
      LLVMRelocPIC,     LLVMCodeModelJITDefault};
  return hd_llvm_machine(e, &machine);
}

static bool compile(hd_emit_t *e) {
  if (!make_machine(e, e->quick ? LLVMCodeGenLevelNone
                                : LLVMCodeGenLevelDefault) ||
      !hd_llvm_run_passes(e, passes_of(e)))
    return false;
  if (!e->quick && has_vast_block(e) && !make_machine(e, LLVMCodeGenLevelNone))
    return false;
  return hd_llvm_generate(e, LLVMObjectFile);
}

// Tells the JIT where the simulator's functions are. Those that are not there
// are looked for in the process (memset, fmaf and the like).
static bool define_symbols(hd_emit_t *e, LLVMOrcLLJITRef jit) {
  LLVMOrcJITDylibRef dylib = LLVMOrcLLJITGetMainJITDylib(jit);
  hd_symbol_lookup_t lookup = atomic_load(&symbols);
  for (LLVMValueRef f = LLVMGetFirstFunction(e->llvm); f;
       f = LLVMGetNextFunction(f)) {
    size_t size;
    const char *name = LLVMGetValueName2(f, &size);
    void *address = LLVMIsDeclaration(f) && lookup ? lookup(name) : NULL;
    if (!address)
      continue;
    LLVMOrcCSymbolMapPair pair = {
        LLVMOrcLLJITMangleAndIntern(jit, name),
        {(LLVMOrcJITTargetAddress)(uintptr_t)address,
         {LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable,
          0}}};
    if (hd_llvm_error(
            e, LLVMOrcJITDylibDefine(dylib, LLVMOrcAbsoluteSymbols(&pair, 1))))
      return false;
  }
  LLVMOrcDefinitionGeneratorRef process;
  if (hd_llvm_error(
          e, LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
                 &process, LLVMOrcLLJITGetGlobalPrefix(jit), NULL, NULL)))
    return false;
  LLVMOrcJITDylibAddGenerator(dylib, process);
  return true;
}

static bool load(hd_emit_t *e, void *argument) {
  hd_host_code_t *code = argument;
  code->is_coroutine = e->coroutine;
  if (!compile(e) || hd_llvm_error(e, LLVMOrcCreateLLJIT(&code->jit, NULL)) ||
      !define_symbols(e, code->jit))
    return false;
  LLVMMemoryBufferRef object = e->output;
  e->output = NULL; // The JIT takes it.
  LLVMOrcJITDylibRef dylib = LLVMOrcLLJITGetMainJITDylib(code->jit);
  if (hd_llvm_error(e, LLVMOrcLLJITAddObjectFile(code->jit, dylib, object)))
    return false;
  LLVMOrcExecutorAddress address = 0;
  const char *name = hd_emit_host_symbol(e);
  if (hd_llvm_error(e, LLVMOrcLLJITLookup(code->jit, &address, name)))
    return false;
  code->entry = (void *)(uintptr_t)address;
  return true;
}

static void end_code(void *code) { hd_host_code_destroy(code); }

hd_host_code_t *hd_host_code_create(hd_module_t *module,
                                    const hd_func_t *kernel,
                                    const hd_codegen_options_t *options) {
  hd_budget_t *budget = &module->context->budget;
  hd_host_code_t *code = calloc(1, sizeof *code);
  if (!code)
    hd_budget_exhausted(budget, HD_EXHAUSTED_MEMORY);
  hd_cleanup_t cleanup;
  hd_budget_defer(budget, &cleanup, end_code, code);
  if (hd_emit_run(module, kernel, options, load, code)) {
    hd_budget_keep(budget, &cleanup);
    return code;
  }
  hd_budget_clean(budget, &cleanup);
  return NULL;
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
