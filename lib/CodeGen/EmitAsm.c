// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Intrinsics on the GPU: the table's PTX as inline assembly. Values are taken
// apart into registers (vectors of small elements into words of 32 bits), lists
// of registers stand in braces, constants as themselves. What is no pure
// function of its values is convergent, has side effects and clobbers memory.
#include "CodeGen/Emit.h"
#include "CodeGen/SimAbi.h"
#include "IR/Matrix.h"

#include <stdio.h>
#include <string.h>

#define B e->builder

enum { MAX_TEXT = 4096 };

typedef struct text {
  char data[MAX_TEXT];
  size_t size;
} text_t;

// One list of registers: a value's, or those of a register reference.
typedef struct operand {
  hd_type_t type;          // Of registers: the elements and their number.
  LLVMValueRef address;    // Of register references in memory.
  const hd_cells_t *cells; // Of register references that are values,
  int64_t cell;            // and the first.
  int64_t displacement;    // Of places, in bytes.
  unsigned first, count;   // Among outputs, or among inputs.
  unsigned first_in;       // Among inputs, of what is written too.
  bool is_out, is_read_apart, is_printed, in_braces;
  bool is_immediate;
  int64_t immediate;
} operand_t;

typedef struct assembly {
  const hd_expr_t *x;
  const hd_intrinsic_info_t *info;
  hd_type_t t;
  operand_t operands[HD_INTRINSIC_MAX_PARAMS], result;
  LLVMTypeRef out_types[HD_EMIT_MAX_REGISTERS], in_types[HD_EMIT_MAX_REGISTERS];
  LLVMValueRef ins[HD_EMIT_MAX_REGISTERS];
  int ties[HD_EMIT_MAX_REGISTERS]; // Of an input: the output that it shares, or
                                   // -1.
  unsigned num_outs, num_ins;
  hd_scope_t space;
  int order, scope, cache, policy;
} assembly_t;

static void put(text_t *text, const char *string) {
  size_t size = strlen(string);
  if (text->size + size >= MAX_TEXT)
    size = MAX_TEXT - 1 - text->size;
  memcpy(text->data + text->size, string, size);
  text->size += size;
  text->data[text->size] = '\0';
}

static void put_int(text_t *text, long long value) {
  char number[32];
  snprintf(number, sizeof number, "%lld", value);
  put(text, number);
}

static void add_input(assembly_t *a, LLVMValueRef value, int tie) {
  if (a->num_ins == HD_EMIT_MAX_REGISTERS)
    return;
  a->ties[a->num_ins] = tie;
  a->in_types[a->num_ins] = LLVMTypeOf(value);
  a->ins[a->num_ins++] = value;
}

static void add_outputs(hd_emit_t *e, assembly_t *a, operand_t *o) {
  o->first = a->num_outs;
  o->count = hd_emit_asm_count(o->type);
  o->is_out = true;
  for (unsigned i = 0; i < o->count && a->num_outs < HD_EMIT_MAX_REGISTERS; i++)
    a->out_types[a->num_outs++] = hd_emit_asm_type(e, o->type);
}

static void add_value(hd_emit_t *e, assembly_t *a, operand_t *o,
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
static bool is_in_brackets(const assembly_t *a, unsigned param) {
  const char name[] = {'%', letter_of(param), '\0'};
  const char *at = strstr(a->info->ptx, name);
  for (; at; at = strstr(at + 1, name))
    if (at == a->info->ptx || at[-1] != '[')
      return false;
  return true;
}

static void add_place(hd_emit_t *e, assembly_t *a, operand_t *o,
                      const hd_expr_t *x) {
  hd_place_t place = hd_emit_place(e, x, HD_SIM_PLACE);
  a->space = x->u.var->tensor->scope;
  if (a->space == HD_SCOPE_REGISTER || e->failed) {
    hd_emit_error(e, x->loc, HD_E0302, "a register tensor", "here");
    return;
  }
  bool is_shared = a->space == HD_SCOPE_SHARED;
  LLVMTypeRef type = is_shared ? e->i32 : e->i64;
  LLVMValueRef address = LLVMBuildPtrToInt(B, place.pointer, type, "");
  if (is_in_brackets(a, (unsigned)(o - a->operands)))
    o->displacement = place.displacement;
  else if (place.displacement)
    address = LLVMBuildAdd(
        B, address, LLVMConstInt(type, (uint64_t)place.displacement, true), "");
  o->first = a->num_ins;
  o->count = 1;
  add_input(a, address, -1);
}

// The descriptor of a matrix: its address' bits 17-4, and its layout.
static void add_matrix(hd_emit_t *e, assembly_t *a, operand_t *o, uint32_t i) {
  hd_matrix_t matrix;
  add_place(e, a, o, a->x->operands[i]);
  hd_matrix_operand(a->info, a->x, i, &matrix);
  uint64_t bits = hd_matrix_encode(&matrix);
  if (e->failed)
    return;
  LLVMValueRef low = a->ins[o->first];
  low = LLVMBuildAnd(B, low, LLVMConstInt(e->i32, 0x3ffff, false), "");
  low = LLVMBuildLShr(B, low, LLVMConstInt(e->i32, 4, false), "");
  LLVMValueRef wide = LLVMBuildZExt(B, low, e->i64, "");
  wide = LLVMBuildOr(B, wide, LLVMConstInt(e->i64, bits, false), "");
  a->ins[o->first] = wide;
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
static hd_type_t shared_type(const operand_t *o) {
  return (hd_type_t){o->type.scalar, (uint8_t)(o->type.lanes / o->count)};
}

// The address of a reference's register i, and its type in memory: a vector of
// the small elements that share the register.
static LLVMValueRef register_address(hd_emit_t *e, const operand_t *o,
                                     unsigned i, hd_type_t *type) {
  *type = shared_type(o);
  LLVMValueRef index = LLVMConstInt(e->i32, i * type->lanes, false);
  LLVMTypeRef element = hd_emit_memory_type(e, hd_type_lane(o->type));
  return LLVMBuildGEP2(B, element, o->address, &index, 1, "");
}

// The elements of a reference that share its register i, as that register.
static LLVMValueRef read_register(hd_emit_t *e, const operand_t *o,
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

static void write_register(hd_emit_t *e, const operand_t *o, unsigned i,
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
static bool is_named_twice(const assembly_t *a, unsigned param) {
  const char name[] = {'%', letter_of(param), '\0'};
  const char *first = strstr(a->info->ptx, name);
  return first && strstr(first + 1, name);
}

static void add_registers(hd_emit_t *e, assembly_t *a, operand_t *o,
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
  if (param->form != HD_PARAM_REGISTER_IN)
    add_outputs(e, a, o);
  if (param->form == HD_PARAM_REGISTER_OUT || e->failed)
    return;
  bool is_inout = param->form == HD_PARAM_REGISTER_INOUT;
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

static void add_operand(hd_emit_t *e, assembly_t *a, uint32_t i) {
  const hd_intrinsic_param_t *param = &a->info->params[i];
  const hd_expr_t *x = a->x->operands[i];
  operand_t *o = &a->operands[i];
  switch (param->form) {
  case HD_PARAM_CONST:
  case HD_PARAM_VALUE:
    add_value(e, a, o, x);
    return;
  case HD_PARAM_SHARED:
  case HD_PARAM_GLOBAL:
  case HD_PARAM_MEMORY:
    add_place(e, a, o, x);
    return;
  case HD_PARAM_MATRIX:
    add_matrix(e, a, o, i);
    return;
  case HD_PARAM_REGISTER_IN:
  case HD_PARAM_REGISTER_OUT:
  case HD_PARAM_REGISTER_INOUT:
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

static const char *type_suffix(hd_type_t type) {
  static const struct {
    hd_scalar_t scalar;
    const char *suffix[2]; // Alone, in pairs.
  } suffixes[] = {
      {HD_I32, {"s32", NULL}},    {HD_U32, {"u32", NULL}},
      {HD_I64, {"s64", NULL}},    {HD_U64, {"u64", NULL}},
      {HD_F16, {"f16", "f16x2"}}, {HD_BF16, {"bf16", "bf16x2"}},
      {HD_F32, {"f32", NULL}},    {HD_F64, {"f64", NULL}},
      {HD_I16, {"s16", NULL}},    {HD_U16, {"u16", NULL}},
  };
  for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
    if (suffixes[i].scalar == (hd_scalar_t)type.scalar && type.lanes <= 2)
      return suffixes[i].suffix[type.lanes - 1];
  return NULL;
}

// Reading "$k": outputs come first. A list is in braces, even of one where the
// instruction takes lists: those of references. One that is read apart from
// where it is written is named there first.
static void put_operand(text_t *text, const assembly_t *a, operand_t *o) {
  if (o->is_immediate) {
    put_int(text, o->immediate);
    return;
  }
  bool is_output = o->is_out && !(o->is_read_apart && o->is_printed);
  unsigned first =
      is_output ? o->first : a->num_outs + (o->is_out ? o->first_in : o->first);
  o->is_printed = true;
  bool in_braces = o->count > 1 || o->in_braces;
  if (in_braces)
    put(text, "{");
  for (unsigned i = 0; i < o->count; i++) {
    put(text, i ? ", $" : "$");
    put_int(text, first + i);
  }
  if (o->displacement) {
    put(text, "+");
    put_int(text, o->displacement);
  }
  if (in_braces)
    put(text, "}");
}

static bool starts_with(const char *text, const char *prefix) {
  return !strncmp(text, prefix, strlen(prefix));
}

// PTX's word for the order. seq_cst is a fence.sc before and then: what the
// instruction has (PTX manual, memory consistency model).
static const char *order_word(const assembly_t *a) {
  static const char *const words[] = {"relaxed", "acquire", "release",
                                      "acq_rel"};
  const char *ptx = a->info->ptx;
  if (starts_with(ptx, "fence"))
    return a->order == HD_RELAXED   ? NULL
           : a->order == HD_SEQ_CST ? "sc"
                                    : "acq_rel";
  bool is_load = starts_with(ptx, "ld"), is_store = starts_with(ptx, "st");
  if (a->order == HD_SEQ_CST)
    return is_load ? "acquire" : is_store ? "release" : "acq_rel";
  if (is_load && a->order != HD_RELAXED && a->order != HD_ACQUIRE)
    return NULL;
  if (is_store && a->order != HD_RELAXED && a->order != HD_RELEASE)
    return NULL;
  return words[a->order];
}

static const char *scope_word(const assembly_t *a) {
  static const char *const words[] = {"cta", "cta", "cluster", "gpu", "sys"};
  return words[a->scope];
}

static const char *cache_word(const assembly_t *a) {
  enum { LOAD = 1, STORE = 2, COPY = 4 };
  static const struct {
    const char *word;
    int of;
  } words[HD_CACHE_COUNT] = {
      [HD_CACHE_CA] = {".ca", LOAD | COPY},
      [HD_CACHE_CG] = {".cg", LOAD | STORE | COPY},
      [HD_CACHE_CS] = {".cs", LOAD | STORE},
      [HD_CACHE_LU] = {".lu", LOAD},
      [HD_CACHE_CV] = {".cv", LOAD},
      [HD_CACHE_NC] = {".nc", LOAD},
      [HD_CACHE_WB] = {".wb", STORE},
      [HD_CACHE_WT] = {".wt", STORE},
      [HD_CACHE_EVICT_FIRST] = {".L1::evict_first", LOAD | STORE},
      [HD_CACHE_EVICT_LAST] = {".L1::evict_last", LOAD | STORE},
      [HD_CACHE_NO_ALLOCATE] = {".L1::no_allocate", LOAD | STORE},
  };
  const char *ptx = a->info->ptx;
  int use = starts_with(ptx, "ld")   ? LOAD
            : starts_with(ptx, "st") ? STORE
                                     : COPY;
  if (use == STORE && a->cache == HD_CACHE_CA)
    return ""; // Nothing was said.
  return words[a->cache].of & use ? words[a->cache].word : NULL;
}

static void put_named(hd_emit_t *e, text_t *text, const assembly_t *a,
                      hd_param_form_t form, int value, const char *word) {
  if (!word) {
    hd_emit_error(e, a->x->loc, HD_E0508, a->info->name,
                  hd_intrinsic_name_text(form, value));
    word = "";
  }
  put(text, word);
}

// The encodings of createpolicy.fractional with all lines.
static void put_policy(text_t *text, const assembly_t *a, bool is_suffix) {
  static const char *const operands[HD_POLICY_COUNT] = {
      [HD_POLICY_EVICT_FIRST] = ", 0x12F0000000000000",
      [HD_POLICY_EVICT_LAST] = ", 0x14F0000000000000"};
  if (operands[a->policy])
    put(text, is_suffix ? ".L2::cache_hint" : operands[a->policy]);
}

static void put_registers(text_t *text, const assembly_t *a) {
  unsigned count = hd_emit_asm_count(a->t);
  if (count > 1) {
    put(text, ".v");
    put_int(text, count);
  }
}

// One of the letters of the table's ptx column.
static void put_letter(hd_emit_t *e, text_t *text, assembly_t *a, char letter) {
  switch (letter) {
  case 'r':
    put_operand(text, a, &a->result);
    return;
  case 't': {
    const char *suffix = type_suffix(a->t);
    put(text, suffix ? suffix : "?");
    return;
  }
  case 'b':
    put(text, "b");
    put_int(text, hd_emit_asm_bits(a->t));
    return;
  case 'w':
    put_int(text, hd_emit_asm_bits(a->t));
    return;
  case 'v':
    put_registers(text, a);
    return;
  case 's':
    put(text, a->space == HD_SCOPE_SHARED ? "shared" : "global");
    return;
  case 'o':
    put_named(e, text, a, HD_PARAM_ORDER, a->order, order_word(a));
    return;
  case 'c':
    put(text, scope_word(a));
    return;
  case 'k':
    put_named(e, text, a, HD_PARAM_CACHE, a->cache, cache_word(a));
    return;
  case 'h':
  case 'p':
    put_policy(text, a, letter == 'h');
    return;
  case 'n':
    put_operand(text, a, &a->operands[a->info->count]);
    return;
  case 'A':
  case 'B':
    put_operand(text, a, &a->operands[10 + letter - 'A']);
    return;
  case '%':
    put(text, "%");
    return;
  default:
    put_operand(text, a, &a->operands[letter - '0']);
    return;
  }
}

static void put_instruction(hd_emit_t *e, text_t *text, assembly_t *a) {
  if (a->order == HD_SEQ_CST && !starts_with(a->info->ptx, "fence")) {
    put(text, "fence.sc.");
    put(text, scope_word(a));
    put(text, "; ");
  }
  for (const char *p = a->info->ptx; *p; p++) {
    char one[2] = {*p, '\0'};
    if (*p == '%')
      put_letter(e, text, a, *++p);
    else
      put(text, one);
  }
}

static void put_constraints(hd_emit_t *e, text_t *text, const assembly_t *a) {
  const char *comma = "";
  for (unsigned i = 0; i < a->num_outs; i++) {
    put(text, comma);
    put(text, "=");
    put(text, hd_emit_constraint(e, a->out_types[i]));
    comma = ",";
  }
  for (unsigned i = 0; i < a->num_ins; i++) {
    put(text, comma);
    if (a->ties[i] >= 0)
      put_int(text, a->ties[i]);
    else
      put(text, hd_emit_constraint(e, a->in_types[i]));
    comma = ",";
  }
  if (a->info->kind != HD_INTRINSIC_PURE) {
    put(text, comma);
    put(text, "~{memory}");
  }
}

static LLVMValueRef build(hd_emit_t *e, assembly_t *a) {
  text_t code = {.size = 0}, constraints = {.size = 0};
  put_instruction(e, &code, a);
  put_constraints(e, &constraints, a);
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
  return call;
}

static LLVMValueRef output(hd_emit_t *e, const assembly_t *a, LLVMValueRef call,
                           unsigned i) {
  return a->num_outs == 1 ? call : LLVMBuildExtractValue(B, call, i, "");
}

// Writes ro: and rw: operands back to their tensors.
static void write_registers(hd_emit_t *e, const assembly_t *a,
                            LLVMValueRef call) {
  for (uint32_t i = 0; i < a->x->num_operands; i++) {
    const operand_t *o = &a->operands[i];
    for (unsigned k = 0; o->is_out && k < o->count; k++)
      write_register(e, o, k, output(e, a, call, o->first + k));
  }
}

// The rules of cp.async that its operands' types cannot say.
static void check_copy(hd_emit_t *e, const assembly_t *a) {
  if (!starts_with(a->info->ptx, "cp.async%k"))
    return;
  int64_t bytes = a->operands[2].immediate;
  bool ok =
      bytes == 16 || (a->cache == HD_CACHE_CA && (bytes == 4 || bytes == 8));
  if (!ok)
    hd_emit_error(e, a->x->loc, HD_E0508, a->info->name,
                  a->cache == HD_CACHE_CA ? "a copy of other than 4, 8 or 16 "
                                            "bytes"
                                          : "a copy of other than 16 bytes "
                                            "by cg");
}

LLVMValueRef hd_emit_asm(hd_emit_t *e, const hd_expr_t *x) {
  assembly_t a = {.x = x};
  a.info = hd_intrinsic_info((hd_intrinsic_t)x->u.intrinsic);
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
  check_copy(e, &a);
  if (e->failed)
    return hd_emit_poison(e, x->type);
  LLVMValueRef call = build(e, &a);
  write_registers(e, &a, call);
  if (is_void)
    return NULL;
  LLVMValueRef registers[HD_EMIT_MAX_REGISTERS];
  for (unsigned i = 0; i < a.result.count; i++)
    registers[i] = output(e, &a, call, a.result.first + i);
  return hd_emit_put_together(e, registers, x->type);
}
