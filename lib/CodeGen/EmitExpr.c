// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expressions. ?:, && and || evaluate lazily: with branches, or with a select
// where both sides are cheap and cannot fail.
#include "CodeGen/EmitAccess.h"

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

// A quotient or remainder by a constant is a product and a few more.
static unsigned nodes_of(const hd_expr_t *x) {
  enum { QUOTIENT = 4 };
  bool divides = x->kind == HD_EXPR_DIV || x->kind == HD_EXPR_MOD;
  return divides && hd_type_is_integer(x->type) ? QUOTIENT : 1;
}

// Counts nodes down from limit; false: too many, or not to be evaluated unless
// the program does. known: has been evaluated, and so may be what it loads;
// NULL: nothing has.
static bool is_cheap(const hd_expr_t *x, const hd_expr_t *known,
                     unsigned *limit) {
  unsigned nodes = nodes_of(x);
  if (*limit < nodes) {
    *limit = 0;
    return false;
  }
  *limit -= nodes;
  switch ((hd_expr_kind_t)x->kind) {
  case HD_EXPR_LOAD:
    return known && hd_expr_evaluates(known, x);
  case HD_EXPR_LOADELSE:
  case HD_EXPR_REF:
  case HD_EXPR_TENSOR:
  case HD_EXPR_CALL:
  case HD_EXPR_INTRINSIC:
    return false;
  case HD_EXPR_DIV:
  case HD_EXPR_MOD:
    if (!hd_type_is_integer(x->type) || !hd_expr_is_const(x->operands[1]) ||
        x->operands[1]->u.i == 0)
      return false;
    break;
  default:
    break;
  }
  for (uint32_t i = 0; i < x->num_operands; i++) {
    if (!is_cheap(x->operands[i], known, limit))
      return false;
    if (*limit == 0)
      return false;
  }
  return true;
}

static bool is_cheap_after(const hd_expr_t *x, const hd_expr_t *known) {
  unsigned limit = 20;
  return is_cheap(x, known, &limit);
}

bool hd_emit_is_cheap(const hd_expr_t *x) { return is_cheap_after(x, NULL); }

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
  if (!is_cheap_after(then, condition) || !is_cheap_after(otherwise, condition))
    return branches(e, c, then, otherwise, type);
  LLVMValueRef a = hd_emit_expr(e, then);
  return hd_emit_select(e, c, a, hd_emit_expr(e, otherwise));
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
  LLVMValueRef lanes[HD_MAX_LANES] = {first};
  for (uint32_t i = 1; i < x->num_operands; i++)
    lanes[i] = hd_emit_expr(e, x->operands[i]);
  LLVMValueRef result = hd_emit_bytes(e, x->type, lanes);
  if (result)
    return result;
  result = LLVMGetPoison(hd_emit_type(e, x->type));
  for (uint32_t i = 0; i < x->num_operands; i++)
    result = LLVMBuildInsertElement(B, result, lanes[i],
                                    LLVMConstInt(e->i32, i, false), "");
  return result;
}

static LLVMValueRef bitcast(hd_emit_t *e, const hd_expr_t *x) {
  hd_type_t from = x->operands[0]->type;
  LLVMValueRef value = hd_emit_expr(e, x->operands[0]);
  value = hd_emit_to_bits(e, value, from);
  return hd_emit_from_bits(e, value, x->type);
}

// On the host LLVM's passes find what is computed twice in different blocks.
static bool is_numbered(const hd_emit_t *e, const hd_expr_t *x) {
  if (!e->host)
    return true;
  return hd_type_is_integer(x->operands[0]->type) &&
         !hd_type_is_float(x->type) && x->kind != HD_EXPR_DIV &&
         x->kind != HD_EXPR_MOD;
}

static uint32_t types_of(const hd_expr_t *x) {
  hd_type_t from = x->operands[0]->type;
  return (uint32_t)(x->type.scalar << 24 | x->type.lanes << 16 |
                    from.scalar << 8 | from.lanes);
}

static LLVMValueRef plus(hd_emit_t *e, uint32_t types, LLVMValueRef a,
                         uint64_t constant) {
  LLVMValueRef b = LLVMConstInt(LLVMTypeOf(a), constant, true);
  if (LLVMIsNull(b))
    return a;
  LLVMValueRef *known = hd_emit_number(e, HD_EXPR_ADD, types, a, b);
  if (!*known)
    *known = LLVMBuildAdd(B, a, b, "");
  return *known;
}

LLVMValueRef hd_emit_split(LLVMValueRef value, uint64_t *constant) {
  if (!LLVMIsAInstruction(value) ||
      LLVMGetInstructionOpcode(value) != LLVMAdd ||
      !LLVMIsAConstantInt(LLVMGetOperand(value, 1)))
    return value;
  *constant += LLVMConstIntGetZExtValue(LLVMGetOperand(value, 1));
  return LLVMGetOperand(value, 0);
}

// On the GPU sums are kept as (the rest) + constant, so that the copies of an
// unrolled body share the rest: (a + 1) + b is (a + b) + 1, (a + 1) * 4 is
// a * 4 + 4. NULL: there is nothing to bring into that form.
static LLVMValueRef reassociated(hd_emit_t *e, const hd_expr_t *x,
                                 LLVMValueRef a, LLVMValueRef b) {
  uint64_t constant = 0;
  if (e->host || !b || x->type.lanes > 1 || !hd_type_is_integer(x->type) ||
      hd_scalar_bits((hd_scalar_t)x->type.scalar) < 32)
    return NULL;
  if (x->kind == HD_EXPR_ADD) {
    if (LLVMIsAConstantInt(a) || LLVMIsAConstantInt(b))
      return NULL;
    LLVMValueRef left = hd_emit_split(a, &constant);
    LLVMValueRef right = hd_emit_split(b, &constant);
    if (left == a && right == b)
      return NULL;
    return plus(e, types_of(x), hd_emit_operation(e, x, left, right), constant);
  }
  bool scales = x->kind == HD_EXPR_MUL || x->kind == HD_EXPR_SHL;
  LLVMValueRef rest =
      scales && LLVMIsAConstantInt(b) ? hd_emit_split(a, &constant) : a;
  if (rest == a)
    return NULL;
  uint64_t by = LLVMConstIntGetZExtValue(b);
  if (x->kind == HD_EXPR_SHL && by > 31)
    return NULL;
  constant = x->kind == HD_EXPR_SHL ? constant << by : constant * by;
  return plus(e, types_of(x), hd_emit_operation(e, x, rest, b), constant);
}

// i64(a) * i64(b) of 32 bits each: the GPU has an instruction for it.
static LLVMValueRef wide_product(hd_emit_t *e, const hd_expr_t *x) {
  if (e->host || x->kind != HD_EXPR_MUL || x->type.lanes > 1)
    return NULL;
  const hd_expr_t *a = x->operands[0], *b = x->operands[1];
  if (a->kind != HD_EXPR_CAST || b->kind != HD_EXPR_CAST)
    return NULL;
  hd_scalar_t from = (hd_scalar_t)a->operands[0]->type.scalar;
  if (x->type.scalar != (from == HD_I32 ? HD_I64 : HD_U64) ||
      (from != HD_I32 && from != HD_U32) || b->operands[0]->type.scalar != from)
    return NULL;
  LLVMValueRef left = hd_emit_expr(e, a->operands[0]);
  LLVMValueRef right = hd_emit_expr(e, b->operands[0]);
  return hd_emit_multiply_wide(e, left, right, from == HD_I32);
}

LLVMValueRef hd_emit_operation(hd_emit_t *e, const hd_expr_t *x, LLVMValueRef a,
                               LLVMValueRef b) {
  hd_type_t from = x->operands[0]->type;
  LLVMValueRef other = reassociated(e, x, a, b);
  if (other)
    return other;
  uint32_t type = types_of(x);
  // What is of constants alone is folded, and a constant everywhere.
  bool numbered =
      is_numbered(e, x) && !(LLVMIsConstant(a) && (!b || LLVMIsConstant(b)));
  if (numbered) {
    LLVMValueRef known = *hd_emit_number(e, x->kind, type, a, b);
    if (known)
      return known;
  }
  LLVMValueRef value = x->kind == HD_EXPR_CAST
                           ? hd_emit_convert(e, a, from, x->type)
                       : b ? hd_emit_binary(e, x, a, b)
                           : hd_emit_unary(e, x, a);
  if (numbered)
    *hd_emit_number(e, x->kind, type, a, b) = value;
  return value;
}

static LLVMValueRef operation(hd_emit_t *e, const hd_expr_t *x) {
  LLVMValueRef product = wide_product(e, x);
  if (product)
    return product;
  LLVMValueRef a = hd_emit_expr(e, x->operands[0]), b = NULL;
  if (x->num_operands > 1)
    b = hd_emit_expr(e, x->operands[1]);
  return hd_emit_operation(e, x, a, b);
}

static LLVMValueRef misplaced(hd_emit_t *e, const hd_expr_t *x) {
  hd_emit_error(e, x->loc, HD_E0302,
                hd_expr_info((hd_expr_kind_t)x->kind)->spelling, "here");
  return hd_emit_poison(e, x->type);
}

LLVMValueRef hd_emit_expr(hd_emit_t *e, const hd_expr_t *x) {
  if (!hd_emit_count(e))
    return hd_emit_poison(e, x->type);
  switch ((hd_expr_kind_t)x->kind) {
  case HD_EXPR_CONST:
    return constant(e, x);
  case HD_EXPR_VAR:
    return variable(e, x);
  case HD_EXPR_BUILTIN:
    return hd_emit_builtin(e, x->u.builtin);
  case HD_EXPR_AND:
  case HD_EXPR_OR:
    return logical(e, x);
  case HD_EXPR_SELECT:
    return choose(e, x->operands[0], x->operands[1], x->operands[2], x->type);
  case HD_EXPR_BITCAST:
    return bitcast(e, x);
  case HD_EXPR_VECTOR:
    return vector(e, x);
  case HD_EXPR_LANE:
    return hd_emit_byte_lane(e, hd_emit_expr(e, x->operands[0]),
                             (unsigned)x->u.i);
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
  case HD_EXPR_CAST:
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
