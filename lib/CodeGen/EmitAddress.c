// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Addresses on the GPU: a pointer that accesses share and a displacement that
// is part of the instruction, [pointer + displacement]. Those of shared memory
// are numbers of 32 bits until they are accessed. (LLVM's pointers into it have
// 64, unless an option says otherwise for the whole process, which is not
// ours.)
#include "CodeGen/EmitAccess.h"

#define B e->builder

static LLVMValueRef widened(hd_emit_t *e, LLVMValueRef value, LLVMTypeRef type,
                            bool is_signed) {
  if (LLVMTypeOf(value) == type)
    return value;
  LLVMValueRef *known =
      hd_emit_number(e, HD_EXPR_TENSOR, is_signed, value, type);
  if (!*known)
    *known = LLVMBuildIntCast2(B, value, type, is_signed, "");
  return *known;
}

static unsigned index_bits(const hd_expr_t *x) {
  return hd_type_is_integer(x->type)
             ? hd_scalar_bits((hd_scalar_t)x->type.scalar)
             : 0;
}

static bool is_widening(const hd_expr_t *cast) {
  return index_bits(cast->operands[0]) == 32 && index_bits(cast) == 64;
}

// The same of a value of 32 bits that is widened: its constant is taken out
// where the sum does not wrap before. A whole offset lies in its tensor's
// storage, or nothing is accessed: of 0 <= value < 2^31 a constant that is not
// negative leaves value - constant, which an i32 holds.
static LLVMValueRef widened_without_rest(hd_emit_t *e, const hd_expr_t *x,
                                         bool whole, uint64_t *rest) {
  bool is_signed = hd_type_is_signed(x->type);
  LLVMValueRef value = hd_emit_expr(e, x);
  if (LLVMIsAConstantInt(value)) {
    *rest += is_signed ? (uint64_t)LLVMConstIntGetSExtValue(value)
                       : LLVMConstIntGetZExtValue(value);
    return NULL;
  }
  uint64_t constant = 0;
  LLVMValueRef base = hd_emit_split(value, &constant);
  bool exact = whole && is_signed && (int64_t)constant > 0 &&
               (int64_t)constant <= INT32_MAX;
  if (constant &&
      (exact || hd_emit_is_exact_sum(e, base, (int64_t)constant, is_signed))) {
    *rest += constant;
    value = base;
  }
  return widened(e, value, e->i64, is_signed);
}

// A sum without its constant terms, which are added to *rest, modulo 2^64; NULL
// where there is nothing else.
static LLVMValueRef without_rest(hd_emit_t *e, const hd_expr_t *x,
                                 uint64_t *rest) {
  if (x->kind == HD_EXPR_ADD) {
    LLVMValueRef a = without_rest(e, x->operands[0], rest);
    LLVMValueRef b = without_rest(e, x->operands[1], rest);
    return a && b ? hd_emit_operation(e, x, a, b) : a ? a : b;
  }
  int64_t factor;
  if (x->kind == HD_EXPR_MUL && hd_expr_fold_int(x->operands[1], &factor)) {
    uint64_t inner = 0;
    LLVMValueRef a = without_rest(e, x->operands[0], &inner);
    *rest += inner * (uint64_t)factor;
    return a ? hd_emit_operation(e, x, a, hd_emit_expr(e, x->operands[1]))
             : NULL;
  }
  if (x->kind == HD_EXPR_CAST && is_widening(x))
    return widened_without_rest(e, x->operands[0], false, rest);
  LLVMValueRef value = hd_emit_expr(e, x);
  if (!LLVMIsAConstantInt(value))
    return hd_emit_split(value, rest);
  *rest += (uint64_t)LLVMConstIntGetSExtValue(value);
  return NULL;
}

// Of shared memory: an i32, which wraps as the displacement does.
static void add_shared(hd_emit_t *e, LLVMValueRef offset, unsigned bits,
                       uint64_t bytes, hd_place_t *place) {
  place->displacement = (int32_t)(uint32_t)bytes;
  if (!offset)
    return;
  LLVMValueRef *known =
      hd_emit_number(e, HD_EXPR_REF, bits, place->pointer, offset);
  if (!*known) {
    unsigned log2 = (unsigned)__builtin_ctz(bits / 8);
    offset = LLVMBuildShl(B, offset, LLVMConstInt(e->i32, log2, false), "");
    *known = LLVMBuildAdd(B, place->pointer, offset, "");
  }
  place->pointer = *known;
}

// Of elements of less than a byte: the byte that one is in, of an offset and a
// rest in elements, and its first bit.
static LLVMValueRef byte_of(hd_emit_t *e, LLVMValueRef offset, LLVMTypeRef type,
                            unsigned bits, uint64_t *rest, hd_place_t *place) {
  uint64_t each = 8 / bits, more = *rest % each;
  *rest = (uint64_t)((int64_t)(*rest - more) / (int64_t)each);
  if (more || !offset) {
    LLVMValueRef constant = LLVMConstInt(type, more, false);
    offset = offset ? LLVMBuildAdd(B, offset, constant, "") : constant;
  }
  LLVMValueRef bit =
      LLVMBuildAnd(B, offset, LLVMConstInt(type, each - 1, false), "");
  place->bit = LLVMBuildMul(B, LLVMBuildTrunc(B, bit, e->i8, ""),
                            LLVMConstInt(e->i8, bits, false), "");
  LLVMValueRef log2 =
      LLVMConstInt(type, (unsigned)__builtin_ctz(8 / bits), false);
  LLVMValueRef byte = LLVMBuildAShr(B, offset, log2, "");
  return LLVMIsAConstantInt(byte) && LLVMIsNull(byte) ? NULL : byte;
}

// On the GPU an address is a pointer that accesses share and a displacement
// that is part of the instruction. Arithmetic of an index may wrap, so only
// where the address wraps with it can constants be taken out.
void hd_emit_address(hd_emit_t *e, const hd_tensor_t *tensor,
                     const hd_expr_t *x, hd_place_t *place) {
  bool is_shared = tensor->scope == HD_SCOPE_SHARED;
  bool is_signed = hd_type_is_signed(x->type);
  LLVMTypeRef type = is_shared ? e->i32 : e->i64;
  unsigned bits = hd_scalar_bits((hd_scalar_t)tensor->element.scalar);
  uint64_t rest = 0;
  LLVMValueRef offset =
      index_bits(x) >= LLVMGetIntTypeWidth(type) ? without_rest(e, x, &rest)
      : index_bits(x) == 32 ? widened_without_rest(e, x, true, &rest)
                            : hd_emit_expr(e, x);
  if (offset)
    offset = widened(e, offset, type, is_signed);
  LLVMTypeRef element = hd_emit_memory_type(e, tensor->element);
  if (bits < 8) {
    offset = byte_of(e, offset, type, bits, &rest, place);
    bits = 8;
    element = e->i8;
  }
  int64_t bytes = (int64_t)(rest * (bits / 8));
  place->pointer = place->binding->value;
  if (is_shared) {
    add_shared(e, offset, bits, (uint64_t)bytes, place);
    return;
  }
  if (bytes != (int32_t)bytes) { // An instruction has no room for it.
    LLVMValueRef index = LLVMConstInt(e->i64, (uint64_t)bytes, true);
    place->pointer = LLVMBuildGEP2(B, e->i8, place->pointer, &index, 1, "");
    bytes = 0;
  }
  place->displacement = bytes;
  if (!offset)
    return;
  LLVMValueRef narrow =
      LLVMIsAInstruction(offset) && bits > 8 &&
              (LLVMIsASExtInst(offset) || LLVMIsAZExtInst(offset))
          ? LLVMGetOperand(offset, 0)
          : NULL;
  if (narrow && LLVMTypeOf(narrow) == e->i32) {
    LLVMValueRef size = LLVMConstInt(e->i32, bits / 8, false);
    offset = hd_emit_multiply_wide(e, narrow, size, LLVMIsASExtInst(offset));
    element = e->i8;
  }
  LLVMValueRef *known =
      hd_emit_number(e, HD_EXPR_REF, bits, place->pointer, offset);
  if (!*known)
    *known = LLVMBuildGEP2(B, element, place->pointer, &offset, 1, "");
  place->pointer = *known;
}

// An address of shared memory is less than 2^31; before its displacement it may
// be negative.
LLVMValueRef hd_emit_displaced(hd_emit_t *e, const hd_place_t *place) {
  LLVMValueRef pointer = place->pointer;
  if (LLVMGetTypeKind(LLVMTypeOf(pointer)) != LLVMPointerTypeKind) {
    LLVMTypeRef type = LLVMPointerTypeInContext(e->context, HD_EMIT_SHARED);
    pointer = LLVMBuildIntToPtr(B, widened(e, pointer, e->i64, true), type, "");
  }
  if (!place->displacement)
    return pointer;
  LLVMValueRef index =
      LLVMConstInt(e->i32, (uint64_t)place->displacement, true);
  return LLVMBuildGEP2(B, e->i8, pointer, &index, 1, "");
}
