// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Expr.h"

#include "IR/Tensor.h"

const hd_expr_info_t hd_expr_infos[HD_EXPR_COUNT] = {
#define HD_EXPR(name, spelling, form, precedence, commutative, payload)        \
  {#name,      spelling,    HD_FORM_##form,                                    \
   precedence, commutative, HD_PAYLOAD_##payload},
#include "IR/Exprs.def"
#undef HD_EXPR
};

enum { KERNEL = 0, HOST = 1 };

static const hd_builtin_info_t builtins[] = {
#define HD_BUILTIN(name, text, least, greatest, where)                         \
  {text, least, greatest, where},
#include "IR/Builtins.def"
#undef HD_BUILTIN
};

const hd_builtin_info_t *hd_builtin_info(hd_builtin_t builtin) {
  return &builtins[builtin];
}

static hd_expr_t *make_expr(hd_arena_t *arena, hd_expr_kind_t kind,
                            hd_type_t type, const hd_expr_t *const *operands,
                            unsigned count) {
  hd_expr_t *e =
      hd_arena_alloc(arena, sizeof(hd_expr_t) + count * sizeof(operands[0]));
  e->kind = (uint8_t)kind;
  e->type = type;
  e->num_operands = (uint16_t)count;
  unsigned height = 0;
  for (unsigned i = 0; i < count; i++) {
    e->operands[i] = operands[i];
    if (operands[i]->height > height)
      height = operands[i]->height;
  }
  e->height = (uint16_t)(height < UINT16_MAX ? height + 1 : height);
  if (count)
    e->loc = operands[0]->loc;
  return e;
}

const hd_expr_t *hd_expr_with(hd_arena_t *arena, const hd_expr_t *e,
                              const hd_expr_t *const *operands) {
  for (unsigned i = 0; i < e->num_operands; i++)
    if (operands[i] != e->operands[i])
      return hd_expr_make(arena, (hd_expr_kind_t)e->kind, e->type, e, operands,
                          e->num_operands);
  return e;
}

const hd_expr_t *hd_expr_int(hd_arena_t *arena, hd_type_t type, int64_t value) {
  hd_expr_t *e = make_expr(arena, HD_EXPR_CONST, type, NULL, 0);
  e->u.i = value;
  return e;
}

const hd_expr_t *hd_expr_float(hd_arena_t *arena, hd_type_t type,
                               double value) {
  hd_expr_t *e = make_expr(arena, HD_EXPR_CONST, type, NULL, 0);
  e->u.f = value;
  return e;
}

const hd_expr_t *hd_expr_bool(hd_arena_t *arena, bool value) {
  return hd_expr_int(arena, hd_type(HD_BOOL), value);
}

const hd_expr_t *hd_expr_i32(hd_arena_t *arena, int64_t value) {
  return hd_expr_int(arena, hd_type(HD_I32), value);
}

const hd_expr_t *hd_expr_var(hd_arena_t *arena, const hd_var_t *var) {
  hd_expr_kind_t kind =
      var->kind == HD_VAR_TENSOR ? HD_EXPR_TENSOR : HD_EXPR_VAR;
  hd_expr_t *e = make_expr(arena, kind, var->type, NULL, 0);
  e->u.var = var;
  return e;
}

const hd_expr_t *hd_expr_builtin(hd_arena_t *arena, hd_builtin_t builtin) {
  hd_expr_t *e = make_expr(arena, HD_EXPR_BUILTIN, hd_type(HD_I32), NULL, 0);
  e->u.builtin = builtin;
  return e;
}

const hd_expr_t *hd_expr_unary(hd_arena_t *arena, hd_expr_kind_t kind,
                               const hd_expr_t *a) {
  return make_expr(arena, kind, a->type, &a, 1);
}

const hd_expr_t *hd_expr_binary(hd_arena_t *arena, hd_expr_kind_t kind,
                                const hd_expr_t *a, const hd_expr_t *b) {
  const hd_expr_t *operands[] = {a, b};
  hd_type_t type = hd_expr_infos[kind].form == HD_FORM_COMPARE
                       ? hd_type_vector(HD_BOOL, a->type.lanes)
                       : a->type;
  return make_expr(arena, kind, type, operands, 2);
}

const hd_expr_t *hd_expr_select(hd_arena_t *arena, const hd_expr_t *condition,
                                const hd_expr_t *then,
                                const hd_expr_t *otherwise) {
  const hd_expr_t *operands[] = {condition, then, otherwise};
  return make_expr(arena, HD_EXPR_SELECT, then->type, operands, 3);
}

const hd_expr_t *hd_expr_cast(hd_arena_t *arena, hd_type_t type,
                              const hd_expr_t *a) {
  return hd_type_equal(type, a->type)
             ? a
             : make_expr(arena, HD_EXPR_CAST, type, &a, 1);
}

const hd_expr_t *hd_expr_access(hd_arena_t *arena, hd_expr_kind_t kind,
                                const hd_var_t *tensor, unsigned lanes,
                                const hd_expr_t *const *operands,
                                unsigned num_operands) {
  hd_type_t type = hd_type_vector((hd_scalar_t)tensor->type.scalar, lanes);
  hd_expr_t *e = make_expr(arena, kind, type, operands, num_operands);
  e->u.var = tensor;
  return e;
}

const hd_expr_t *hd_expr_access_linear(hd_arena_t *arena, hd_expr_kind_t kind,
                                       const hd_var_t *tensor, unsigned lanes,
                                       const hd_expr_t *offset) {
  hd_type_t type = hd_type_vector((hd_scalar_t)tensor->type.scalar, lanes);
  hd_expr_t *e = make_expr(arena, kind, type, &offset, 1);
  e->u.var = tensor;
  e->linear = true;
  return e;
}

const hd_expr_t *hd_expr_make(hd_arena_t *arena, hd_expr_kind_t kind,
                              hd_type_t type, const hd_expr_t *like,
                              const hd_expr_t *const *operands,
                              unsigned num_operands) {
  hd_expr_t *e = make_expr(arena, kind, type, operands, num_operands);
  if (like) {
    e->u = like->u;
    e->loc = like->loc;
    e->linear = like->linear;
  }
  return e;
}

bool hd_expr_defined(hd_expr_kind_t kind, hd_type_t type) {
  bool is_int = hd_type_is_integer(type), is_float = hd_type_is_float(type);
  bool is_bool = hd_type_is_bool(type);
  switch (kind) {
  case HD_EXPR_MOD:
  case HD_EXPR_SHL:
  case HD_EXPR_SHR:
  case HD_EXPR_BITNOT:
    return is_int;
  case HD_EXPR_BITAND:
  case HD_EXPR_BITOR:
  case HD_EXPR_BITXOR:
    return is_int || is_bool;
  case HD_EXPR_AND:
  case HD_EXPR_OR:
  case HD_EXPR_NOT:
    return is_bool && type.lanes == 1;
  case HD_EXPR_EQ:
  case HD_EXPR_NE:
    return is_int || is_float || is_bool;
  default:
    return is_int || is_float;
  }
}

size_t hd_expr_count(const hd_expr_t *e, size_t limit) {
  size_t count = 1;
  for (unsigned i = 0; i < e->num_operands && count < limit; i++)
    count += hd_expr_count(e->operands[i], limit - count);
  return count < limit ? count : limit;
}

bool hd_expr_is_int(const hd_expr_t *e, int64_t value) {
  return e->kind == HD_EXPR_CONST && !hd_type_is_float(e->type) &&
         e->u.i == value;
}

// The payload as bits: a constant's -0.0 differs from 0.0, and a NaN equals
// itself.
static uint64_t payload(const hd_expr_t *e) {
  switch (hd_expr_infos[e->kind].payload) {
  case HD_PAYLOAD_NONE:
    return 0;
  case HD_PAYLOAD_VALUE:
    return (uint64_t)e->u.i;
  case HD_PAYLOAD_VAR:
    return (uintptr_t)e->u.var;
  case HD_PAYLOAD_FUNC:
    return (uintptr_t)e->u.func;
  case HD_PAYLOAD_BUILTIN:
    return (uint64_t)e->u.builtin;
  case HD_PAYLOAD_INTRINSIC:
    return (uint64_t)e->u.intrinsic;
  }
  return 0;
}

bool hd_expr_equal(const hd_expr_t *a, const hd_expr_t *b) {
  if (a == b)
    return true;
  if (a->kind != b->kind || a->linear != b->linear ||
      !hd_type_equal(a->type, b->type) || a->num_operands != b->num_operands ||
      payload(a) != payload(b))
    return false;
  for (unsigned i = 0; i < a->num_operands; i++)
    if (!hd_expr_equal(a->operands[i], b->operands[i]))
      return false;
  return true;
}

bool hd_expr_evaluates(const hd_expr_t *e, const hd_expr_t *part) {
  if (hd_expr_equal(e, part))
    return true;
  for (unsigned i = 0; i < e->num_operands; i++)
    if (!hd_expr_is_lazy(e, i) && hd_expr_evaluates(e->operands[i], part))
      return true;
  return false;
}

static uint64_t mix(uint64_t hash, uint64_t value) {
  // The finalizer of splitmix64.
  hash ^= value + 0x9e3779b97f4a7c15u;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  return hash ^ (hash >> 31);
}

uint64_t hd_expr_hash(const hd_expr_t *e) {
  uint64_t hash = mix(e->kind, (uint64_t)e->type.scalar << 8 | e->type.lanes);
  hash = mix(hash, payload(e) + e->linear);
  for (unsigned i = 0; i < e->num_operands; i++)
    hash = mix(hash, hd_expr_hash(e->operands[i]));
  return hash;
}
