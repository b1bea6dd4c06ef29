// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An intrinsic on its way to inline assembly. Private to EmitAsm*.c.
#ifndef HIDET_CODEGEN_EMIT_ASM_H
#define HIDET_CODEGEN_EMIT_ASM_H

#include "CodeGen/Emit.h"

enum { HD_ASM_MAX_TEXT = 4096 };

typedef struct hd_asm_text {
  char data[HD_ASM_MAX_TEXT];
  size_t size;
} hd_asm_text_t;

// One list of registers: a value's, or those of a register reference.
typedef struct hd_asm_operand {
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
} hd_asm_operand_t;

typedef struct hd_asm {
  const hd_expr_t *x;
  const hd_intrinsic_info_t *info;
  hd_type_t t;
  hd_asm_operand_t operands[HD_INTRINSIC_MAX_PARAMS], result;
  LLVMTypeRef out_types[HD_EMIT_MAX_REGISTERS], in_types[HD_EMIT_MAX_REGISTERS];
  LLVMValueRef ins[HD_EMIT_MAX_REGISTERS];
  int ties[HD_EMIT_MAX_REGISTERS]; // Of an input: the output that it shares, or
                                   // -1.
  unsigned num_outs, num_ins;
  hd_scope_t space;
  int order, scope, cache, policy;
} hd_asm_t;

// The attribute of calls that shuffle, for Ptx.c.
#define HD_ASM_SHUFFLE "hidet-shuffle"

void hd_asm_put_instruction(hd_asm_text_t *text, hd_asm_t *a);
void hd_asm_put_constraints(hd_emit_t *e, hd_asm_text_t *text,
                            const hd_asm_t *a);

#endif
