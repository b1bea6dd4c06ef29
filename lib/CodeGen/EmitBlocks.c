// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Basic blocks as they are emitted: the tree of dominators, kept while blocks
// are begun, and the numbering of values by it. Unrolled bodies compute the
// same indices over and over; what is not emitted need not be taken out by
// LLVM.
//
// A block's way in is complete when emission comes to it, but for the heads of
// loops, whose back edge is missing; it changes no dominator.
#include "CodeGen/Emit.h"

#define B e->builder

LLVMBasicBlockRef hd_emit_new_block(hd_emit_t *e, const char *name) {
  return LLVMAppendBasicBlockInContext(e->context, e->function, name);
}

hd_flow_t *hd_emit_flow(const hd_emit_t *e, LLVMBasicBlockRef block) {
  return hd_ptr_map_find(&e->flows, block);
}

LLVMBasicBlockRef hd_emit_way_in(LLVMUseRef *use) {
  LLVMValueRef branch = LLVMGetUser(*use);
  *use = LLVMGetNextUse(*use);
  return LLVMGetInstructionParent(branch);
}

static hd_flow_t *common(hd_flow_t *a, hd_flow_t *b) {
  while (a != b) {
    if (!a || !b)
      return NULL;
    if (a->depth >= b->depth)
      a = a->dominator;
    else
      b = b->dominator;
  }
  return a;
}

static hd_flow_t *dominator_of(const hd_emit_t *e, LLVMBasicBlockRef block) {
  LLVMUseRef use = LLVMGetFirstUse(LLVMBasicBlockAsValue(block));
  hd_flow_t *dominator = NULL;
  for (bool first = true; use; first = false) {
    hd_flow_t *from = hd_emit_flow(e, hd_emit_way_in(&use));
    dominator = first ? from : common(dominator, from);
  }
  return dominator;
}

void hd_emit_at(hd_emit_t *e, LLVMBasicBlockRef block) {
  LLVMPositionBuilderAtEnd(B, block);
  if (e->host || hd_emit_flow(e, block))
    return;
  hd_flow_t *flow = HD_ARENA_NEW(&e->arena, hd_flow_t);
  flow->block = block;
  flow->dominator = dominator_of(e, block);
  flow->depth = flow->dominator ? flow->dominator->depth + 1 : 0;
  flow->loop = e->loop;
  flow->order = ++e->num_flows;
  hd_ptr_map_set(&e->arena, &e->flows, block, flow);
}

bool hd_emit_terminated(hd_emit_t *e) {
  return LLVMGetBasicBlockTerminator(LLVMGetInsertBlock(B));
}

void hd_emit_go(hd_emit_t *e, LLVMBasicBlockRef block) {
  if (!hd_emit_terminated(e))
    LLVMBuildBr(B, block);
}

void hd_emit_end(hd_emit_t *e, LLVMBasicBlockRef block) {
  if (!LLVMGetFirstUse(LLVMBasicBlockAsValue(block)) &&
      !hd_emit_terminated(e)) {
    LLVMDeleteBasicBlock(block);
    return;
  }
  hd_emit_go(e, block);
  hd_emit_at(e, block);
}

void hd_emit_branch(hd_emit_t *e, LLVMValueRef condition,
                    LLVMBasicBlockRef then, LLVMBasicBlockRef otherwise) {
  if (LLVMIsAConstantInt(condition))
    LLVMBuildBr(B, LLVMIsNull(condition) ? otherwise : then);
  else
    LLVMBuildCondBr(B, condition, then, otherwise);
}

// Whether what was computed in block a can be used in b. Looks up the tree so
// far only.
static bool dominates(const hd_emit_t *e, LLVMBasicBlockRef a,
                      LLVMBasicBlockRef b) {
  enum { FAR = 64 };
  if (a == b)
    return true;
  const hd_flow_t *upper = hd_emit_flow(e, a), *lower = hd_emit_flow(e, b);
  if (!upper || !lower || lower->depth > upper->depth + FAR)
    return false;
  while (lower && lower->depth > upper->depth)
    lower = lower->dominator;
  return lower == upper;
}

typedef struct operation {
  const void *a, *b;
  uint32_t kind, type;
} operation_t;

// The latest emission of an operation.
typedef struct numbered {
  operation_t of;
  LLVMBasicBlockRef block;
  LLVMValueRef value;
} numbered_t;

static bool is_index_arithmetic(LLVMValueRef value) {
  static const LLVMOpcode opcodes[] = {
      LLVMAdd,  LLVMSub,  LLVMMul,   LLVMShl,           LLVMLShr,
      LLVMAShr, LLVMAnd,  LLVMOr,    LLVMXor,           LLVMICmp,
      LLVMSExt, LLVMZExt, LLVMTrunc, LLVMGetElementPtr,
      LLVMCall, // Of what multiplies; no other is numbered.
  };
  if (!value || !LLVMIsAInstruction(value) ||
      LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMVectorTypeKind ||
      LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMFloatTypeKind)
    return false;
  LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
  for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++)
    if (opcodes[i] == opcode)
      return true;
  return false;
}

static bool has_operands_at(const hd_emit_t *e, LLVMValueRef value,
                            LLVMBasicBlockRef block) {
  unsigned count = (unsigned)LLVMGetNumOperands(value);
  for (unsigned i = 0; i < count; i++) {
    LLVMValueRef operand = LLVMGetOperand(value, i);
    if (LLVMIsAInstruction(operand) &&
        !dominates(e, LLVMGetInstructionParent(operand), block))
      return false;
  }
  return true;
}

void hd_emit_before_end(hd_emit_t *e, LLVMBasicBlockRef block) {
  LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
  if (end)
    LLVMPositionBuilderBefore(B, end);
  else
    LLVMPositionBuilderAtEnd(B, block);
}

// An operation was emitted in a branch that does not lead here: brings it up to
// where the two part, within the same loop, which ptxas does not. Only over a
// short way, or registers would hold it for long.
static bool hoist(hd_emit_t *e, numbered_t *entry, LLVMBasicBlockRef here) {
  enum { NEAR = 3 };
  LLVMValueRef value = entry->value;
  hd_flow_t *there = hd_emit_flow(e, entry->block), *to = hd_emit_flow(e, here);
  if (!is_index_arithmetic(value) || !there || !to ||
      LLVMGetInstructionParent(value) != entry->block)
    return false;
  const hd_flow_t *above = common(there, to);
  if (!above || above == there || above->depth + NEAR < there->depth ||
      above->depth + NEAR < to->depth || above->loop != there->loop ||
      above->loop != to->loop || !has_operands_at(e, value, above->block))
    return false;
  LLVMInstructionRemoveFromParent(value);
  hd_emit_before_end(e, above->block);
  LLVMInsertIntoBuilder(B, value);
  hd_emit_before_end(e, here);
  entry->block = above->block;
  return true;
}

static bool is_usable(hd_emit_t *e, numbered_t *entry, LLVMBasicBlockRef here) {
  if (!entry->block || entry->block == here || e->host)
    return entry->block == here;
  return dominates(e, entry->block, here) || hoist(e, entry, here);
}

LLVMValueRef *hd_emit_number(hd_emit_t *e, uint32_t kind, uint32_t type,
                             const void *a, const void *b) {
  const operation_t of = {a, b, kind, type};
  LLVMBasicBlockRef here = LLVMGetInsertBlock(B);
  numbered_t *entry = hd_key_map_find(&e->numbered, &of, sizeof of);
  if (!entry) {
    entry = HD_ARENA_NEW(&e->arena, numbered_t);
    entry->of = of;
    hd_key_map_set(&e->arena, &e->numbered, &entry->of, sizeof of, entry);
  }
  if (!is_usable(e, entry, here)) {
    entry->block = here;
    entry->value = NULL;
  }
  return &entry->value;
}
