// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Host code: a kernel through LLVM for this CPU, as bytes that any process on
// it may load (HostCode.c). Coroutines are split by LLVM's passes; before the
// split, values that live across a suspension are brought out of memory (SROA)
// and into vectors (SLP), so that frames hold few and wide things.
#include "CodeGen/Llvm.h"

#include <string.h>

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
static const char quick_loop_passes[] = "function(sroa,early-cse,simplifycfg)";
static const char quick_coroutine_passes[] =
    "coro-early,function(sroa,early-cse,simplifycfg),cgscc(coro-split),"
    "coro-cleanup,function(sroa,early-cse,simplifycfg)";

// Much of what LLVM does takes time by the square of a function's size (loops,
// dominators, vectors, registers that live across many blocks): only code of a
// size that somebody would run in a loop is worth that.
enum { MOST_INSTRUCTIONS = 40000, MOST_BLOCKS = 400 };

static bool is_large(const hd_emit_t *e) {
  unsigned instructions = 0, blocks = 0;
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(e->function); block;
       block = LLVMGetNextBasicBlock(block)) {
    blocks++;
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i;
         i = LLVMGetNextInstruction(i))
      instructions++;
  }
  return instructions > MOST_INSTRUCTIONS || blocks > MOST_BLOCKS;
}

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

// For code of any size.
static const char linear_loop_passes[] = "function(sroa,early-cse)";
static const char linear_coroutine_passes[] =
    "coro-early,function(sroa,early-cse),cgscc(coro-split),coro-cleanup";

static const char *passes_of(const hd_emit_t *e, bool is_large) {
  if (e->coroutine)
    return is_large   ? linear_coroutine_passes
           : e->quick ? quick_coroutine_passes
                      : coroutine_passes;
  return is_large   ? linear_loop_passes
         : e->quick ? quick_loop_passes
                    : loop_passes;
}

static bool make_machine(hd_emit_t *e, LLVMCodeGenOptLevel level) {
  const hd_llvm_machine_t machine = {
      hd_host_triple(), hd_host_cpu(),          hd_host_features(), level,
      LLVMRelocPIC,     LLVMCodeModelJITDefault};
  return hd_llvm_machine(e, &machine);
}

static bool compile(hd_emit_t *e) {
  bool large = is_large(e);
  e->quick |= large;
  if (!make_machine(e, e->quick ? LLVMCodeGenLevelNone
                                : LLVMCodeGenLevelDefault) ||
      !hd_llvm_run_passes(e, passes_of(e, large)))
    return false;
  if (!e->quick && has_vast_block(e) && !make_machine(e, LLVMCodeGenLevelNone))
    return false;
  return hd_llvm_generate(e, LLVMObjectFile);
}

// What it calls; those that the simulator has are defined when it is loaded.
static void put_symbols(hd_emit_t *e, hd_buffer_t *out) {
  for (LLVMValueRef f = LLVMGetFirstFunction(e->llvm); f;
       f = LLVMGetNextFunction(f)) {
    size_t size;
    const char *name = LLVMGetValueName2(f, &size);
    if (LLVMIsDeclaration(f))
      hd_buffer_write(out, name, size + 1);
  }
  hd_buffer_write(out, "", 1);
}

static bool to_bytes(hd_emit_t *e, void *argument) {
  hd_buffer_t *out = argument;
  if (!compile(e))
    return false;
  hd_buffer_write(out, e->coroutine ? "c" : "l", 1);
  put_symbols(e, out);
  hd_buffer_write(out, LLVMGetBufferStart(e->output),
                  LLVMGetBufferSize(e->output));
  return !out->failed || hd_error(&e->module->context->diags, e->kernel->loc,
                                  HD_E0904, "out of memory");
}

bool hd_host_code_make(hd_module_t *module, const hd_func_t *kernel,
                       const hd_codegen_options_t *options, hd_buffer_t *out) {
  return hd_emit_run(module, kernel, options, to_bytes, out);
}
