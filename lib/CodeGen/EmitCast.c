// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversions between all types: to nearest even, or towards zero and saturated
// for float to integer. Native instructions where the target has them, else
// EmitFloat.c's arithmetic; each rounds once.
#include "CodeGen/Emit.h"

#include <string.h>

#define B e->builder

static unsigned bits_of(hd_type_t type) {
  return hd_scalar_bits((hd_scalar_t)type.scalar);
}

// Whether LLVM's own float conversions serve: f32, f64, and tf32 as a source.
static bool is_wide(hd_type_t type) {
  return type.scalar == HD_F32 || type.scalar == HD_F64;
}

static LLVMTypeRef vector_of(hd_emit_t *e, hd_type_t like, LLVMTypeRef lane) {
  (void)e;
  return like.lanes > 1 ? LLVMVectorType(lane, like.lanes) : lane;
}

// Sub-byte integers are held in an i8: brings the upper bits in line.
static LLVMValueRef normalize(hd_emit_t *e, LLVMValueRef value,
                              hd_type_t type) {
  unsigned bits = bits_of(type);
  if (bits >= 8 || hd_type_is_bool(type) || hd_type_is_float(type))
    return value;
  LLVMTypeRef t = LLVMTypeOf(value);
  if (hd_type_is_unsigned(type))
    return LLVMBuildAnd(B, value, hd_emit_int(t, (1u << bits) - 1), "");
  value = LLVMBuildShl(B, value, hd_emit_int(t, 8 - bits), "");
  return LLVMBuildAShr(B, value, hd_emit_int(t, 8 - bits), "");
}

// f32 high, f32 low -> the pair's bits.
static LLVMValueRef narrow_pair(hd_emit_t *e, hd_scalar_t to, LLVMValueRef high,
                                LLVMValueRef low) {
  LLVMValueRef args[] = {high, low};
  switch (to) {
  case HD_F16:
    return hd_emit_llvm(e, "llvm.nvvm.ff2f16x2.rn", NULL, args, 2);
  case HD_BF16:
    return hd_emit_llvm(e, "llvm.nvvm.ff2bf16x2.rn", NULL, args, 2);
  case HD_F8E4M3:
    return hd_emit_ptx(e, "cvt.rn.satfinite.e4m3x2.f32 $0, $1, $2;", "=h,f,f",
                       e->i16, args, 2, false);
  default:
    return hd_emit_ptx(e, "cvt.rn.satfinite.e5m2x2.f32 $0, $1, $2;", "=h,f,f",
                       e->i16, args, 2, false);
  }
}

// cvt.rn packs two lanes at a time; a lane without a partner takes a zero
// along.
static LLVMValueRef narrow_native(hd_emit_t *e, LLVMValueRef value,
                                  hd_type_t to) {
  LLVMTypeRef lane_type = hd_emit_type(e, hd_type_lane(to));
  LLVMTypeRef pair_type = LLVMVectorType(lane_type, 2);
  LLVMValueRef result = LLVMGetPoison(hd_emit_type(e, to));
  for (unsigned i = 0; i < to.lanes; i += 2) {
    bool has_partner = i + 1 < to.lanes;
    LLVMValueRef high =
        has_partner ? hd_emit_lane(e, value, i + 1) : LLVMConstReal(e->f32, 0);
    LLVMValueRef pair =
        narrow_pair(e, (hd_scalar_t)to.scalar, high, hd_emit_lane(e, value, i));
    pair = LLVMBuildBitCast(B, pair, pair_type, "");
    if (to.lanes == 1)
      return hd_emit_lane(e, pair, 0);
    for (unsigned k = 0; k < 1u + has_partner; k++)
      result = LLVMBuildInsertElement(B, result, hd_emit_lane(e, pair, k),
                                      LLVMConstInt(e->i32, i + k, false), "");
  }
  return result;
}

// e4m3 and e5m2 lie within f16: two lanes at a time, too.
static LLVMValueRef widen_f8_native(hd_emit_t *e, LLVMValueRef value,
                                    hd_type_t from) {
  const char *code = from.scalar == HD_F8E4M3 ? "cvt.rn.f16x2.e4m3x2 $0, $1;"
                                              : "cvt.rn.f16x2.e5m2x2 $0, $1;";
  LLVMTypeRef halves = LLVMVectorType(e->half, 2);
  LLVMValueRef result = LLVMGetPoison(vector_of(e, from, e->f32));
  for (unsigned i = 0; i < from.lanes; i += 2) {
    bool has_partner = i + 1 < from.lanes;
    LLVMValueRef pair = LLVMBuildZExt(B, hd_emit_lane(e, value, i), e->i16, "");
    if (has_partner) {
      LLVMValueRef high =
          LLVMBuildZExt(B, hd_emit_lane(e, value, i + 1), e->i16, "");
      high = LLVMBuildShl(B, high, LLVMConstInt(e->i16, 8, false), "");
      pair = LLVMBuildOr(B, pair, high, "");
    }
    LLVMValueRef wide = hd_emit_ptx(e, code, "=r,h", e->i32, &pair, 1, false);
    wide = LLVMBuildBitCast(B, wide, halves, "");
    for (unsigned k = 0; k < 1u + has_partner; k++) {
      LLVMValueRef lane = hd_emit_lane(e, wide, k);
      lane = LLVMBuildFPExt(B, lane, e->f32, "");
      if (from.lanes == 1)
        return lane;
      result = LLVMBuildInsertElement(B, result, lane,
                                      LLVMConstInt(e->i32, i + k, false), "");
    }
  }
  return result;
}

static bool has_f8(const hd_emit_t *e, hd_type_t type) {
  return !e->host && e->target->sm >= 89 &&
         (type.scalar == HD_F8E4M3 || type.scalar == HD_F8E5M2);
}

static LLVMValueRef f32_to_f16(hd_emit_t *e, LLVMValueRef value,
                               hd_type_t type) {
  LLVMTypeRef to = hd_emit_type(e, type);
  if (!e->host && e->target->sm >= 80 && type.lanes > 1 &&
      !LLVMIsConstant(value))
    return narrow_native(e, value, type);
  if (e->native_f16)
    return LLVMBuildFPTrunc(B, value, to, "");
  return LLVMBuildBitCast(B, hd_emit_f32_to_small(e, value, HD_F16), to, "");
}

static LLVMValueRef f32_to(hd_emit_t *e, LLVMValueRef value, hd_type_t to) {
  if (to.scalar == HD_F32)
    return value;
  if (to.scalar == HD_F64)
    return LLVMBuildFPExt(B, value, hd_emit_type(e, to), "");
  if (to.scalar == HD_F16)
    return f32_to_f16(e, value, to);
  bool constant = LLVMIsConstant(value);
  if (to.scalar == HD_BF16 && !e->host && e->target->sm >= 80 && !constant)
    return narrow_native(e, value, to);
  if (has_f8(e, to) && !constant)
    return narrow_native(e, value, to);
  return hd_emit_f32_to_small(e, value, (hd_scalar_t)to.scalar);
}

// Exact: every format but f64 lies within f32.
static LLVMValueRef to_f32(hd_emit_t *e, LLVMValueRef value, hd_type_t from) {
  if (from.scalar == HD_F32 || from.scalar == HD_TF32)
    return value;
  if (from.scalar == HD_F16) {
    if (e->native_f16)
      return LLVMBuildFPExt(B, value, vector_of(e, from, e->f32), "");
    value = LLVMBuildBitCast(B, value, vector_of(e, from, e->i16), "");
  }
  if (has_f8(e, from) && !LLVMIsConstant(value))
    return widen_f8_native(e, value, from);
  return hd_emit_small_to_f32(e, value, (hd_scalar_t)from.scalar);
}

static LLVMValueRef float_to_float(hd_emit_t *e, LLVMValueRef value,
                                   hd_type_t from, hd_type_t to) {
  if (from.scalar != HD_F64)
    return f32_to(e, to_f32(e, value, from), to);
  if (to.scalar == HD_F32 || (to.scalar == HD_F16 && !e->host))
    return LLVMBuildFPTrunc(B, value, hd_emit_type(e, to), "");
  return f32_to(e, hd_emit_f64_to_f32_odd(e, value), to);
}

// 64 bits as a double would be rounded: bits that do not fit are gathered into
// the lowest that does (rounding to odd).
static LLVMValueRef gather_low_bits(hd_emit_t *e, LLVMValueRef value,
                                    bool is_signed) {
  LLVMTypeRef t = LLVMTypeOf(value);
  LLVMValueRef low = LLVMBuildAnd(B, value, hd_emit_int(t, 0x7ff), "");
  LLVMValueRef sticky = LLVMBuildICmp(B, LLVMIntNE, low, hd_emit_int(t, 0), "");
  sticky = LLVMBuildZExt(B, sticky, t, "");
  sticky = LLVMBuildShl(B, sticky, hd_emit_int(t, 11), "");
  LLVMValueRef cut =
      LLVMBuildAnd(B, value, hd_emit_int(t, ~UINT64_C(0x7ff)), "");
  cut = LLVMBuildOr(B, cut, sticky, "");
  LLVMValueRef top = is_signed
                         ? LLVMBuildAShr(B, value, hd_emit_int(t, 52), "")
                         : LLVMBuildLShr(B, value, hd_emit_int(t, 52), "");
  LLVMValueRef fits = LLVMBuildICmp(B, LLVMIntEQ, top, hd_emit_int(t, 0), "");
  if (is_signed) {
    LLVMValueRef minus = hd_emit_int(t, ~UINT64_C(0));
    minus = LLVMBuildICmp(B, LLVMIntEQ, top, minus, "");
    fits = LLVMBuildOr(B, fits, minus, "");
  }
  return LLVMBuildSelect(B, fits, value, cut, "");
}

static LLVMValueRef int_to_float(hd_emit_t *e, LLVMValueRef value,
                                 hd_type_t from, hd_type_t to) {
  bool is_signed = hd_type_is_signed(from);
  if (to.scalar == HD_F16) {
    LLVMValueRef by_bits = hd_emit_int_to_f16(e, value, from);
    if (by_bits)
      return by_bits;
  }
  LLVMValueRef by_byte =
      to.scalar == HD_F32 ? hd_emit_byte_to_f32(e, value, from) : NULL;
  if (by_byte)
    return by_byte;
  // f16: f32 holds all integers up to 2^24 and what is larger overflows.
  bool by_f32 = to.scalar == HD_F16 || bits_of(from) <= 16;
  LLVMTypeRef type = is_wide(to) ? hd_emit_type(e, to)
                     : by_f32    ? vector_of(e, to, e->f32)
                                 : vector_of(e, to, e->f64);
  if (!is_wide(to) && !by_f32 && bits_of(from) == 64)
    value = gather_low_bits(e, value, is_signed);
  value = is_signed ? LLVMBuildSIToFP(B, value, type, "")
                    : LLVMBuildUIToFP(B, value, type, "");
  if (is_wide(to))
    return value;
  return f32_to(e, by_f32 ? value : hd_emit_f64_to_f32_odd(e, value), to);
}

static LLVMValueRef saturating(hd_emit_t *e, LLVMValueRef value, bool is_signed,
                               LLVMTypeRef to) {
  const char *name = is_signed ? "llvm.fptosi.sat" : "llvm.fptoui.sat";
  LLVMTypeRef types[] = {to, LLVMTypeOf(value)};
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(e->llvm, id, types, 2);
  LLVMTypeRef type = LLVMIntrinsicGetType(e->context, id, types, 2);
  return LLVMBuildCall2(B, type, f, &value, 1, "");
}

// What a value is rounded from, to nearest even; NULL: it is not. 0 may be
// added behind: which zero it is, no integer tells.
static LLVMValueRef rounded_from(LLVMValueRef value) {
  static const char name[] = "llvm.roundeven.";
  if (LLVMIsABinaryOperator(value) &&
      LLVMGetInstructionOpcode(value) == LLVMFAdd) {
    LLVMValueRef added = LLVMGetOperand(value, 1);
    LLVMBool loses;
    if (!LLVMIsAConstantFP(added) || LLVMConstRealGetDouble(added, &loses) != 0)
      return NULL;
    value = LLVMGetOperand(value, 0);
  }
  LLVMValueRef called =
      LLVMIsACallInst(value) ? LLVMGetCalledValue(value) : NULL;
  size_t length;
  return called && strncmp(LLVMGetValueName2(called, &length), name,
                           sizeof name - 1) == 0
             ? LLVMGetOperand(value, 0)
             : NULL;
}

// cvt.rzi saturates at 32 bits and gives 0 for NaN; less than that is clamped.
// cvt.rni rounds by itself.
static LLVMValueRef nvptx_lane_to_int(hd_emit_t *e, LLVMValueRef value,
                                      hd_type_t to) {
  unsigned bits = bits_of(to);
  bool is_signed = hd_type_is_signed(to);
  LLVMValueRef from = rounded_from(value);
  bool to_signed = is_signed || bits < 32;
  const char *name =
      from ? (to_signed ? "llvm.nvvm.f2i.rn" : "llvm.nvvm.f2ui.rn")
           : (to_signed ? "llvm.nvvm.f2i.rz" : "llvm.nvvm.f2ui.rz");
  value = from ? from : value;
  value = hd_emit_llvm(e, name, NULL, &value, 1);
  if (bits == 32)
    return value;
  int64_t low = is_signed ? -(INT64_C(1) << (bits - 1)) : 0;
  int64_t high = (INT64_C(1) << (bits - is_signed)) - 1;
  LLVMValueRef args[] = {value, hd_emit_int(e->i32, (uint64_t)low)};
  args[0] = hd_emit_llvm(e, "llvm.smax", e->i32, args, 2);
  args[1] = hd_emit_int(e->i32, (uint64_t)high);
  value = hd_emit_llvm(e, "llvm.smin", e->i32, args, 2);
  return LLVMBuildTrunc(B, value, hd_emit_type(e, hd_type_lane(to)), "");
}

static LLVMValueRef float_to_int(hd_emit_t *e, LLVMValueRef value,
                                 hd_type_t from, hd_type_t to) {
  if (from.scalar != HD_F64)
    value = to_f32(e, value, from);
  unsigned bits = bits_of(to);
  bool is_signed = hd_type_is_signed(to);
  if (!e->host && from.scalar != HD_F64 && bits <= 32 &&
      !LLVMIsConstant(value)) {
    LLVMValueRef result = LLVMGetPoison(hd_emit_type(e, to));
    for (unsigned i = 0; i < to.lanes; i++) {
      LLVMValueRef lane = nvptx_lane_to_int(e, hd_emit_lane(e, value, i), to);
      if (to.lanes == 1)
        return lane;
      result = LLVMBuildInsertElement(B, result, lane,
                                      LLVMConstInt(e->i32, i, false), "");
    }
    return result;
  }
  LLVMTypeRef exact = vector_of(e, to, LLVMIntTypeInContext(e->context, bits));
  value = saturating(e, value, is_signed, exact);
  if (bits < 8)
    value = LLVMBuildIntCast2(B, value, hd_emit_type(e, to), is_signed, "");
  return value;
}

// A lane at a time: pairs of bits that LLVM would take through memory.
static LLVMValueRef convert_lanes(hd_emit_t *e, LLVMValueRef value,
                                  hd_type_t from, hd_type_t to) {
  LLVMValueRef result = LLVMGetPoison(hd_emit_type(e, to));
  for (unsigned i = 0; i < to.lanes; i++) {
    LLVMValueRef lane = hd_emit_convert(e, hd_emit_lane(e, value, i),
                                        hd_type_lane(from), hd_type_lane(to));
    result = LLVMBuildInsertElement(B, result, lane,
                                    LLVMConstInt(e->i32, i, false), "");
  }
  return result;
}

LLVMValueRef hd_emit_convert(hd_emit_t *e, LLVMValueRef value, hd_type_t from,
                             hd_type_t to) {
  if (from.scalar == to.scalar)
    return value;
  if (!e->host && to.lanes > 1 && bits_of(to) < 8)
    return convert_lanes(e, value, from, to);
  LLVMTypeRef type = hd_emit_type(e, to);
  bool to_float = hd_type_is_float(to), from_float = hd_type_is_float(from);
  if (hd_type_is_bool(to)) {
    if (!from_float)
      return LLVMBuildICmp(B, LLVMIntNE, value,
                           LLVMConstNull(LLVMTypeOf(value)), "");
    if (from.scalar != HD_F64)
      value = to_f32(e, value, from);
    return LLVMBuildFCmp(B, LLVMRealUNE, value,
                         LLVMConstNull(LLVMTypeOf(value)), "");
  }
  if (hd_type_is_bool(from)) {
    hd_type_t byte = {HD_U8, from.lanes};
    value = LLVMBuildZExt(B, value, hd_emit_type(e, byte), "");
    return hd_emit_convert(e, value, byte, to);
  }
  if (from_float && to_float)
    return float_to_float(e, value, from, to);
  if (to_float)
    return int_to_float(e, value, from, to);
  if (from_float)
    return float_to_int(e, value, from, to);
  value = LLVMBuildIntCast2(B, value, type, hd_type_is_signed(from), "");
  return normalize(e, value, to);
}
