// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads, stores and the places that intrinsics take. An access is a tensor's
// base, an offset in elements (its layout applied to the indices, or given),
// and, for elements of less than a byte, the bit within the byte.
#include "CodeGen/Emit.h"
#include "CodeGen/SimAbi.h"
#include "IR/Rewrite.h"

#include <string.h>

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

static const hd_expr_t *const *
name_indices(hd_emit_t *e, const hd_expr_t *const *indices, uint32_t count) {
  const hd_expr_t **named = HD_ARENA_ARRAY(&e->arena, const hd_expr_t *, count);
  for (uint32_t i = 0; i < count; i++)
    named[i] = name_index(e, indices[i]);
  return named;
}

static hd_access_t access_of(hd_emit_t *e, const hd_expr_t *x) {
  uint32_t count = hd_expr_num_indices(x);
  return (hd_access_t){
      .var = x->u.var,
      .linear = x->linear,
      .num_indices = count,
      .indices = x->linear ? x->operands : name_indices(e, x->operands, count),
      .type = x->type,
      .loc = x->loc};
}

static unsigned element_bits(hd_type_t type) {
  return hd_scalar_bits((hd_scalar_t)type.scalar);
}

static const hd_expr_t *offset_of(hd_emit_t *e, const hd_access_t *a) {
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
  LLVMTypeRef type = hd_emit_memory_type(e, a->var->tensor->element);
  offset = hd_emit_known(e, offset);
  LLVMValueRef gep = LLVMBuildGEP2(B, type, base, &offset, 1, "");
  if (!e->host && !LLVMIsAConstantInt(offset))
    mark_dynamic(e, a, gep);
  return gep;
}

static hd_place_t place_of(hd_emit_t *e, const hd_access_t *a, int kind) {
  hd_place_t place = {.binding = hd_emit_find(e, a->var)};
  if (!place.binding) {
    hd_emit_error(e, a->loc, HD_E0301, a->var->name);
    place.pointer = LLVMGetPoison(e->ptr);
    return place;
  }
  const hd_tensor_t *tensor = a->var->tensor;
  LLVMValueRef base = place.binding->value;
  unsigned bits = element_bits(tensor->element);
  if (place.binding->cells) {
    place.pointer = LLVMGetPoison(e->ptr);
    return place;
  }
  if (!e->host && tensor->scope != HD_SCOPE_REGISTER && bits >= 8) {
    hd_emit_address(e, tensor, offset_of(e, a), &place);
    return place;
  }
  const hd_expr_t *x = offset_of(e, a);
  LLVMValueRef offset = hd_emit_expr(e, x);
  // Addresses of shared memory have 32 bits on the GPU.
  bool narrow = !e->host && tensor->scope != HD_SCOPE_GLOBAL;
  offset = LLVMBuildIntCast2(B, offset, narrow ? e->i32 : e->i64,
                             hd_type_is_signed(x->type), "");
  if (tensor->scope == HD_SCOPE_REGISTER) {
    place.offset = offset;
    place.pointer = register_address(e, a, base, offset);
  } else if (bits < 8) {
    LLVMTypeRef t = LLVMTypeOf(offset);
    LLVMValueRef per_byte = LLVMConstInt(t, 8 / bits - 1, false);
    LLVMValueRef log2 = LLVMConstInt(t, bits == 4 ? 1 : 2, false);
    LLVMValueRef byte = LLVMBuildAShr(B, offset, log2, "");
    place.pointer = !e->host && tensor->scope == HD_SCOPE_SHARED
                        ? LLVMBuildAdd(B, base, byte, "")
                        : LLVMBuildGEP2(B, e->i8, base, &byte, 1, "");
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
  hd_access_t a = access_of(e, access);
  hd_place_t place = place_of(e, &a, kind);
  if (kind == HD_SIM_PLACE && place.binding && place.binding->is_table)
    hd_emit_error(e, access->loc, HD_E0508, "a place in a table",
                  "an operand of an intrinsic");
  return place;
}

hd_place_t hd_emit_matrix_place(hd_emit_t *e, const hd_expr_t *matrix) {
  hd_access_t a = access_of(e, matrix);
  a.bare = true;
  return place_of(e, &a, HD_SIM_PLACE);
}

static bool cell_of(hd_emit_t *e, const hd_access_t *a,
                    const hd_cells_t **cells, int64_t *index) {
  *cells = hd_emit_find(e, a->var)->cells;
  LLVMValueRef offset = hd_emit_known(e, hd_emit_expr(e, offset_of(e, a)));
  bool is_known = LLVMIsAConstantInt(offset);
  if (is_known)
    *index = LLVMConstIntGetSExtValue(offset);
  else if (!e->failed)
    e->retry = e->failed = true;
  return is_known;
}

bool hd_emit_cell(hd_emit_t *e, const hd_expr_t *access,
                  const hd_cells_t **cells, int64_t *index) {
  hd_access_t a = access_of(e, access);
  return cell_of(e, &a, cells, index);
}

bool hd_emit_has_registers(hd_emit_t *e, const hd_expr_t *call, unsigned i,
                           int64_t first) {
  const hd_intrinsic_info_t *info =
      hd_intrinsic_info((hd_intrinsic_t)call->u.intrinsic);
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
  hd_access_t a = access_of(e, x);
  if (place->binding && place->binding->written)
    hd_emit_check_written(e, &a, HD_SIM_PLACE, place, count, condition);
}

hd_place_t hd_emit_registers(hd_emit_t *e, const hd_expr_t *call, unsigned i) {
  hd_place_t place = hd_emit_place(e, call->operands[i], HD_SIM_PLACE);
  LLVMValueRef offset = place.offset ? hd_emit_known(e, place.offset) : NULL;
  if (offset && LLVMIsAConstantInt(offset))
    hd_emit_has_registers(e, call, i, LLVMConstIntGetSExtValue(offset));
  return place;
}

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
                         : (element_bits(tensor->element) + 7) / 8;
  unsigned whole = element_bits(tensor->element) * a->type.lanes / 8;
  if (e->host || tensor->scope == HD_SCOPE_REGISTER || whole <= element ||
      (whole & (whole - 1)))
    return element;
  return whole < 16 ? whole : 16;
}

static bool is_bytewise(const hd_access_t *a) {
  return hd_type_is_bool(a->type) || element_bits(a->type) < 8;
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
  unsigned bits = element_bits(a->type) * a->type.lanes;
  LLVMTypeRef type = LLVMIntTypeInContext(e->context, bits < 8 ? 8 : bits);
  LLVMValueRef value = LLVMBuildLoad2(B, type, hd_emit_displaced(e, place), "");
  value = finish_load(e, value, a, place);
  if (bits < 8) {
    value = LLVMBuildLShr(B, value, place->bit, "");
    value =
        LLVMBuildTrunc(B, value, LLVMIntTypeInContext(e->context, bits), "");
  }
  return hd_emit_from_bits(e, value, a->type);
}

static LLVMValueRef load_from(hd_emit_t *e, const hd_access_t *a,
                              const hd_place_t *place) {
  if (place->binding->written)
    hd_emit_check_written(e, a, HD_SIM_LOAD, place, a->type.lanes, NULL);
  if (is_bytewise(a)) {
    bool packed =
        element_bits(a->type) < 8 && a->var->tensor->scope != HD_SCOPE_REGISTER;
    return packed ? load_packed(e, a, place) : load_bytes(e, a, place);
  }
  LLVMTypeRef type = hd_emit_type(e, a->type);
  LLVMValueRef value = LLVMBuildLoad2(B, type, hd_emit_displaced(e, place), "");
  if (place->binding->exact && a->type.lanes == 1)
    hd_emit_load_exact(e, place, value);
  return finish_load(e, value, a, place);
}

static LLVMValueRef load(hd_emit_t *e, const hd_access_t *a) {
  if (is_in_cells(e, a)) {
    const hd_cells_t *cells;
    int64_t index;
    if (!cell_of(e, a, &cells, &index))
      return hd_emit_poison(e, a->type);
    return hd_cells_read(e, cells, index, a->type.lanes,
                         hd_emit_type(e, a->type));
  }
  hd_place_t place = place_of(e, a, HD_SIM_LOAD);
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
  hd_access_t a = access_of(e, x);
  if (a.var->table) {
    LLVMValueRef offset = hd_emit_known(e, hd_emit_expr(e, offset_of(e, &a)));
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

static void store_to(hd_emit_t *e, const hd_access_t *a,
                     const hd_place_t *place, LLVMValueRef value) {
  if (is_bytewise(a)) {
    bool packed =
        element_bits(a->type) < 8 && a->var->tensor->scope != HD_SCOPE_REGISTER;
    if (packed) {
      if (element_bits(a->type) * a->type.lanes % 8) {
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
    if (cell_of(e, a, &cells, &index))
      hd_cells_write(e, cells, index, a->type.lanes, value);
    return;
  }
  hd_place_t place = place_of(e, a, HD_SIM_STORE);
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
                       : name_indices(e, stmt->u.store.indices, count),
                   stmt->u.store.value->type,
                   stmt->loc,
                   false};
  store(e, &a, value);
}

void hd_emit_store_to(hd_emit_t *e, const hd_expr_t *place, hd_type_t type,
                      LLVMValueRef value) {
  hd_access_t a = access_of(e, place);
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
  hd_access_t a = access_of(e, x);
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
