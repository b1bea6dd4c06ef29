// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Parts.h"
#include "IR/Rewrite.h"
#include "Support/Map.h"

bool hd_walk_expr(const hd_expr_t *e, hd_visit_expr_t visit, void *argument) {
  for (uint32_t i = 0; i < e->num_operands; i++)
    if (!hd_walk_expr(e->operands[i], visit, argument))
      return false;
  return visit(argument, e);
}

static bool visit_all(const hd_expr_t *const *exprs, uint32_t count,
                      hd_visit_expr_t visit, void *argument) {
  for (uint32_t i = 0; i < count; i++)
    if (exprs[i] && !visit(argument, exprs[i]))
      return false;
  return true;
}

static bool visit_mapping(const hd_mapping_t *mapping, hd_visit_expr_t visit,
                          void *argument) {
  return !mapping ||
         (visit_mapping(mapping->left, visit, argument) &&
          visit_mapping(mapping->right, visit, argument) &&
          (!mapping->bounds ||
           visit_all(mapping->bounds, mapping->rank, visit, argument)));
}

static bool visit_declared(const hd_var_t *var, hd_visit_expr_t visit,
                           void *argument) {
  const hd_tensor_t *tensor = var->tensor;
  if (!tensor)
    return true;
  const hd_layout_t *layout = tensor->layout;
  for (uint32_t i = 0; layout && i < layout->num_items; i++)
    if (!visit_all(layout->items[i].values, layout->items[i].num_values, visit,
                   argument))
      return false;
  return visit_all(tensor->shape, tensor->rank, visit, argument);
}

static bool visit_part(const hd_stmt_t *stmt, const hd_part_t *part,
                       hd_visit_expr_t visit, void *argument) {
  const void *at = (const char *)stmt + part->at;
  const void *count = (const char *)stmt + part->count;
  switch ((hd_part_form_t)part->form) {
  case HD_PART_EXPR:
    return visit_all(at, 1, visit, argument);
  case HD_PART_EXPRS:
    return visit_all(*(const hd_expr_t *const *const *)at,
                     *(const uint32_t *)count, visit, argument);
  case HD_PART_MAPPING:
    return visit_mapping(*(const hd_mapping_t *const *)at, visit, argument);
  case HD_PART_VAR:
    return visit_declared(*(const hd_var_t *const *)at, visit, argument);
  case HD_PART_VARS: // Of loops: numbers.
  case HD_PART_USE:
  case HD_PART_BLOCK:
  case HD_PART_END:
    break;
  }
  return true;
}

bool hd_walk_roots(const hd_stmt_t *stmt, hd_visit_expr_t visit,
                   void *argument) {
  const hd_part_t *part = hd_stmt_parts((hd_stmt_kind_t)stmt->kind);
  for (; part->form; part++)
    if (!visit_part(stmt, part, visit, argument))
      return false;
  return true;
}

typedef struct walk {
  hd_visit_expr_t visit;
  void *argument;
} walk_t;

static bool walk_root(void *argument, const hd_expr_t *e) {
  const walk_t *walk = argument;
  return hd_walk_expr(e, walk->visit, walk->argument);
}

bool hd_walk_stmt(const hd_stmt_t *stmt, hd_visit_expr_t visit,
                  void *argument) {
  return hd_walk_roots(stmt, walk_root, &(walk_t){visit, argument});
}

bool hd_walk_block(hd_block_t block, hd_visit_stmt_t stmt, hd_visit_expr_t expr,
                   void *argument) {
  for (uint32_t i = 0; i < block.size; i++) {
    if ((stmt && !stmt(argument, block.stmts[i])) ||
        (expr && !hd_walk_stmt(block.stmts[i], expr, argument)))
      return false;
    hd_block_t inner[HD_MAX_BLOCKS];
    unsigned count = hd_stmt_blocks(block.stmts[i], inner);
    for (unsigned k = 0; k < count; k++)
      if (!hd_walk_block(inner[k], stmt, expr, argument))
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
