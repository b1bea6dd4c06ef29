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

// fabs and copysign of small floats: bits, so that NaNs keep theirs too.
static LLVMValueRef sign_operation(hd_emit_t *e, bool is_abs, hd_type_t type,
                                   const LLVMValueRef *args) {
  LLVMTypeRef bits = hd_emit_type(e, (hd_type_t){HD_U16, type.lanes});
  LLVMValueRef a = LLVMBuildBitCast(B, args[0], bits, "");
  a = LLVMBuildAnd(B, a, sign_mask(bits, type, false), "");
  if (!is_abs) {
    LLVMValueRef b = LLVMBuildBitCast(B, args[1], bits, "");
    b = LLVMBuildAnd(B, b, sign_mask(bits, type, true), "");
    a = LLVMBuildOr(B, a, b, "");
  }
  return LLVMBuildBitCast(B, a, hd_emit_type(e, type), "");
}

LLVMValueRef hd_emit_llvm_row(hd_emit_t *e, const char *name,
                              const hd_expr_t *x) {
  LLVMValueRef args[HD_INTRINSIC_MAX_PARAMS];
  unsigned n = 0;
  hd_type_t type = x->operands[0]->type;
  for (uint32_t i = 0; i < x->num_operands; i++)
    args[n++] = hd_emit_expr(e, x->operands[i]);
  bool is_abs = !strcmp(name, "llvm.fabs");
  bool is_small = type.scalar == HD_F16 || type.scalar == HD_BF16;
  if (is_small && (is_abs || !strcmp(name, "llvm.copysign")))
    return sign_operation(e, is_abs, type, args);
  hd_type_t wide = {HD_F32, type.lanes};
  for (unsigned i = 0; is_small && i < n; i++)
    args[i] = hd_emit_convert(e, args[i], type, wide);
  LLVMTypeRef overload = LLVMTypeOf(args[0]);
  if (!strcmp(name, "llvm.abs")) // The least value is no poison.
    args[n++] = LLVMConstInt(e->i1, 0, false);
  LLVMValueRef result = hd_emit_llvm(e, name, overload, args, n);
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
  const hd_intrinsic_info_t *info =
      hd_intrinsic_info((hd_intrinsic_t)x->u.intrinsic);
  if (!e->host && info->target > e->target->sm) {
    char text[32];
    hd_emit_error(e, x->loc, HD_E0501, info->name,
                  target_name(info->target, text, sizeof text),
                  e->target->name);
    return hd_emit_poison(e, x->type);
  }
  const char *name = llvm_name(e->host ? info->sim : info->ptx);
  if (name)
    return hd_emit_llvm_row(e, name, x);
  return e->host ? hd_emit_sim(e, x) : hd_emit_asm(e, x);
}
