// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The text of an instruction: the table's ptx column with its letters filled
// in, and the constraints of its operands.
#include "CodeGen/EmitAsm.h"

#include <stdio.h>
#include <string.h>

static void put_text(hd_asm_text_t *text, const char *string) {
  size_t size = strlen(string);
  if (text->size + size >= HD_ASM_MAX_TEXT)
    size = HD_ASM_MAX_TEXT - 1 - text->size;
  memcpy(text->data + text->size, string, size);
  text->size += size;
  text->data[text->size] = '\0';
}

static void put_int(hd_asm_text_t *text, long long value) {
  char number[32];
  snprintf(number, sizeof number, "%lld", value);
  put_text(text, number);
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
static void put_operand(hd_asm_text_t *text, const hd_asm_t *a,
                        hd_asm_operand_t *o) {
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
    put_text(text, "{");
  for (unsigned i = 0; i < o->count; i++) {
    put_text(text, i ? ", $" : "$");
    put_int(text, first + i);
  }
  if (o->displacement) {
    put_text(text, "+");
    put_int(text, o->displacement);
  }
  if (in_braces)
    put_text(text, "}");
}

// PTX's word for the order. seq_cst is a fence.sc before and then: what the
// instruction has (PTX manual, memory consistency model).
static const char *order_word(const hd_asm_t *a) {
  static const char *const words[] = {"relaxed", "acquire", "release",
                                      "acq_rel"};
  if (a->info->traits & HD_TRAIT_FENCE)
    return a->order == HD_SEQ_CST ? "sc" : "acq_rel";
  const hd_intrinsic_param_t *place = &a->info->params[0];
  if (a->order == HD_SEQ_CST)
    return !place->writes ? "acquire" : !place->reads ? "release" : "acq_rel";
  return words[a->order];
}

static const char *scope_word(const hd_asm_t *a) {
  static const char *const words[] = {"cta", "cta", "cluster", "gpu", "sys"};
  return words[a->scope];
}

static const char *cache_word(const hd_asm_t *a) {
  static const char *const words[HD_CACHE_COUNT] = {
      [HD_CACHE_CA] = ".ca",
      [HD_CACHE_CG] = ".cg",
      [HD_CACHE_CS] = ".cs",
      [HD_CACHE_LU] = ".lu",
      [HD_CACHE_CV] = ".cv",
      [HD_CACHE_NC] = ".nc",
      [HD_CACHE_WB] = ".wb",
      [HD_CACHE_WT] = ".wt",
      [HD_CACHE_EVICT_FIRST] = ".L1::evict_first",
      [HD_CACHE_EVICT_LAST] = ".L1::evict_last",
      [HD_CACHE_NO_ALLOCATE] = ".L1::no_allocate",
  };
  if (a->info->traits & HD_TRAIT_STORE && a->cache == HD_CACHE_CA)
    return ""; // Nothing was said.
  return words[a->cache];
}

// The encodings of createpolicy.fractional with all lines.
static void put_policy(hd_asm_text_t *text, const hd_asm_t *a, bool is_suffix) {
  static const char *const operands[HD_POLICY_COUNT] = {
      [HD_POLICY_EVICT_FIRST] = ", 0x12F0000000000000",
      [HD_POLICY_EVICT_LAST] = ", 0x14F0000000000000"};
  if (operands[a->policy])
    put_text(text, is_suffix ? ".L2::cache_hint" : operands[a->policy]);
}

static void put_registers(hd_asm_text_t *text, const hd_asm_t *a) {
  unsigned count = hd_emit_asm_count(a->t);
  if (count > 1) {
    put_text(text, ".v");
    put_int(text, count);
  }
}

// One of the letters of the table's ptx column.
static void put_letter(hd_asm_text_t *text, hd_asm_t *a, char letter) {
  switch (letter) {
  case 'r':
    put_operand(text, a, &a->result);
    return;
  case 't': {
    const char *suffix = type_suffix(a->t);
    put_text(text, suffix ? suffix : "?");
    return;
  }
  case 'b':
    put_text(text, "b");
    put_int(text, hd_emit_asm_bits(a->t));
    return;
  case 'w':
    put_int(text, hd_emit_asm_bits(a->t));
    return;
  case 'v':
    put_registers(text, a);
    return;
  case 's':
    put_text(text, a->space == HD_SCOPE_SHARED ? "shared" : "global");
    return;
  case 'o':
    put_text(text, order_word(a));
    return;
  case 'c':
    put_text(text, scope_word(a));
    return;
  case 'k':
    put_text(text, cache_word(a));
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
    put_text(text, "%");
    return;
  default:
    put_operand(text, a, &a->operands[letter - '0']);
    return;
  }
}

void hd_asm_put_instruction(hd_asm_text_t *text, hd_asm_t *a) {
  if (a->order == HD_SEQ_CST && !(a->info->traits & HD_TRAIT_FENCE)) {
    put_text(text, "fence.sc.");
    put_text(text, scope_word(a));
    put_text(text, "; ");
  }
  for (const char *p = a->info->ptx; *p; p++) {
    char one[2] = {*p, '\0'};
    if (*p == '%')
      put_letter(text, a, *++p);
    else
      put_text(text, one);
  }
}

void hd_asm_put_constraints(hd_emit_t *e, hd_asm_text_t *text,
                            const hd_asm_t *a) {
  const char *comma = "";
  for (unsigned i = 0; i < a->num_outs; i++) {
    put_text(text, comma);
    put_text(text, "=");
    put_text(text, hd_emit_constraint(e, a->out_types[i]));
    comma = ",";
  }
  for (unsigned i = 0; i < a->num_ins; i++) {
    put_text(text, comma);
    if (a->ties[i] >= 0)
      put_int(text, a->ties[i]);
    else
      put_text(text, hd_emit_constraint(e, a->in_types[i]));
    comma = ",";
  }
  if (a->info->kind != HD_INTRINSIC_PURE) {
    put_text(text, comma);
    put_text(text, "~{memory}");
  }
}
