// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integers of 4 and 8 bits to f16 on the GPU, two lanes at a time, and bytes to
// f32, without instructions that convert, of which a multiprocessor does few.
//
// In the bits of 1024.0, 0x6400, the lowest is worth 1: with an integer x of up
// to 10 bits in their place they are those of 1024 + x. In 64.0, 0x5400, bit 4
// is worth 1. So an integer is put there, and 1024, or 64, is subtracted, which
// is exact. A signed one has its sign bit inverted, which adds 8 or 128 to it,
// and so much more is subtracted.
//
//   8 bits   prmt puts bytes b and c beside two of 0x64:  0x64cc64bb
//   4 bits   prmt puts the byte of both, hi and lo, in two places; of one all
//            but lo is masked, of the other all but hi:   0x54h0640l
//   f32      prmt puts a byte below 0x4b0000, which is 2^23: 0x4b0000bb
#include "CodeGen/Emit.h"

#include <math.h>

#define B e->builder

// Floats from which what they are more than the integers is to be subtracted.
typedef struct raised {
  LLVMValueRef value;
  hd_type_t from; // The integers.
} raised_t;

static LLVMValueRef permuted(hd_emit_t *e, LLVMValueRef low, uint32_t high,
                             uint32_t selector) {
  LLVMValueRef args[] = {low, hd_emit_int(e->i32, high),
                         hd_emit_int(e->i32, selector)};
  return hd_emit_llvm(e, "llvm.nvvm.prmt", NULL, args, 3);
}

// (both & mask) ^ others, as one instruction: LLVM and ptxas make two of it.
static LLVMValueRef masked(hd_emit_t *e, LLVMValueRef both, uint32_t mask,
                           uint32_t others) {
  LLVMValueRef args[] = {both, hd_emit_int(e->i32, mask),
                         hd_emit_int(e->i32, others)};
  return hd_emit_ptx(e, "lop3.b32 $0, $1, $2, $3, 0x6a;", "=r,r,r,r", e->i32,
                     args, 3, false);
}

// The bits of two lanes, `pair` of a word.
static LLVMValueRef nibbles(hd_emit_t *e, LLVMValueRef word, unsigned pair,
                            bool is_signed) {
  LLVMValueRef both = permuted(e, word, 0, pair * 0x1111);
  return masked(e, both, 0x00f0000f,
                is_signed ? 0x54006400 ^ 0x00800008 : 0x54006400);
}

static LLVMValueRef octets(hd_emit_t *e, LLVMValueRef word, unsigned pair,
                           bool is_signed) {
  if (is_signed)
    word = LLVMBuildXor(B, word, hd_emit_int(e->i32, 0x80808080), "");
  return permuted(e, word, 0x64646464, pair ? 0x4342 : 0x4140);
}

// What lanes with their offset are more than the integers, and `more`.
static LLVMValueRef offsets(hd_emit_t *e, hd_type_t of, unsigned bits,
                            bool is_signed, double more) {
  LLVMValueRef lanes[HD_MAX_LANES];
  double half = is_signed ? ldexp(1, (int)bits - 1) : 0;
  for (unsigned i = 0; i < of.lanes; i++)
    lanes[i] =
        LLVMConstReal(e->half, (bits == 4 && i % 2 ? 64 : 1024) + half + more);
  return LLVMConstVector(lanes, of.lanes);
}

LLVMValueRef hd_emit_split_bytes(hd_emit_t *e, LLVMValueRef word) {
  LLVMValueRef high = LLVMBuildZExt(B, word, e->i32, "");
  LLVMValueRef lanes[] = {word, permuted(e, high, 0, 0x4441)};
  LLVMValueRef pair = LLVMGetPoison(LLVMVectorType(e->i8, 2));
  for (unsigned i = 0; i < 2; i++)
    pair =
        LLVMBuildInsertElement(B, pair, LLVMBuildTrunc(B, lanes[i], e->i8, ""),
                               LLVMConstInt(e->i32, i, false), "");
  return pair;
}

// The lanes as words of 32 bits, packed as in memory, or in the low bits of
// one; NULL: not at hand.
static LLVMValueRef words_of(hd_emit_t *e, LLVMValueRef value, hd_type_t from,
                             unsigned all) {
  LLVMValueRef bits = value;
  // LLVM takes two computed bytes to a word through local memory.
  if (hd_scalar_bits((hd_scalar_t)from.scalar) < 8 || all < 32)
    bits = hd_ptr_map_find(&e->packed, value);
  if (!bits)
    return NULL;
  if (all > 32)
    return LLVMBuildBitCast(B, bits, LLVMVectorType(e->i32, all / 32), "");
  LLVMTypeRef as = LLVMIntTypeInContext(e->context, all);
  return LLVMBuildZExt(B, hd_emit_cast(e, bits, as), e->i32, "");
}

LLVMValueRef hd_emit_int_to_f16(hd_emit_t *e, LLVMValueRef value,
                                hd_type_t from) {
  unsigned bits = hd_scalar_bits((hd_scalar_t)from.scalar);
  bool is_signed = hd_type_is_signed(from);
  unsigned all = bits * from.lanes;
  if (e->host || !e->native_f16 || (bits != 4 && bits != 8) || from.lanes < 2 ||
      (all % 32 != 0 && all != 16 && all != 8) || LLVMIsConstant(value))
    return NULL;
  LLVMValueRef words = words_of(e, value, from, all);
  if (!words)
    return NULL;
  LLVMValueRef raised = LLVMGetPoison(LLVMVectorType(e->half, from.lanes));
  for (unsigned i = 0; i < from.lanes; i += 2) {
    LLVMValueRef word = hd_emit_lane(e, words, i * bits / 32);
    unsigned pair = i % (32 / bits) / 2;
    LLVMValueRef two = bits == 4 ? nibbles(e, word, pair, is_signed)
                                 : octets(e, word, pair, is_signed);
    two = LLVMBuildBitCast(B, two, LLVMVectorType(e->half, 2), "");
    for (unsigned k = 0; k < 2; k++)
      raised = LLVMBuildInsertElement(B, raised, hd_emit_lane(e, two, k),
                                      LLVMConstInt(e->i32, i + k, false), "");
  }
  LLVMValueRef lowered =
      LLVMBuildFSub(B, raised, offsets(e, from, bits, is_signed, 0), "");
  raised_t *kept = HD_ARENA_NEW(&e->arena, raised_t);
  *kept = (raised_t){raised, from};
  hd_ptr_map_set(&e->arena, &e->raised, lowered, kept);
  return lowered;
}

// --- Bytes ---

// Where a byte is.
typedef struct byte {
  LLVMValueRef word; // Of 16 or 32 bits.
  unsigned at;
} byte_t;

LLVMValueRef hd_emit_note_byte(hd_emit_t *e, LLVMValueRef byte,
                               LLVMValueRef word, unsigned at) {
  byte_t *note = HD_ARENA_NEW(&e->arena, byte_t);
  *note = (byte_t){word, at};
  hd_ptr_map_set(&e->arena, &e->bytes, byte, note);
  return byte;
}

LLVMValueRef hd_emit_byte_lane(hd_emit_t *e, LLVMValueRef value,
                               unsigned lane) {
  LLVMValueRef word = hd_ptr_map_find(&e->packed, value);
  LLVMValueRef byte = hd_emit_lane(e, value, lane);
  LLVMTypeRef type = word ? LLVMTypeOf(word) : NULL;
  return type && (type == e->i16 || type == e->i32) && LLVMTypeOf(byte) == e->i8
             ? hd_emit_note_byte(e, byte, word, lane)
             : byte;
}

static LLVMValueRef as_i32(hd_emit_t *e, LLVMValueRef word) {
  return LLVMTypeOf(word) == e->i32 ? word : LLVMBuildZExt(B, word, e->i32, "");
}

LLVMValueRef hd_emit_word_of(hd_emit_t *e, const LLVMValueRef *bytes) {
  const byte_t *notes[4];
  for (unsigned i = 0; i < 4; i++)
    if (!(notes[i] = hd_ptr_map_find(&e->bytes, bytes[i])))
      return NULL;
  unsigned each = LLVMTypeOf(notes[0]->word) == e->i32 ? 4 : 2;
  for (unsigned i = 0; i < 4; i++)
    if (notes[i]->word != notes[i - i % each]->word ||
        notes[i]->at != i % each ||
        LLVMTypeOf(notes[i]->word) != LLVMTypeOf(notes[0]->word))
      return NULL;
  if (each == 4)
    return notes[0]->word;
  LLVMValueRef high = as_i32(e, notes[2]->word);
  high = LLVMBuildShl(B, high, hd_emit_int(e->i32, 16), "");
  return LLVMBuildOr(B, as_i32(e, notes[0]->word), high, "");
}

// What a byte in the place of 2^23's lowest bits is more than the byte.
static double above(hd_type_t from) {
  return hd_type_is_signed(from) ? 0x1p23 + 128 : 0x1p23;
}

static LLVMValueRef widened(hd_emit_t *e, LLVMValueRef word, unsigned at,
                            hd_type_t from) {
  word = as_i32(e, word);
  if (hd_type_is_signed(from))
    word = LLVMBuildXor(B, word, hd_emit_int(e->i32, 0x80808080), "");
  word = permuted(e, word, 0x4b000000, 0x7440 | at);
  return LLVMBuildBitCast(B, word, e->f32, "");
}

LLVMValueRef hd_emit_byte_to_f32(hd_emit_t *e, LLVMValueRef value,
                                 hd_type_t from) {
  const byte_t *byte = hd_ptr_map_find(&e->bytes, value);
  if (e->host || !byte || hd_type_bits(from) != 8)
    return NULL;
  LLVMValueRef raised = widened(e, byte->word, byte->at, from);
  LLVMValueRef lowered =
      LLVMBuildFSub(B, raised, LLVMConstReal(e->f32, above(from)), "");
  raised_t *kept = HD_ARENA_NEW(&e->arena, raised_t);
  *kept = (raised_t){raised, from};
  hd_ptr_map_set(&e->arena, &e->raised, lowered, kept);
  return lowered;
}

// A difference of one byte, and an integer so small that f32 has it, too.
static LLVMValueRef byte_minus(hd_emit_t *e, const raised_t *raised,
                               const hd_expr_t *b) {
  enum { MOST = 1 << 20 };
  if (b->kind != HD_EXPR_CONST || !(fabs(b->u.f) <= MOST) ||
      b->u.f != nearbyint(b->u.f))
    return NULL;
  return LLVMBuildFSub(B, raised->value,
                       LLVMConstReal(e->f32, above(raised->from) + b->u.f), "");
}

LLVMValueRef hd_emit_int_minus(hd_emit_t *e, const hd_expr_t *x,
                               LLVMValueRef a) {
  enum { MOST = 512 };
  const raised_t *raised = hd_ptr_map_get(&e->raised, a);
  const hd_expr_t *b = x->operands[1];
  if (raised && x->kind == HD_EXPR_SUB && raised->from.lanes == 1)
    return byte_minus(e, raised, b);
  if (!raised || x->kind != HD_EXPR_SUB || b->kind != HD_EXPR_VECTOR ||
      b->num_operands != 1 || b->operands[0]->kind != HD_EXPR_CONST)
    return NULL;
  double less = b->operands[0]->u.f;
  if (!(fabs(less) <= MOST) || less != nearbyint(less))
    return NULL;
  hd_type_t from = raised->from;
  return LLVMBuildFSub(B, raised->value,
                       offsets(e, from,
                               hd_scalar_bits((hd_scalar_t)from.scalar),
                               hd_type_is_signed(from), less),
                       "");
}
