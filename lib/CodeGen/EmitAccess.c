// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads and stores.
#include "CodeGen/EmitAccess.h"
#include "CodeGen/SimAbi.h"
#include "IR/Rewrite.h"

#include <string.h>

#define B e->builder

static bool is_in_cells(hd_emit_t *e, const hd_access_t *a) {
  const hd_binding_t *binding = hd_emit_find(e, a->var);
  return binding && binding->cells;
}

// In bytes. The GPU's vectors are aligned to their size, or it faults; the host
// needs no more than its element's.
static unsigned alignment(const hd_emit_t *e, const hd_access_t *a) {
  const hd_tensor_t *tensor = a->var->tensor;
  unsigned element = tensor->scope == HD_SCOPE_REGISTER
                         ? hd_emit_register_bits(tensor->element) / 8
                         : (hd_emit_element_bits(tensor->element) + 7) / 8;
  unsigned whole = hd_emit_element_bits(tensor->element) * a->type.lanes / 8;
  if (e->host || tensor->scope == HD_SCOPE_REGISTER || whole <= element ||
      (whole & (whole - 1)))
    return element;
  return whole < 16 ? whole : 16;
}

static bool is_bytewise(const hd_access_t *a) {
  return hd_type_is_bool(a->type) || hd_emit_element_bits(a->type) < 8;
}

static LLVMValueRef finish_load(hd_emit_t *e, LLVMValueRef load,
                                const hd_access_t *a, const hd_place_t *place) {
  LLVMSetAlignment(load, alignment(e, a));
  if (place->binding && place->binding->invariant && !e->host) {
    unsigned kind = LLVMGetMDKindIDInContext(e->context, "invariant.load", 14);
    LLVMSetMetadata(load, kind,
                    LLVMMetadataAsValue(
                        e->context, LLVMMDNodeInContext2(e->context, NULL, 0)));
  }
  return load;
}

// Elements held in bytes, of bool or in a register tensor.
static LLVMValueRef load_bytes(hd_emit_t *e, const hd_access_t *a,
                               const hd_place_t *place) {
  LLVMTypeRef type =
      a->type.lanes > 1 ? LLVMVectorType(e->i8, a->type.lanes) : e->i8;
  LLVMValueRef value = LLVMBuildLoad2(B, type, hd_emit_displaced(e, place), "");
  value = finish_load(e, value, a, place);
  if (!hd_type_is_bool(a->type))
    return value;
  return LLVMBuildICmp(B, LLVMIntNE, value, LLVMConstNull(type), "");
}

static LLVMValueRef load_packed(hd_emit_t *e, const hd_access_t *a,
                                const hd_place_t *place) {
  unsigned bits = hd_emit_element_bits(a->type) * a->type.lanes;
  LLVMTypeRef type = LLVMIntTypeInContext(e->context, bits < 8 ? 8 : bits);
  LLVMValueRef value = LLVMBuildLoad2(B, type, hd_emit_displaced(e, place), "");
  value = finish_load(e, value, a, place);
  if (bits < 8) {
    value = LLVMBuildLShr(B, value, place->bit, "");
    value =
        LLVMBuildTrunc(B, value, LLVMIntTypeInContext(e->context, bits), "");
  }
  bool is_pair = hd_emit_element_bits(a->type) == 8 && a->type.lanes == 2;
  LLVMValueRef lanes = is_pair ? hd_emit_split_bytes(e, value)
                               : hd_emit_from_bits(e, value, a->type);
  if (bits % 8 == 0)
    hd_ptr_map_set(&e->arena, &e->packed, lanes, value);
  return lanes;
}

static LLVMValueRef load_from(hd_emit_t *e, const hd_access_t *a,
                              const hd_place_t *place) {
  if (place->binding->written)
    hd_emit_check_written(e, a, HD_SIM_LOAD, place, a->type.lanes, NULL);
  if (is_bytewise(a)) {
    bool packed = hd_emit_element_bits(a->type) < 8 &&
                  a->var->tensor->scope != HD_SCOPE_REGISTER;
    return packed ? load_packed(e, a, place) : load_bytes(e, a, place);
  }
  LLVMTypeRef type = hd_emit_type(e, a->type);
  if (!e->host && hd_emit_element_bits(a->type) == 8 &&
      (a->type.lanes == 2 || a->type.lanes == 4))
    return load_packed(e, a, place);
  LLVMValueRef value = LLVMBuildLoad2(B, type, hd_emit_displaced(e, place), "");
  if (place->binding->exact && a->type.lanes == 1)
    hd_emit_load_exact(e, place, value);
  return finish_load(e, value, a, place);
}

static LLVMValueRef load(hd_emit_t *e, const hd_access_t *a) {
  if (is_in_cells(e, a)) {
    const hd_cells_t *cells;
    int64_t index;
    if (!hd_emit_access_cell(e, a, &cells, &index))
      return hd_emit_poison(e, a->type);
    return hd_cells_read(e, cells, index, a->type.lanes,
                         hd_emit_type(e, a->type));
  }
  hd_place_t place = hd_emit_access_place(e, a, HD_SIM_LOAD);
  if (e->failed)
    return hd_emit_poison(e, a->type);
  if (!place.allowed)
    return load_from(e, a, &place);
  LLVMBasicBlockRef from = LLVMGetInsertBlock(B);
  LLVMBasicBlockRef do_it = hd_emit_new_block(e, "load");
  LLVMBasicBlockRef go_on = hd_emit_new_block(e, "loaded");
  LLVMBuildCondBr(B, place.allowed, do_it, go_on);
  hd_emit_at(e, do_it);
  LLVMValueRef values[] = {load_from(e, a, &place), hd_emit_zero(e, a->type)};
  LLVMBasicBlockRef blocks[] = {LLVMGetInsertBlock(B), from};
  LLVMBuildBr(B, go_on);
  hd_emit_at(e, go_on);
  LLVMValueRef phi = LLVMBuildPhi(B, hd_emit_type(e, a->type), "");
  LLVMAddIncoming(phi, values, blocks, 2);
  return phi;
}

LLVMValueRef hd_emit_load(hd_emit_t *e, const hd_expr_t *x) {
  hd_access_t a = hd_emit_access(e, x);
  if (a.var->table) {
    LLVMValueRef offset = hd_emit_expr(e, hd_emit_offset(e, &a));
    LLVMValueRef element = hd_emit_table_element(e, x, offset);
    if (element && (!e->sanitize || hd_emit_is_inside(e, &a, offset)))
      return element;
  }
  return load(e, &a);
}

// A float as the integer of its bits: the host's constants of floats lie in a
// pool that LLVM searches from its start for each.
static LLVMValueRef without_pool(hd_emit_t *e, LLVMValueRef value) {
  LLVMTypeRef type = LLVMTypeOf(value);
  LLVMTypeRef bits = type == e->f32 ? e->i32 : type == e->f64 ? e->i64 : NULL;
  return bits && LLVMIsAConstantFP(value) ? LLVMConstBitCast(value, bits)
                                          : value;
}

// Bytes in the word that they were packed in: LLVM takes pairs of them apart in
// memory.
static LLVMValueRef as_packed(hd_emit_t *e, LLVMValueRef value) {
  LLVMValueRef word = hd_ptr_map_find(&e->packed, value);
  return word ? word : value;
}

static void store_to(hd_emit_t *e, const hd_access_t *a,
                     const hd_place_t *place, LLVMValueRef value) {
  if (is_bytewise(a)) {
    bool packed = hd_emit_element_bits(a->type) < 8 &&
                  a->var->tensor->scope != HD_SCOPE_REGISTER;
    if (packed) {
      if (hd_emit_element_bits(a->type) * a->type.lanes % 8) {
        // The rest of the byte may be another thread's.
        hd_emit_error(e, a->loc, HD_E0508, hd_type_name(a->type),
                      "a store of whole bytes");
        return;
      }
      value = hd_emit_to_bits(e, value, a->type);
    } else if (hd_type_is_bool(a->type)) {
      value =
          LLVMBuildZExt(B, value, hd_emit_like(LLVMTypeOf(value), e->i8), "");
    }
  }
  if (e->host)
    value = without_pool(e, value);
  else if (hd_emit_element_bits(a->type) == 8)
    value = as_packed(e, value);
  LLVMValueRef store = LLVMBuildStore(B, value, hd_emit_displaced(e, place));
  LLVMSetAlignment(store, alignment(e, a));
  if (place->binding->written)
    hd_emit_mark_written(e, place, a->type.lanes);
  if (place->binding->exact && a->type.lanes == 1)
    hd_emit_store_exact(e, place, value);
  else if (place->binding->exact)
    hd_emit_renew_exact(e, place, a->type.lanes);
}

static void store(hd_emit_t *e, const hd_access_t *a, LLVMValueRef value) {
  if (is_in_cells(e, a)) {
    const hd_cells_t *cells;
    int64_t index;
    if (hd_emit_access_cell(e, a, &cells, &index))
      hd_cells_write(e, cells, index, a->type.lanes, value);
    return;
  }
  hd_place_t place = hd_emit_access_place(e, a, HD_SIM_STORE);
  if (e->failed)
    return;
  LLVMBasicBlockRef go_on = NULL;
  if (place.allowed) {
    LLVMBasicBlockRef do_it = hd_emit_new_block(e, "store");
    go_on = hd_emit_new_block(e, "stored");
    LLVMBuildCondBr(B, place.allowed, do_it, go_on);
    hd_emit_at(e, do_it);
  }
  store_to(e, a, &place, value);
  if (go_on) {
    LLVMBuildBr(B, go_on);
    hd_emit_at(e, go_on);
  }
}

void hd_emit_store(hd_emit_t *e, const hd_stmt_t *stmt) {
  LLVMValueRef value = hd_emit_expr(e, stmt->u.store.value);
  uint32_t count = stmt->u.store.num_indices;
  hd_access_t a = {stmt->u.store.var,
                   stmt->u.store.linear,
                   count,
                   stmt->u.store.linear
                       ? stmt->u.store.indices
                       : hd_emit_name_indices(e, stmt->u.store.indices, count),
                   stmt->u.store.value->type,
                   stmt->loc,
                   false};
  store(e, &a, value);
}

void hd_emit_store_to(hd_emit_t *e, const hd_expr_t *place, hd_type_t type,
                      LLVMValueRef value) {
  hd_access_t a = hd_emit_access(e, place);
  a.type = type;
  store(e, &a, value);
}

// 0 <= index < size, for every index but that the last stands lane on.
static LLVMValueRef in_bounds(hd_emit_t *e, const hd_access_t *a,
                              unsigned lane) {
  LLVMValueRef all = LLVMConstInt(e->i1, 1, false);
  for (uint32_t i = 0; i < a->num_indices; i++) {
    LLVMValueRef index = hd_emit_index(e, a->indices[i]);
    LLVMValueRef size = hd_emit_index(e, a->var->tensor->shape[i]);
    if (i + 1 == a->num_indices && lane)
      index = LLVMBuildAdd(B, index, LLVMConstInt(e->i64, lane, false), "");
    LLVMValueRef ok = LLVMBuildICmp(B, LLVMIntULT, index, size, "");
    all = LLVMBuildAnd(B, all, ok, "");
  }
  return all;
}

// The slow way of a vector that sticks out: a lane at a time.
static LLVMValueRef load_else_lanes(hd_emit_t *e, const hd_access_t *whole,
                                    LLVMValueRef otherwise) {
  LLVMValueRef result = otherwise;
  hd_type_t lane_type = hd_type_lane(whole->type);
  unsigned n = whole->num_indices;
  for (unsigned lane = 0; lane < whole->type.lanes; lane++) {
    const hd_expr_t **indices = HD_ARENA_ARRAY(&e->arena, const hd_expr_t *, n);
    for (unsigned i = 0; i < n; i++)
      indices[i] = whole->indices[i];
    const hd_expr_t *last = indices[n - 1];
    indices[n - 1] = hd_expr_binary(&e->arena, HD_EXPR_ADD, last,
                                    hd_expr_int(&e->arena, last->type, lane));
    hd_access_t a = {whole->var, false,      n,    indices,
                     lane_type,  whole->loc, false};
    LLVMValueRef ok = in_bounds(e, whole, lane);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(B);
    LLVMBasicBlockRef inside = hd_emit_new_block(e, "inside");
    LLVMBasicBlockRef next = hd_emit_new_block(e, "next");
    LLVMBuildCondBr(B, ok, inside, next);
    hd_emit_at(e, inside);
    LLVMValueRef value = load(e, &a);
    value = LLVMBuildInsertElement(B, result, value,
                                   LLVMConstInt(e->i32, lane, false), "");
    LLVMValueRef values[] = {value, result};
    LLVMBasicBlockRef blocks[] = {LLVMGetInsertBlock(B), from};
    LLVMBuildBr(B, next);
    hd_emit_at(e, next);
    result = LLVMBuildPhi(B, LLVMTypeOf(result), "");
    LLVMAddIncoming(result, values, blocks, 2);
  }
  return result;
}

LLVMValueRef hd_emit_load_else(hd_emit_t *e, const hd_expr_t *x) {
  hd_access_t a = hd_emit_access(e, x);
  if (e->sanitize)
    hd_emit_check_overflow(e, &a, HD_SIM_LOAD, NULL);
  LLVMValueRef ok = in_bounds(e, &a, 0);
  if (x->type.lanes > 1)
    ok = LLVMBuildAnd(B, ok, in_bounds(e, &a, x->type.lanes - 1u), "");
  LLVMBasicBlockRef inside = hd_emit_new_block(e, "inside");
  LLVMBasicBlockRef outside = hd_emit_new_block(e, "outside");
  LLVMBasicBlockRef join = hd_emit_new_block(e, "join");
  LLVMValueRef values[2];
  LLVMBasicBlockRef blocks[2];
  LLVMBuildCondBr(B, ok, inside, outside);
  hd_emit_at(e, inside);
  values[0] = load(e, &a);
  blocks[0] = LLVMGetInsertBlock(B);
  LLVMBuildBr(B, join);
  hd_emit_at(e, outside);
  values[1] = hd_emit_expr(e, x->operands[x->num_operands - 1]);
  if (x->type.lanes > 1)
    values[1] = load_else_lanes(e, &a, values[1]);
  blocks[1] = LLVMGetInsertBlock(B);
  LLVMBuildBr(B, join);
  hd_emit_at(e, join);
  LLVMValueRef phi = LLVMBuildPhi(B, hd_emit_type(e, x->type), "");
  LLVMAddIncoming(phi, values, blocks, 2);
  return phi;
}
