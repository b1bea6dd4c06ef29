// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What host code asks and notes under --sanitize: whether an access may be done
// (the simulator's to say), which elements of register tensors were written,
// which indices wrap.
#include "CodeGen/EmitAccess.h"
#include "CodeGen/SimAbi.h"

#include <string.h>

#define B e->builder

static unsigned element_bits(hd_type_t type) {
  return hd_scalar_bits((hd_scalar_t)type.scalar);
}

LLVMValueRef hd_emit_index(hd_emit_t *e, const hd_expr_t *x) {
  LLVMValueRef value = hd_emit_expr(e, x);
  return LLVMBuildIntCast2(B, value, e->i64, hd_type_is_signed(x->type), "");
}

// A private, constant hd_sim_site_t.
LLVMValueRef hd_emit_site(hd_emit_t *e, hd_loc_t loc, const char *name,
                          int access, const hd_binding_t *binding,
                          unsigned rank, unsigned lanes) {
  const hd_tensor_t *tensor = binding ? binding->var->tensor : NULL;
  unsigned scope = !tensor             ? 0
                   : binding->is_table ? HD_SIM_CONSTANT
                                       : (unsigned)tensor->scope;
  LLVMValueRef text = LLVMBuildGlobalString(B, name ? name : "", "name");
  LLVMValueRef fields[] = {
      LLVMConstInt(e->i32, loc.source, false),
      LLVMConstInt(e->i32, loc.offset, false),
      text,
      LLVMConstInt(e->i32, (uint64_t)access, false),
      LLVMConstInt(e->i32, scope, false),
      LLVMConstInt(e->i32, rank, false),
      LLVMConstInt(e->i32, tensor ? element_bits(tensor->element) : 0, false),
      LLVMConstInt(e->i32, lanes, false),
      LLVMConstInt(e->i32, binding ? binding->number : 0, false),
  };
  LLVMValueRef value = LLVMConstStructInContext(
      e->context, fields, sizeof fields / sizeof *fields, false);
  LLVMValueRef global = LLVMAddGlobal(e->llvm, LLVMTypeOf(value), "site");
  LLVMSetInitializer(global, value);
  LLVMSetGlobalConstant(global, true);
  LLVMSetLinkage(global, LLVMPrivateLinkage);
  return global;
}

static void put_i64(hd_emit_t *e, LLVMValueRef values, unsigned i,
                    LLVMValueRef value) {
  LLVMValueRef index = LLVMConstInt(e->i64, i, false);
  LLVMBuildStore(B, value,
                 LLVMBuildInBoundsGEP2(B, e->i64, values, &index, 1, ""));
}

// A constant offset is right where it lies in the storage and the indices that
// are constants on their axes. Others (of a layout by a mapping) cancel out.
bool hd_emit_is_inside(hd_emit_t *e, const hd_access_t *a,
                       LLVMValueRef offset) {
  const hd_tensor_t *tensor = a->var->tensor;
  int64_t size, first, lanes = a->type.lanes;
  if (!LLVMIsAConstantInt(offset) || !hd_tensor_storage_const(tensor, &size))
    return false;
  first = LLVMConstIntGetSExtValue(offset);
  if (first < 0 || first + lanes > size)
    return false;
  for (unsigned i = 0; !a->linear && i < a->num_indices; i++) {
    LLVMValueRef index = hd_emit_expr(e, a->indices[i]);
    if (!LLVMIsAConstantInt(index) ||
        !hd_expr_fold_int(tensor->shape[i], &size))
      continue;
    first = LLVMConstIntGetSExtValue(index);
    if (first < 0 || first + (i + 1 == tensor->rank ? lanes : 1) > size)
      return false;
  }
  return true;
}

// A call in a block of its own, that is gone to where the condition holds.
static LLVMBasicBlockRef begin_report(hd_emit_t *e, LLVMValueRef condition) {
  LLVMBasicBlockRef report = hd_emit_new_block(e, "report");
  LLVMBasicBlockRef go_on = hd_emit_new_block(e, "reported");
  LLVMBuildCondBr(B, condition, report, go_on);
  hd_emit_at(e, report);
  return go_on;
}

static void end_report(hd_emit_t *e, const hd_access_t *a, int kind,
                       const hd_binding_t *binding, unsigned lanes,
                       const char *function, LLVMValueRef which,
                       LLVMBasicBlockRef go_on) {
  for (unsigned i = 0; i < a->num_indices && i < HD_SIM_CHECK_VALUES; i++)
    put_i64(e, e->check_values, i, hd_emit_index(e, a->indices[i]));
  LLVMValueRef site = hd_emit_site(e, a->loc, a->var->name, kind, binding,
                                   a->num_indices, lanes);
  LLVMValueRef args[] = {e->thread, site, e->check_values, which};
  hd_emit_c_call(e, function, e->void_, args, 4);
  LLVMBuildBr(B, go_on);
  hd_emit_at(e, go_on);
}

// --- Registers that nobody has written ---

void hd_emit_begin_unwritten(hd_emit_t *e, hd_binding_t *binding,
                             LLVMTypeRef type, int64_t count) {
  LLVMValueRef bytes = LLVMConstInt(e->i64, (uint64_t)count, false);
  binding->written = hd_emit_alloca(e, e->i8, count ? count : 1, 1, "written");
  LLVMBuildMemSet(B, binding->written, LLVMConstNull(e->i8), bytes, 1);
  // All ones, as in shared memory: what is read then is the same every time.
  LLVMBuildMemSet(B, binding->value, LLVMConstAllOnes(e->i8),
                  LLVMBuildMul(B, bytes, LLVMSizeOf(type), ""), 1);
}

static LLVMValueRef written_at(hd_emit_t *e, const hd_place_t *place,
                               unsigned i) {
  LLVMValueRef at =
      LLVMBuildAdd(B, place->offset, LLVMConstInt(e->i64, i, false), "");
  return LLVMBuildGEP2(B, e->i8, place->binding->written, &at, 1, "");
}

void hd_emit_mark_written(hd_emit_t *e, const hd_place_t *place,
                          unsigned count) {
  for (unsigned i = 0; i < count; i++)
    LLVMBuildStore(B, LLVMConstInt(e->i8, 1, false), written_at(e, place, i));
}

void hd_emit_check_written(hd_emit_t *e, const hd_access_t *a, int kind,
                           const hd_place_t *place, unsigned count,
                           LLVMValueRef condition) {
  LLVMValueRef all = LLVMConstInt(e->i64, count, false), first = all;
  for (unsigned i = count; i-- > 0;) {
    LLVMValueRef is = LLVMBuildLoad2(B, e->i8, written_at(e, place, i), "");
    is = LLVMBuildICmp(B, LLVMIntNE, is, LLVMConstNull(e->i8), "");
    first = LLVMBuildSelect(B, is, first, LLVMConstInt(e->i64, i, false), "");
  }
  LLVMValueRef is_missing = LLVMBuildICmp(B, LLVMIntNE, first, all, "");
  if (condition)
    is_missing = LLVMBuildAnd(B, is_missing, condition, "");
  LLVMBasicBlockRef go_on = begin_report(e, is_missing);
  end_report(e, a, kind, place->binding, count, "hd_sim_unwritten", first,
             go_on);
}

// --- Indices that wrap ---

LLVMValueRef hd_emit_check_overflow(hd_emit_t *e, const hd_access_t *a,
                                    int kind, const hd_binding_t *binding) {
  LLVMValueRef any = NULL;
  for (unsigned i = 0; i < a->num_indices && !e->failed; i++) {
    LLVMValueRef index = hd_emit_index(e, a->indices[i]);
    bool is_signed = hd_type_is_signed(a->indices[i]->type);
    LLVMValueRef wide = is_signed ? hd_emit_exact(e, index) : NULL;
    if (!wide)
      continue;
    LLVMValueRef wraps = LLVMBuildICmp(B, LLVMIntNE, wide, index, "");
    LLVMBasicBlockRef go_on = begin_report(e, wraps);
    put_i64(e, e->check_values, HD_SIM_CHECK_VALUES - 1, wide);
    end_report(e, a, kind, binding, a->type.lanes, "hd_sim_wrapped",
               LLVMConstInt(e->i64, i, false), go_on);
    any = any ? LLVMBuildOr(B, any, wraps, "") : wraps;
  }
  return any;
}

// --- The simulator's answer ---

// Under --sanitize: asks the simulator whether the access may be done.
static void check_access(hd_emit_t *e, const hd_access_t *a, int kind,
                         hd_place_t *place) {
  const hd_tensor_t *tensor = a->var->tensor;
  unsigned rank = a->linear ? 1 : tensor->rank;
  if (2 * rank > HD_SIM_CHECK_VALUES) {
    hd_emit_error(e, a->loc, HD_E0307, "a tensor's rank under --sanitize", 0LL,
                  (long long)HD_SIM_CHECK_VALUES / 2, (long long)rank);
    return;
  }
  LLVMValueRef wraps = hd_emit_check_overflow(e, a, kind, place->binding);
  LLVMBasicBlockRef from = LLVMGetInsertBlock(B), asked = NULL;
  if (wraps && kind != HD_SIM_PLACE) { // That one is wrong already.
    LLVMBasicBlockRef asks = hd_emit_new_block(e, "asks");
    asked = hd_emit_new_block(e, "asked");
    LLVMBuildCondBr(B, wraps, asked, asks);
    hd_emit_at(e, asks);
  }
  // All first, for an index may hold accesses that are checked themselves.
  LLVMValueRef checked[HD_SIM_CHECK_VALUES];
  for (unsigned i = 0; i < rank; i++) {
    const hd_expr_t *size =
        a->linear ? hd_tensor_storage(&e->arena, tensor) : tensor->shape[i];
    checked[i] = hd_emit_index(e, a->indices[i]);
    checked[rank + i] = hd_emit_index(e, size);
  }
  LLVMValueRef values = e->check_values;
  for (unsigned i = 0; i < 2 * rank; i++)
    put_i64(e, values, i, checked[i]);
  place->site = hd_emit_site(e, a->loc, a->var->name, kind, place->binding,
                             rank, a->type.lanes);
  // The address of registers would keep them in memory; nobody asks for it.
  LLVMValueRef address = tensor->scope == HD_SCOPE_REGISTER
                             ? LLVMConstNull(e->ptr)
                             : place->pointer;
  LLVMValueRef args[] = {e->thread, place->site, values, address};
  place->allowed = hd_emit_c_call(e, "hd_sim_check", e->i1, args, 4);
  if (!asked)
    return;
  LLVMValueRef values_of[] = {LLVMConstInt(e->i1, 0, false), place->allowed};
  LLVMBasicBlockRef blocks[] = {from, LLVMGetInsertBlock(B)};
  LLVMBuildBr(B, asked);
  hd_emit_at(e, asked);
  place->allowed = LLVMBuildPhi(B, e->i1, "");
  LLVMAddIncoming(place->allowed, values_of, blocks, 2);
}

// Under --sanitize, of registers: most indices are constants, and right; but
// the registers may be accumulators that a product is under way to, which are
// known by the element's number.
static void check_register(hd_emit_t *e, const hd_access_t *a, int kind,
                           LLVMValueRef offset, hd_place_t *place) {
  if (!hd_emit_is_inside(e, a, offset))
    check_access(e, a, kind, place);
  bool may_be_sums = e->num_slots == HD_EMIT_WIDE_SLOTS && kind != HD_SIM_PLACE;
  int64_t size;
  if (!may_be_sums || !hd_tensor_storage_const(a->var->tensor, &size))
    return;
  put_i64(e, e->check_values, 0, offset);
  put_i64(e, e->check_values, 1, LLVMConstInt(e->i64, (uint64_t)size, false));
  LLVMValueRef site = hd_emit_site(e, a->loc, a->var->name, kind,
                                   place->binding, 1, a->type.lanes);
  LLVMValueRef args[] = {e->thread, site, e->check_values,
                         LLVMConstNull(e->ptr)};
  hd_emit_c_call(e, "hd_sim_check", e->i1, args, 4);
}

void hd_emit_check(hd_emit_t *e, const hd_access_t *a, int kind,
                   LLVMValueRef offset, hd_place_t *place) {
  if (a->var->tensor->scope == HD_SCOPE_REGISTER)
    check_register(e, a, kind, offset, place);
  else
    check_access(e, a, kind, place);
}
