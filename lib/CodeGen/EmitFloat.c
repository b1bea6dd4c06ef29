// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Formats narrower than f32, by integer arithmetic alone: what a target without
// instructions for them runs. Values are the formats' bits in integers (f16 in
// i16 here); every function takes scalars and vectors alike.
//
// Narrowing rounds to nearest even. Normal results come from adding half a unit
// to f32's bits, subnormal ones from adding 2^k such that f32's own rounding
// cuts at the format's last place. Widening is exact: the bits, moved into
// f32's place and multiplied by a power of two.
#include "CodeGen/Emit.h"

typedef struct format {
  unsigned bits;
  unsigned mantissa; // Bits, without the hidden one.
  int bias;
  bool is_signed;
  uint32_t max;      // The code of the largest finite value, without sign.
  uint32_t overflow; // The code that larger ones get (inf, or max: saturated).
  uint32_t nan;      // The one code that NaN gets, as in PTX.
  bool has_inf;      // The exponent of all ones holds inf and NaN.
  bool no_minus_zero;
} format_t;

// f4e2m1 has no NaN: it becomes the largest value, as cvt.satfinite does.
// f8e8m0 has neither sign nor zero: what is below it becomes its least value,
// negative numbers NaN.
static const format_t *format_of(hd_scalar_t scalar) {
  // clang-format off
  static const format_t f16 = {16, 10, 15, true, 0x7bff, 0x7c00, 0x7fff, true, false};
  static const format_t bf16 = {16, 7, 127, true, 0x7f7f, 0x7f80, 0x7fff, true, false};
  static const format_t e4m3 = {8, 3, 7, true, 0x7e, 0x7e, 0x7f, false, false};
  static const format_t e5m2 = {8, 2, 15, true, 0x7b, 0x7b, 0x7f, true, false};
  static const format_t e4m3fnuz = {8, 3, 8, true, 0x7f, 0x7f, 0x80, false, true};
  static const format_t e5m2fnuz = {8, 2, 16, true, 0x7f, 0x7f, 0x80, false, true};
  static const format_t e8m0 = {8, 0, 127, false, 0xfe, 0xfe, 0xff, false, false};
  static const format_t e2m1 = {4, 1, 1, true, 0x7, 0x7, 0x7, false, false};
  // clang-format on
  switch (scalar) {
  case HD_F16:
    return &f16;
  case HD_BF16:
    return &bf16;
  case HD_F8E4M3:
    return &e4m3;
  case HD_F8E5M2:
    return &e5m2;
  case HD_F8E4M3FNUZ:
    return &e4m3fnuz;
  case HD_F8E5M2FNUZ:
    return &e5m2fnuz;
  case HD_F8E8M0:
    return &e8m0;
  case HD_F4E2M1:
    return &e2m1;
  default:
    return NULL;
  }
}

#define B e->builder

static LLVMValueRef constant(LLVMValueRef like, uint32_t value) {
  return hd_emit_int(LLVMTypeOf(like), value);
}

static LLVMValueRef compare(hd_emit_t *e, LLVMIntPredicate predicate,
                            LLVMValueRef a, uint32_t b) {
  return LLVMBuildICmp(B, predicate, a, constant(a, b), "");
}

static LLVMValueRef bits_of(hd_emit_t *e, LLVMValueRef f32) {
  LLVMTypeRef type = hd_emit_like(LLVMTypeOf(f32), e->i32);
  return LLVMBuildBitCast(B, f32, type, "");
}

static LLVMValueRef f32_of(hd_emit_t *e, LLVMValueRef bits) {
  LLVMTypeRef type = hd_emit_like(LLVMTypeOf(bits), e->f32);
  return LLVMBuildBitCast(B, bits, type, "");
}

static float power_of_two(int exponent) {
  union {
    uint32_t bits;
    float value;
  } u = {.bits = (uint32_t)(exponent + 127) << 23};
  return u.value;
}

// bits rounded to nearest even at a place: bits + half - 1 + (last kept bit).
static LLVMValueRef round_at(hd_emit_t *e, LLVMValueRef bits, unsigned shift) {
  LLVMValueRef last = LLVMBuildLShr(B, bits, constant(bits, shift), "");
  last = LLVMBuildAnd(B, last, constant(bits, 1), "");
  bits = LLVMBuildAdd(B, bits, constant(bits, (1u << (shift - 1)) - 1), "");
  return LLVMBuildAdd(B, bits, last, "");
}

// The code of |x| whose bits are given; x is below the least normal value.
static LLVMValueRef round_subnormal(hd_emit_t *e, const format_t *f,
                                    LLVMValueRef bits) {
  int exponent = 1 - f->bias - (int)f->mantissa + 23;
  LLVMTypeRef type = hd_emit_like(LLVMTypeOf(bits), e->f32);
  LLVMValueRef magic = hd_emit_real(type, power_of_two(exponent));
  LLVMValueRef sum = LLVMBuildFAdd(B, f32_of(e, bits), magic, "");
  return LLVMBuildSub(B, bits_of(e, sum),
                      constant(bits, (uint32_t)(exponent + 127) << 23), "");
}

static LLVMValueRef round_magnitude(hd_emit_t *e, const format_t *f,
                                    LLVMValueRef bits) {
  unsigned shift = 23 - f->mantissa;
  LLVMValueRef code =
      LLVMBuildLShr(B, round_at(e, bits, shift), constant(bits, shift), "");
  uint32_t rebias = (uint32_t)(127 - f->bias) << f->mantissa;
  code = LLVMBuildSub(B, code, constant(bits, rebias), "");
  // Without a mantissa, what lies below the second value rounds by itself.
  if (f->mantissa == 0) {
    LLVMValueRef up = compare(e, LLVMIntUGT, bits, 0x600000);
    up = LLVMBuildZExt(B, up, LLVMTypeOf(bits), "");
    return LLVMBuildSelect(B, compare(e, LLVMIntULT, bits, 0x800000), up, code,
                           "");
  }
  // Where exponents are f32's own, its subnormals fall into place.
  if (f->bias == 127)
    return code;
  uint32_t least = (uint32_t)(128 - f->bias) << 23;
  return LLVMBuildSelect(B, compare(e, LLVMIntULT, bits, least),
                         round_subnormal(e, f, bits), code, "");
}

static LLVMValueRef tf32_from_f32(hd_emit_t *e, LLVMValueRef value) {
  LLVMValueRef bits = bits_of(e, value);
  LLVMValueRef rounded =
      LLVMBuildAnd(B, round_at(e, bits, 13), constant(bits, 0xffffe000), "");
  LLVMValueRef magnitude =
      LLVMBuildAnd(B, bits, constant(bits, 0x7fffffff), "");
  LLVMValueRef is_nan = compare(e, LLVMIntUGT, magnitude, 0x7f800000);
  LLVMValueRef nan = constant(bits, 0x7fffe000);
  return f32_of(e, LLVMBuildSelect(B, is_nan, nan, rounded, ""));
}

LLVMValueRef hd_emit_f32_to_small(hd_emit_t *e, LLVMValueRef value,
                                  hd_scalar_t to) {
  if (to == HD_TF32)
    return tf32_from_f32(e, value);
  const format_t *f = format_of(to);
  LLVMValueRef all = bits_of(e, value);
  LLVMValueRef bits = LLVMBuildAnd(B, all, constant(all, 0x7fffffff), "");
  LLVMValueRef code = round_magnitude(e, f, bits);
  LLVMValueRef over = compare(e, LLVMIntUGT, code, f->max);
  // A huge exponent may have wrapped the code: infinity is told apart by bits.
  over = LLVMBuildOr(B, over, compare(e, LLVMIntUGE, bits, 0x7f800000), "");
  code = LLVMBuildSelect(B, over, constant(all, f->overflow), code, "");
  LLVMValueRef is_nan = compare(e, LLVMIntUGT, bits, 0x7f800000);
  if (f->is_signed) {
    LLVMValueRef sign = LLVMBuildLShr(B, all, constant(all, 31), "");
    sign = LLVMBuildShl(B, sign, constant(all, f->bits - 1), "");
    if (f->no_minus_zero)
      sign = LLVMBuildSelect(B, compare(e, LLVMIntEQ, code, 0),
                             constant(all, 0), sign, "");
    code = LLVMBuildOr(B, code, sign, "");
  } else {
    LLVMValueRef negative = compare(e, LLVMIntSLT, all, 0);
    LLVMValueRef zero = compare(e, LLVMIntEQ, bits, 0);
    negative = LLVMBuildAnd(B, negative, LLVMBuildNot(B, zero, ""), "");
    is_nan = LLVMBuildOr(B, is_nan, negative, "");
  }
  code = LLVMBuildSelect(B, is_nan, constant(all, f->nan), code, "");
  LLVMTypeRef narrow = f->bits == 16 ? e->i16 : e->i8;
  return LLVMBuildTrunc(B, code, hd_emit_like(LLVMTypeOf(code), narrow), "");
}

static LLVMValueRef e8m0_to_f32(hd_emit_t *e, LLVMValueRef code) {
  LLVMValueRef bits = LLVMBuildShl(B, code, constant(code, 23), "");
  bits = LLVMBuildSelect(B, compare(e, LLVMIntEQ, code, 0),
                         constant(code, 0x400000), bits, "");
  bits = LLVMBuildSelect(B, compare(e, LLVMIntEQ, code, 0xff),
                         constant(code, 0x7fc00000), bits, "");
  return f32_of(e, bits);
}

LLVMValueRef hd_emit_small_to_f32(hd_emit_t *e, LLVMValueRef value,
                                  hd_scalar_t from) {
  if (from == HD_TF32)
    return value;
  const format_t *f = format_of(from);
  LLVMTypeRef wide = hd_emit_like(LLVMTypeOf(value), e->i32);
  LLVMValueRef code = LLVMBuildZExt(B, value, wide, "");
  if (from == HD_BF16)
    return f32_of(e, LLVMBuildShl(B, code, constant(code, 16), ""));
  if (from == HD_F8E8M0)
    return e8m0_to_f32(e, code);
  uint32_t sign_bit = 1u << (f->bits - 1);
  LLVMValueRef magnitude =
      LLVMBuildAnd(B, code, constant(code, sign_bit - 1), "");
  LLVMValueRef bits =
      LLVMBuildShl(B, magnitude, constant(code, 23 - f->mantissa), "");
  LLVMTypeRef f32 = hd_emit_like(wide, e->f32);
  LLVMValueRef scaled = LLVMBuildFMul(
      B, f32_of(e, bits), hd_emit_real(f32, power_of_two(127 - f->bias)), "");
  LLVMValueRef result = bits_of(e, scaled);
  if (f->has_inf)
    result = LLVMBuildSelect(
        B, compare(e, LLVMIntUGE, magnitude, f->max + 1),
        LLVMBuildOr(B, bits, constant(bits, 0x7f800000), ""), result, "");
  LLVMValueRef sign = LLVMBuildAnd(B, code, constant(code, sign_bit), "");
  sign = LLVMBuildShl(B, sign, constant(code, 32 - f->bits), "");
  if (!f->has_inf && from != HD_F4E2M1) {
    LLVMValueRef is_nan = f->no_minus_zero
                              ? compare(e, LLVMIntEQ, code, f->nan)
                              : compare(e, LLVMIntEQ, magnitude, f->nan);
    result = LLVMBuildSelect(B, is_nan, constant(code, 0x7fc00000), result, "");
  }
  return f32_of(e, LLVMBuildOr(B, result, sign, ""));
}

// Rounded to odd: cut, and the last bit set where something was cut off. A
// second rounding to at most 22 bits then gives what one would have given.
// (S. Boldo, G. Melquiond: Emulation of a FMA and correctly rounded sums,
// 2008.)
LLVMValueRef hd_emit_f64_to_f32_odd(hd_emit_t *e, LLVMValueRef value) {
  LLVMTypeRef wide = LLVMTypeOf(value);
  LLVMTypeRef f32 = hd_emit_like(wide, e->f32);
  LLVMValueRef near = LLVMBuildFPTrunc(B, value, f32, "");
  LLVMValueRef back = LLVMBuildFPExt(B, near, wide, "");
  LLVMValueRef bits = bits_of(e, near);
  LLVMValueRef differs = LLVMBuildFCmp(B, LLVMRealONE, back, value, "");
  LLVMValueRef size = hd_emit_llvm(e, "llvm.fabs", wide, &value, 1);
  LLVMValueRef back_size = hd_emit_llvm(e, "llvm.fabs", wide, &back, 1);
  LLVMValueRef up = LLVMBuildFCmp(B, LLVMRealOGT, back_size, size, "");
  up = LLVMBuildZExt(B, up, LLVMTypeOf(bits), "");
  LLVMValueRef odd = LLVMBuildSub(B, bits, up, "");
  odd = LLVMBuildOr(B, odd, constant(bits, 1), "");
  return f32_of(e, LLVMBuildSelect(B, differs, odd, bits, ""));
}
