// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declarations. A register tensor is an alloca in the entry block, which SROA
// turns into values; a shared one is an offset into the block's shared memory.
#include "CodeGen/EmitAccess.h"
#include "CodeGen/SimAbi.h"

#define B e->builder

static void declare_shared(hd_emit_t *e, const hd_stmt_t *stmt) {
  const hd_var_t *var = stmt->u.declare.var;
  if (stmt->u.declare.init) {
    hd_emit_error(e, stmt->loc, HD_E0508, "an initial value", "shared memory");
    return;
  }
  const hd_shared_plan_t *plan = e->shared;
  uint32_t i = 0;
  while (i < plan->num_tensors && plan->tensors[i] != var)
    i++;
  if (i == plan->num_tensors) { // Of a device function.
    hd_emit_error(e, stmt->loc, HD_E0302, "a shared tensor", "in a fn");
    return;
  }
  LLVMValueRef offset = hd_emit_expr(e, plan->offsets[i]);
  LLVMValueRef base =
      e->host ? LLVMBuildGEP2(B, e->i8, e->shared_base, &offset, 1, var->name)
              : LLVMBuildAdd(B, e->shared_base,
                             LLVMBuildTrunc(B, offset, e->i32, ""), var->name);
  hd_emit_bind(e, var, base)->number =
      e->kernel->num_params + e->num_declarations++;
}

// By stores of constants' indices, for SROA
// to see through, or by a loop where the tensor is large.
void hd_emit_fill(hd_emit_t *e, LLVMTypeRef type, LLVMValueRef slot,
                  int64_t count, LLVMValueRef value) {
  enum { MANY = 4096 };
  if (count <= MANY || !e->host) {
    for (int64_t i = 0; i < count && hd_emit_count(e); i++) {
      LLVMValueRef index = LLVMConstInt(e->i64, (uint64_t)i, false);
      LLVMBuildStore(B, value, LLVMBuildGEP2(B, type, slot, &index, 1, ""));
    }
    return;
  }
  LLVMBasicBlockRef before = LLVMGetInsertBlock(B);
  LLVMBasicBlockRef body = hd_emit_new_block(e, "fill");
  LLVMBasicBlockRef after = hd_emit_new_block(e, "filled");
  LLVMBuildBr(B, body);
  hd_emit_at(e, body);
  LLVMValueRef phi = LLVMBuildPhi(B, e->i64, "");
  LLVMBuildStore(B, value, LLVMBuildGEP2(B, type, slot, &phi, 1, ""));
  LLVMValueRef next = LLVMBuildAdd(B, phi, LLVMConstInt(e->i64, 1, false), "");
  LLVMValueRef values[] = {LLVMConstNull(e->i64), next};
  LLVMBasicBlockRef blocks[] = {before, body};
  LLVMAddIncoming(phi, values, blocks, 2);
  LLVMValueRef end = LLVMConstInt(e->i64, (uint64_t)count, false);
  LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntULT, next, end, ""), body, after);
  hd_emit_at(e, after);
}

static void declare_cells(hd_emit_t *e, const hd_stmt_t *stmt, uint32_t count) {
  hd_type_t element = stmt->u.declare.var->tensor->element;
  unsigned bits =
      hd_type_is_bool(element) ? 32 : hd_emit_register_bits(element);
  const hd_cells_t *cells =
      hd_cells_create(e, hd_emit_type(e, element), bits, count);
  if (stmt->u.declare.init) {
    LLVMValueRef value = hd_emit_expr(e, stmt->u.declare.init);
    for (uint32_t i = 0; i < count && hd_emit_count(e); i++)
      hd_cells_write(e, cells, i, 1, value);
  }
  hd_emit_bind(e, stmt->u.declare.var, NULL)->cells = cells;
}

static void declare_register(hd_emit_t *e, const hd_stmt_t *stmt) {
  const hd_var_t *var = stmt->u.declare.var;
  const hd_tensor_t *tensor = var->tensor;
  int64_t count;
  if (!hd_tensor_storage_const(tensor, &count)) {
    hd_emit_error(e, stmt->loc, HD_E0305, var->name);
    return;
  }
  // More is past any register file, and past what a stack should hold.
  enum { MOST = 1 << 16 };
  int64_t bytes = count * hd_emit_register_bits(tensor->element) / 8;
  if (count > MOST || bytes > MOST) {
    hd_emit_error(e, stmt->loc, HD_E0307, "the bytes of a register tensor", 0LL,
                  (long long)MOST, (long long)bytes);
    return;
  }
  if (!e->host && !e->in_memory) {
    declare_cells(e, stmt, (uint32_t)count);
    return;
  }
  LLVMTypeRef type = hd_emit_memory_type(e, tensor->element);
  LLVMValueRef slot = hd_emit_alloca(e, type, count ? count : 1, 16, var->name);
  LLVMValueRef value = NULL;
  if (stmt->u.declare.init) {
    value = hd_emit_expr(e, stmt->u.declare.init);
    if (hd_type_is_bool(tensor->element))
      value = LLVMBuildZExt(B, value, e->i8, "");
    hd_emit_fill(e, type, slot, count, value);
  }
  hd_binding_t *binding = hd_emit_bind(e, var, slot);
  binding->number = e->kernel->num_params + e->num_declarations++;
  if (e->sanitize && !value)
    hd_emit_begin_unwritten(e, binding, type, count);
  if (e->sanitize && tensor->element.scalar == HD_I32)
    hd_emit_begin_exact(e, binding, count, value);
}

void hd_emit_declare(hd_emit_t *e, const hd_stmt_t *stmt) {
  switch (stmt->u.declare.var->tensor->scope) {
  case HD_SCOPE_SHARED:
    declare_shared(e, stmt);
    return;
  case HD_SCOPE_REGISTER:
    declare_register(e, stmt);
    return;
  case HD_SCOPE_GLOBAL:
    hd_emit_error(e, stmt->loc, HD_E0302, "a global tensor", "in a body");
    return;
  }
}
