// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Rewrite.h"
#include "Support/Map.h"

bool hd_walk_expr(const hd_expr_t *e, hd_visit_expr_t visit, void *argument) {
  for (uint32_t i = 0; i < e->num_operands; i++)
    if (!hd_walk_expr(e->operands[i], visit, argument))
      return false;
  return visit(argument, e);
}

static bool walk(const hd_expr_t *e, hd_visit_expr_t visit, void *argument) {
  return !e || !visit || hd_walk_expr(e, visit, argument);
}

static bool walk_all(const hd_expr_t *const *exprs, uint32_t count,
                     hd_visit_expr_t visit, void *argument) {
  for (uint32_t i = 0; i < count; i++)
    if (!walk(exprs[i], visit, argument))
      return false;
  return true;
}

static bool walk_mapping(const hd_mapping_t *mapping, hd_visit_expr_t visit,
                         void *argument) {
  return !mapping ||
         (walk_mapping(mapping->left, visit, argument) &&
          walk_mapping(mapping->right, visit, argument) &&
          (!mapping->bounds ||
           walk_all(mapping->bounds, mapping->rank, visit, argument)));
}

static bool walk_declared(const hd_var_t *var, hd_visit_expr_t visit,
                          void *argument) {
  const hd_layout_t *layout = var->tensor->layout;
  for (uint32_t i = 0; layout && i < layout->num_items; i++)
    if (!walk_all(layout->items[i].values, layout->items[i].num_values, visit,
                  argument))
      return false;
  return walk_all(var->tensor->shape, var->tensor->rank, visit, argument);
}

static bool walk_stmt(const hd_stmt_t *stmt, hd_visit_stmt_t visit_stmt,
                      hd_visit_expr_t expr, void *argument) {
  switch ((hd_stmt_kind_t)stmt->kind) {
  case HD_STMT_LET:
    return walk(stmt->u.let.value, expr, argument);
  case HD_STMT_DECLARE:
    return walk_declared(stmt->u.declare.var, expr, argument) &&
           walk(stmt->u.declare.init, expr, argument);
  case HD_STMT_STORE:
    return walk_all(stmt->u.store.indices, stmt->u.store.num_indices, expr,
                    argument) &&
           walk(stmt->u.store.value, expr, argument);
  case HD_STMT_POINT:
    return walk(stmt->u.point.place, expr, argument) &&
           walk(stmt->u.point.value, expr, argument) &&
           walk(stmt->u.point.staging, expr, argument) &&
           walk(stmt->u.point.barrier, expr, argument) &&
           walk(stmt->u.point.threads, expr, argument);
  case HD_STMT_FOR:
    return walk(stmt->u.loop.first, expr, argument) &&
           walk(stmt->u.loop.limit, expr, argument) &&
           walk(stmt->u.loop.step, expr, argument) &&
           hd_walk_block(stmt->u.loop.body, visit_stmt, expr, argument);
  case HD_STMT_MAPFOR:
    return walk_mapping(stmt->u.mapfor.mapping, expr, argument) &&
           walk(stmt->u.mapfor.worker, expr, argument) &&
           hd_walk_block(stmt->u.mapfor.body, visit_stmt, expr, argument);
  case HD_STMT_WHILE:
  case HD_STMT_IF:
    return walk(stmt->u.branch.condition, expr, argument) &&
           hd_walk_block(stmt->u.branch.then, visit_stmt, expr, argument) &&
           hd_walk_block(stmt->u.branch.otherwise, visit_stmt, expr, argument);
  case HD_STMT_ASSERT:
    return walk(stmt->u.assertion.condition, expr, argument);
  case HD_STMT_EVAL:
  case HD_STMT_RETURN:
  case HD_STMT_BREAK:
  case HD_STMT_CONTINUE:
    return walk(stmt->u.eval.value, expr, argument);
  case HD_STMT_LAUNCH:
    return walk_all(stmt->u.launch.args, stmt->u.launch.num_args, expr,
                    argument);
  case HD_STMT_COUNT:
    break;
  }
  return true;
}

bool hd_walk_block(hd_block_t block, hd_visit_stmt_t stmt, hd_visit_expr_t expr,
                   void *argument) {
  for (uint32_t i = 0; i < block.size; i++) {
    if (stmt && !stmt(argument, block.stmts[i]))
      return false;
    if (!walk_stmt(block.stmts[i], stmt, expr, argument))
      return false;
  }
  return true;
}

typedef struct walk_calls {
  hd_arena_t *arena;
  hd_ptr_map_t seen; // Functions.
  hd_visit_expr_t visit;
  void *argument;
} walk_calls_t;

static bool visit_call(void *argument, const hd_expr_t *e) {
  walk_calls_t *walk = argument;
  if (!walk->visit(walk->argument, e))
    return false;
  if (e->kind != HD_EXPR_CALL || hd_ptr_map_get(&walk->seen, e->u.func))
    return true;
  hd_ptr_map_set(walk->arena, &walk->seen, e->u.func, e->u.func);
  return hd_walk_block(e->u.func->body, NULL, visit_call, walk);
}

bool hd_walk_calls(hd_arena_t *arena, hd_block_t block, hd_visit_expr_t visit,
                   void *argument) {
  walk_calls_t walk = {.arena = arena, .visit = visit, .argument = argument};
  return hd_walk_block(block, NULL, visit_call, &walk);
}
