// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The emitter's state: variables, the budget, errors; and the parts of a kernel
// that both targets share.
#include "CodeGen/Llvm.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Target.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_INSTRUCTIONS = 1000000 };

hd_binding_t *hd_emit_bind(hd_emit_t *e, const hd_var_t *var,
                           LLVMValueRef value) {
  hd_binding_t *binding = HD_ARENA_NEW(&e->arena, hd_binding_t);
  *binding = (hd_binding_t){.var = var, .value = value};
  hd_ptr_map_set(&e->arena, &e->bindings, var, binding);
  return binding;
}

const hd_binding_t *hd_emit_find(hd_emit_t *e, const hd_var_t *var) {
  const hd_binding_t *binding = hd_ptr_map_get(&e->bindings, var);
  return binding || !var->table ? binding : hd_emit_bind_table(e, var);
}

void hd_emit_error(hd_emit_t *e, hd_loc_t loc, hd_diagnostic_code_t code, ...) {
  if (!e->failed) {
    va_list args;
    va_start(args, code);
    hd_verror(&e->module->context->diags, loc, code, args);
    va_end(args);
  }
  e->failed = true;
}

bool hd_emit_count(hd_emit_t *e) {
  if (e->instructions_left-- > 0 || e->failed) {
    if ((e->instructions_left & 1023) == 0)
      hd_budget_check(&e->module->context->budget);
    return !e->failed;
  }
  int64_t limit = e->options->max_instructions;
  if (!limit)
    limit = DEFAULT_INSTRUCTIONS;
  hd_emit_error(e, e->place, HD_E0506, e->kernel->name, (long long)limit + 1,
                (long long)limit);
  return false;
}

static void init_types(hd_emit_t *e) {
  e->i1 = LLVMInt1TypeInContext(e->context);
  e->i8 = LLVMInt8TypeInContext(e->context);
  e->i16 = LLVMInt16TypeInContext(e->context);
  e->i32 = LLVMInt32TypeInContext(e->context);
  e->i64 = LLVMInt64TypeInContext(e->context);
  e->half = LLVMHalfTypeInContext(e->context);
  e->f32 = LLVMFloatTypeInContext(e->context);
  e->f64 = LLVMDoubleTypeInContext(e->context);
  e->ptr = LLVMPointerTypeInContext(e->context, 0);
  e->void_ = LLVMVoidTypeInContext(e->context);
}

bool hd_emit_init(hd_emit_t *e, hd_module_t *module, const hd_func_t *kernel,
                  const hd_codegen_options_t *options) {
  *e = (hd_emit_t){.module = module,
                   .kernel = kernel,
                   .options = options,
                   .target = options->target};
  hd_llvm_init();
  e->place = kernel->loc;
  e->copies = 1;
  e->host = e->target->arch == HD_ARCH_HOST;
  e->sanitize = e->host && options->sanitize;
  e->quick = e->host && (options->quick || options->sanitize);
  e->native_f16 = !e->host || hd_host_has_f16();
  e->instructions_left = options->max_instructions ? options->max_instructions
                                                   : DEFAULT_INSTRUCTIONS;
  hd_arena_init(&e->arena, &module->context->budget);
  e->context = LLVMContextCreate();
  // Names of values help a reader alone.
  LLVMContextSetDiscardValueNames(e->context, !options->keep_names);
  e->llvm = LLVMModuleCreateWithNameInContext(kernel->name, e->context);
  e->builder = LLVMCreateBuilderInContext(e->context);
  e->entry_builder = LLVMCreateBuilderInContext(e->context);
  init_types(e);
  return true;
}

void hd_emit_fini(hd_emit_t *e) {
  LLVMDisposeMessage(e->message);
  if (e->output)
    LLVMDisposeMemoryBuffer(e->output);
  hd_llvm_machine_leave(e);
  LLVMDisposeBuilder(e->builder);
  LLVMDisposeBuilder(e->entry_builder);
  if (e->llvm)
    LLVMDisposeModule(e->llvm);
  if (e->context)
    LLVMContextDispose(e->context);
  hd_arena_fini(&e->arena);
}

static bool check_shared(hd_emit_t *e) {
  e->shared = hd_shared_plan(&e->arena, e->kernel);
  int64_t size;
  if (hd_expr_fold_int(e->shared->size, &size) &&
      size > e->target->max_shared_bytes)
    hd_emit_error(e, e->kernel->loc, HD_E0505, e->kernel->name, (long long)size,
                  e->target->name, (long long)e->target->max_shared_bytes);
  return !e->failed;
}

// A fault here is ours: LLVM would abort on it later.
static bool verify(hd_emit_t *e) {
  char *message = NULL;
  if (LLVMVerifyModule(e->llvm, LLVMReturnStatusAction, &message))
    return !hd_llvm_failed(e, message);
  LLVMDisposeMessage(message);
  return true;
}

bool hd_emit_kernel(hd_emit_t *e) {
  if (!check_shared(e))
    return false;
  if (e->host)
    hd_emit_host_kernel(e);
  else
    hd_emit_nvptx_kernel(e);
  return !e->failed && verify(e);
}
