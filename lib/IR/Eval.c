// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Eval.h"
#include "IR/Rewrite.h"

void hd_env_add(hd_arena_t *arena, hd_env_t *env, const hd_var_t *var,
                hd_number_t value) {
  hd_vec_push(arena, &env->values, (hd_var_value_t){var, value});
}

void hd_env_set(hd_arena_t *arena, hd_env_t *env, const hd_var_t *var,
                hd_number_t value) {
  for (size_t i = 0; i < env->values.size; i++)
    if (env->values.data[i].var == var) {
      env->values.data[i].value = value;
      return;
    }
  hd_env_add(arena, env, var, value);
}

const hd_number_t *hd_env_find(const hd_env_t *env, const hd_var_t *var) {
  for (size_t i = 0; i < env->values.size; i++)
    if (env->values.data[i].var == var)
      return &env->values.data[i].value;
  return NULL;
}

static bool leaf_value(void *argument, const hd_expr_t *leaf,
                       hd_number_t *value) {
  const hd_env_t *env = *(const hd_env_t *const *)argument;
  if (leaf->kind == HD_EXPR_BUILTIN) {
    value->i = env->sms;
    return leaf->u.builtin == HD_BUILTIN_DEVICE_SMS;
  }
  const hd_number_t *known = hd_env_find(env, leaf->u.var);
  if (known)
    *value = *known;
  return known != NULL;
}

static bool eval(const hd_env_t *env, const hd_expr_t *e, hd_number_t *value,
                 bool *wrapped) {
  const hd_fold_t fold = {leaf_value, &env, wrapped};
  return hd_expr_value(&fold, e, value);
}

bool hd_eval_int(const hd_env_t *env, const hd_expr_t *e, int64_t *value) {
  hd_number_t number;
  if (hd_type_is_float(e->type) || !eval(env, e, &number, NULL))
    return false;
  *value = number.i;
  return true;
}

bool hd_eval_size(const hd_env_t *env, const hd_expr_t *e, int64_t *value,
                  bool *wrapped) {
  hd_number_t number;
  *wrapped = false;
  if (hd_type_is_float(e->type) || !eval(env, e, &number, wrapped))
    return false;
  *value = number.i;
  return true;
}

bool hd_eval(const hd_env_t *env, const hd_expr_t *e, hd_number_t *value) {
  return eval(env, e, value, NULL);
}
