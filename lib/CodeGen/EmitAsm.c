// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Intrinsics on the GPU: the table's PTX as inline assembly. Values are taken
// apart into registers (vectors of small elements into words of 32 bits), lists
// of registers stand in braces, constants as themselves. What is no pure
// function of its values is convergent, has side effects and clobbers memory.
#include "CodeGen/EmitAsm.h"
#include "CodeGen/EmitAccess.h"
#include "CodeGen/SimAbi.h"
#include "IR/Matrix.h"

#include <string.h>

#define B e->builder

static void add_input(hd_asm_t *a, LLVMValueRef value, int tie) {
  if (a->num_ins == HD_EMIT_MAX_REGISTERS)
    return;
  a->ties[a->num_ins] = tie;
  a->in_types[a->num_ins] = LLVMTypeOf(value);
  a->ins[a->num_ins++] = value;
}

static void add_outputs(hd_emit_t *e, hd_asm_t *a, hd_asm_operand_t *o) {
  o->first = a->num_outs;
  o->count = hd_emit_asm_count(o->type);
  o->is_out = true;
  for (unsigned i = 0; i < o->count && a->num_outs < HD_EMIT_MAX_REGISTERS; i++)
    a->out_types[a->num_outs++] = hd_emit_asm_type(e, o->type);
}

static void add_value(hd_emit_t *e, hd_asm_t *a, hd_asm_operand_t *o,
                      const hd_expr_t *x) {
  LLVMValueRef value = hd_emit_expr(e, x);
  o->type = x->type;
  bool is_bool = hd_type_is_bool(x->type);
  if (LLVMIsAConstantInt(value) &&
      (is_bool || (hd_type_is_integer(x->type) &&
                   hd_scalar_bits((hd_scalar_t)x->type.scalar) <= 32))) {
    o->is_immediate = true;
    o->immediate = is_bool ? (int64_t)LLVMConstIntGetZExtValue(value)
                           : LLVMConstIntGetSExtValue(value);
    return;
  }
  LLVMValueRef registers[HD_EMIT_MAX_REGISTERS];
  hd_emit_take_apart(e, value, x->type, registers);
  o->first = a->num_ins;
  o->count = hd_emit_asm_count(x->type);
  for (unsigned i = 0; i < o->count; i++)
    add_input(a, registers[i], -1);
}

// A parameter's in the table's ptx column.
static char letter_of(unsigned param) {
  return (char)(param < 10 ? '0' + param : 'A' + param - 10);
}

// Whether the instruction takes a parameter as an address, to which a constant
// may be added: [%0].
static bool is_in_brackets(const hd_asm_t *a, unsigned param) {
  const char name[] = {'%', letter_of(param), '\0'};
  const char *at = strstr(a->info->ptx, name);
  for (; at; at = strstr(at + 1, name))
    if (at == a->info->ptx || at[-1] != '[')
      return false;
  return true;
}

static void add_place(hd_emit_t *e, hd_asm_t *a, hd_asm_operand_t *o,
                      const hd_expr_t *x, bool is_matrix) {
  hd_place_t place = is_matrix ? hd_emit_matrix_place(e, x)
                               : hd_emit_place(e, x, HD_SIM_PLACE);
  a->space = x->u.var->tensor->scope;
  if (a->space == HD_SCOPE_REGISTER || e->failed) {
    hd_emit_error(e, x->loc, HD_E0302, "a register tensor", "here");
    return;
  }
  bool is_shared = a->space == HD_SCOPE_SHARED;
  LLVMTypeRef type = is_shared ? e->i32 : e->i64;
  LLVMValueRef address =
      is_shared ? place.pointer : LLVMBuildPtrToInt(B, place.pointer, type, "");
  if (is_matrix || is_in_brackets(a, (unsigned)(o - a->operands)))
    o->displacement = place.displacement;
  else if (place.displacement)
    address = LLVMBuildAdd(
        B, address, LLVMConstInt(type, (uint64_t)place.displacement, true), "");
  o->first = a->num_ins;
  o->count = 1;
  add_input(a, address, -1);
}

// The descriptor of a matrix: its address' bits 17-4, and its layout. What is
// known of the address is added last, with the layout, so that the descriptors
// of a tensor's parts are an addition each. The rest alone may be negative;
// above bit 23 it says which block of the cluster the address is of.
static void add_matrix(hd_emit_t *e, hd_asm_t *a, hd_asm_operand_t *o,
                       uint32_t i) {
  hd_matrix_t matrix;
  add_place(e, a, o, a->x->operands[i], true);
  hd_matrix_operand(a->info, a->x, i, &matrix);
  uint64_t bits = hd_matrix_encode(&matrix);
  if (e->failed)
    return;
  int64_t rest = o->displacement % 16; // The sum is a multiple of 16.
  int64_t known = (o->displacement - rest) / 16 + (int64_t)(uint32_t)bits;
  o->displacement = 0;
  LLVMValueRef low = a->ins[o->first];
  if (rest)
    low = LLVMBuildAdd(B, low, LLVMConstInt(e->i32, (uint64_t)rest, true), "");
  low = LLVMBuildShl(B, low, LLVMConstInt(e->i32, 8, false), "");
  low = LLVMBuildAShr(B, low, LLVMConstInt(e->i32, 12, false), "");
  low = LLVMBuildAdd(B, low, LLVMConstInt(e->i32, (uint32_t)known, false), "");
  LLVMValueRef high = LLVMConstInt(e->i64, bits >> 32 << 32, false);
  a->ins[o->first] =
      LLVMBuildOr(B, LLVMBuildZExt(B, low, e->i64, ""), high, "");
  a->in_types[o->first] = e->i64;
}

// Whether elements fill a register as they fill a value.
static bool is_plain(hd_type_t type) {
  unsigned bits = hd_scalar_bits((hd_scalar_t)type.scalar);
  unsigned all = bits * type.lanes;
  return !hd_type_is_bool(type) && bits >= 8 &&
         (all == 16 || all == 32 || all == 64);
}

// The type of the elements of a reference that share a register.
static hd_type_t shared_type(const hd_asm_operand_t *o) {
  return (hd_type_t){o->type.scalar, (uint8_t)(o->type.lanes / o->count)};
}

// The address of a reference's register i, and its type in memory: a vector of
// the small elements that share the register.
static LLVMValueRef register_address(hd_emit_t *e, const hd_asm_operand_t *o,
                                     unsigned i, hd_type_t *type) {
  *type = shared_type(o);
  LLVMValueRef index = LLVMConstInt(e->i32, i * type->lanes, false);
  LLVMTypeRef element = hd_emit_memory_type(e, hd_type_lane(o->type));
  return LLVMBuildGEP2(B, element, o->address, &index, 1, "");
}

// The elements of a reference that share its register i, as that register.
static LLVMValueRef read_register(hd_emit_t *e, const hd_asm_operand_t *o,
                                  unsigned i) {
  hd_type_t type;
  LLVMValueRef value, one[HD_EMIT_MAX_REGISTERS];
  if (o->cells) {
    type = shared_type(o);
    int64_t first = o->cell + i * type.lanes;
    if (is_plain(type))
      return hd_cells_read(e, o->cells, first, type.lanes,
                           hd_emit_asm_type(e, type));
    value =
        hd_cells_read(e, o->cells, first, type.lanes, hd_emit_type(e, type));
  } else {
    LLVMValueRef at = register_address(e, o, i, &type);
    value = LLVMBuildLoad2(B, hd_emit_type(e, type), at, "");
    LLVMSetAlignment(value, hd_emit_register_bits(type) / 8);
  }
  hd_emit_take_apart(e, value, type, one);
  return one[0];
}

static void write_register(hd_emit_t *e, const hd_asm_operand_t *o, unsigned i,
                           LLVMValueRef value) {
  hd_type_t type;
  if (o->cells) {
    type = shared_type(o);
    if (!is_plain(type))
      value = hd_emit_put_together(e, &value, type);
    hd_cells_write(e, o->cells, o->cell + i * type.lanes, type.lanes, value);
    return;
  }
  LLVMValueRef at = register_address(e, o, i, &type);
  LLVMValueRef store =
      LLVMBuildStore(B, hd_emit_put_together(e, &value, type), at);
  LLVMSetAlignment(store, hd_emit_register_bits(type) / 8);
}

// Whether the instruction names a parameter twice: where it is written, and
// where it is read.
static bool is_named_twice(const hd_asm_t *a, unsigned param) {
  const char name[] = {'%', letter_of(param), '\0'};
  const char *first = strstr(a->info->ptx, name);
  return first && strstr(first + 1, name);
}

static void add_registers(hd_emit_t *e, hd_asm_t *a, hd_asm_operand_t *o,
                          uint32_t index) {
  const hd_expr_t *x = a->x->operands[index];
  const hd_intrinsic_param_t *param = &a->info->params[index];
  const hd_binding_t *binding = hd_emit_find(e, x->u.var);
  if (binding && binding->cells) {
    if (hd_emit_cell(e, x, &o->cells, &o->cell))
      hd_emit_has_registers(e, a->x, index, o->cell);
  } else {
    o->address = hd_emit_registers(e, a->x, index).pointer;
  }
  o->in_braces = true;
  o->type = (hd_type_t){x->type.scalar,
                        (uint8_t)hd_intrinsic_elements(a->info, a->x, index)};
  o->count = hd_emit_asm_count(o->type);
  if (param->writes)
    add_outputs(e, a, o);
  if (!param->reads || e->failed)
    return;
  bool is_inout = param->writes;
  bool is_tied =
      is_inout && !is_named_twice(a, (unsigned)(param - a->info->params));
  e->is_tied |= is_tied;
  o->first_in = a->num_ins;
  o->is_read_apart = is_inout && !is_tied;
  if (!is_inout)
    o->first = a->num_ins;
  for (unsigned i = 0; i < o->count; i++)
    add_input(a, read_register(e, o, i), is_tied ? (int)(o->first + i) : -1);
}

static void add_operand(hd_emit_t *e, hd_asm_t *a, uint32_t i) {
  const hd_intrinsic_param_t *param = &a->info->params[i];
  const hd_expr_t *x = a->x->operands[i];
  hd_asm_operand_t *o = &a->operands[i];
  switch (param->form) {
  case HD_PARAM_CONST:
  case HD_PARAM_VALUE:
    add_value(e, a, o, x);
    return;
  case HD_PARAM_SHARED:
  case HD_PARAM_GLOBAL:
  case HD_PARAM_MEMORY:
    add_place(e, a, o, x, false);
    return;
  case HD_PARAM_MATRIX:
    add_matrix(e, a, o, i);
    return;
  case HD_PARAM_REGISTER:
    add_registers(e, a, o, i);
    return;
  case HD_PARAM_ORDER:
    a->order = (int)x->u.i;
    return;
  case HD_PARAM_SCOPE:
    a->scope = (int)x->u.i;
    return;
  case HD_PARAM_CACHE:
    a->cache = (int)x->u.i;
    return;
  case HD_PARAM_POLICY:
    a->policy = (int)x->u.i;
    return;
  case HD_PARAM_MAJOR:
    o->is_immediate = true;
    o->immediate = x->u.i;
    return;
  }
}

static LLVMValueRef build(hd_emit_t *e, hd_asm_t *a) {
  hd_asm_text_t code = {.size = 0}, constraints = {.size = 0};
  hd_asm_put_instruction(&code, a);
  hd_asm_put_constraints(e, &constraints, a);
  LLVMTypeRef result = a->num_outs == 0 ? e->void_
                       : a->num_outs == 1
                           ? a->out_types[0]
                           : LLVMStructTypeInContext(e->context, a->out_types,
                                                     a->num_outs, false);
  LLVMTypeRef type = LLVMFunctionType(result, a->in_types, a->num_ins, false);
  bool effect = a->info->kind != HD_INTRINSIC_PURE;
  LLVMValueRef assembly = LLVMGetInlineAsm(
      type, code.data, code.size, constraints.data, constraints.size, effect,
      false, LLVMInlineAsmDialectATT, false);
  LLVMValueRef call = LLVMBuildCall2(B, type, assembly, a->ins, a->num_ins, "");
  // memory(none) is the attribute's value 0.
  const char *names[] = {"nounwind", effect ? "convergent" : "memory",
                         effect ? "nounwind" : "willreturn"};
  for (size_t i = 0; i < 3; i++) {
    unsigned kind = LLVMGetEnumAttributeKindForName(names[i], strlen(names[i]));
    LLVMAddCallSiteAttribute(call, (unsigned)LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(e->context, kind, 0));
  }
  if (a->info->traits & HD_TRAIT_SHUFFLE)
    LLVMAddCallSiteAttribute(
        call, (unsigned)LLVMAttributeFunctionIndex,
        LLVMCreateStringAttribute(e->context, HD_ASM_SHUFFLE,
                                  sizeof HD_ASM_SHUFFLE - 1, "", 0));
  return call;
}

static LLVMValueRef output(hd_emit_t *e, const hd_asm_t *a, LLVMValueRef call,
                           unsigned i) {
  return a->num_outs == 1 ? call : LLVMBuildExtractValue(B, call, i, "");
}

// Writes ro: and rw: operands back to their tensors.
static void write_registers(hd_emit_t *e, const hd_asm_t *a,
                            LLVMValueRef call) {
  for (uint32_t i = 0; i < a->x->num_operands; i++) {
    const hd_asm_operand_t *o = &a->operands[i];
    for (unsigned k = 0; o->is_out && k < o->count; k++)
      write_register(e, o, k, output(e, a, call, o->first + k));
  }
}

// The constant that all lanes shuffle, and so each gets; else NULL. ptxas folds
// that too late: from min(c - x, y) it had made VIADDMNMX with -x by then, and
// gives the sign to c instead (13.0, sm_90: min(x - c, y)).
static LLVMValueRef shuffled_constant(const hd_asm_t *a) {
  const hd_asm_operand_t *o = &a->operands[0];
  if (!(a->info->traits & HD_TRAIT_SHUFFLE))
    return NULL;
  if (o->is_immediate)
    return LLVMConstInt(a->out_types[0], (uint64_t)o->immediate, true);
  return LLVMIsConstant(a->ins[o->first]) ? a->ins[o->first] : NULL;
}

LLVMValueRef hd_emit_asm(hd_emit_t *e, const hd_expr_t *x) {
  hd_asm_t a = {.x = x};
  a.info = hd_intrinsic_of(x);
  a.t = hd_emit_intrinsic_type(x);
  a.scope = HD_SYNC_DEVICE;
  bool is_void = x->type.scalar == HD_VOID;
  if (!is_void) {
    a.result.type = x->type;
    add_outputs(e, &a, &a.result);
  }
  for (uint32_t i = 0; i < x->num_operands; i++)
    add_operand(e, &a, i);
  if (a.scope == HD_SYNC_CLUSTER && e->target->sm < 90)
    hd_emit_error(e, x->loc, HD_E0501, "cluster", "sm_90 or newer",
                  e->target->name);
  if (e->failed)
    return hd_emit_poison(e, x->type);
  LLVMValueRef call = shuffled_constant(&a);
  if (!call)
    call = build(e, &a);
  write_registers(e, &a, call);
  if (is_void)
    return NULL;
  LLVMValueRef registers[HD_EMIT_MAX_REGISTERS];
  for (unsigned i = 0; i < a.result.count; i++)
    registers[i] = output(e, &a, call, a.result.first + i);
  return hd_emit_put_together(e, registers, x->type);
}
