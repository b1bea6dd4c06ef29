// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM IR and PTX as text. No pass of LLVM's runs, and instructions are
// selected without optimization, by measurement: the emitter makes values of
// register tensors, shares what is computed twice and splits addresses itself,
// and what is left (copies, loops) ptxas does anyway. Only where the index of a
// register tensor is not known while emitting do LLVM's passes look for it.
#include "CodeGen/EmitAsm.h"
#include "CodeGen/Llvm.h"

#include <string.h>

// The PTX version that each target's instructions need; older drivers take
// older versions, so none asks for more.
static const char *ptx_feature(int sm) {
  return sm >= 89 ? "+ptx84" : "+ptx75";
}

static bool make_machine(hd_emit_t *e) {
  const hd_llvm_machine_t machine = {
      "nvptx64-nvidia-cuda",
      e->target->name,
      ptx_feature(e->target->sm == 901 ? 90 : e->target->sm),
      e->in_memory ? LLVMCodeGenLevelDefault
      : e->is_tied ? LLVMCodeGenLevelLess
                   : LLVMCodeGenLevelNone,
      LLVMRelocDefault,
      LLVMCodeModelDefault};
  return hd_llvm_machine(e, &machine);
}

static const char passes[] =
    "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,"
    "simplifycfg,dce)";

static hd_dynamic_t read_mark(hd_emit_t *e, LLVMValueRef instruction) {
  unsigned kind = LLVMGetMDKindIDInContext(e->context, HD_EMIT_DYNAMIC,
                                           strlen(HD_EMIT_DYNAMIC));
  LLVMValueRef node = LLVMGetMetadata(instruction, kind), parts[3];
  unsigned size;
  if (!node || LLVMGetMDNodeNumOperands(node) != 3)
    return *e->dynamic;
  LLVMGetMDNodeOperands(node, parts);
  const char *name = LLVMGetMDString(parts[2], &size);
  return (hd_dynamic_t){{(uint32_t)LLVMConstIntGetZExtValue(parts[0]),
                         (uint32_t)LLVMConstIntGetZExtValue(parts[1])},
                        hd_arena_strndup(&e->arena, name, size)};
}

// What SROA left in memory has an index that only the run knows.
static bool check_registers(hd_emit_t *e) {
  bool left = false;
  hd_dynamic_t first = {{0, 0}, NULL};
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(e->function);
       block && !e->failed; block = LLVMGetNextBasicBlock(block))
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i;
         i = LLVMGetNextInstruction(i)) {
      left |= LLVMIsAAllocaInst(i) != NULL;
      if (LLVMIsAGetElementPtrInst(i) &&
          LLVMIsAAllocaInst(LLVMGetOperand(i, 0)) && !first.tensor)
        first = read_mark(e, i);
    }
  if (!left)
    return true;
  if (!first.tensor)
    first = *e->dynamic;
  hd_emit_error(e, first.loc, HD_E0507);
  hd_note(&e->module->context->diags, first.loc, "the tensor is '%s'",
          first.tensor);
  return false;
}

// Whether a call is a shuffle of what LLVM's passes have made a constant.
static bool shuffles_constant(LLVMValueRef call) {
  return LLVMIsACallInst(call) &&
         LLVMGetCallSiteStringAttribute(
             call, (unsigned)LLVMAttributeFunctionIndex, HD_ASM_SHUFFLE,
             sizeof HD_ASM_SHUFFLE - 1) &&
         LLVMIsConstant(LLVMGetOperand(call, 0));
}

// As EmitAsm.c does of those known while emitting: ptxas must see none. True if
// there were some.
static bool fold_shuffles(hd_emit_t *e) {
  bool found = false;
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(e->function); block;
       block = LLVMGetNextBasicBlock(block))
    for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
      next = LLVMGetNextInstruction(i);
      if (!shuffles_constant(i))
        continue;
      LLVMReplaceAllUsesWith(i, LLVMGetOperand(i, 0));
      LLVMInstructionEraseFromParent(i);
      found = true;
    }
  return found;
}

static bool optimize(hd_emit_t *e) {
  if (!e->in_memory)
    return true;
  // Twice, for the first makes constants of indices of register tensors.
  bool ok = hd_llvm_run_passes(e, passes);
  do
    ok = ok && hd_llvm_run_passes(e, passes);
  while (ok && fold_shuffles(e));
  return ok && (!e->dynamic || check_registers(e));
}

// LLVM 19 knows no directive for a cluster's size: it is put behind the one for
// the block's, which every kernel has.
static void write_ptx(hd_emit_t *e, const char *text, size_t size,
                      hd_buffer_t *out) {
  static const char mark[] = "\n.maxntid ";
  const char *line = hd_emit_has_cluster(e) ? strstr(text, mark) : NULL;
  const char *end = line ? strchr(line + 1, '\n') : NULL;
  size_t before = end ? (size_t)(end + 1 - text) : 0;
  hd_buffer_write(out, text, before);
  if (end) {
    int64_t dims[3];
    for (int i = 0; i < 3; i++) {
      const hd_expr_t *dim = e->kernel->launch.cluster[i];
      if (!dim || !hd_expr_fold_int(dim, &dims[i]))
        dims[i] = 1;
    }
    hd_buffer_printf(out, ".reqnctapercluster %lld, %lld, %lld\n",
                     (long long)dims[0], (long long)dims[1],
                     (long long)dims[2]);
  }
  hd_buffer_write(out, text + before, size - before);
}

static bool to_ptx(hd_emit_t *e, void *out) {
  if (!make_machine(e) || !optimize(e))
    return false;
  LLVMMemoryBufferRef text = hd_llvm_generate(e, LLVMAssemblyFile);
  if (text)
    write_ptx(e, LLVMGetBufferStart(text), LLVMGetBufferSize(text), out);
  return text;
}

bool hd_codegen_ptx(hd_module_t *module, const hd_func_t *kernel,
                    const hd_codegen_options_t *options, hd_buffer_t *out) {
  if (options->target->arch != HD_ARCH_NVPTX)
    return hd_error(&module->context->diags, kernel->loc, HD_E0503, "PTX",
                    options->target->name);
  return hd_emit_run(module, kernel, options, to_ptx, out);
}

static bool to_llvm(hd_emit_t *e, void *out) {
  if (!e->host && !make_machine(e))
    return false;
  char *text = LLVMPrintModuleToString(e->llvm);
  hd_buffer_puts(out, text);
  LLVMDisposeMessage(text);
  return true;
}

bool hd_codegen_llvm(hd_module_t *module, const hd_func_t *kernel,
                     const hd_codegen_options_t *options, hd_buffer_t *out) {
  hd_codegen_options_t named = *options;
  named.keep_names = true;
  return hd_emit_run(module, kernel, &named, to_llvm, out);
}
