// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Intrinsics on the host: calls of the simulator, as CodeGen/SimAbi.h says.
#include "CodeGen/EmitAccess.h"
#include "CodeGen/SimAbi.h"
#include "IR/Matrix.h"

#include <stdio.h>
#include <string.h>

#define B e->builder

// An operand, worked out before any slot is written: checks and nested calls
// use the same memory.
typedef struct operand {
  LLVMValueRef value; // Or a place's or register's address.
  LLVMValueRef site;
  LLVMValueRef extra; // A matrix' layout, or which registers: one more slot.
  hd_type_t type;     // Of values; of registers: elements and their number.
  bool is_place, is_in, is_out;
  hd_place_t place; // Of registers.
  unsigned slot;    // The first of its own.
  unsigned copied;  // Registers: the first slot of the copy.
} operand_t;

typedef struct call {
  const hd_expr_t *x;
  const hd_intrinsic_info_t *info;
  hd_type_t t; // What T stands for.
  operand_t operands[HD_INTRINSIC_MAX_PARAMS];
  unsigned num_slots;
} call_t;

// The row's function, T's name in place of %t.
static void function_name(const call_t *c, char *text, size_t size) {
  const char *hole = strstr(c->info->sim, "%t");
  if (!hole) {
    snprintf(text, size, "%s", c->info->sim);
    return;
  }
  snprintf(text, size, "%.*s%s%s", (int)(hole - c->info->sim), c->info->sim,
           hd_type_name(c->t), hole + 2);
}

hd_type_t hd_emit_intrinsic_type(const hd_expr_t *x) {
  const hd_intrinsic_info_t *info = hd_intrinsic_of(x);
  if (info->result_generic)
    return x->type;
  for (uint32_t i = 0; i < info->num_params && i < x->num_operands; i++) {
    const hd_intrinsic_param_t *param = &info->params[i];
    if (!param->generic)
      continue;
    hd_type_t type = x->operands[i]->type;
    return param->form == HD_PARAM_REGISTER ? hd_type_lane(type) : type;
  }
  return hd_type(HD_VOID);
}

// As C passes it: f16 and the like as integers, small ones widened.
static LLVMValueRef to_c(hd_emit_t *e, LLVMValueRef value, hd_type_t type) {
  bool as_is =
      type.lanes == 1 && (type.scalar == HD_F32 || type.scalar == HD_TF32 ||
                          type.scalar == HD_F64);
  if (as_is)
    return value;
  bool is_signed = hd_type_is_signed(type) && type.lanes == 1;
  value = hd_emit_to_bits(e, value, type);
  if (LLVMGetIntTypeWidth(LLVMTypeOf(value)) < 32)
    value = LLVMBuildIntCast2(B, value, e->i32, is_signed, "");
  return value;
}

static LLVMTypeRef c_result(hd_emit_t *e, hd_type_t type) {
  LLVMTypeRef own = hd_emit_type(e, type);
  if (own == e->f32 || own == e->f64)
    return own;
  return LLVMIntTypeInContext(e->context,
                              hd_scalar_bits((hd_scalar_t)type.scalar) *
                                  (unsigned)type.lanes);
}

static LLVMValueRef call_pure_once(hd_emit_t *e, const char *name,
                                   const LLVMValueRef *values,
                                   const hd_type_t *types, unsigned n,
                                   hd_type_t result) {
  LLVMValueRef args[HD_INTRINSIC_MAX_PARAMS];
  for (unsigned i = 0; i < n; i++)
    args[i] = to_c(e, values[i], types[i]);
  LLVMTypeRef type = c_result(e, result);
  LLVMValueRef value = hd_emit_c_call(e, name, type, args, n);
  if (type == e->f32 || type == e->f64)
    return value;
  return hd_emit_from_bits(e, value, result);
}

// Over a vector T: once for each lane.
static LLVMValueRef call_pure(hd_emit_t *e, call_t *c) {
  const hd_expr_t *x = c->x;
  unsigned lanes = c->t.lanes > 1 ? c->t.lanes : 1;
  c->t.lanes = 1;
  char name[64];
  function_name(c, name, sizeof name);
  LLVMValueRef whole[HD_INTRINSIC_MAX_PARAMS], parts[HD_INTRINSIC_MAX_PARAMS];
  hd_type_t types[HD_INTRINSIC_MAX_PARAMS];
  unsigned n = x->num_operands;
  for (unsigned i = 0; i < n; i++) {
    whole[i] = hd_emit_expr(e, x->operands[i]);
    types[i] = x->operands[i]->type;
  }
  if (lanes == 1)
    return call_pure_once(e, name, whole, types, n, x->type);
  LLVMValueRef result = LLVMGetPoison(hd_emit_type(e, x->type));
  for (unsigned lane = 0; lane < lanes; lane++) {
    for (unsigned i = 0; i < n; i++) {
      parts[i] = hd_emit_lane(e, whole[i], lane);
      types[i] = hd_type_lane(x->operands[i]->type);
    }
    LLVMValueRef part =
        call_pure_once(e, name, parts, types, n, hd_type_lane(x->type));
    result = LLVMBuildInsertElement(B, result, part,
                                    LLVMConstInt(e->i32, lane, false), "");
  }
  return result;
}

static unsigned slots_of_value(hd_type_t type) {
  return hd_scalar_bits((hd_scalar_t)type.scalar) * type.lanes > 64 ? 2 : 1;
}

static LLVMValueRef slot_address(hd_emit_t *e, unsigned slot) {
  LLVMValueRef index = LLVMConstInt(e->i64, slot, false);
  return LLVMBuildInBoundsGEP2(B, e->i64, e->slots, &index, 1, "");
}

static void put_slot(hd_emit_t *e, unsigned slot, LLVMValueRef value) {
  LLVMBuildStore(B, value, slot_address(e, slot));
}

static void evaluate_place(hd_emit_t *e, const hd_expr_t *x, bool is_matrix,
                           operand_t *o) {
  hd_place_t place = is_matrix ? hd_emit_matrix_place(e, x)
                               : hd_emit_place(e, x, HD_SIM_PLACE);
  o->is_place = true;
  o->value = place.pointer;
  o->site = place.site ? place.site : LLVMConstNull(e->ptr);
  if (place.allowed)
    o->value = LLVMBuildSelect(B, place.allowed, place.pointer,
                               LLVMConstNull(e->ptr), "");
}

// The layout of a matrix; the verifier has seen that there is one.
static LLVMValueRef matrix(hd_emit_t *e, const call_t *c, unsigned i) {
  hd_matrix_t matrix;
  hd_matrix_operand(c->info, c->x, i, &matrix);
  return LLVMConstInt(e->i64, hd_matrix_encode(&matrix), false);
}

// Which registers these are: the tensor's number, and the element.
static LLVMValueRef register_identity(hd_emit_t *e, const hd_expr_t *x) {
  uint64_t number = hd_emit_find(e, x->u.var)->number;
  LLVMValueRef base = LLVMConstInt(e->i64, number << 32, false);
  if (x->num_operands == 0)
    return base;
  hd_access_t a = hd_emit_access(e, x);
  LLVMValueRef offset = hd_emit_expr(e, hd_emit_offset(e, &a));
  return LLVMBuildAdd(B, base, LLVMBuildZExtOrBitCast(B, offset, e->i64, ""),
                      "");
}

static void evaluate(hd_emit_t *e, call_t *c, unsigned i) {
  const hd_intrinsic_param_t *param = &c->info->params[i];
  const hd_expr_t *x = c->x->operands[i];
  operand_t *o = &c->operands[i];
  switch (param->form) {
  case HD_PARAM_VALUE:
  case HD_PARAM_CONST:
  case HD_PARAM_ORDER:
  case HD_PARAM_SCOPE:
  case HD_PARAM_CACHE:
  case HD_PARAM_POLICY:
  case HD_PARAM_MAJOR:
    o->value = hd_emit_expr(e, x);
    o->type = x->type;
    return;
  case HD_PARAM_MATRIX:
    o->extra = matrix(e, c, i);
    evaluate_place(e, x, true, o);
    return;
  case HD_PARAM_SHARED:
  case HD_PARAM_GLOBAL:
  case HD_PARAM_MEMORY:
    evaluate_place(e, x, false, o);
    return;
  case HD_PARAM_REGISTER:
    o->place = hd_emit_registers(e, c->x, i);
    o->value = o->place.pointer;
    o->type = (hd_type_t){x->type.scalar,
                          (uint8_t)hd_intrinsic_elements(c->info, c->x, i)};
    if (c->info->count >= 0) // Of wgmma, which goes on after the call.
      o->extra = register_identity(e, x);
    o->is_in = param->reads;
    o->is_out = param->writes;
    return;
  }
}

// Gives every operand its slots: the result's, the operands', then the copies
// of registers.
static void lay_out(call_t *c) {
  unsigned next = c->x->type.scalar == HD_VOID ? 0 : slots_of_value(c->x->type);
  for (uint32_t i = 0; i < c->x->num_operands; i++) {
    operand_t *o = &c->operands[i];
    o->slot = next;
    next += o->is_place             ? 2
            : o->is_in || o->is_out ? 1
                                    : slots_of_value(o->type);
    next += o->extra != NULL;
  }
  next += next & 1; // Copies are aligned to 16 bytes.
  for (uint32_t i = 0; i < c->x->num_operands; i++) {
    operand_t *o = &c->operands[i];
    if (!o->is_in && !o->is_out)
      continue;
    o->copied = next;
    next += hd_emit_register_bits(o->type) * o->type.lanes / 64 + 1;
    next += next & 1;
  }
  c->num_slots = next;
}

// Element by element, so that SROA sees the tensor's elements alone.
static void copy_registers(hd_emit_t *e, const operand_t *o, bool in) {
  LLVMTypeRef type = hd_emit_memory_type(e, hd_type_lane(o->type));
  LLVMValueRef copy = slot_address(e, o->copied);
  for (unsigned i = 0; i < o->type.lanes; i++) {
    LLVMValueRef index = LLVMConstInt(e->i64, i, false);
    LLVMValueRef own = LLVMBuildGEP2(B, type, o->value, &index, 1, "");
    LLVMValueRef its = LLVMBuildGEP2(B, type, copy, &index, 1, "");
    LLVMBuildStore(B, LLVMBuildLoad2(B, type, in ? own : its, ""),
                   in ? its : own);
  }
}

// Of accumulators, whose number the call tells, whether it reads them and is
// not only told which they are (then false): where its bool says so.
static bool reads_sums(const call_t *c, LLVMValueRef *condition) {
  for (uint32_t i = 0; i < c->x->num_operands; i++)
    if (c->info->params[i].form == HD_PARAM_VALUE &&
        hd_type_is_bool(c->x->operands[i]->type))
      *condition = c->operands[i].value;
  return *condition != NULL;
}

// Under --sanitize: registers are read that were written, or written.
static void check_registers(hd_emit_t *e, const call_t *c, bool after) {
  for (uint32_t i = 0; i < c->x->num_operands && !e->failed; i++) {
    const operand_t *o = &c->operands[i];
    LLVMValueRef condition = NULL;
    if (after && o->is_out && o->place.binding && o->place.binding->exact)
      hd_emit_renew_exact(e, &o->place, o->type.lanes);
    bool is_sum = o->is_in && o->is_out && c->info->params[i].divisor;
    if (!o->place.binding || !o->place.binding->written ||
        (is_sum && !reads_sums(c, &condition)))
      continue;
    if (after && o->is_out)
      hd_emit_mark_written(e, &o->place, o->type.lanes);
    else if (!after && o->is_in)
      hd_emit_check_registers(e, c->x->operands[i], &o->place, o->type.lanes,
                              condition);
  }
}

static void fill_slots(hd_emit_t *e, const call_t *c) {
  for (uint32_t i = 0; i < c->x->num_operands; i++) {
    const operand_t *o = &c->operands[i];
    if (o->extra)
      put_slot(e, o->slot + (o->is_place ? 2 : 1), o->extra);
    if (o->is_place) {
      put_slot(e, o->slot, o->value);
      put_slot(e, o->slot + 1, o->site);
    } else if (o->is_in || o->is_out) {
      if (o->is_in)
        copy_registers(e, o, true);
      put_slot(e, o->slot, slot_address(e, o->copied));
    } else {
      LLVMValueRef bits = hd_emit_to_bits(e, o->value, o->type);
      LLVMTypeRef wide =
          LLVMIntTypeInContext(e->context, 64 * slots_of_value(o->type));
      put_slot(e, o->slot, LLVMBuildZExtOrBitCast(B, bits, wide, ""));
    }
  }
}

static LLVMValueRef function_of(hd_emit_t *e, const call_t *c) {
  char name[64];
  function_name(c, name, sizeof name);
  LLVMValueRef f = LLVMGetNamedFunction(e->llvm, name);
  if (!f)
    f = LLVMAddFunction(e->llvm, name,
                        LLVMFunctionType(e->void_, NULL, 0, false));
  return f;
}

static void request(hd_emit_t *e, const call_t *c, bool has_slots) {
  LLVMValueRef slots = has_slots ? e->slots : LLVMConstNull(e->ptr);
  if (c->info->kind == HD_INTRINSIC_THREAD) {
    char name[64];
    function_name(c, name, sizeof name);
    LLVMValueRef args[] = {e->thread, slots};
    hd_emit_c_call(e, name, e->void_, args, 2);
    return;
  }
  bool is_aligned = c->info->traits & HD_TRAIT_ALIGNED;
  LLVMValueRef site =
      hd_emit_site(e, c->x->loc, c->info->name,
                   is_aligned ? HD_SIM_ALIGNED : HD_SIM_PLACE, NULL, 0, 0);
  int kind = c->info->kind == HD_INTRINSIC_WARP ? HD_SIM_WARP : HD_SIM_BLOCK;
  hd_emit_suspend(e, kind, function_of(e, c), site, slots);
}

static LLVMValueRef call_slots(hd_emit_t *e, call_t *c) {
  for (uint32_t i = 0; i < c->x->num_operands; i++)
    evaluate(e, c, i);
  lay_out(c);
  bool is_void = c->x->type.scalar == HD_VOID;
  if (e->failed || c->num_slots > e->num_slots) {
    hd_emit_error(e, c->x->loc, HD_E0508, c->info->name, "slots");
    return hd_emit_poison(e, c->x->type);
  }
  check_registers(e, c, false);
  fill_slots(e, c);
  request(e, c, c->num_slots > 0);
  for (uint32_t i = 0; i < c->x->num_operands; i++)
    if (c->operands[i].is_out)
      copy_registers(e, &c->operands[i], false);
  check_registers(e, c, true);
  if (is_void)
    return NULL;
  unsigned bits =
      hd_scalar_bits((hd_scalar_t)c->x->type.scalar) * c->x->type.lanes;
  LLVMTypeRef type = LLVMIntTypeInContext(e->context, bits);
  LLVMValueRef value = LLVMBuildLoad2(B, type, e->slots, "");
  return hd_emit_from_bits(e, value, c->x->type);
}

// A load or store with a cache hint is one without.
static LLVMValueRef plain_access(hd_emit_t *e, const hd_expr_t *x,
                                 bool is_load) {
  const hd_expr_t *place = x->operands[0];
  if (is_load) {
    unsigned n = hd_expr_num_indices(place);
    return hd_emit_load(e, hd_expr_make(&e->arena, HD_EXPR_LOAD, place->type,
                                        place, place->operands, n));
  }
  LLVMValueRef value = hd_emit_expr(e, x->operands[1]);
  hd_emit_store_to(e, place, x->operands[1]->type, value);
  return NULL;
}

LLVMValueRef hd_emit_sim(hd_emit_t *e, const hd_expr_t *x) {
  call_t c = {
      .x = x, .info = hd_intrinsic_of(x), .t = hd_emit_intrinsic_type(x)};
  if (c.info->traits & (HD_TRAIT_LOAD | HD_TRAIT_STORE))
    return plain_access(e, x, c.info->traits & HD_TRAIT_LOAD);
  if (c.info->kind == HD_INTRINSIC_PURE)
    return call_pure(e, &c);
  return call_slots(e, &c);
}
