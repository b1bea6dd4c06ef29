// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// printf: all values widened to 64 bits in one array, as vprintf takes them on
// the GPU with a format that says so; the simulator has a function like it.
#include "CodeGen/Emit.h"

#include "IR/Format.h"
#include "IR/Generic.h"

#include <string.h>

#define B e->builder

enum { GLOBAL = 1 }; // An address space of the GPU.

static LLVMValueRef widened(hd_emit_t *e, const hd_expr_t *x,
                            const hd_conversion_t *conversion) {
  LLVMValueRef value = hd_emit_expr(e, x);
  if (hd_conversion_is_float(conversion)) {
    value = hd_emit_convert(e, value, x->type, hd_type(HD_F64));
    return LLVMBuildBitCast(B, value, e->i64, "");
  }
  if (!hd_type_is_integer(x->type)) // A bool.
    return LLVMBuildZExt(B, value, e->i64, "");
  bool is_signed =
      hd_conversion_is_signed(conversion) && hd_type_is_signed(x->type);
  unsigned bits = hd_scalar_bits((hd_scalar_t)x->type.scalar);
  value = LLVMBuildIntCast2(B, value, e->i64, hd_type_is_signed(x->type), "");
  if (is_signed || bits == 64)
    return value;
  uint64_t mask = (UINT64_C(1) << bits) - 1; // Its own bits, and no sign.
  return LLVMBuildAnd(B, value, LLVMConstInt(e->i64, mask, false), "");
}

// A constant of the code, by a pointer that may point anywhere.
static LLVMValueRef text(hd_emit_t *e, const char *format) {
  if (!e->host) {
    char *wide = hd_arena_alloc(&e->arena, hd_format_wide_size(format));
    hd_format_widen(format, wide);
    format = wide;
  }
  LLVMValueRef bytes = LLVMConstStringInContext(
      e->context, format, (unsigned)strlen(format), false);
  LLVMValueRef global = LLVMAddGlobalInAddressSpace(
      e->llvm, LLVMTypeOf(bytes),
      // Of the kernel: several may stand in one text.
      hd_arena_printf(&e->arena, "%s_format",
                      hd_func_identifier(&e->arena, e->kernel)),
      e->host ? 0 : GLOBAL);
  LLVMSetInitializer(global, bytes);
  LLVMSetGlobalConstant(global, true);
  LLVMSetLinkage(global, LLVMInternalLinkage);
  return e->host ? global : LLVMConstAddrSpaceCast(global, e->ptr);
}

// One for all calls, unless a later one needs more.
static LLVMValueRef area_of(hd_emit_t *e, uint32_t count) {
  enum { LEAST = 4 };
  if (!e->printed || count > e->num_printed) {
    e->num_printed = count < LEAST ? LEAST : count;
    e->printed = hd_emit_alloca(e, e->i64, e->num_printed, 8, "printed");
  }
  return e->printed;
}

void hd_emit_print(hd_emit_t *e, const hd_stmt_t *stmt) {
  uint32_t count = stmt->u.print.num_args;
  const char *format = stmt->u.print.format;
  LLVMValueRef *values = HD_ARENA_ARRAY(&e->arena, LLVMValueRef, count + 1);
  hd_conversion_t conversion;
  for (uint32_t i = 0; i < count && hd_format_next(&format, &conversion); i++)
    values[i] = widened(e, stmt->u.print.args[i], &conversion);
  if (e->failed)
    return;
  LLVMValueRef area = area_of(e, count);
  for (uint32_t i = 0; i < count; i++) {
    LLVMValueRef index = LLVMConstInt(e->i64, i, false);
    LLVMBuildStore(B, values[i],
                   LLVMBuildInBoundsGEP2(B, e->i64, area, &index, 1, ""));
  }
  LLVMValueRef args[] = {text(e, stmt->u.print.format), area};
  hd_emit_c_call(e, e->host ? "hd_sim_print" : "vprintf",
                 e->host ? e->void_ : e->i32, args, 2);
}
