// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic. Nothing is contracted or reassociated: no fast-math flag is ever
// set. Integers wrap; shifts of the width or more give 0 or the sign; a guarded
// division never traps. Floats that a target does not compute in are widened to
// f32, computed once and rounded once (innocuous: f32 has more than twice their
// digits plus two).
#include "CodeGen/EmitAccess.h"
#include "CodeGen/SimAbi.h"

#define B e->builder

static unsigned bits_of(hd_type_t type) {
  return hd_scalar_bits((hd_scalar_t)type.scalar);
}

static hd_type_t f32_like(hd_type_t type) {
  return (hd_type_t){HD_F32, type.lanes};
}

// f16 is computed natively on the GPU, but for what it has no instruction for.
static bool is_native(const hd_emit_t *e, hd_type_t type, hd_expr_kind_t kind) {
  if (type.scalar == HD_F16)
    return !e->host && kind != HD_EXPR_DIV && kind != HD_EXPR_MIN &&
           kind != HD_EXPR_MAX;
  return type.scalar == HD_F32 || type.scalar == HD_F64;
}

// Brings the upper bits of a sub-byte integer in line.
static LLVMValueRef wrap(hd_emit_t *e, LLVMValueRef value, hd_type_t type) {
  if (bits_of(type) >= 8)
    return value;
  hd_type_t byte = {hd_type_is_signed(type) ? HD_I8 : HD_U8, type.lanes};
  return hd_emit_convert(e, value, byte, type);
}

// What may wrap: under --sanitize an index is looked at again (EmitExact.c).
static LLVMValueRef wrapping(hd_emit_t *e, hd_type_t type, LLVMOpcode opcode,
                             LLVMValueRef a, LLVMValueRef b) {
  if (e->sanitize && type.scalar == HD_I32 && type.lanes == 1)
    return hd_emit_wrapping(e, opcode, a, b);
  return LLVMBuildBinOp(B, opcode, a, b, "");
}

static LLVMValueRef shift(hd_emit_t *e, hd_expr_kind_t kind, hd_type_t type,
                          LLVMValueRef a, LLVMValueRef amount) {
  LLVMTypeRef t = LLVMTypeOf(a);
  unsigned bits = bits_of(type);
  LLVMValueRef width = hd_emit_int(t, bits);
  LLVMValueRef fits = LLVMBuildICmp(B, LLVMIntULT, amount, width, "");
  bool is_arithmetic = kind == HD_EXPR_SHR && hd_type_is_signed(type);
  LLVMValueRef other =
      is_arithmetic ? hd_emit_int(t, bits - 1) : hd_emit_int(t, 0);
  LLVMValueRef safe = hd_emit_select(e, fits, amount, other);
  if (is_arithmetic)
    return LLVMBuildAShr(B, a, safe, "");
  LLVMValueRef result = kind == HD_EXPR_SHL
                            ? wrapping(e, type, LLVMShl, a, safe)
                            : LLVMBuildLShr(B, a, safe, "");
  return hd_emit_select(e, fits, result, hd_emit_int(t, 0));
}

// On the host a division by zero gives 0 and, under --sanitize, a finding.
static LLVMValueRef report_zero(hd_emit_t *e, const hd_expr_t *x,
                                LLVMValueRef is_zero, unsigned lanes) {
  LLVMValueRef any = is_zero;
  if (lanes > 1) {
    LLVMTypeRef all = LLVMIntTypeInContext(e->context, lanes);
    any = LLVMBuildBitCast(B, is_zero, all, "");
    any = LLVMBuildICmp(B, LLVMIntNE, any, LLVMConstNull(all), "");
  }
  LLVMBasicBlockRef report = hd_emit_new_block(e, "divided_by_zero");
  LLVMBasicBlockRef go_on = hd_emit_new_block(e, "divide");
  LLVMBuildCondBr(B, any, report, go_on);
  hd_emit_at(e, report);
  LLVMValueRef args[] = {
      e->thread, hd_emit_site(e, x->loc, "/", HD_SIM_LOAD, NULL, 0, lanes)};
  hd_emit_c_call(e, "hd_sim_divided_by_zero", e->void_, args, 2);
  hd_emit_go(e, go_on);
  hd_emit_at(e, go_on);
  return is_zero;
}

static LLVMValueRef int_min_max(hd_emit_t *e, bool is_min, hd_type_t type,
                                LLVMValueRef a, LLVMValueRef b) {
  LLVMValueRef args[] = {a, b};
  const char *name = hd_type_is_signed(type)
                         ? (is_min ? "llvm.smin" : "llvm.smax")
                         : (is_min ? "llvm.umin" : "llvm.umax");
  return hd_emit_llvm(e, name, LLVMTypeOf(a), args, 2);
}

static LLVMValueRef quotient(hd_emit_t *e, hd_expr_kind_t kind, hd_type_t type,
                             LLVMValueRef a, LLVMValueRef b) {
  bool is_signed = hd_type_is_signed(type);
  if (kind == HD_EXPR_DIV)
    return is_signed ? LLVMBuildSDiv(B, a, b, "") : LLVMBuildUDiv(B, a, b, "");
  return is_signed ? LLVMBuildSRem(B, a, b, "") : LLVMBuildURem(B, a, b, "");
}

static bool is_minus_one(LLVMValueRef value) {
  return LLVMIsAConstantInt(value) && LLVMConstIntGetSExtValue(value) == -1;
}

// A divisor for which LLVM's division is defined: 1 in place of 0, and of -1.
static LLVMValueRef safe_divisor(hd_emit_t *e, hd_type_t type, LLVMValueRef b) {
  LLVMTypeRef t = LLVMTypeOf(b);
  LLVMValueRef one = hd_emit_int(t, 1);
  if (!hd_type_is_signed(type))
    return int_min_max(e, false, type, b, one);
  // 0 and -1 are the two for which b + 1 is less than 2.
  LLVMValueRef above = LLVMBuildAdd(B, b, one, "");
  LLVMValueRef is_special =
      LLVMBuildICmp(B, LLVMIntULT, above, hd_emit_int(t, 2), "");
  return hd_emit_select(e, is_special, one, b);
}

static bool is_power_of_two(LLVMValueRef value) {
  unsigned long long bits = LLVMConstIntGetZExtValue(value);
  return (bits & (bits - 1)) == 0;
}

// On the GPU a division by zero gives any value, but is no undefined operation
// of LLVM's. The least integer by -1 wraps. Quotient and remainder of the same
// numbers are one division, in whatever blocks they stand.
static LLVMValueRef divide_on_gpu(hd_emit_t *e, const hd_expr_t *x,
                                  LLVMValueRef a, LLVMValueRef b) {
  enum { DIVISOR = HD_EXPR_COUNT + 16, QUOTIENT };
  bool is_safe = LLVMIsAConstantInt(b) && !LLVMIsNull(b) && !is_minus_one(b);
  if (is_safe && is_power_of_two(b)) // Shifts.
    return quotient(e, (hd_expr_kind_t)x->kind, x->type, a, b);
  uint32_t type = (uint32_t)(x->type.scalar << 8 | x->type.lanes);
  LLVMValueRef divisor = b, *known;
  if (!is_safe) {
    known = hd_emit_number(e, DIVISOR, type, b, NULL);
    if (!*known)
      *known = safe_divisor(e, x->type, b);
    divisor = *known;
  }
  known = hd_emit_number(e, QUOTIENT, type, a, divisor);
  if (!*known)
    *known = quotient(e, HD_EXPR_DIV, x->type, a, divisor);
  LLVMValueRef q = *known;
  if (x->kind == HD_EXPR_MOD)
    return LLVMBuildSub(B, a, LLVMBuildMul(B, q, divisor, ""), "");
  if (!hd_type_is_signed(x->type))
    return q;
  LLVMValueRef minus_one = hd_emit_int(LLVMTypeOf(b), ~UINT64_C(0));
  return hd_emit_select(e, LLVMBuildICmp(B, LLVMIntEQ, b, minus_one, ""),
                        LLVMBuildNeg(B, a, ""), q);
}

static LLVMValueRef divide(hd_emit_t *e, const hd_expr_t *x, LLVMValueRef a,
                           LLVMValueRef b) {
  if (!e->host)
    return divide_on_gpu(e, x, a, b);
  bool is_signed = hd_type_is_signed(x->type);
  LLVMTypeRef t = LLVMTypeOf(a);
  LLVMValueRef zero = hd_emit_int(t, 0), one = hd_emit_int(t, 1);
  LLVMValueRef is_zero = LLVMBuildICmp(B, LLVMIntEQ, b, zero, "");
  if (e->sanitize && !(LLVMIsAConstantInt(b) && !LLVMIsNull(b)))
    report_zero(e, x, is_zero, x->type.lanes);
  LLVMValueRef minus_one = NULL;
  LLVMValueRef divisor = hd_emit_select(e, is_zero, one, b);
  if (is_signed) { // The least integer by -1 wraps.
    minus_one =
        LLVMBuildICmp(B, LLVMIntEQ, b, hd_emit_int(t, ~UINT64_C(0)), "");
    divisor = hd_emit_select(e, minus_one, one, divisor);
  }
  LLVMValueRef r = quotient(e, (hd_expr_kind_t)x->kind, x->type, a, divisor);
  if (is_signed && x->kind == HD_EXPR_DIV)
    r = hd_emit_select(e, minus_one, LLVMBuildNeg(B, a, ""), r);
  return hd_emit_select(e, is_zero, zero, r);
}

// Of a zero and a minus zero the GPU takes min and max as if they were ordered;
// the host's instruction does not.
static LLVMValueRef float_min_max(hd_emit_t *e, bool is_min, LLVMValueRef a,
                                  LLVMValueRef b) {
  LLVMValueRef args[] = {a, b};
  LLVMTypeRef t = LLVMTypeOf(a);
  LLVMValueRef r =
      hd_emit_llvm(e, is_min ? "llvm.minnum" : "llvm.maxnum", t, args, 2);
  if (!e->host)
    return r;
  LLVMTypeRef lane =
      LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t;
  LLVMTypeRef bits = hd_emit_like(t, lane == e->f64 ? e->i64 : e->i32);
  LLVMValueRef x = LLVMBuildBitCast(B, a, bits, "");
  LLVMValueRef y = LLVMBuildBitCast(B, b, bits, "");
  LLVMValueRef same =
      is_min ? LLVMBuildOr(B, x, y, "") : LLVMBuildAnd(B, x, y, "");
  same = LLVMBuildBitCast(B, same, t, "");
  LLVMValueRef equal = LLVMBuildFCmp(B, LLVMRealOEQ, a, b, "");
  return LLVMBuildSelect(B, equal, same, r, "");
}

static LLVMValueRef float_binary(hd_emit_t *e, const hd_expr_t *x,
                                 hd_type_t type, LLVMValueRef a,
                                 LLVMValueRef b) {
  switch ((hd_expr_kind_t)x->kind) {
  case HD_EXPR_ADD:
    return LLVMBuildFAdd(B, a, b, "");
  case HD_EXPR_SUB:
    return LLVMBuildFSub(B, a, b, "");
  case HD_EXPR_MUL:
    return LLVMBuildFMul(B, a, b, "");
  case HD_EXPR_DIV:
    return LLVMBuildFDiv(B, a, b, "");
  case HD_EXPR_MIN:
  case HD_EXPR_MAX:
    return float_min_max(e, x->kind == HD_EXPR_MIN, a, b);
  default:
    hd_emit_error(e, x->loc, HD_E0508,
                  hd_expr_info((hd_expr_kind_t)x->kind)->spelling,
                  hd_type_name(type));
    return LLVMGetPoison(LLVMTypeOf(a));
  }
}

// What an operation is where one side is a constant that settles it; NULL:
// none does. Unrolled loops make many of these.
static LLVMValueRef settled(hd_expr_kind_t kind, LLVMValueRef a,
                            LLVMValueRef b) {
  bool zero_a = LLVMIsConstant(a) && LLVMIsNull(a);
  bool zero_b = LLVMIsConstant(b) && LLVMIsNull(b);
  bool one_a = LLVMIsAConstantInt(a) && LLVMConstIntGetZExtValue(a) == 1;
  bool one_b = LLVMIsAConstantInt(b) && LLVMConstIntGetZExtValue(b) == 1;
  if (kind == HD_EXPR_ADD || kind == HD_EXPR_BITOR || kind == HD_EXPR_BITXOR ||
      kind == HD_EXPR_OR)
    return zero_a ? b : zero_b ? a : NULL;
  if (kind == HD_EXPR_MUL)
    return zero_a || one_b ? a : zero_b || one_a ? b : NULL;
  if (kind == HD_EXPR_AND)
    return zero_a || one_b ? a : zero_b || one_a ? b : NULL;
  if (kind == HD_EXPR_BITAND)
    return zero_a ? a : zero_b ? b : NULL;
  bool keeps =
      kind == HD_EXPR_SUB || kind == HD_EXPR_SHL || kind == HD_EXPR_SHR;
  return (keeps && zero_b) || (kind == HD_EXPR_DIV && one_b) ? a : NULL;
}

static LLVMValueRef int_binary(hd_emit_t *e, const hd_expr_t *x, LLVMValueRef a,
                               LLVMValueRef b) {
  hd_expr_kind_t kind = (hd_expr_kind_t)x->kind;
  LLVMValueRef known = settled(kind, a, b);
  if (known)
    return known;
  switch (kind) {
  case HD_EXPR_ADD:
    return wrapping(e, x->type, LLVMAdd, a, b);
  case HD_EXPR_SUB:
    return wrapping(e, x->type, LLVMSub, a, b);
  case HD_EXPR_MUL:
    return wrapping(e, x->type, LLVMMul, a, b);
  case HD_EXPR_DIV:
  case HD_EXPR_MOD:
    if (hd_type_is_signed(x->type) && is_minus_one(b)) // The least one wraps.
      return kind == HD_EXPR_DIV ? LLVMBuildNeg(B, a, "")
                                 : hd_emit_int(LLVMTypeOf(a), 0);
    return divide(e, x, a, b);
  case HD_EXPR_SHL:
  case HD_EXPR_SHR:
    return shift(e, kind, x->type, a, b);
  case HD_EXPR_AND:
  case HD_EXPR_BITAND:
    return LLVMBuildAnd(B, a, b, "");
  case HD_EXPR_OR:
  case HD_EXPR_BITOR:
    return LLVMBuildOr(B, a, b, "");
  case HD_EXPR_BITXOR:
    return LLVMBuildXor(B, a, b, "");
  case HD_EXPR_MIN:
  case HD_EXPR_MAX:
    return int_min_max(e, kind == HD_EXPR_MIN, x->type, a, b);
  default:
    hd_emit_error(e, x->loc, HD_E0508, hd_expr_info(kind)->spelling,
                  hd_type_name(x->type));
    return LLVMGetPoison(LLVMTypeOf(a));
  }
}

static LLVMValueRef compare(hd_emit_t *e, const hd_expr_t *x, hd_type_t type,
                            LLVMValueRef a, LLVMValueRef b) {
  static const struct {
    LLVMIntPredicate is_signed, is_unsigned;
    LLVMRealPredicate is_float;
  } predicates[HD_EXPR_COUNT] = {
      [HD_EXPR_LT] = {LLVMIntSLT, LLVMIntULT, LLVMRealOLT},
      [HD_EXPR_LE] = {LLVMIntSLE, LLVMIntULE, LLVMRealOLE},
      [HD_EXPR_GT] = {LLVMIntSGT, LLVMIntUGT, LLVMRealOGT},
      [HD_EXPR_GE] = {LLVMIntSGE, LLVMIntUGE, LLVMRealOGE},
      [HD_EXPR_EQ] = {LLVMIntEQ, LLVMIntEQ, LLVMRealOEQ},
      [HD_EXPR_NE] = {LLVMIntNE, LLVMIntNE, LLVMRealUNE},
  };
  if (!hd_type_is_float(type))
    return LLVMBuildICmp(B,
                         hd_type_is_signed(type)
                             ? predicates[x->kind].is_signed
                             : predicates[x->kind].is_unsigned,
                         a, b, "");
  if (type.scalar != HD_TF32 && !is_native(e, type, (hd_expr_kind_t)x->kind)) {
    a = hd_emit_convert(e, a, type, f32_like(type));
    b = hd_emit_convert(e, b, type, f32_like(type));
  }
  return LLVMBuildFCmp(B, predicates[x->kind].is_float, a, b, "");
}

LLVMValueRef hd_emit_binary(hd_emit_t *e, const hd_expr_t *x, LLVMValueRef a,
                            LLVMValueRef b) {
  hd_type_t type = x->operands[0]->type;
  hd_expr_kind_t kind = (hd_expr_kind_t)x->kind;
  if (hd_expr_info(kind)->form == HD_FORM_COMPARE)
    return compare(e, x, type, a, b);
  if (!hd_type_is_float(type))
    return wrap(e, int_binary(e, x, a, b), type);
  LLVMValueRef difference = hd_emit_int_minus(e, x, a);
  if (difference)
    return difference;
  if (is_native(e, type, kind))
    return float_binary(e, x, type, a, b);
  hd_type_t wide = f32_like(type);
  a = hd_emit_convert(e, a, type, wide);
  b = hd_emit_convert(e, b, type, wide);
  return hd_emit_convert(e, float_binary(e, x, type, a, b), wide, type);
}

// Formats without arithmetic of their own are their bits: the sign is flipped,
// but for e8m0, which has none, and fnuz's zero.
static LLVMValueRef negate(hd_emit_t *e, hd_type_t type, LLVMValueRef a) {
  if (!hd_type_is_float(type))
    return wrap(e, wrapping(e, type, LLVMSub, LLVMConstNull(LLVMTypeOf(a)), a),
                type);
  if (type.scalar == HD_TF32 || type.scalar == HD_F16 ||
      is_native(e, type, HD_EXPR_NEG))
    return LLVMBuildFNeg(B, a, "");
  hd_type_t wide = f32_like(type);
  a = hd_emit_convert(e, a, type, wide);
  return hd_emit_convert(e, LLVMBuildFNeg(B, a, ""), wide, type);
}

LLVMValueRef hd_emit_unary(hd_emit_t *e, const hd_expr_t *x, LLVMValueRef a) {
  hd_type_t type = x->operands[0]->type;
  if (x->kind == HD_EXPR_NEG)
    return negate(e, type, a);
  return wrap(e, LLVMBuildNot(B, a, ""), type);
}
