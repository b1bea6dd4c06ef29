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

static void use(dce_t *d, const hd_expr_t *e) {
  if (e)
    hd_walk_expr(e, use_var, d);
}

static void use_all(dce_t *d, const hd_expr_t *const *exprs, unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    use(d, exprs[i]);
}

static void use_mapping(dce_t *d, const hd_mapping_t *m) {
  if (!m)
    return;
  use_mapping(d, m->left);
  use_mapping(d, m->right);
  if (m->bounds)
    use_all(d, m->bounds, m->rank);
}

static void use_tensor(dce_t *d, const hd_tensor_t *tensor) {
  use_all(d, tensor->shape, tensor->rank);
  for (unsigned i = 0; tensor->layout && i < tensor->layout->num_items; ++i)
    use_all(d, tensor->layout->items[i].values,
            tensor->layout->items[i].num_values);
}

static bool is_pure(const hd_expr_t *e) { return !e || hd_expr_is_pure(e); }

// A store that only this thread could see, and does not look at.
static bool is_dead_store(const dce_t *d, const hd_stmt_t *stmt) {
  const hd_var_t *var = stmt->u.store.var;
  return var->tensor->scope == HD_SCOPE_REGISTER &&
         var->direction == HD_DIR_NONE && !is_used(d, var) &&
         is_pure(stmt->u.store.value) &&
         hd_exprs_are_pure(stmt->u.store.indices, stmt->u.store.num_indices);
}

static hd_block_t sweep(dce_t *d, hd_block_t block);

// NULL: the statement goes.
static const hd_stmt_t *sweep_loop(dce_t *d, const hd_stmt_t *stmt) {
  hd_block_t body = sweep(d, stmt->u.loop.body);
  if (body.size == 0 && is_pure(stmt->u.loop.first) &&
      is_pure(stmt->u.loop.limit) && is_pure(stmt->u.loop.step))
    return NULL;
  use(d, stmt->u.loop.first);
  use(d, stmt->u.loop.limit);
  use(d, stmt->u.loop.step);
  if (body.stmts == stmt->u.loop.body.stmts)
    return stmt;
  hd_stmt_t *copy = hd_stmt_copy(d->arena, stmt);
  copy->u.loop.body = body;
  return copy;
}

static const hd_stmt_t *sweep_mapfor(dce_t *d, const hd_stmt_t *stmt) {
  hd_block_t body = sweep(d, stmt->u.mapfor.body);
  if (body.size == 0 && is_pure(stmt->u.mapfor.worker) &&
      hd_mapping_is_pure(stmt->u.mapfor.mapping))
    return NULL;
  use(d, stmt->u.mapfor.worker);
  use_mapping(d, stmt->u.mapfor.mapping);
  if (body.stmts == stmt->u.mapfor.body.stmts)
    return stmt;
  hd_stmt_t *copy = hd_stmt_copy(d->arena, stmt);
  copy->u.mapfor.body = body;
  return copy;
}

static const hd_stmt_t *sweep_branch(dce_t *d, const hd_stmt_t *stmt) {
  hd_block_t otherwise = sweep(d, stmt->u.branch.otherwise);
  hd_block_t then = sweep(d, stmt->u.branch.then);
  const hd_expr_t *condition = stmt->u.branch.condition;
  if (stmt->kind == HD_STMT_IF && then.size == 0) {
    if (otherwise.size == 0 && is_pure(condition))
      return NULL;
    if (otherwise.size > 0) {
      use(d, condition);
      hd_stmt_t *copy = hd_stmt_copy(d->arena, stmt);
      copy->u.branch.condition =
          hd_expr_unary(d->arena, HD_EXPR_NOT, condition);
      copy->u.branch.then = otherwise;
      copy->u.branch.otherwise = then;
      return copy;
    }
  }
  use(d, condition);
  if (then.stmts == stmt->u.branch.then.stmts &&
      otherwise.stmts == stmt->u.branch.otherwise.stmts)
    return stmt;
  hd_stmt_t *copy = hd_stmt_copy(d->arena, stmt);
  copy->u.branch.then = then;
  copy->u.branch.otherwise = otherwise;
  return copy;
}

static const hd_stmt_t *sweep_stmt(dce_t *d, const hd_stmt_t *stmt) {
  switch ((hd_stmt_kind_t)stmt->kind) {
  case HD_STMT_LET:
    if (!is_used(d, stmt->u.let.var) && hd_expr_is_pure(stmt->u.let.value))
      return NULL;
    use(d, stmt->u.let.value);
    return stmt;
  case HD_STMT_DECLARE:
    if (!is_used(d, stmt->u.declare.var) && is_pure(stmt->u.declare.init))
      return NULL;
    use(d, stmt->u.declare.init);
    use_tensor(d, stmt->u.declare.var->tensor);
    return stmt;
  case HD_STMT_STORE:
    if (is_dead_store(d, stmt))
      return NULL;
    hd_ptr_map_set(d->arena, &d->used, stmt->u.store.var, stmt->u.store.var);
    use_all(d, stmt->u.store.indices, stmt->u.store.num_indices);
    use(d, stmt->u.store.value);
    return stmt;
  case HD_STMT_POINT:
    use(d, stmt->u.point.place);
    use(d, stmt->u.point.value);
    use(d, stmt->u.point.staging);
    use(d, stmt->u.point.barrier);
    use(d, stmt->u.point.threads);
    return stmt;
  case HD_STMT_FOR:
    return sweep_loop(d, stmt);
  case HD_STMT_MAPFOR:
    return sweep_mapfor(d, stmt);
  case HD_STMT_WHILE:
  case HD_STMT_IF:
    return sweep_branch(d, stmt);
  case HD_STMT_ASSERT:
    use(d, stmt->u.assertion.condition);
    return stmt;
  case HD_STMT_EVAL:
    if (hd_expr_is_pure(stmt->u.eval.value))
      return NULL;
    use(d, stmt->u.eval.value);
    return stmt;
  case HD_STMT_RETURN:
  case HD_STMT_BREAK:
  case HD_STMT_CONTINUE:
    use(d, stmt->u.eval.value);
    return stmt;
  case HD_STMT_LAUNCH:
    use_all(d, stmt->u.launch.args, stmt->u.launch.num_args);
    return stmt;
  case HD_STMT_COUNT:
    break;
  }
  return stmt;
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
  hd_block_t body = sweep(&d, func->body);
  if (body.stmts == func->body.stmts)
    return func;
  hd_func_t *result = HD_ARENA_NEW(&module->arena, hd_func_t);
  *result = *func;
  result->body = body;
  return result;
}
