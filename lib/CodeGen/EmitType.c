// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types, constants and the small vocabulary that the emitter is written in.
#include "CodeGen/Emit.h"

#include <string.h>

static LLVMTypeRef lane_type(hd_emit_t *e, hd_scalar_t scalar) {
  switch (hd_scalar_class(scalar)) {
  case HD_CLASS_VOID:
    return e->void_;
  case HD_CLASS_BOOL:
    return e->i1;
  case HD_CLASS_FLOAT:
    if (scalar == HD_F32 || scalar == HD_TF32)
      return e->f32;
    if (scalar == HD_F64)
      return e->f64;
    if (scalar == HD_F16)
      return e->half;
    break;
  case HD_CLASS_SIGNED:
  case HD_CLASS_UNSIGNED:
  case HD_CLASS_OPAQUE:
    break;
  }
  unsigned bits = hd_scalar_bits(scalar);
  return LLVMIntTypeInContext(e->context, bits < 8 ? 8 : bits);
}

LLVMTypeRef hd_emit_type(hd_emit_t *e, hd_type_t type) {
  LLVMTypeRef lane = lane_type(e, (hd_scalar_t)type.scalar);
  return type.lanes > 1 ? LLVMVectorType(lane, type.lanes) : lane;
}

LLVMTypeRef hd_emit_memory_type(hd_emit_t *e, hd_type_t element) {
  return hd_type_is_bool(element) ? e->i8
                                  : lane_type(e, (hd_scalar_t)element.scalar);
}

unsigned hd_emit_register_bits(hd_type_t element) {
  unsigned bits = hd_scalar_bits((hd_scalar_t)element.scalar);
  return bits < 8 ? 8 : bits;
}

LLVMValueRef hd_emit_poison(hd_emit_t *e, hd_type_t type) {
  return type.scalar == HD_VOID ? NULL : LLVMGetPoison(hd_emit_type(e, type));
}

LLVMValueRef hd_emit_zero(hd_emit_t *e, hd_type_t type) {
  return LLVMConstNull(hd_emit_type(e, type));
}

static LLVMValueRef splat_constant(LLVMTypeRef vector, LLVMValueRef value) {
  LLVMValueRef lanes[HD_MAX_LANES];
  unsigned count = LLVMGetVectorSize(vector);
  for (unsigned i = 0; i < count; i++)
    lanes[i] = value;
  return LLVMConstVector(lanes, count);
}

static bool is_vector(LLVMTypeRef type) {
  return LLVMGetTypeKind(type) == LLVMVectorTypeKind;
}

LLVMValueRef hd_emit_int(LLVMTypeRef type, uint64_t value) {
  if (is_vector(type))
    return splat_constant(type, hd_emit_int(LLVMGetElementType(type), value));
  return LLVMConstInt(type, value, true);
}

LLVMValueRef hd_emit_real(LLVMTypeRef type, double value) {
  if (is_vector(type))
    return splat_constant(type, hd_emit_real(LLVMGetElementType(type), value));
  return LLVMConstReal(type, value);
}

LLVMTypeRef hd_emit_like(LLVMTypeRef like, LLVMTypeRef element) {
  return is_vector(like) ? LLVMVectorType(element, LLVMGetVectorSize(like))
                         : element;
}

LLVMValueRef hd_emit_splat(hd_emit_t *e, LLVMValueRef scalar, unsigned lanes) {
  if (lanes == 1)
    return scalar;
  LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(scalar), lanes);
  if (LLVMIsConstant(scalar))
    return splat_constant(type, scalar);
  LLVMValueRef vector = LLVMGetPoison(type);
  for (unsigned i = 0; i < lanes; i++)
    vector = LLVMBuildInsertElement(e->builder, vector, scalar,
                                    LLVMConstInt(e->i32, i, false), "");
  return vector;
}

LLVMValueRef hd_emit_lane(hd_emit_t *e, LLVMValueRef value, unsigned lane) {
  if (!is_vector(LLVMTypeOf(value)))
    return value;
  return LLVMBuildExtractElement(e->builder, value,
                                 LLVMConstInt(e->i32, lane, false), "");
}

static bool is_packed_differently(hd_type_t type) {
  return hd_type_is_bool(type) || hd_scalar_bits((hd_scalar_t)type.scalar) < 8;
}

LLVMValueRef hd_emit_to_bits(hd_emit_t *e, LLVMValueRef value, hd_type_t type) {
  unsigned bits = hd_scalar_bits((hd_scalar_t)type.scalar);
  LLVMTypeRef all = LLVMIntTypeInContext(e->context, bits * type.lanes);
  if (!is_packed_differently(type))
    return hd_emit_cast(e, value, all);
  LLVMValueRef sum = LLVMConstNull(all);
  for (unsigned i = 0; i < type.lanes; i++) {
    LLVMValueRef lane = hd_emit_lane(e, value, i);
    // Away with the sign's copies, then up to the lane's place. Integers of odd
    // widths are left out: NVPTX takes them through memory.
    if (!hd_type_is_bool(type))
      lane = LLVMBuildAnd(e->builder, lane,
                          LLVMConstInt(e->i8, (1u << bits) - 1, false), "");
    lane = LLVMBuildIntCast2(e->builder, lane, all, false, "");
    lane =
        LLVMBuildShl(e->builder, lane, LLVMConstInt(all, i * bits, false), "");
    sum = LLVMBuildOr(e->builder, sum, lane, "");
  }
  return sum;
}

// The low bits of a byte, by their sign.
static LLVMValueRef extend_lane(hd_emit_t *e, LLVMValueRef lane, unsigned bits,
                                bool is_signed) {
  if (!is_signed)
    return LLVMBuildAnd(e->builder, lane,
                        LLVMConstInt(e->i8, (1u << bits) - 1, false), "");
  LLVMValueRef unused = LLVMConstInt(e->i8, 8 - bits, false);
  lane = LLVMBuildShl(e->builder, lane, unused, "");
  return LLVMBuildAShr(e->builder, lane, unused, "");
}

LLVMValueRef hd_emit_from_bits(hd_emit_t *e, LLVMValueRef bits_value,
                               hd_type_t type) {
  unsigned bits = hd_scalar_bits((hd_scalar_t)type.scalar);
  LLVMTypeRef to = hd_emit_type(e, type);
  if (!is_packed_differently(type))
    return hd_emit_cast(e, bits_value, to);
  LLVMValueRef vector = LLVMGetPoison(to);
  for (unsigned i = 0; i < type.lanes; i++) {
    LLVMValueRef lane = LLVMBuildLShr(
        e->builder, bits_value,
        LLVMConstInt(LLVMTypeOf(bits_value), i * bits, false), "");
    lane = LLVMBuildIntCast2(e->builder, lane, e->i8, false, "");
    if (hd_type_is_bool(type))
      lane =
          LLVMBuildICmp(e->builder, LLVMIntNE, lane, LLVMConstNull(e->i8), "");
    else
      lane = extend_lane(e, lane, bits, hd_type_is_signed(type));
    if (type.lanes == 1)
      return lane;
    vector = LLVMBuildInsertElement(e->builder, vector, lane,
                                    LLVMConstInt(e->i32, i, false), "");
  }
  return vector;
}

LLVMValueRef hd_emit_alloca(hd_emit_t *e, LLVMTypeRef type, int64_t count,
                            unsigned align, const char *name) {
  LLVMTypeRef array = count == 1 ? type : LLVMArrayType2(type, (uint64_t)count);
  LLVMValueRef slot = LLVMBuildAlloca(e->entry_builder, array, name);
  LLVMSetAlignment(slot, align);
  return slot;
}

LLVMValueRef hd_emit_select(hd_emit_t *e, LLVMValueRef condition,
                            LLVMValueRef a, LLVMValueRef b) {
  if (a == b)
    return a;
  if (LLVMIsAConstantInt(condition))
    return LLVMIsNull(condition) ? b : a;
  return LLVMBuildSelect(e->builder, condition, a, b, "");
}

LLVMValueRef hd_emit_llvm(hd_emit_t *e, const char *name, LLVMTypeRef overload,
                          LLVMValueRef *args, unsigned num_args) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  if (!id) { // This LLVM has none of that name.
    hd_emit_error(e, e->kernel->loc, HD_E0504, name);
    return LLVMGetPoison(LLVMTypeOf(args[0]));
  }
  size_t num_types = overload ? 1 : 0;
  LLVMValueRef function =
      LLVMGetIntrinsicDeclaration(e->llvm, id, &overload, num_types);
  LLVMTypeRef type = LLVMIntrinsicGetType(e->context, id, &overload, num_types);
  return LLVMBuildCall2(e->builder, type, function, args, num_args, "");
}

LLVMValueRef hd_emit_c_call(hd_emit_t *e, const char *name, LLVMTypeRef result,
                            LLVMValueRef *args, unsigned num_args) {
  LLVMTypeRef types[HD_INTRINSIC_MAX_PARAMS];
  for (unsigned i = 0; i < num_args; i++)
    types[i] = LLVMTypeOf(args[i]);
  LLVMTypeRef type = LLVMFunctionType(result, types, num_args, false);
  LLVMValueRef function = LLVMGetNamedFunction(e->llvm, name);
  if (!function)
    function = LLVMAddFunction(e->llvm, name, type);
  return LLVMBuildCall2(e->builder, type, function, args, num_args, "");
}
