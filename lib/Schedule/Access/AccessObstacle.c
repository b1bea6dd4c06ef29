// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What stands in the way of replacing accesses: uses of a parameter that are
// neither loads nor stores of elements, and tensors that are both read and
// written.

#include "Schedule/Access/AccessState.h"

#include "IR/Intrinsic.h"

typedef struct uses {
  const hd_func_t *kernel;
  const hd_var_t *param;
  bool is_loaded, is_stored;
  const char *obstacle; // To both; the first one met.
} uses_t;

static void note(uses_t *uses, const char *obstacle) {
  if (!uses->obstacle)
    uses->obstacle = obstacle;
}

static const char *why_not_intrinsic(const hd_expr_t *e) {
  return hd_expr_has_trait(e, HD_TRAIT_ATOMIC) ? "is accessed by atomics"
         : hd_expr_has_trait(e, HD_TRAIT_COPY) ? "is copied asynchronously"
         : hd_expr_has_trait(e, HD_TRAIT_BULK)
             ? "is copied by the copy engine"
             : "is given to an instruction by its address";
}

static void visit_intrinsic(uses_t *uses, const hd_expr_t *e) {
  for (unsigned i = 0; i < e->num_operands; i++) {
    const hd_expr_t *place = e->operands[i];
    bool is_map = place->kind == HD_EXPR_VAR && place->u.var->map &&
                  place->u.var->map->tensor == uses->param;
    if (is_map)
      note(uses, "is copied by the copy engine");
    if (place->kind != HD_EXPR_REF || place->u.var != uses->param)
      continue;
    if (place->linear)
      note(uses, "is accessed by offsets into its storage");
    else if (hd_access_is_cached_load(e))
      uses->is_loaded = true;
    else if (hd_access_is_cached_store(e))
      uses->is_stored = true;
    else if (!hd_access_is_prefetch(e))
      note(uses, why_not_intrinsic(e));
  }
}

static void visit_call(uses_t *uses, const hd_expr_t *e) {
  for (unsigned i = 0; i < e->num_operands; i++) {
    const hd_expr_t *arg = e->operands[i];
    if (arg->kind == HD_EXPR_TENSOR && arg->u.var == uses->param)
      note(uses, "is passed to a function");
    if (arg->kind == HD_EXPR_VAR && arg->u.var->map &&
        arg->u.var->map->tensor == uses->param)
      note(uses, "is copied by the copy engine");
  }
}

static bool visit_expr(void *argument, const hd_expr_t *e) {
  uses_t *uses = argument;
  bool loads = e->kind == HD_EXPR_LOAD || e->kind == HD_EXPR_LOADELSE;
  if (loads && e->u.var == uses->param) {
    uses->is_loaded = true;
    if (e->linear)
      note(uses, "is accessed by offsets into its storage");
  } else if (e->kind == HD_EXPR_INTRINSIC) {
    visit_intrinsic(uses, e);
  } else if (e->kind == HD_EXPR_CALL) {
    visit_call(uses, e);
  }
  return true;
}

static bool is_other(void *argument, const hd_expr_t *e) {
  const uses_t *uses = argument;
  return !hd_expr_is_access(e) || e->u.var != uses->param;
}

// Whether any of the expressions accesses the parameter.
static bool is_used(uses_t *uses, const hd_expr_t *const *exprs,
                    unsigned count) {
  for (unsigned i = 0; i < count; i++)
    if (exprs[i] && !hd_walk_expr(exprs[i], is_other, uses))
      return true;
  return false;
}

static bool visit_stmt(void *argument, const hd_stmt_t *stmt) {
  uses_t *uses = argument;
  if (stmt->kind == HD_STMT_STORE && stmt->u.store.var == uses->param) {
    uses->is_stored = true;
    if (stmt->u.store.linear)
      note(uses, "is accessed by offsets into its storage");
  }
  if (stmt->kind == HD_STMT_POINT) {
    const hd_expr_t *place = stmt->u.point.place;
    uses->is_stored |=
        place->u.var == uses->param && stmt->u.point.kind != HD_POINT_EXPECT;
    if (is_used(uses, place->operands, place->num_operands) ||
        is_used(uses, &stmt->u.point.staging, 1) ||
        is_used(uses, &stmt->u.point.barrier, 1) ||
        is_used(uses, &stmt->u.point.threads, 1))
      note(uses, "says where a fusion point stores");
  }
  return true;
}

const char *hd_access_obstacle(const hd_func_t *kernel, const hd_var_t *param,
                               hd_access_kind_t kind) {
  uses_t uses = {.kernel = kernel, .param = param};
  hd_walk_block(kernel->body, visit_stmt, visit_expr, &uses);
  if (uses.obstacle)
    return uses.obstacle;
  if (kind == HD_ACCESS_LOADS)
    return uses.is_stored ? "is written by the kernel, too" : NULL;
  if (hd_type_bits(param->type) < 8)
    return "has elements smaller than a byte";
  return uses.is_loaded ? "is read back by the kernel" : NULL;
}
