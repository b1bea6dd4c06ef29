// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Statements of functions and plans.
#include "IR/Exits.h"
#include "IR/Format.h"
#include "IR/Rewrite.h"
#include "IR/Verify/VerifierState.h"

void hd_verify_value(hd_verifier_t *v, const hd_expr_t *e, hd_type_t type,
                     const char *what) {
  hd_verify_expr(v, e);
  if (!hd_type_equal(e->type, type))
    hd_verify_fault(v, e->loc, "%s has type %s where %s is needed", what,
                    hd_type_name(e->type), hd_type_name(type));
}

static bool is_closed(void *argument, const hd_expr_t *e) {
  (void)argument;
  return e->kind != HD_EXPR_BUILTIN && !hd_expr_is_access(e) &&
         e->kind != HD_EXPR_CALL && e->kind != HD_EXPR_INTRINSIC;
}

static void verify_mapping(hd_verifier_t *v, const hd_mapping_t *mapping) {
  if (mapping->left)
    verify_mapping(v, mapping->left);
  if (mapping->right)
    verify_mapping(v, mapping->right);
  for (uint32_t i = 0; mapping->bounds && i < mapping->rank; i++)
    hd_verify_value(v, mapping->bounds[i], hd_type(HD_I32), "a bound");
  if (mapping->kind != HD_MAPPING_CUSTOM)
    return;
  // Closed, so that what it maps can be known.
  hd_visible_t outer = v->visible;
  v->visible = (hd_visible_t){.arena = &v->arena};
  hd_verifier_declare(v, mapping->worker);
  if (mapping->repeat)
    hd_verifier_declare(v, mapping->repeat);
  for (uint32_t i = 0; i < mapping->rank; i++) {
    hd_verify_value(v, mapping->exprs[i], hd_type(HD_I32), "a task index");
    if (!hd_walk_expr(mapping->exprs[i], is_closed, NULL)) {
      hd_error(v->diags, mapping->exprs[i]->loc, HD_E0404, "custom",
               "a task index is computed from the worker, the count and "
               "constants alone");
      v->errors++;
    }
  }
  v->visible = outer;
}

static void verify_declare(hd_verifier_t *v, const hd_stmt_t *stmt) {
  const hd_var_t *var = stmt->u.declare.var;
  hd_scope_t scope = var->tensor->scope;
  bool in_plan = v->func->kind == HD_FUNC_PLAN;
  hd_verify_tensor(v, var);
  if (in_plan != (scope == HD_SCOPE_GLOBAL)) {
    hd_error(v->diags, stmt->loc, HD_E0302, hd_scope_name(scope),
             in_plan ? "in a plan" : "outside a plan");
    v->errors++;
  }
  if (scope == HD_SCOPE_SHARED && v->loops > 0) {
    hd_error(v->diags, stmt->loc, HD_E0302, "a shared tensor", "in a loop");
    v->errors++;
  }
  if (scope == HD_SCOPE_SHARED && stmt->u.declare.init)
    hd_verify_fault(v, stmt->loc,
                    "a shared tensor is not initialized by its "
                    "declaration: every thread would store it");
  if (hd_stmt_is_view(stmt))
    hd_verify_view(v, stmt);
  else if (stmt->u.declare.init)
    hd_verify_value(v, stmt->u.declare.init, var->type, "the initial value");
  hd_verifier_declare(v, var);
}

static void verify_store(hd_verifier_t *v, const hd_stmt_t *stmt) {
  const hd_var_t *var = stmt->u.store.var;
  const hd_expr_t *value = stmt->u.store.value;
  if (!var->tensor || !hd_verifier_sees(v, var)) {
    hd_error(v->diags, stmt->loc, var->tensor ? HD_E0301 : HD_E0208, var->name);
    v->errors++;
    return;
  }
  uint32_t rank = stmt->u.store.linear ? 1 : var->tensor->rank;
  if (stmt->u.store.num_indices != rank)
    hd_verify_fault(v, stmt->loc,
                    "'%s' has rank %u, and is stored to with %u "
                    "indices",
                    var->name, rank, stmt->u.store.num_indices);
  for (uint32_t i = 0; i < stmt->u.store.num_indices; i++) {
    hd_verify_expr(v, stmt->u.store.indices[i]);
    hd_verify_index(v, stmt->u.store.indices[i]);
  }
  hd_verify_expr(v, value);
  if (value->type.scalar != var->type.scalar)
    hd_verify_fault(v, value->loc, "%s stored in a tensor of %s",
                    hd_type_name(value->type), hd_type_name(var->type));
  if (var->direction == HD_DIR_IN) {
    hd_error(v->diags, stmt->loc, HD_E0209, var->name, hd_var_read_only(var));
    v->errors++;
  }
  if (value->type.lanes > 1)
    hd_verify_lanes(v, var, stmt->u.store.linear, value->type.lanes, stmt->loc);
  else if (hd_type_bits(var->type) < 8 &&
           var->tensor->scope != HD_SCOPE_REGISTER)
    hd_verify_fault(v, stmt->loc,
                    "a store to a tensor of %s must fill whole "
                    "bytes: store a vector",
                    hd_type_name(var->type));
}

static void verify_for(hd_verifier_t *v, const hd_stmt_t *stmt) {
  hd_type_t type = stmt->u.loop.var->type;
  hd_verify_value(v, stmt->u.loop.first, type, "the start of a loop");
  hd_verify_value(v, stmt->u.loop.limit, type, "the end of a loop");
  if (!hd_type_is_integer(type) || type.lanes != 1)
    hd_verify_fault(v, stmt->loc, "a loop variable has type %s",
                    hd_type_name(type));
  int64_t step;
  if (stmt->u.loop.step) {
    hd_verify_value(v, stmt->u.loop.step, type, "the step of a loop");
    if (hd_expr_fold_int(stmt->u.loop.step, &step) && step < 1) {
      hd_error(v->diags, stmt->u.loop.step->loc, HD_E0307, "a step", 1LL,
               (long long)INT32_MAX, (long long)step);
      v->errors++;
    }
  }
  size_t outer = hd_visible_size(&v->visible);
  hd_verifier_declare(v, stmt->u.loop.var);
  v->loops++;
  hd_verify_block(v, stmt->u.loop.body);
  v->loops--;
  hd_visible_pop(&v->visible, outer);
}

static void verify_mapfor(hd_verifier_t *v, const hd_stmt_t *stmt) {
  const hd_mapping_t *mapping = stmt->u.mapfor.mapping;
  if (v->func->kind == HD_FUNC_PLAN) {
    hd_error(v->diags, stmt->loc, HD_E0302, "a loop over a mapping",
             "in a plan");
    v->errors++;
  }
  verify_mapping(v, mapping);
  if (stmt->u.mapfor.worker)
    hd_verify_value(v, stmt->u.mapfor.worker, hd_type(HD_I32), "a worker");
  else if (mapping->workers > 1)
    hd_verify_fault(v, stmt->loc, "a mapping of %lld workers needs 'on'",
                    (long long)mapping->workers);
  size_t outer = hd_visible_size(&v->visible);
  for (uint32_t i = 0; i < mapping->rank; i++)
    hd_verifier_declare(v, stmt->u.mapfor.vars[i]);
  hd_block_t body = stmt->u.mapfor.body;
  v->loops++;
  v->tile =
      body.size == 1 && body.stmts[0]->kind == HD_STMT_POINT ? stmt : NULL;
  hd_verify_block(v, body);
  v->tile = NULL;
  v->loops--;
  hd_visible_pop(&v->visible, outer);
}

// A launch that may begin early orders nothing: its kernel does, or what comes
// after it would not know of what came before it either.
static void verify_programmatic(hd_verifier_t *v, const hd_stmt_t *stmt) {
  const hd_func_t *kernel = stmt->u.launch.kernel;
  if (!kernel->has_body)
    return;
  if (!v->early)
    v->early = hd_early_launches_make(&v->arena, v->func->body);
  hd_early_proof_t proof = hd_early_launch_prove(v->early, stmt);
  if (proof.answer == HD_EARLY_YES)
    return;
  hd_error(v->diags, stmt->loc, HD_E0318, kernel->name, proof.why);
  hd_note(v->diags, proof.place, "here");
  if (proof.answer == HD_EARLY_UNKNOWN)
    hd_note(v->diags, proof.wait, "not every way there comes by here");
  v->errors++;
}

static void verify_launch(hd_verifier_t *v, const hd_stmt_t *stmt) {
  const hd_func_t *kernel = stmt->u.launch.kernel;
  if (stmt->u.launch.programmatic)
    verify_programmatic(v, stmt);
  if (stmt->u.launch.num_args != kernel->num_params) {
    hd_error(v->diags, stmt->loc, HD_E0206, kernel->name,
             (int)kernel->num_params, "arguments",
             (int)stmt->u.launch.num_args);
    v->errors++;
    return;
  }
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    const hd_expr_t *arg = stmt->u.launch.args[i];
    const hd_var_t *param = kernel->params[i];
    hd_verify_value(v, arg, param->type, "an argument");
    if (arg->kind == HD_EXPR_TENSOR && arg->u.var->table) {
      hd_error(v->diags, arg->loc, HD_E0302, "a table",
               "as an argument of a launch");
      v->errors++;
    }
    if ((arg->kind == HD_EXPR_TENSOR) != (param->tensor != NULL))
      hd_verify_fault(v, arg->loc, "'%s' of '%s' is %sa tensor", param->name,
                      kernel->name, param->tensor ? "" : "not ");
    else if (param->tensor && param->direction != HD_DIR_IN &&
             arg->u.var->direction == HD_DIR_IN) {
      hd_error(v->diags, arg->loc, HD_E0209, arg->u.var->name,
               hd_var_read_only(arg->u.var));
      v->errors++;
    }
  }
  hd_verify_distinct(v, kernel, stmt->u.launch.args);
}

static void verify_branch(hd_verifier_t *v, const hd_stmt_t *stmt) {
  bool is_loop = stmt->kind == HD_STMT_WHILE;
  hd_verify_value(v, stmt->u.branch.condition, hd_type(HD_BOOL), "a condition");
  v->loops += is_loop;
  hd_verify_block(v, stmt->u.branch.then);
  hd_verify_block(v, stmt->u.branch.otherwise);
  v->loops -= is_loop;
}

static void verify_return(hd_verifier_t *v, const hd_stmt_t *stmt) {
  bool is_void = hd_type_equal(v->func->result, hd_type(HD_VOID));
  if (v->func->kind == HD_FUNC_PLAN) {
    hd_error(v->diags, stmt->loc, HD_E0302, "'return'", "in a plan");
    v->errors++;
  } else if (is_void != !stmt->u.eval.value) {
    hd_verify_fault(v, stmt->loc, "'%s' returns %s value", v->func->name,
                    is_void ? "no" : "a");
  } else if (!is_void) {
    hd_verify_value(v, stmt->u.eval.value, v->func->result, "the result");
  }
}

static void verify_print(hd_verifier_t *v, const hd_stmt_t *stmt) {
  const char *format = stmt->u.print.format;
  hd_conversion_t conversion;
  for (uint32_t i = 0; i < stmt->u.print.num_args; i++) {
    const hd_expr_t *e = stmt->u.print.args[i];
    hd_verify_expr(v, e);
    if (!hd_format_next(&format, &conversion) || conversion.size == 0 ||
        !hd_conversion_takes(&conversion, e->type) || e->kind == HD_EXPR_TENSOR)
      hd_verify_fault(v, e->loc, "the format does not take this %s",
                      hd_type_name(e->type));
  }
  if (hd_format_next(&format, &conversion))
    hd_verify_fault(v, stmt->loc, "the format takes more values");
}

static void verify_exit(hd_verifier_t *v, const hd_stmt_t *stmt,
                        const char *quoted) {
  if (v->loops > 0)
    return;
  hd_error(v->diags, stmt->loc, HD_E0302, quoted, "outside a loop");
  v->errors++;
}

static void verify_stmt(hd_verifier_t *v, const hd_stmt_t *stmt) {
  switch ((hd_stmt_kind_t)stmt->kind) {
  case HD_STMT_LET:
    hd_verify_value(v, stmt->u.let.value, stmt->u.let.var->type,
                    "a named value");
    if (hd_scalar_class((hd_scalar_t)stmt->u.let.var->type.scalar) ==
        HD_CLASS_OPAQUE)
      hd_verify_fault(v, stmt->loc, "a name for a value of type %s",
                      hd_type_name(stmt->u.let.var->type));
    hd_verifier_declare(v, stmt->u.let.var);
    break;
  case HD_STMT_DECLARE:
    verify_declare(v, stmt);
    break;
  case HD_STMT_STORE:
    verify_store(v, stmt);
    break;
  case HD_STMT_POINT:
    hd_verify_point(v, stmt);
    break;
  case HD_STMT_FOR:
    verify_for(v, stmt);
    break;
  case HD_STMT_MAPFOR:
    verify_mapfor(v, stmt);
    break;
  case HD_STMT_WHILE:
  case HD_STMT_IF:
    verify_branch(v, stmt);
    break;
  case HD_STMT_ASSERT:
    hd_verify_value(v, stmt->u.assertion.condition, hd_type(HD_BOOL),
                    "an assertion");
    break;
  case HD_STMT_EVAL:
    hd_verify_expr(v, stmt->u.eval.value);
    break;
  case HD_STMT_RETURN:
    verify_return(v, stmt);
    break;
  case HD_STMT_BREAK:
    verify_exit(v, stmt, "'break'");
    break;
  case HD_STMT_CONTINUE:
    verify_exit(v, stmt, "'continue'");
    break;
  case HD_STMT_PRINT:
    verify_print(v, stmt);
    break;
  case HD_STMT_LAUNCH:
    verify_launch(v, stmt);
    break;
  case HD_STMT_COUNT:
    break;
  }
}

void hd_verify_block(hd_verifier_t *v, hd_block_t block) {
  size_t outer = hd_visible_size(&v->visible);
  for (uint32_t i = 0; i < block.size; i++)
    verify_stmt(v, block.stmts[i]);
  hd_visible_pop(&v->visible, outer);
}
