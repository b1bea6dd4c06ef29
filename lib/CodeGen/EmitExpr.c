// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expressions. ?:, && and || evaluate lazily: with branches, or with a select
// where both sides are cheap and cannot fail.
#include "CodeGen/Emit.h"

#define B e->builder

static LLVMValueRef constant(hd_emit_t *e, const hd_expr_t *x) {
  hd_type_t lane = hd_type_lane(x->type);
  LLVMValueRef value;
  if (!hd_type_is_float(x->type))
    value = LLVMConstInt(hd_emit_type(e, lane), (uint64_t)x->u.i, true);
  else if (x->type.scalar == HD_F32 || x->type.scalar == HD_F64 ||
           x->type.scalar == HD_F16 || x->type.scalar == HD_TF32)
    value = LLVMConstReal(hd_emit_type(e, lane), x->u.f);
  else
    value = hd_emit_convert(e, LLVMConstReal(e->f32, (float)x->u.f),
                            hd_type(HD_F32), lane);
  return hd_emit_splat(e, value, x->type.lanes);
}

// Counts nodes down from limit; false: too many, or not to be evaluated unless
// the program does.
static bool is_cheap(const hd_expr_t *x, unsigned *limit) {
  if ((*limit)-- == 0)
    return false;
  switch ((hd_expr_kind_t)x->kind) {
  case HD_EXPR_LOAD:
  case HD_EXPR_LOADELSE:
  case HD_EXPR_REF:
  case HD_EXPR_TENSOR:
  case HD_EXPR_CALL:
  case HD_EXPR_INTRINSIC:
  case HD_EXPR_DIV:
  case HD_EXPR_MOD:
    return false;
  default:
    break;
  }
  for (uint32_t i = 0; i < x->num_operands; i++) {
    if (!is_cheap(x->operands[i], limit))
      return false;
    if (*limit == 0)
      return false;
  }
  return true;
}

bool hd_emit_is_cheap(const hd_expr_t *x) {
  unsigned limit = 12;
  return is_cheap(x, &limit);
}

// condition ? then : otherwise, each emitted in a block of its own.
static LLVMValueRef branches(hd_emit_t *e, LLVMValueRef condition,
                             const hd_expr_t *then, const hd_expr_t *otherwise,
                             hd_type_t type) {
  LLVMBasicBlockRef blocks[2], ends[2];
  LLVMValueRef values[2];
  const hd_expr_t *sides[] = {then, otherwise};
  LLVMBasicBlockRef join = hd_emit_new_block(e, "join");
  blocks[0] = hd_emit_new_block(e, "then");
  blocks[1] = hd_emit_new_block(e, "else");
  LLVMBuildCondBr(B, condition, blocks[0], blocks[1]);
  for (int i = 0; i < 2; i++) {
    hd_emit_at(e, blocks[i]);
    values[i] = hd_emit_expr(e, sides[i]);
    ends[i] = LLVMGetInsertBlock(B);
    LLVMBuildBr(B, join);
  }
  hd_emit_at(e, join);
  LLVMValueRef phi = LLVMBuildPhi(B, hd_emit_type(e, type), "");
  LLVMAddIncoming(phi, values, ends, 2);
  return phi;
}

static LLVMValueRef choose(hd_emit_t *e, const hd_expr_t *condition,
                           const hd_expr_t *then, const hd_expr_t *otherwise,
                           hd_type_t type) {
  LLVMValueRef c = hd_emit_expr(e, condition);
  if (LLVMIsAConstantInt(c))
    return hd_emit_expr(e, LLVMConstIntGetZExtValue(c) ? then : otherwise);
  if (hd_emit_is_predicable_load(e, then, otherwise))
    return hd_emit_predicated_load(e, c, then, otherwise);
  if (!hd_emit_is_cheap(then) || !hd_emit_is_cheap(otherwise))
    return branches(e, c, then, otherwise, type);
  LLVMValueRef a = hd_emit_expr(e, then);
  return LLVMBuildSelect(B, c, a, hd_emit_expr(e, otherwise), "");
}

// a && b is a ? b : false, a || b is a ? true : b.
static LLVMValueRef logical(hd_emit_t *e, const hd_expr_t *x) {
  if (hd_emit_is_cheap(x->operands[1])) {
    LLVMValueRef a = hd_emit_expr(e, x->operands[0]);
    return hd_emit_binary(e, x, a, hd_emit_expr(e, x->operands[1]));
  }
  bool is_and = x->kind == HD_EXPR_AND;
  const hd_expr_t *known = hd_expr_bool(&e->arena, !is_and);
  return choose(e, x->operands[0], is_and ? x->operands[1] : known,
                is_and ? known : x->operands[1], x->type);
}

static LLVMValueRef variable(hd_emit_t *e, const hd_expr_t *x) {
  const hd_binding_t *binding = hd_emit_find(e, x->u.var);
  if (binding)
    return binding->value;
  hd_emit_error(e, x->loc, HD_E0301, x->u.var->name);
  return hd_emit_poison(e, x->type);
}

static LLVMValueRef vector(hd_emit_t *e, const hd_expr_t *x) {
  LLVMValueRef first = hd_emit_expr(e, x->operands[0]);
  if (x->num_operands == 1)
    return hd_emit_splat(e, first, x->type.lanes);
  LLVMValueRef result = LLVMGetPoison(hd_emit_type(e, x->type));
  for (uint32_t i = 0; i < x->num_operands; i++) {
    LLVMValueRef lane = i ? hd_emit_expr(e, x->operands[i]) : first;
    result = LLVMBuildInsertElement(B, result, lane,
                                    LLVMConstInt(e->i32, i, false), "");
  }
  return result;
}

static LLVMValueRef bitcast(hd_emit_t *e, const hd_expr_t *x) {
  hd_type_t from = x->operands[0]->type;
  LLVMValueRef value = hd_emit_expr(e, x->operands[0]);
  value = hd_emit_to_bits(e, value, from);
  return hd_emit_from_bits(e, value, x->type);
}

// Special registers are read once, at the entry, where they serve all blocks.
static LLVMValueRef builtin(hd_emit_t *e, const hd_expr_t *x) {
  if (e->host)
    return hd_emit_host_builtin(e, x->u.builtin);
  LLVMValueRef *value = &e->builtins[x->u.builtin];
  if (!*value) {
    LLVMBuilderRef outer = e->builder;
    e->builder = e->entry_builder;
    *value = hd_emit_nvptx_builtin(e, x->u.builtin);
    e->builder = outer;
  }
  return *value;
}

// Local value numbering: unrolled bodies compute the same indices over and
// over, and what is not emitted need not be taken out by LLVM.
static struct hd_numbered *number(hd_emit_t *e, const hd_expr_t *x,
                                  LLVMValueRef a, LLVMValueRef b) {
  hd_type_t from = x->operands[0]->type;
  uint32_t type = (uint32_t)(x->type.scalar << 24 | x->type.lanes << 16 |
                             from.scalar << 8 | from.lanes);
  uint64_t hash = (uint64_t)(uintptr_t)a * UINT64_C(0x9e3779b97f4a7c15) +
                  (uint64_t)(uintptr_t)b * UINT64_C(0xc2b2ae3d27d4eb4f) +
                  ((uint64_t)x->kind << 32 | type);
  hash ^= hash >> 29;
  struct hd_numbered *entry = &e->numbered[hash % HD_EMIT_NUMBERED];
  LLVMBasicBlockRef block = LLVMGetInsertBlock(B);
  if (entry->block != block || entry->a != a || entry->b != b ||
      entry->kind != x->kind || entry->type != type)
    *entry = (struct hd_numbered){block, a, b, NULL, x->kind, type};
  return entry;
}

static bool is_numbered(const hd_expr_t *x) {
  return hd_type_is_integer(x->operands[0]->type) &&
         !hd_type_is_float(x->type) && x->kind != HD_EXPR_DIV &&
         x->kind != HD_EXPR_MOD;
}

static LLVMValueRef operation(hd_emit_t *e, const hd_expr_t *x) {
  LLVMValueRef a = hd_emit_expr(e, x->operands[0]), b = NULL;
  if (x->num_operands > 1)
    b = hd_emit_expr(e, x->operands[1]);
  struct hd_numbered *known = is_numbered(x) ? number(e, x, a, b) : NULL;
  if (known && known->value)
    return known->value;
  LLVMValueRef value = b ? hd_emit_binary(e, x, a, b) : hd_emit_unary(e, x, a);
  if (known)
    known->value = value;
  return value;
}

static LLVMValueRef cast(hd_emit_t *e, const hd_expr_t *x) {
  LLVMValueRef a = hd_emit_expr(e, x->operands[0]);
  struct hd_numbered *known = is_numbered(x) ? number(e, x, a, NULL) : NULL;
  if (known && known->value)
    return known->value;
  LLVMValueRef value = hd_emit_convert(e, a, x->operands[0]->type, x->type);
  if (known)
    known->value = value;
  return value;
}

static LLVMValueRef misplaced(hd_emit_t *e, const hd_expr_t *x) {
  hd_emit_error(e, x->loc, HD_E0302,
                hd_expr_info((hd_expr_kind_t)x->kind)->spelling, "here");
  return hd_emit_poison(e, x->type);
}

LLVMValueRef hd_emit_expr(hd_emit_t *e, const hd_expr_t *x) {
  if (!hd_emit_count(e, x->loc))
    return hd_emit_poison(e, x->type);
  switch ((hd_expr_kind_t)x->kind) {
  case HD_EXPR_CONST:
    return constant(e, x);
  case HD_EXPR_VAR:
    return variable(e, x);
  case HD_EXPR_BUILTIN:
    return builtin(e, x);
  case HD_EXPR_AND:
  case HD_EXPR_OR:
    return logical(e, x);
  case HD_EXPR_SELECT:
    return choose(e, x->operands[0], x->operands[1], x->operands[2], x->type);
  case HD_EXPR_CAST:
    return cast(e, x);
  case HD_EXPR_BITCAST:
    return bitcast(e, x);
  case HD_EXPR_VECTOR:
    return vector(e, x);
  case HD_EXPR_LANE:
    return hd_emit_lane(e, hd_emit_expr(e, x->operands[0]), (unsigned)x->u.i);
  case HD_EXPR_LOAD:
    return hd_emit_load(e, x);
  case HD_EXPR_LOADELSE:
    return hd_emit_load_else(e, x);
  case HD_EXPR_CALL:
    return hd_emit_call(e, x);
  case HD_EXPR_INTRINSIC:
    return hd_emit_intrinsic(e, x);
  case HD_EXPR_REF:
  case HD_EXPR_TENSOR:
  case HD_EXPR_COUNT:
    return misplaced(e, x);
  case HD_EXPR_NEG:
  case HD_EXPR_NOT:
  case HD_EXPR_BITNOT:
  case HD_EXPR_MUL:
  case HD_EXPR_DIV:
  case HD_EXPR_MOD:
  case HD_EXPR_ADD:
  case HD_EXPR_SUB:
  case HD_EXPR_SHL:
  case HD_EXPR_SHR:
  case HD_EXPR_BITAND:
  case HD_EXPR_BITXOR:
  case HD_EXPR_BITOR:
  case HD_EXPR_LT:
  case HD_EXPR_LE:
  case HD_EXPR_GT:
  case HD_EXPR_GE:
  case HD_EXPR_EQ:
  case HD_EXPR_NE:
  case HD_EXPR_MIN:
  case HD_EXPR_MAX:
    return operation(e, x);
  }
  return misplaced(e, x);
}
