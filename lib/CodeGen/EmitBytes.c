// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytes side by side, each a float that was rounded, clamped and taken by its
// bits (IR/Passes/SimplifyCast.c): on the GPU one instruction rounds, saturates
// and packs two, where for each two bounds were compared and a byte picked.
//
//   trunc(bits(min(max(t + shift, least + shift), most + shift)) - less)
//
// of two lanes becomes, where most is the type's,
//
//   cvt.rni.s32 a, max(t, least) ...  cvt.pack.sat d, b, a, rest
//
// which ptxas makes one of (F2IP). max stays, for it drops NaN. Unsigned bytes
// are signed ones less 128: of cvt.pack.sat.u8 ptxas 13.0 makes an instruction
// that an H200 does not know (CUDA_ERROR_ILLEGAL_INSTRUCTION).
#include "CodeGen/Emit.h"

#include <math.h>
#include <string.h>

#define B e->builder

// What a byte is, before it is rounded or behind, least at least; NULL: none.
typedef struct rounded {
  LLVMValueRef value;
  double shift, least, most;
} rounded_t;

static LLVMValueRef operand_of(LLVMValueRef value, LLVMOpcode opcode,
                               unsigned i) {
  return LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == opcode
             ? LLVMGetOperand(value, i)
             : NULL;
}

static bool constant_of(LLVMValueRef value, double *number) {
  LLVMBool loses;
  if (!value || !LLVMIsAConstantFP(value))
    return false;
  *number = LLVMConstRealGetDouble(value, &loses);
  return true;
}

// value is the call of an intrinsic with a constant, which goes to bound.
static LLVMValueRef bounded(LLVMValueRef value, const char *name,
                            double *bound) {
  LLVMValueRef called =
      value && LLVMIsACallInst(value) ? LLVMGetCalledValue(value) : NULL;
  size_t length;
  if (!called ||
      strncmp(LLVMGetValueName2(called, &length), name, strlen(name)) != 0)
    return NULL;
  return constant_of(LLVMGetOperand(value, 1), bound) ? LLVMGetOperand(value, 0)
                                                      : NULL;
}

// The bits are those of 2^23 + less and up; bytes lie above by what makes the
// least one a byte.
static bool find_rounded(LLVMValueRef byte, hd_type_t type, rounded_t *r) {
  LLVMValueRef bits = operand_of(byte, LLVMTrunc, 0);
  LLVMValueRef less = bits ? operand_of(bits, LLVMSub, 1) : NULL;
  if (less)
    bits = LLVMGetOperand(bits, 0);
  LLVMValueRef x = bits ? operand_of(bits, LLVMBitCast, 0) : NULL;
  x = bounded(x, "llvm.minnum.f32", &r->most);
  r->value = bounded(x, "llvm.maxnum.f32", &r->least);
  if (!r->value || (less && !LLVMIsAConstantInt(less)) ||
      !(r->least >= 0x1p23 && r->most < 0x1p24))
    return false;
  double lowest = hd_type_is_signed(type) ? -128 : 0;
  double above =
      r->least - 0x1p23 - (less ? (double)LLVMConstIntGetSExtValue(less) : 0);
  double byte_of_least = above - 256 * floor((above - lowest) / 256);
  r->shift = r->least - byte_of_least;
  r->least = byte_of_least;
  r->most -= r->shift;
  return r->most <= lowest + 255;
}

// The byte in 32 bits, as far as it is within its type; unsigned ones less 128.
static LLVMValueRef integer(hd_emit_t *e, hd_type_t type, const rounded_t *r) {
  LLVMValueRef value = r->value, added = operand_of(value, LLVMFAdd, 1);
  double by, less = hd_type_is_signed(type) ? 0 : 128;
  if (less == 0 && constant_of(added, &by) && by == r->shift && by == 0x1.8p23)
    value = LLVMGetOperand(value, 0);
  else
    value = LLVMBuildFSub(B, value, LLVMConstReal(e->f32, r->shift + less), "");
  LLVMValueRef args[] = {value, LLVMConstReal(e->f32, r->least - less)};
  args[0] = hd_emit_llvm(e, "llvm.maxnum", e->f32, args, 2);
  args[1] = LLVMConstReal(e->f32, r->most - less);
  if (r->most - less < 127)
    args[0] = hd_emit_llvm(e, "llvm.minnum", e->f32, args, 2);
  return hd_emit_llvm(e, "llvm.nvvm.f2i.rn", NULL, args, 1);
}

// Lanes from first on, 2 or 4, in a word.
static LLVMValueRef packed(hd_emit_t *e, hd_type_t type, const rounded_t *first,
                           unsigned count) {
  LLVMValueRef word = hd_emit_int(e->i32, 0);
  for (unsigned i = count; i > 0; i -= 2) {
    LLVMValueRef args[] = {integer(e, type, &first[i - 1]),
                           integer(e, type, &first[i - 2]), word};
    word = hd_emit_ptx(e, "cvt.pack.sat.s8.s32.b32 $0, $1, $2, $3;", "=r,r,r,r",
                       e->i32, args, 3, false);
  }
  if (!hd_type_is_signed(type))
    word = LLVMBuildXor(B, word, hd_emit_int(e->i32, 0x80808080), "");
  return count == 4 ? word : LLVMBuildTrunc(B, word, e->i16, "");
}

LLVMValueRef hd_emit_bytes(hd_emit_t *e, hd_type_t type,
                           const LLVMValueRef *lanes) {
  rounded_t rounded[HD_MAX_LANES];
  unsigned each = type.lanes % 4 ? 2 : 4;
  if (e->host || hd_type_bits(hd_type_lane(type)) != 8 || type.lanes % 2)
    return NULL;
  for (unsigned i = 0; i < type.lanes; i++)
    if (!find_rounded(lanes[i], type, &rounded[i]))
      return NULL;
  LLVMValueRef bits = packed(e, type, rounded, each);
  if (type.lanes > each) {
    LLVMTypeRef words = LLVMVectorType(LLVMTypeOf(bits), type.lanes / each);
    bits = LLVMBuildInsertElement(B, LLVMGetPoison(words), bits,
                                  hd_emit_int(e->i32, 0), "");
  }
  for (unsigned i = each; i < type.lanes; i += each)
    bits = LLVMBuildInsertElement(B, bits, packed(e, type, &rounded[i], each),
                                  hd_emit_int(e->i32, i / each), "");
  LLVMValueRef bytes = LLVMBuildBitCast(B, bits, hd_emit_type(e, type), "");
  hd_ptr_map_set(&e->arena, &e->packed, bytes, bits);
  return bytes;
}
