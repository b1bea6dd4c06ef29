// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bits that are known of a value while it is being emitted: whether adding a
// constant to it carries into the sign, so that
//
//   (i64)(thread * 4 + 256)    is    (i64)(thread * 4) + 256
//
// whose constant goes into the instruction, and whose rest unrolled copies
// share. No pass can tell: which constants meet is known when loops have been
// unrolled.
//
// The rules are those of LLVM's KnownBits, for the operations that index
// arithmetic has.
#include "CodeGen/Emit.h"

typedef struct known {
  uint64_t zero, one; // Bits known to be so.
} known_t;

typedef struct search {
  hd_emit_t *e;
  unsigned left; // Values that may still be looked at.
} search_t;

static const known_t nothing;

static known_t constant(uint64_t value) { return (known_t){~value, value}; }

static known_t sum(known_t a, known_t b) {
  uint64_t most = ~a.zero + ~b.zero, least = a.one + b.one;
  uint64_t carry_zero = ~(most ^ a.zero ^ b.zero);
  uint64_t carry_one = least ^ a.one ^ b.one;
  uint64_t known =
      (a.zero | a.one) & (b.zero | b.one) & (carry_zero | carry_one);
  return (known_t){~most & known, least & known};
}

static known_t shifted_up(known_t a, unsigned bits) {
  return (known_t){a.zero << bits | ((UINT64_C(1) << bits) - 1), a.one << bits};
}

// As the sum of the multiples by the constant's bits.
static known_t multiple(known_t a, uint64_t factor) {
  known_t result = constant(0);
  for (unsigned bit = 0; bit < 64; bit++)
    if (factor >> bit & 1)
      result = sum(result, shifted_up(a, bit));
  return result;
}

// Values are taken as 64 bits, of which those past the type's width count as
// zero.
static known_t narrow(known_t a, unsigned width) {
  if (width >= 64)
    return a;
  uint64_t past = ~UINT64_C(0) << width;
  return (known_t){a.zero | past, a.one & ~past};
}

static unsigned width_of(LLVMValueRef value) {
  LLVMTypeRef type = LLVMTypeOf(value);
  return LLVMGetTypeKind(type) == LLVMIntegerTypeKind
             ? LLVMGetIntTypeWidth(type)
             : 0;
}

// What range metadata says: of special registers, and of a thread's number.
static known_t of_range(search_t *s, LLVMValueRef value) {
  unsigned kind = LLVMGetMDKindIDInContext(s->e->context, "range", 5);
  LLVMValueRef range = LLVMGetMetadata(value, kind), bounds[2];
  if (!range || LLVMGetMDNodeNumOperands(range) != 2)
    return nothing;
  LLVMGetMDNodeOperands(range, bounds);
  uint64_t most = LLVMConstIntGetZExtValue(bounds[1]) - 1;
  known_t result = nothing;
  for (uint64_t bit = UINT64_C(1) << 63; bit > most; bit >>= 1)
    result.zero |= bit;
  return result;
}

static known_t known_of(search_t *s, LLVMValueRef value);

static known_t of_shift(LLVMValueRef value, LLVMOpcode opcode, known_t a,
                        unsigned width) {
  LLVMValueRef amount = LLVMGetOperand(value, 1);
  if (!LLVMIsAConstantInt(amount))
    return nothing;
  uint64_t bits = LLVMConstIntGetZExtValue(amount);
  if (bits >= width)
    return nothing;
  if (opcode == LLVMShl)
    return shifted_up(a, (unsigned)bits);
  uint64_t filled = bits ? ~UINT64_C(0) << (width - bits) : 0;
  known_t result = {a.zero >> bits, a.one >> bits};
  if (opcode == LLVMLShr || a.zero >> (width - 1) & 1)
    return (known_t){result.zero | filled, result.one & ~filled};
  return (known_t){result.zero & ~filled, result.one & ~filled};
}

static known_t of_binary(search_t *s, LLVMValueRef value, LLVMOpcode opcode,
                         unsigned width) {
  known_t a = known_of(s, LLVMGetOperand(value, 0));
  known_t b = known_of(s, LLVMGetOperand(value, 1));
  switch (opcode) {
  case LLVMAdd:
    return sum(a, b);
  case LLVMMul:
    return LLVMIsAConstantInt(LLVMGetOperand(value, 1)) ? multiple(a, b.one)
                                                        : nothing;
  case LLVMAnd:
    return (known_t){a.zero | b.zero, a.one & b.one};
  case LLVMOr:
    return (known_t){a.zero & b.zero, a.one | b.one};
  case LLVMXor:
    return (known_t){(a.zero & b.zero) | (a.one & b.one),
                     (a.zero & b.one) | (a.one & b.zero)};
  default:
    return of_shift(value, opcode, a, width);
  }
}

static known_t of_instruction(search_t *s, LLVMValueRef value, unsigned width) {
  LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
  switch (opcode) {
  case LLVMCall:
  case LLVMLoad:
    return of_range(s, value);
  case LLVMZExt:
  case LLVMTrunc:
    return known_of(s, LLVMGetOperand(value, 0));
  case LLVMSExt: {
    LLVMValueRef from = LLVMGetOperand(value, 0);
    known_t a = known_of(s, from);
    return a.zero >> (width_of(from) - 1) & 1 ? a : nothing;
  }
  case LLVMAdd:
  case LLVMMul:
  case LLVMAnd:
  case LLVMOr:
  case LLVMXor:
  case LLVMShl:
  case LLVMLShr:
  case LLVMAShr:
    return of_binary(s, value, opcode, width);
  default:
    return nothing;
  }
}

static known_t known_of(search_t *s, LLVMValueRef value) {
  unsigned width = width_of(value);
  if (!width || width > 64 || s->left == 0)
    return nothing;
  s->left--;
  if (LLVMIsAConstantInt(value))
    return narrow(constant(LLVMConstIntGetZExtValue(value)), width);
  if (!LLVMIsAInstruction(value))
    return narrow(nothing, width);
  return narrow(of_instruction(s, value, width), width);
}

bool hd_emit_is_exact_sum(hd_emit_t *e, LLVMValueRef value, int64_t constant,
                          bool is_signed) {
  enum { MOST = 64 };
  search_t s = {e, MOST};
  unsigned width = width_of(value);
  if (width == 0 || width > 64)
    return false;
  uint64_t mask = ~UINT64_C(0) >> (64 - width);
  uint64_t most_positive = is_signed ? mask >> 1 : mask;
  known_t known = known_of(&s, value);
  uint64_t added = (uint64_t)constant & mask;
  if (constant < 0 || added > most_positive)
    return false;
  // No carry, or the most that it can be still fits.
  return (added & ~known.zero) == 0 ||
         (~known.zero <= most_positive && added <= most_positive - ~known.zero);
}

void hd_emit_set_range(hd_emit_t *e, LLVMValueRef value, int64_t least,
                       int64_t greatest) {
  LLVMTypeRef type = LLVMTypeOf(value);
  LLVMMetadataRef range[] = {
      LLVMValueAsMetadata(LLVMConstInt(type, (uint64_t)least, false)),
      LLVMValueAsMetadata(LLVMConstInt(type, (uint64_t)greatest + 1, false))};
  LLVMMetadataRef node = LLVMMDNodeInContext2(e->context, range, 2);
  LLVMSetMetadata(value, LLVMGetMDKindIDInContext(e->context, "range", 5),
                  LLVMMetadataAsValue(e->context, node));
}
