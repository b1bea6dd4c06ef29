// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integers are evaluated here, without memory, because offsets are asked for by
// the million; the rest is left to hd_expr_fold().
#include "IR/Eval.h"
#include "IR/Rewrite.h"

const hd_binding_t *hd_env_find(const hd_env_t *env, const hd_var_t *var) {
  for (size_t i = 0; i < env->bindings.size; i++)
    if (env->bindings.data[i].var == var)
      return &env->bindings.data[i];
  return NULL;
}

static int64_t wrap(hd_type_t type, int64_t value) {
  unsigned shift = 64 - hd_scalar_bits((hd_scalar_t)type.scalar);
  if (hd_type_is_bool(type))
    return value != 0;
  if (hd_type_is_signed(type))
    return (int64_t)((uint64_t)value << shift) >> shift;
  return (int64_t)((uint64_t)value << shift >> shift);
}

static bool divide(const hd_expr_t *e, int64_t a, int64_t b, int64_t *value) {
  bool rest = e->kind == HD_EXPR_MOD;
  if (b == 0)
    return false;
  if (!hd_type_is_signed(e->type)) {
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    *value = (int64_t)(rest ? x % y : x / y);
  } else if (b == -1) {
    *value = rest ? 0 : (int64_t)(0 - (uint64_t)a);
  } else {
    *value = rest ? a % b : a / b;
  }
  return true;
}

static bool less(hd_type_t type, int64_t a, int64_t b) {
  return hd_type_is_signed(type) ? a < b : (uint64_t)a < (uint64_t)b;
}

static int64_t shift(const hd_expr_t *e, int64_t a, int64_t amount) {
  bool is_signed = hd_type_is_signed(e->type);
  bool over = amount < 0 ||
              amount >= (int64_t)hd_scalar_bits((hd_scalar_t)e->type.scalar);
  if (e->kind == HD_EXPR_SHL)
    return over ? 0 : (int64_t)((uint64_t)a << amount);
  if (is_signed)
    return a >> (over ? 63 : amount);
  return over ? 0 : (int64_t)((uint64_t)a >> amount);
}

static bool eval_binary(const hd_expr_t *e, int64_t a, int64_t b,
                        int64_t *value) {
  uint64_t x = (uint64_t)a, y = (uint64_t)b;
  hd_type_t type = e->operands[0]->type;
  bool a_less = less(type, a, b), b_less = less(type, b, a);
  // Not every kind stands here: those that have no integer value are false.
  switch ((hd_expr_kind_t)e->kind) {
  case HD_EXPR_ADD:
    *value = (int64_t)(x + y);
    return true;
  case HD_EXPR_SUB:
    *value = (int64_t)(x - y);
    return true;
  case HD_EXPR_MUL:
    *value = (int64_t)(x * y);
    return true;
  case HD_EXPR_DIV:
  case HD_EXPR_MOD:
    return divide(e, a, b, value);
  case HD_EXPR_SHL:
  case HD_EXPR_SHR:
    *value = shift(e, a, b);
    return true;
  case HD_EXPR_BITAND:
    *value = a & b;
    return true;
  case HD_EXPR_BITOR:
    *value = a | b;
    return true;
  case HD_EXPR_BITXOR:
    *value = a ^ b;
    return true;
  case HD_EXPR_MIN:
    *value = a_less ? a : b;
    return true;
  case HD_EXPR_MAX:
    *value = a_less ? b : a;
    return true;
  case HD_EXPR_LT:
    *value = a_less;
    return true;
  case HD_EXPR_LE:
    *value = !b_less;
    return true;
  case HD_EXPR_GT:
    *value = b_less;
    return true;
  case HD_EXPR_GE:
    *value = !a_less;
    return true;
  case HD_EXPR_EQ:
    *value = a == b;
    return true;
  case HD_EXPR_NE:
    *value = a != b;
    return true;
  default:
    return false;
  }
}

static bool is_integer(const hd_expr_t *e) {
  return e->type.lanes == 1 &&
         (hd_type_is_integer(e->type) || hd_type_is_bool(e->type));
}

static bool eval_leaf(const hd_env_t *env, const hd_expr_t *e, int64_t *value) {
  if (e->kind == HD_EXPR_CONST) {
    *value = e->u.i;
    return true;
  }
  if (e->kind == HD_EXPR_BUILTIN) {
    *value = env->sms;
    return e->u.builtin == HD_BUILTIN_DEVICE_SMS;
  }
  const hd_binding_t *binding =
      e->kind == HD_EXPR_VAR ? hd_env_find(env, e->u.var) : NULL;
  *value = binding ? binding->i : 0;
  return binding != NULL;
}

static bool eval(const hd_env_t *env, const hd_expr_t *e, int64_t *value,
                 bool *wrapped);

// &&, || and ?: evaluate what they need alone.
static bool eval_lazy(const hd_env_t *env, const hd_expr_t *e, int64_t *value,
                      bool *wrapped) {
  int64_t first;
  if (!eval(env, e->operands[0], &first, wrapped))
    return false;
  if (e->kind == HD_EXPR_SELECT)
    return eval(env, e->operands[first ? 1 : 2], value, wrapped);
  *value = first != 0;
  if ((e->kind == HD_EXPR_AND) != (first != 0))
    return true;
  return eval(env, e->operands[1], value, wrapped);
}

// Signed, and not what mathematics says. b is 0 where there is one operand.
static bool passes_type(const hd_expr_t *e, int64_t a, int64_t b) {
  int64_t exact;
  bool over = e->kind == HD_EXPR_ADD   ? __builtin_add_overflow(a, b, &exact)
              : e->kind == HD_EXPR_SUB ? __builtin_sub_overflow(a, b, &exact)
              : e->kind == HD_EXPR_MUL ? __builtin_mul_overflow(a, b, &exact)
              : e->kind == HD_EXPR_NEG
                  ? __builtin_sub_overflow((int64_t)0, a, &exact)
                  : (exact = 0, false);
  return hd_type_is_signed(e->type) && (over || wrap(e->type, exact) != exact);
}

static bool eval(const hd_env_t *env, const hd_expr_t *e, int64_t *value,
                 bool *wrapped) {
  int64_t a, b = 0;
  if (!is_integer(e))
    return false;
  if (e->num_operands == 0)
    return eval_leaf(env, e, value);
  if (e->kind == HD_EXPR_AND || e->kind == HD_EXPR_OR ||
      e->kind == HD_EXPR_SELECT)
    return eval_lazy(env, e, value, wrapped);
  if (!eval(env, e->operands[0], &a, wrapped))
    return false;
  if (e->num_operands == 2) {
    if (!eval(env, e->operands[1], &b, wrapped) || !eval_binary(e, a, b, value))
      return false;
  } else if (e->kind == HD_EXPR_NEG) {
    *value = (int64_t)(0 - (uint64_t)a);
  } else if (e->kind == HD_EXPR_BITNOT) {
    *value = ~a;
  } else if (e->kind == HD_EXPR_NOT) {
    *value = !a;
  } else if (e->kind == HD_EXPR_CAST) {
    *value = a;
  } else {
    return false;
  }
  if (wrapped && passes_type(e, a, b)) {
    *wrapped = true;
    return false;
  }
  *value = wrap(e->type, *value);
  return true;
}

bool hd_eval_int(const hd_env_t *env, const hd_expr_t *e, int64_t *value) {
  return eval(env, e, value, NULL);
}

bool hd_eval_size(const hd_env_t *env, const hd_expr_t *e, int64_t *value,
                  bool *wrapped) {
  *wrapped = false;
  return eval(env, e, value, wrapped);
}

typedef struct search {
  const hd_env_t *env;
  const hd_var_t *unbound;
} search_t;

static bool look(void *argument, const hd_expr_t *e) {
  search_t *search = argument;
  if (e->kind == HD_EXPR_VAR && !hd_env_find(search->env, e->u.var))
    search->unbound = e->u.var;
  return !search->unbound;
}

const hd_var_t *hd_eval_unbound(const hd_env_t *env, const hd_expr_t *e) {
  search_t search = {env, NULL};
  hd_walk_expr(e, look, &search);
  return search.unbound;
}

typedef struct lookup {
  const hd_env_t *env;
  hd_arena_t *arena;
} lookup_t;

static const hd_expr_t *look_up(void *argument, const hd_expr_t *e) {
  lookup_t *l = argument;
  if (e->kind == HD_EXPR_BUILTIN)
    return e->u.builtin == HD_BUILTIN_DEVICE_SMS
               ? hd_expr_int(l->arena, e->type, l->env->sms)
               : NULL;
  const hd_binding_t *binding = hd_env_find(l->env, e->u.var);
  if (!binding)
    return NULL;
  return hd_type_is_float(e->type)
             ? hd_expr_float(l->arena, e->type, binding->f)
             : hd_expr_int(l->arena, e->type, binding->i);
}

bool hd_eval(const hd_env_t *env, hd_arena_t *arena, const hd_expr_t *e,
             hd_binding_t *value) {
  if (hd_eval_int(env, e, &value->i))
    return true;
  lookup_t l = {env, arena};
  const hd_expr_t *folded = hd_expr_fold(arena, e, look_up, &l);
  if (!folded || !hd_expr_is_const(folded))
    return false;
  if (hd_type_is_float(folded->type))
    value->f = folded->u.f;
  else
    value->i = folded->u.i;
  return true;
}
