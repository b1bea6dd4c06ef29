// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Intrinsics: the table's row decides. LLVM's own serve both targets; the rest
// is inline assembly on the GPU (EmitAsm.c) and a call of the simulator on the
// host (EmitSim.c).
#include "CodeGen/Emit.h"

#include <stdio.h>
#include <string.h>

#define B e->builder

static const char *llvm_name(const char *column) {
  return strncmp(column, "llvm:", 5) ? NULL : column + 5;
}

// The bits of the sign in formats that are held as integers, or as half.
static LLVMValueRef sign_mask(LLVMTypeRef type, hd_type_t t, bool sign) {
  uint64_t mask = UINT64_C(1) << (hd_scalar_bits((hd_scalar_t)t.scalar) - 1);
  return hd_emit_int(type, sign ? mask : mask - 1);
}

// Of floats of 16 bits: the first operand without its sign, or with that of the
// second, if there is one.
static LLVMValueRef emit_sign(hd_emit_t *e, const hd_expr_t *x) {
  hd_type_t type = x->operands[0]->type;
  LLVMTypeRef bits = hd_emit_type(e, (hd_type_t){HD_U16, type.lanes});
  LLVMValueRef parts[2] = {NULL};
  for (uint32_t i = 0; i < x->num_operands; i++) {
    LLVMValueRef value = hd_emit_expr(e, x->operands[i]);
    value = LLVMBuildBitCast(B, value, bits, "");
    parts[i] = LLVMBuildAnd(B, value, sign_mask(bits, type, i > 0), "");
  }
  LLVMValueRef result =
      parts[1] ? LLVMBuildOr(B, parts[0], parts[1], "") : parts[0];
  return LLVMBuildBitCast(B, result, hd_emit_type(e, type), "");
}

// name: NAME or NAME,0.
static LLVMValueRef emit_llvm_row(hd_emit_t *e, const char *name,
                                  const hd_expr_t *x) {
  LLVMValueRef args[HD_INTRINSIC_MAX_PARAMS + 1];
  unsigned n = 0;
  hd_type_t type = x->operands[0]->type;
  for (uint32_t i = 0; i < x->num_operands; i++)
    args[n++] = hd_emit_expr(e, x->operands[i]);
  bool is_small = type.scalar == HD_F16 || type.scalar == HD_BF16;
  hd_type_t wide = {HD_F32, type.lanes};
  for (unsigned i = 0; is_small && i < n; i++)
    args[i] = hd_emit_convert(e, args[i], type, wide);
  LLVMTypeRef overload = LLVMTypeOf(args[0]);
  char text[64];
  size_t size = strcspn(name, ",");
  snprintf(text, sizeof(text), "%.*s", (int)size, name);
  if (name[size])
    args[n++] = LLVMConstInt(e->i1, 0, false);
  LLVMValueRef result = hd_emit_llvm(e, text, overload, args, n);
  return is_small ? hd_emit_convert(e, result, wide, type) : result;
}

static const char *target_name(int sm, char *text, size_t size) {
  if (sm == 901)
    return "sm_90a";
  snprintf(text, size, "sm_%d or newer", sm);
  return text;
}

// Where the arithmetic of bf16 is not there yet, f32 and one rounding are not
// the same for fma, so nothing is emulated: the row's target holds.
LLVMValueRef hd_emit_intrinsic(hd_emit_t *e, const hd_expr_t *x) {
  const hd_intrinsic_info_t *info = hd_intrinsic_of(x);
  if (!e->host && info->target > e->target->sm) {
    char text[32];
    hd_emit_error(e, x->loc, HD_E0501, info->name,
                  target_name(info->target, text, sizeof text),
                  e->target->name);
    return hd_emit_poison(e, x->type);
  }
  const char *column = e->host ? info->sim : info->ptx;
  const char *name = llvm_name(column);
  if (name)
    return emit_llvm_row(e, name, x);
  if (strcmp(column, "sign") == 0)
    return emit_sign(e, x);
  return e->host ? hd_emit_sim(e, x) : hd_emit_asm(e, x);
}
