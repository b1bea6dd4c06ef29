// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Under --sanitize: an index once more, in 64 bits, from what its i32
// arithmetic began with,
//
//   %i = add i32 (mul i32 %block, 65536), %thread
//   %exact = add i64 (mul i64 (sext %block), 65536), (sext %thread)
//
// through names and mutable scalars (registers keep both), but not through
// other memory. Where that is another number, the arithmetic wrapped; a sum
// that wraps and a difference that wraps back give the same one, and are right.
// Where ranges say that it cannot, nothing is emitted.
#include "CodeGen/EmitAccess.h"

#include <string.h>

#define B e->builder

#define MARK "hidet.wraps"

static LLVMValueRef extended(hd_emit_t *e, LLVMValueRef constant) {
  return LLVMConstInt(
      e->i64, (unsigned long long)LLVMConstIntGetSExtValue(constant), true);
}

// Arithmetic on constants is a constant, of which nothing is left to follow:
// one that wraps is made an instruction, and what it would be is kept.
static LLVMValueRef wrapping_constant(hd_emit_t *e, LLVMOpcode opcode,
                                      LLVMValueRef a, LLVMValueRef b,
                                      LLVMValueRef value) {
  LLVMValueRef exact =
      LLVMBuildBinOp(B, opcode, extended(e, a), extended(e, b), "");
  if (exact == extended(e, value))
    return value;
  LLVMValueRef kept = LLVMBuildFreeze(B, value, "");
  hd_ptr_map_set(&e->arena, &e->exacts, kept, exact);
  return kept;
}

LLVMValueRef hd_emit_wrapping(hd_emit_t *e, LLVMOpcode opcode, LLVMValueRef a,
                              LLVMValueRef b) {
  unsigned kind =
      LLVMGetMDKindIDInContext(e->context, MARK, (unsigned)strlen(MARK));
  LLVMValueRef value = LLVMBuildBinOp(B, opcode, a, b, "");
  if (LLVMIsAConstantInt(a) && LLVMIsAConstantInt(b) &&
      LLVMIsAConstantInt(value))
    return wrapping_constant(e, opcode, a, b, value);
  if (LLVMIsAInstruction(value))
    LLVMSetMetadata(value, kind,
                    LLVMMetadataAsValue(
                        e->context, LLVMMDNodeInContext2(e->context, NULL, 0)));
  return value;
}

typedef struct exact {
  hd_emit_t *e;
  unsigned kind; // Of the mark.
  unsigned left; // Values that may still be looked at.
  bool builds;   // Else only ranges are found.
  bool may_wrap;
} exact_t;

// What is known of a value, and the value in 64 bits where it is built.
typedef struct wide {
  int64_t least, most;
  LLVMValueRef value;
} wide_t;

enum { WIDE_SHIFT = 31 }; // Shifts by more leave nothing to be looked at.

static wide_t any_i32(void) { return (wide_t){INT32_MIN, INT32_MAX, NULL}; }

static wide_t leaf(exact_t *x, LLVMValueRef value) {
  hd_emit_t *e = x->e;
  LLVMValueRef kept = hd_ptr_map_find(&e->exacts, value);
  if (kept) {
    x->may_wrap = true;
    return (wide_t){INT64_MIN, INT64_MAX, kept};
  }
  bool is_wide = LLVMTypeOf(value) == e->i64;
  wide_t result = is_wide ? (wide_t){INT64_MIN, INT64_MAX, NULL} : any_i32();
  unsigned kind = LLVMGetMDKindIDInContext(e->context, "range", 5);
  LLVMValueRef range = LLVMIsAInstruction(value) ? LLVMGetMetadata(value, kind)
                                                 : NULL,
               bounds[2];
  if (LLVMIsAConstantInt(value))
    result.least = result.most = LLVMConstIntGetSExtValue(value);
  else if (range && LLVMGetMDNodeNumOperands(range) == 2) {
    LLVMGetMDNodeOperands(range, bounds);
    result.least = LLVMConstIntGetSExtValue(bounds[0]);
    result.most = LLVMConstIntGetSExtValue(bounds[1]) - 1;
  }
  if (x->builds)
    result.value = is_wide ? value : LLVMBuildSExt(B, value, e->i64, "");
  return result;
}

static bool add_overflows(int64_t a, int64_t b, int64_t *sum) {
  return __builtin_add_overflow(a, b, sum);
}

static bool subtract_overflows(int64_t a, int64_t b, int64_t *difference) {
  return __builtin_sub_overflow(a, b, difference);
}

static wide_t span(wide_t a, wide_t b,
                   bool (*overflows)(int64_t, int64_t, int64_t *)) {
  wide_t result = {INT64_MIN, INT64_MAX, NULL};
  if (overflows(a.least, b.least, &result.least) ||
      overflows(a.most, b.most, &result.most))
    return (wide_t){INT64_MIN, INT64_MAX, NULL};
  return result;
}

static wide_t product(wide_t a, wide_t b) {
  const int64_t left[] = {a.least, a.most}, right[] = {b.least, b.most};
  wide_t result = {INT64_MAX, INT64_MIN, NULL};
  for (int i = 0; i < 4; i++) {
    int64_t value;
    if (__builtin_mul_overflow(left[i / 2], right[i % 2], &value))
      return (wide_t){INT64_MIN, INT64_MAX, NULL};
    result.least = value < result.least ? value : result.least;
    result.most = value > result.most ? value : result.most;
  }
  return result;
}

static wide_t wide_of(exact_t *x, LLVMValueRef value);

// A sum, difference, product or shift up; one that is marked wraps at 32 bits.
static wide_t arithmetic(exact_t *x, LLVMValueRef value, LLVMOpcode opcode) {
  hd_emit_t *e = x->e;
  wide_t a = wide_of(x, LLVMGetOperand(value, 0)), result;
  wide_t b = wide_of(x, LLVMGetOperand(value, 1));
  if (opcode == LLVMAdd) {
    result = span(a, b, add_overflows);
  } else if (opcode == LLVMSub) {
    wide_t turned = {b.most, b.least, NULL};
    result = span(a, turned, subtract_overflows);
  } else if (opcode == LLVMMul) {
    result = product(a, b);
  } else {
    wide_t factor = {1, INT64_C(1) << WIDE_SHIFT, NULL};
    if (b.least == b.most && b.least >= 0 && b.least <= WIDE_SHIFT)
      factor.least = factor.most = INT64_C(1) << b.least;
    result = product(a, factor);
  }
  if (LLVMTypeOf(value) == e->i32 &&
      (result.least < INT32_MIN || result.most > INT32_MAX))
    x->may_wrap = true;
  if (x->builds)
    result.value = LLVMBuildBinOp(B, opcode, a.value, b.value, "");
  return result;
}

// What keeps its operand's value, but for what it loses: a quotient, a
// remainder, a shift down.
static wide_t quotient(exact_t *x, LLVMValueRef value, LLVMOpcode opcode) {
  hd_emit_t *e = x->e;
  wide_t a = wide_of(x, LLVMGetOperand(value, 0));
  wide_t b = leaf(x, LLVMGetOperand(value, 1)), result = leaf(x, value);
  if (a.least >= 0 && a.most < result.most) {
    result.least = 0;
    result.most = a.most;
  }
  if (opcode == LLVMSRem && a.least >= 0 && b.least == b.most && b.least > 0 &&
      b.least <= result.most)
    result.most = b.least - 1;
  if (x->builds)
    result.value = LLVMBuildBinOp(B, opcode, a.value, b.value, "");
  return result;
}

static wide_t either(wide_t a, wide_t b) {
  return (wide_t){a.least < b.least ? a.least : b.least,
                  a.most > b.most ? a.most : b.most, NULL};
}

static wide_t choice(exact_t *x, LLVMValueRef value) {
  hd_emit_t *e = x->e;
  wide_t a = wide_of(x, LLVMGetOperand(value, 1));
  wide_t b = wide_of(x, LLVMGetOperand(value, 2)), result = either(a, b);
  if (x->builds)
    result.value =
        LLVMBuildSelect(B, LLVMGetOperand(value, 0), a.value, b.value, "");
  return result;
}

static wide_t extreme(exact_t *x, LLVMValueRef value) {
  hd_emit_t *e = x->e;
  LLVMValueRef function = LLVMGetCalledValue(value);
  size_t size;
  const char *name = LLVMGetValueName2(function, &size);
  bool is_min = !strncmp(name, "llvm.smin.", 10);
  if (!is_min && strncmp(name, "llvm.smax.", 10) != 0)
    return leaf(x, value);
  wide_t a = wide_of(x, LLVMGetOperand(value, 0));
  wide_t b = wide_of(x, LLVMGetOperand(value, 1)), result = either(a, b);
  if (is_min)
    result.most = a.most < b.most ? a.most : b.most;
  else
    result.least = a.least > b.least ? a.least : b.least;
  LLVMValueRef args[] = {a.value, b.value};
  if (x->builds)
    result.value =
        hd_emit_llvm(e, is_min ? "llvm.smin" : "llvm.smax", e->i64, args, 2);
  return result;
}

// Integers of 32 and 64 bits. Operations on bits, of unsigned numbers and
// conversions that lose some are taken as they are: who does these means them.
static wide_t wide_of(exact_t *x, LLVMValueRef value) {
  LLVMTypeRef type = LLVMTypeOf(value);
  if (!LLVMIsAInstruction(value) || x->left == 0)
    return leaf(x, value);
  x->left--;
  bool follows = type == x->e->i64 || LLVMGetMetadata(value, x->kind);
  LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
  switch (opcode) {
  case LLVMAdd:
  case LLVMSub:
  case LLVMMul:
  case LLVMShl:
    return follows ? arithmetic(x, value, opcode) : leaf(x, value);
  case LLVMSDiv:
  case LLVMSRem:
  case LLVMAShr:
    return quotient(x, value, opcode);
  case LLVMSExt:
    return LLVMTypeOf(LLVMGetOperand(value, 0)) == x->e->i32
               ? wide_of(x, LLVMGetOperand(value, 0))
               : leaf(x, value);
  case LLVMSelect:
    return choice(x, value);
  case LLVMCall:
    return extreme(x, value);
  default:
    return leaf(x, value);
  }
}

LLVMValueRef hd_emit_exact(hd_emit_t *e, LLVMValueRef value) {
  enum { MOST = 64 };
  exact_t x = {.e = e, .left = MOST};
  x.kind = LLVMGetMDKindIDInContext(e->context, MARK, (unsigned)strlen(MARK));
  wide_of(&x, value);
  if (!x.may_wrap)
    return NULL;
  x.left = MOST;
  x.builds = true;
  return wide_of(&x, value).value;
}

// --- Registers ---

static LLVMValueRef exact_at(hd_emit_t *e, const hd_place_t *place,
                             unsigned i) {
  LLVMValueRef at =
      LLVMBuildAdd(B, place->offset, LLVMConstInt(e->i64, i, false), "");
  return LLVMBuildGEP2(B, e->i64, place->binding->exact, &at, 1, "");
}

static LLVMValueRef exact_or_same(hd_emit_t *e, LLVMValueRef value) {
  LLVMValueRef wide = hd_emit_exact(e, value);
  return wide ? wide : LLVMBuildSExt(B, value, e->i64, "");
}

void hd_emit_begin_exact(hd_emit_t *e, hd_binding_t *binding, int64_t count,
                         LLVMValueRef initial) {
  binding->exact = hd_emit_alloca(e, e->i64, count ? count : 1, 8, "exact");
  if (initial)
    hd_emit_fill(e, e->i64, binding->exact, count, exact_or_same(e, initial));
  else
    hd_emit_fill(e, e->i64, binding->exact, count,
                 LLVMConstAllOnes(e->i64)); // As the elements.
}

void hd_emit_load_exact(hd_emit_t *e, const hd_place_t *place,
                        LLVMValueRef value) {
  LLVMValueRef kept = LLVMBuildLoad2(B, e->i64, exact_at(e, place, 0), "");
  hd_ptr_map_set(&e->arena, &e->exacts, value, kept);
}

void hd_emit_store_exact(hd_emit_t *e, const hd_place_t *place,
                         LLVMValueRef value) {
  LLVMBuildStore(B, exact_or_same(e, value), exact_at(e, place, 0));
}

void hd_emit_renew_exact(hd_emit_t *e, const hd_place_t *place,
                         unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    LLVMValueRef at = LLVMConstInt(e->i64, i, false);
    LLVMValueRef from = LLVMBuildGEP2(B, e->i32, place->pointer, &at, 1, "");
    LLVMValueRef value = LLVMBuildLoad2(B, e->i32, from, "");
    LLVMBuildStore(B, LLVMBuildSExt(B, value, e->i64, ""),
                   exact_at(e, place, i));
  }
}
