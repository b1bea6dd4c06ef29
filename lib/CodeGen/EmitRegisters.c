// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values as the registers of PTX, for inline assembly: scalars alone, vectors
// of 32 bits and more lane by lane, vectors of smaller elements as words of 32
// bits.
#include "CodeGen/Emit.h"

#include <string.h>

#define B e->builder

static unsigned bits_of(hd_type_t type) {
  return hd_scalar_bits((hd_scalar_t)type.scalar);
}

unsigned hd_emit_asm_bits(hd_type_t type) {
  unsigned bits = bits_of(type), all = bits * type.lanes;
  if (type.scalar == HD_BOOL)
    return 32;
  if (type.lanes == 1 || bits >= 32)
    return bits;
  return all < 32 ? all : 32;
}

unsigned hd_emit_asm_count(hd_type_t type) {
  if (type.scalar == HD_BOOL)
    return 1;
  unsigned bits = hd_emit_asm_bits(type);
  return (bits_of(type) * type.lanes + bits - 1) / bits;
}

LLVMTypeRef hd_emit_asm_type(hd_emit_t *e, hd_type_t type) {
  if (type.scalar == HD_F32)
    return e->f32;
  if (type.scalar == HD_F64)
    return e->f64;
  switch (hd_emit_asm_bits(type)) {
  case 8: // There are no smaller ones.
  case 16:
    return e->i16;
  case 64:
    return e->i64;
  default:
    return e->i32;
  }
}

const char *hd_emit_constraint(const hd_emit_t *e, LLVMTypeRef type) {
  return type == e->f32   ? "f"
         : type == e->f64 ? "d"
         : type == e->i16 ? "h"
         : type == e->i64 ? "l"
         : type == e->i1  ? "b"
                          : "r";
}

LLVMValueRef hd_emit_ptx(hd_emit_t *e, const char *code,
                         const char *constraints, LLVMTypeRef result,
                         LLVMValueRef *args, unsigned num_args, bool effect) {
  LLVMTypeRef types[HD_EMIT_MAX_REGISTERS];
  for (unsigned i = 0; i < num_args; i++)
    types[i] = LLVMTypeOf(args[i]);
  LLVMTypeRef type = LLVMFunctionType(result, types, num_args, false);
  LLVMValueRef assembly = LLVMGetInlineAsm(
      type, code, strlen(code), constraints, strlen(constraints), effect, false,
      LLVMInlineAsmDialectATT, false);
  LLVMValueRef call = LLVMBuildCall2(B, type, assembly, args, num_args, "");
  if (!effect) { // memory(none) is the attribute's value 0.
    unsigned kind = LLVMGetEnumAttributeKindForName("memory", 6);
    LLVMAddCallSiteAttribute(call, (unsigned)LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(e->context, kind, 0));
  }
  return call;
}

// LLVM finds it itself only where it optimizes.
LLVMValueRef hd_emit_multiply_wide(hd_emit_t *e, LLVMValueRef a, LLVMValueRef b,
                                   bool is_signed) {
  if (LLVMIsAConstantInt(a) && LLVMIsAConstantInt(b)) {
    a = LLVMBuildIntCast2(B, a, e->i64, is_signed, "");
    return LLVMBuildMul(B, a, LLVMBuildIntCast2(B, b, e->i64, is_signed, ""),
                        "");
  }
  LLVMValueRef *known = hd_emit_number(e, HD_EXPR_COUNT + 8, is_signed, a, b);
  if (*known)
    return *known;
  const char *code =
      is_signed ? "mul.wide.s32 $0, $1, $2;" : "mul.wide.u32 $0, $1, $2;";
  LLVMTypeRef types[] = {e->i32, e->i32};
  LLVMTypeRef type = LLVMFunctionType(e->i64, types, 2, false);
  const char *constraints = LLVMIsAConstantInt(b) ? "=l,r,n" : "=l,r,r";
  LLVMValueRef assembly = LLVMGetInlineAsm(
      type, code, strlen(code), constraints, strlen(constraints), false, false,
      LLVMInlineAsmDialectATT, false);
  LLVMValueRef args[] = {a, b};
  LLVMValueRef product = LLVMBuildCall2(B, type, assembly, args, 2, "");
  *known = product;
  return product;
}

void hd_emit_take_apart(hd_emit_t *e, LLVMValueRef value, hd_type_t type,
                        LLVMValueRef *registers) {
  LLVMTypeRef to = hd_emit_asm_type(e, type);
  unsigned count = hd_emit_asm_count(type);
  if (bits_of(type) >= 32) {
    for (unsigned i = 0; i < type.lanes; i++)
      registers[i] = hd_emit_cast(e, hd_emit_lane(e, value, i), to);
    return;
  }
  value = hd_emit_to_bits(e, value, type);
  if (count == 1) {
    registers[0] = LLVMBuildIntCast2(B, value, to, hd_type_is_signed(type), "");
    return;
  }
  value = hd_emit_cast(e, value, LLVMVectorType(to, count));
  for (unsigned i = 0; i < count; i++)
    registers[i] = hd_emit_lane(e, value, i);
}

LLVMValueRef hd_emit_put_together(hd_emit_t *e, const LLVMValueRef *registers,
                                  hd_type_t type) {
  unsigned count = hd_emit_asm_count(type);
  LLVMTypeRef to = hd_emit_type(e, type);
  if (type.scalar == HD_BOOL)
    return LLVMBuildICmp(B, LLVMIntNE, registers[0], LLVMConstNull(e->i32), "");
  if (count == 1) {
    LLVMTypeRef all =
        LLVMIntTypeInContext(e->context, bits_of(type) * type.lanes);
    LLVMValueRef value = registers[0];
    if (LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMIntegerTypeKind)
      value = LLVMBuildTruncOrBitCast(B, value, all, "");
    return bits_of(type) < 8 ? hd_emit_from_bits(e, value, type)
                             : hd_emit_cast(e, value, to);
  }
  LLVMTypeRef part = LLVMTypeOf(registers[0]);
  LLVMValueRef vector = LLVMGetPoison(LLVMVectorType(part, count));
  for (unsigned i = 0; i < count; i++)
    vector = LLVMBuildInsertElement(B, vector, registers[i],
                                    LLVMConstInt(e->i32, i, false), "");
  return hd_emit_cast(e, vector, to);
}
