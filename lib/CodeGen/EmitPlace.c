// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where an access goes, for loads, stores and intrinsics: a tensor's base, an
// offset in elements (its layout applied to the indices, or given), and, for
// elements of less than a byte, the bit within the byte; of a register tensor
// that is no memory, the cell.
#include "CodeGen/EmitAccess.h"
#include "CodeGen/SimAbi.h"
#include "IR/Rewrite.h"

#define B e->builder

static bool is_cheap(void *argument, const hd_expr_t *x) {
  (void)argument;
  return !hd_expr_is_access(x) && x->kind != HD_EXPR_CALL;
}

// A layout and a test of bounds use an index several times: one that holds
// accesses is emitted once and named, or accesses in each other's indices would
// double at every level.
static const hd_expr_t *name_index(hd_emit_t *e, const hd_expr_t *index) {
  if (hd_walk_expr(index, is_cheap, NULL))
    return index;
  const hd_var_t *var =
      hd_var_make(&e->arena, "index", HD_VAR_LET, index->type, index->loc);
  LLVMValueRef value = hd_emit_expr(e, index);
  hd_emit_bind(e, var, value);
  return hd_expr_var(&e->arena, var);
}

const hd_expr_t *const *hd_emit_name_indices(hd_emit_t *e,
                                             const hd_expr_t *const *indices,
                                             uint32_t count) {
  const hd_expr_t **named = HD_ARENA_ARRAY(&e->arena, const hd_expr_t *, count);
  for (uint32_t i = 0; i < count; i++)
    named[i] = name_index(e, indices[i]);
  return named;
}

hd_access_t hd_emit_access(hd_emit_t *e, const hd_expr_t *x) {
  uint32_t count = hd_expr_num_indices(x);
  return (hd_access_t){
      .var = x->u.var,
      .linear = x->linear,
      .num_indices = count,
      .indices =
          x->linear ? x->operands : hd_emit_name_indices(e, x->operands, count),
      .type = x->type,
      .loc = x->loc};
}

const hd_expr_t *hd_emit_offset(hd_emit_t *e, const hd_access_t *a) {
  const hd_tensor_t *tensor = a->var->tensor;
  return a->linear ? a->indices[0]
         : a->bare ? hd_tensor_bare_offset(&e->arena, tensor, a->indices)
                   : hd_tensor_offset(&e->arena, tensor, a->indices);
}

// On the GPU an element of a register tensor must be found when the code is
// made. Where the index is no constant yet, LLVM's passes may still make it one
// (known bits); Ptx.c looks at what is left, by this mark.
static void mark_dynamic(hd_emit_t *e, const hd_access_t *a, LLVMValueRef gep) {
  if (!e->dynamic)
    e->dynamic = HD_ARENA_NEW(&e->arena, hd_dynamic_t);
  if (!e->dynamic->tensor)
    *e->dynamic = (hd_dynamic_t){a->loc, a->var->name};
  if (!LLVMIsAInstruction(gep))
    return;
  LLVMMetadataRef parts[] = {
      LLVMValueAsMetadata(LLVMConstInt(e->i32, a->loc.source, false)),
      LLVMValueAsMetadata(LLVMConstInt(e->i32, a->loc.offset, false)),
      LLVMMDStringInContext2(e->context, a->var->name, strlen(a->var->name))};
  unsigned kind = LLVMGetMDKindIDInContext(e->context, HD_EMIT_DYNAMIC,
                                           strlen(HD_EMIT_DYNAMIC));
  LLVMSetMetadata(gep, kind,
                  LLVMMetadataAsValue(
                      e->context, LLVMMDNodeInContext2(e->context, parts, 3)));
}

static LLVMValueRef register_address(hd_emit_t *e, const hd_access_t *a,
                                     LLVMValueRef base, LLVMValueRef offset) {
  if (LLVMIsAConstantInt(offset) && LLVMIsNull(offset))
    return base;
  LLVMTypeRef type = hd_emit_memory_type(e, a->var->tensor->element);
  LLVMValueRef gep = LLVMBuildGEP2(B, type, base, &offset, 1, "");
  if (!e->host && !LLVMIsAConstantInt(offset))
    mark_dynamic(e, a, gep);
  return gep;
}

hd_place_t hd_emit_access_place(hd_emit_t *e, const hd_access_t *a, int kind) {
  hd_place_t place = {.binding = hd_emit_find(e, a->var)};
  if (!place.binding) {
    hd_emit_error(e, a->loc, HD_E0301, a->var->name);
    place.pointer = LLVMGetPoison(e->ptr);
    return place;
  }
  const hd_tensor_t *tensor = a->var->tensor;
  LLVMValueRef base = place.binding->value;
  unsigned bits = hd_emit_element_bits(tensor->element);
  if (place.binding->cells) {
    place.pointer = LLVMGetPoison(e->ptr);
    return place;
  }
  if (!e->host && tensor->scope != HD_SCOPE_REGISTER) {
    hd_emit_address(e, tensor, hd_emit_offset(e, a), &place);
    return place;
  }
  const hd_expr_t *x = hd_emit_offset(e, a);
  LLVMValueRef offset = hd_emit_expr(e, x);
  offset = LLVMBuildIntCast2(B, offset, e->host ? e->i64 : e->i32,
                             hd_type_is_signed(x->type), "");
  if (tensor->scope == HD_SCOPE_REGISTER) {
    place.offset = offset;
    place.pointer = register_address(e, a, base, offset);
  } else if (bits < 8) {
    LLVMTypeRef t = LLVMTypeOf(offset);
    LLVMValueRef per_byte = LLVMConstInt(t, 8 / bits - 1, false);
    LLVMValueRef log2 = LLVMConstInt(t, bits == 4 ? 1 : 2, false);
    LLVMValueRef byte = LLVMBuildAShr(B, offset, log2, "");
    place.pointer = LLVMBuildGEP2(B, e->i8, base, &byte, 1, "");
    place.bit = LLVMBuildAnd(B, offset, per_byte, "");
    place.bit = LLVMBuildTrunc(B, place.bit, e->i8, "");
    place.bit =
        LLVMBuildMul(B, place.bit, LLVMConstInt(e->i8, bits, false), "");
  } else {
    LLVMTypeRef type = hd_emit_memory_type(e, tensor->element);
    place.pointer = LLVMBuildGEP2(B, type, base, &offset, 1, "");
  }
  if (e->sanitize)
    hd_emit_check(e, a, kind, offset, &place);
  return place;
}

hd_place_t hd_emit_place(hd_emit_t *e, const hd_expr_t *access, int kind) {
  hd_access_t a = hd_emit_access(e, access);
  hd_place_t place = hd_emit_access_place(e, &a, kind);
  if (kind == HD_SIM_PLACE && place.binding && place.binding->is_table)
    hd_emit_error(e, access->loc, HD_E0508, "a place in a table",
                  "an operand of an intrinsic");
  return place;
}

hd_place_t hd_emit_matrix_place(hd_emit_t *e, const hd_expr_t *matrix) {
  hd_access_t a = hd_emit_access(e, matrix);
  a.bare = true;
  return hd_emit_access_place(e, &a, HD_SIM_PLACE);
}

bool hd_emit_access_cell(hd_emit_t *e, const hd_access_t *a,
                         const hd_cells_t **cells, int64_t *index) {
  *cells = hd_emit_find(e, a->var)->cells;
  LLVMValueRef offset = hd_emit_expr(e, hd_emit_offset(e, a));
  bool is_known = LLVMIsAConstantInt(offset);
  if (is_known)
    *index = LLVMConstIntGetSExtValue(offset);
  else if (!e->failed)
    e->retry = e->failed = true;
  return is_known;
}

bool hd_emit_cell(hd_emit_t *e, const hd_expr_t *access,
                  const hd_cells_t **cells, int64_t *index) {
  hd_access_t a = hd_emit_access(e, access);
  return hd_emit_access_cell(e, &a, cells, index);
}

bool hd_emit_has_registers(hd_emit_t *e, const hd_expr_t *call, unsigned i,
                           int64_t first) {
  const hd_intrinsic_info_t *info = hd_intrinsic_of(call);
  const hd_expr_t *x = call->operands[i];
  int64_t storage, count = hd_intrinsic_elements(info, call, i);
  if (!hd_tensor_storage_const(x->u.var->tensor, &storage) ||
      (first >= 0 && first + count <= storage))
    return true;
  const char *why = hd_arena_printf(
      &e->arena, "it takes %lld elements of '%s' from %lld on, which has %lld",
      (long long)count, x->u.var->name, (long long)first, (long long)storage);
  hd_emit_error(e, x->loc, HD_E0313, info->name, why);
  return false;
}

void hd_emit_check_registers(hd_emit_t *e, const hd_expr_t *x,
                             const hd_place_t *place, unsigned count,
                             LLVMValueRef condition) {
  hd_access_t a = hd_emit_access(e, x);
  if (place->binding && place->binding->written)
    hd_emit_check_written(e, &a, HD_SIM_PLACE, place, count, condition);
}

hd_place_t hd_emit_registers(hd_emit_t *e, const hd_expr_t *call, unsigned i) {
  hd_place_t place = hd_emit_place(e, call->operands[i], HD_SIM_PLACE);
  if (place.offset && LLVMIsAConstantInt(place.offset))
    hd_emit_has_registers(e, call, i, LLVMConstIntGetSExtValue(place.offset));
  return place;
}
