// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Effects of expressions and functions, by walking them. A function is walked
// for each of its calls, so calls are counted: past the limit it has every
// effect, whatever it does.
#include "IR/Effects.h"

#include "IR/Intrinsic.h"
#include "IR/Rewrite.h"

enum { MAX_CALLS = 256 };

typedef struct effects {
  unsigned calls;
  const hd_func_t *func; // Whose body is walked; NULL: none.
  const hd_var_t *param; // Of hd_func_writes().
} effects_t;

static bool has_effect(const hd_expr_t *e) {
  return e->kind == HD_EXPR_INTRINSIC &&
         hd_intrinsic_of(e)->kind != HD_INTRINSIC_PURE;
}

static bool func_is_pure(effects_t *walk, const hd_func_t *func);

static bool visit_pure(void *argument, const hd_expr_t *e) {
  return e->kind == HD_EXPR_CALL ? func_is_pure(argument, e->u.func)
                                 : !has_effect(e);
}

bool hd_expr_is_pure(const hd_expr_t *e) {
  return hd_walk_expr(e, visit_pure, &(effects_t){0});
}

static bool reads_nothing(void *argument, const hd_expr_t *e) {
  (void)argument;
  return (!hd_expr_is_access(e) && e->kind != HD_EXPR_TENSOR) ||
         e->u.var->table;
}

bool hd_expr_reads_memory(const hd_expr_t *e) {
  return !hd_walk_expr(e, reads_nothing, NULL);
}

bool hd_expr_is_stable(const hd_expr_t *e) {
  return !hd_expr_reads_memory(e) && hd_expr_is_pure(e);
}

bool hd_exprs_are_pure(const hd_expr_t *const *exprs, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (exprs[i] && !hd_expr_is_pure(exprs[i]))
      return false;
  return true;
}

// The tensor that a statement stores to, or NULL. A fusion point may store to
// its staging tensor, too.
static const hd_var_t *stored_by(const hd_stmt_t *stmt) {
  return stmt->kind == HD_STMT_STORE ? stmt->u.store.var
         : stmt->kind == HD_STMT_POINT && stmt->u.point.kind != HD_POINT_EXPECT
             ? stmt->u.point.place->u.var
             : NULL;
}

static bool visit_pure_stmt(void *argument, const hd_stmt_t *stmt) {
  (void)argument;
  const hd_var_t *var = stored_by(stmt);
  if (var)
    return var->tensor->scope == HD_SCOPE_REGISTER &&
           var->direction == HD_DIR_NONE;
  return stmt->kind != HD_STMT_ASSERT && stmt->kind != HD_STMT_WHILE &&
         stmt->kind != HD_STMT_PRINT;
}

static bool func_is_pure(effects_t *walk, const hd_func_t *func) {
  for (unsigned i = 0; i < func->num_params; ++i)
    if (func->params[i]->kind == HD_VAR_TENSOR)
      return false; // It may be written through.
  return func->kind == HD_FUNC_FN && ++walk->calls <= MAX_CALLS &&
         hd_walk_block(func->body, visit_pure_stmt, visit_pure, walk);
}

bool hd_func_is_pure(const hd_func_t *func) {
  return func_is_pure(&(effects_t){0}, func);
}

static bool is_param(const hd_func_t *func, const hd_var_t *var) {
  for (unsigned i = 0; i < func->num_params; ++i)
    if (func->params[i] == var)
      return true;
  return false;
}

static bool visit_repeatable_stmt(void *argument, const hd_stmt_t *stmt) {
  const effects_t *walk = argument;
  const hd_var_t *var = stored_by(stmt);
  if (!var)
    return stmt->kind != HD_STMT_PRINT;
  return var->tensor->scope == HD_SCOPE_REGISTER && !is_param(walk->func, var);
}

static bool visit_repeatable(void *argument, const hd_expr_t *e) {
  effects_t *walk = argument;
  if (e->kind != HD_EXPR_CALL)
    return !has_effect(e);
  const hd_func_t *outer = walk->func;
  walk->func = e->u.func;
  bool ok = ++walk->calls <= MAX_CALLS &&
            hd_walk_block(e->u.func->body, visit_repeatable_stmt,
                          visit_repeatable, walk);
  walk->func = outer;
  return ok;
}

bool hd_expr_is_repeatable(const hd_expr_t *e) {
  return hd_walk_expr(e, visit_repeatable, &(effects_t){0});
}

static bool leaves_param(effects_t *walk, const hd_func_t *func,
                         const hd_var_t *param);

static bool leaves_param_stmt(void *argument, const hd_stmt_t *stmt) {
  const effects_t *walk = argument;
  const hd_expr_t *staging =
      stmt->kind == HD_STMT_POINT && stmt->u.point.kind != HD_POINT_LOAD
          ? stmt->u.point.staging
          : NULL;
  return stored_by(stmt) != walk->param &&
         (!staging || staging->u.var != walk->param);
}

static bool leaves_param_expr(void *argument, const hd_expr_t *e) {
  effects_t *walk = argument;
  if (e->kind == HD_EXPR_INTRINSIC) {
    const hd_intrinsic_info_t *info = hd_intrinsic_of(e);
    for (unsigned i = 0; i < e->num_operands; i++)
      if (e->operands[i]->kind == HD_EXPR_REF &&
          e->operands[i]->u.var == walk->param && info->params[i].writes)
        return false;
  }
  if (e->kind != HD_EXPR_CALL)
    return true;
  for (unsigned i = 0; i < e->num_operands; i++)
    if (e->operands[i]->kind == HD_EXPR_TENSOR &&
        e->operands[i]->u.var == walk->param &&
        !leaves_param(walk, e->u.func, e->u.func->params[i]))
      return false;
  return true;
}

static bool leaves_param(effects_t *walk, const hd_func_t *func,
                         const hd_var_t *param) {
  effects_t inner = {.calls = walk->calls + 1, .param = param};
  bool ok =
      inner.calls <= MAX_CALLS &&
      hd_walk_block(func->body, leaves_param_stmt, leaves_param_expr, &inner);
  walk->calls = inner.calls;
  return ok;
}

bool hd_func_writes(const hd_func_t *func, const hd_var_t *param) {
  return !leaves_param(&(effects_t){0}, func, param);
}

bool hd_expr_is_global_load(const hd_expr_t *e) {
  return e->kind == HD_EXPR_LOAD && !e->linear &&
         e->u.var->tensor->scope == HD_SCOPE_GLOBAL;
}
