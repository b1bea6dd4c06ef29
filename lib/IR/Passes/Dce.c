// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pass dce: takes out what nobody can tell from its absence: lets and tensors
// that are not used, stores to register tensors that are not read, loops and
// conditions with nothing left in them, calls without effect, what follows a
// return, break or continue.
//
// Requires nothing. Loops that may not end (while) stay.

#include "IR/Effects.h"
#include "IR/Exits.h"
#include "IR/Parts.h"
#include "IR/Passes/Passes.h"
#include "IR/Rewrite.h"
#include "Support/Map.h"

typedef struct dce {
  hd_arena_t *arena;
  hd_ptr_map_t used; // Variables read by something that stays.
} dce_t;

static bool is_used(const dce_t *d, const hd_var_t *var) {
  return hd_ptr_map_get(&d->used, var) != NULL;
}

static bool use_var(void *argument, const hd_expr_t *e) {
  dce_t *d = argument;
  if (hd_expr_info((hd_expr_kind_t)e->kind)->payload == HD_PAYLOAD_VAR)
    hd_ptr_map_set(d->arena, &d->used, e->u.var, e->u.var);
  return true;
}

static const hd_stmt_t *use_all_of(dce_t *d, const hd_stmt_t *stmt) {
  hd_walk_stmt(stmt, use_var, d);
  return stmt;
}

static bool root_is_pure(void *argument, const hd_expr_t *e) {
  (void)argument;
  return hd_expr_is_pure(e);
}

// Evaluating its own expressions has no effect.
static bool is_pure(const hd_stmt_t *stmt) {
  return hd_walk_roots(stmt, root_is_pure, NULL);
}

// A store that only this thread could see, and does not look at.
static bool is_dead_store(const dce_t *d, const hd_stmt_t *stmt) {
  const hd_var_t *var = stmt->u.store.var;
  return var->tensor->scope == HD_SCOPE_REGISTER &&
         var->direction == HD_DIR_NONE && !is_used(d, var) && is_pure(stmt);
}

static hd_block_t sweep(dce_t *d, hd_block_t block);

static hd_block_t sweep_inner(void *argument, hd_block_t block) {
  return sweep(argument, block);
}

// if c { } else { rest }
static const hd_stmt_t *turn_around(dce_t *d, const hd_stmt_t *stmt) {
  hd_stmt_t *copy = hd_stmt_copy(d->arena, stmt);
  copy->u.branch.condition =
      hd_expr_unary(d->arena, HD_EXPR_NOT, stmt->u.branch.condition);
  copy->u.branch.then = stmt->u.branch.otherwise;
  copy->u.branch.otherwise = stmt->u.branch.then;
  return copy;
}

// With what is left of its blocks. NULL: the statement goes.
static const hd_stmt_t *sweep_blocks(dce_t *d, const hd_stmt_t *stmt) {
  const hd_part_mapper_t mapper = {
      .arena = d->arena, .argument = d, .block = sweep_inner};
  stmt = hd_map_parts(&mapper, stmt);
  hd_block_t blocks[HD_MAX_BLOCKS];
  unsigned count = hd_stmt_blocks(stmt, blocks);
  bool empty = stmt->kind != HD_STMT_WHILE;
  for (unsigned i = 0; i < count; i++)
    empty &= blocks[i].size == 0;
  if (empty && is_pure(stmt))
    return NULL;
  if (stmt->kind == HD_STMT_IF && blocks[0].size == 0 && blocks[1].size > 0)
    stmt = turn_around(d, stmt);
  return use_all_of(d, stmt);
}

static const hd_stmt_t *sweep_stmt(dce_t *d, const hd_stmt_t *stmt) {
  switch ((hd_stmt_kind_t)stmt->kind) {
  case HD_STMT_LET:
    return is_used(d, stmt->u.let.var) || !is_pure(stmt) ? use_all_of(d, stmt)
                                                         : NULL;
  case HD_STMT_DECLARE:
    return is_used(d, stmt->u.declare.var) || !is_pure(stmt)
               ? use_all_of(d, stmt)
               : NULL;
  case HD_STMT_STORE:
    if (is_dead_store(d, stmt))
      return NULL;
    hd_ptr_map_set(d->arena, &d->used, stmt->u.store.var, stmt->u.store.var);
    return use_all_of(d, stmt);
  case HD_STMT_EVAL:
    return is_pure(stmt) ? NULL : use_all_of(d, stmt);
  case HD_STMT_FOR:
  case HD_STMT_MAPFOR:
  case HD_STMT_WHILE:
  case HD_STMT_IF:
    return sweep_blocks(d, stmt);
  case HD_STMT_POINT:
  case HD_STMT_ASSERT:
  case HD_STMT_RETURN:
  case HD_STMT_BREAK:
  case HD_STMT_CONTINUE:
  case HD_STMT_PRINT:
  case HD_STMT_LAUNCH:
  case HD_STMT_COUNT:
    break;
  }
  return use_all_of(d, stmt);
}

// Up to the first statement that nothing follows.
static size_t count_reached(hd_block_t block) {
  for (size_t i = 0; i < block.size; ++i)
    if (!hd_stmt_falls_through(block.stmts[i]))
      return i + 1;
  return block.size;
}

// From the last statement to the first, so that uses are seen before what they
// use.
static hd_block_t sweep(dce_t *d, hd_block_t block) {
  const hd_stmt_t **kept =
      HD_ARENA_ARRAY(d->arena, const hd_stmt_t *, block.size);
  size_t reached = count_reached(block), at = reached;
  bool changed = reached < block.size;
  for (size_t i = reached; i-- > 0;) {
    const hd_stmt_t *stmt = sweep_stmt(d, block.stmts[i]);
    changed |= stmt != block.stmts[i];
    if (stmt)
      kept[--at] = stmt;
  }
  if (!changed)
    return block;
  return (hd_block_t){(uint32_t)(reached - at), kept + at};
}

// In a loop a register tensor may be read above the store: so reads of tensors
// are collected before the sweep.
static bool note_read(void *argument, const hd_expr_t *e) {
  dce_t *d = argument;
  if (hd_expr_is_access(e) || e->kind == HD_EXPR_TENSOR)
    hd_ptr_map_set(d->arena, &d->used, e->u.var, e->u.var);
  return true;
}

const hd_func_t *hd_pass_dce(hd_module_t *module, const hd_func_t *func,
                             const hd_pass_args_t *args) {
  (void)args;
  dce_t d = {.arena = &module->arena};
  hd_walk_block(func->body, NULL, note_read, &d);
  // The caller may look at what it passed by reference.
  for (uint32_t i = 0; i < func->num_params; ++i)
    hd_ptr_map_set(d.arena, &d.used, func->params[i], func->params[i]);
  return hd_func_with_body(&module->arena, func, sweep(&d, func->body));
}
