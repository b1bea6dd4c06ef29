// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Schedule/Translate/Build.h"

#include "IR/Intrinsic.h"

const hd_expr_t *hd_b_int(hd_builder_t *b, hd_scalar_t type, int64_t value) {
  return hd_expr_int(b->arena, hd_type(type), value);
}

const hd_expr_t *hd_b_i32(hd_builder_t *b, int64_t value) {
  return hd_b_int(b, HD_I32, value);
}

const hd_expr_t *hd_b_zero(hd_builder_t *b, hd_scalar_t type) {
  return hd_type_is_float(hd_type(type))
             ? hd_expr_float(b->arena, hd_type(type), 0)
             : hd_b_int(b, type, 0);
}

const hd_expr_t *hd_b_thread(hd_builder_t *b) {
  return hd_expr_builtin(b->arena, HD_BUILTIN_THREAD);
}

// x op y is x.
static bool is_neutral(hd_expr_kind_t op, const hd_expr_t *y) {
  bool adds = op == HD_EXPR_ADD || op == HD_EXPR_SUB;
  bool scales = op == HD_EXPR_MUL || op == HD_EXPR_DIV;
  return (adds && hd_expr_is_int(y, 0)) || (scales && hd_expr_is_int(y, 1));
}

const hd_expr_t *hd_b_op(hd_builder_t *b, hd_expr_kind_t op, const hd_expr_t *x,
                         const hd_expr_t *y) {
  if (!hd_type_is_float(x->type)) {
    if (is_neutral(op, y))
      return x;
    if (is_neutral(op, x) && hd_expr_info(op)->commutative)
      return y;
    bool vanishes = (op == HD_EXPR_MUL && hd_expr_is_int(y, 0)) ||
                    (op == HD_EXPR_MOD && hd_expr_is_int(y, 1));
    if (vanishes)
      return hd_expr_int(b->arena, x->type, 0);
  }
  const hd_expr_t *e = hd_expr_binary(b->arena, op, x, y);
  bool known =
      hd_expr_is_const(x) && hd_expr_is_const(y) && !hd_type_is_float(x->type);
  const hd_expr_t *folded = known ? hd_expr_fold(b->arena, e) : NULL;
  return folded ? folded : e;
}

const hd_expr_t *hd_b_op_int(hd_builder_t *b, hd_expr_kind_t op,
                             const hd_expr_t *x, int64_t y) {
  return hd_b_op(b, op, x, hd_expr_int(b->arena, x->type, y));
}

const hd_expr_t *hd_b_and(hd_builder_t *b, const hd_expr_t *x,
                          const hd_expr_t *y) {
  if (!x || !y)
    return x ? x : y;
  return hd_expr_binary(b->arena, HD_EXPR_AND, x, y);
}

const hd_expr_t *hd_b_cast(hd_builder_t *b, hd_scalar_t type,
                           const hd_expr_t *x) {
  bool integers =
      hd_type_is_integer(x->type) && hd_type_is_integer(hd_type(type));
  const hd_expr_t *e = hd_expr_cast(b->arena, hd_type(type), x);
  const hd_expr_t *folded = integers && hd_expr_is_const(x) && e != x
                                ? hd_expr_fold(b->arena, e)
                                : NULL;
  return folded ? folded : e;
}

const hd_expr_t *hd_b_bitcast(hd_builder_t *b, hd_scalar_t type,
                              const hd_expr_t *x) {
  hd_expr_t like = {.loc = b->loc};
  return x->type.scalar == type ? x
                                : hd_expr_make(b->arena, HD_EXPR_BITCAST,
                                               hd_type(type), &like, &x, 1);
}

const hd_expr_t *hd_b_load(hd_builder_t *b, const hd_var_t *tensor,
                           const hd_expr_t *const *indices, unsigned count) {
  return hd_expr_access(b->arena, HD_EXPR_LOAD, tensor, 1, indices, count);
}

const hd_expr_t *hd_b_get(hd_builder_t *b, const hd_var_t *cell) {
  return hd_b_load(b, cell, NULL, 0);
}

const hd_expr_t *hd_b_intrinsic(hd_builder_t *b, int row, hd_type_t type,
                                const hd_expr_t *const *operands,
                                unsigned count) {
  hd_expr_t like = {.u.intrinsic = row, .loc = b->loc};
  return hd_expr_make(b->arena, HD_EXPR_INTRINSIC, type, &like, operands,
                      count);
}

void hd_b_push(hd_builder_t *b, const hd_stmt_t *stmt) {
  hd_stmt_list_push(b->arena, &b->block->stmts, stmt);
}

const hd_expr_t *hd_b_let(hd_builder_t *b, const char *name,
                          const hd_expr_t *x) {
  if (hd_expr_is_trivial(x))
    return x;
  hd_stmt_t *stmt = hd_stmt_make(b->arena, HD_STMT_LET, b->loc);
  stmt->u.let.var = hd_var_make(b->arena, name, HD_VAR_LET, x->type, b->loc);
  stmt->u.let.value = x;
  hd_b_push(b, stmt);
  return hd_expr_var(b->arena, stmt->u.let.var);
}

void hd_b_store(hd_builder_t *b, const hd_var_t *tensor,
                const hd_expr_t *const *indices, unsigned count,
                const hd_expr_t *value) {
  const hd_expr_t **copy = HD_ARENA_ARRAY(b->arena, const hd_expr_t *, count);
  for (unsigned i = 0; i < count; i++)
    copy[i] = indices[i];
  hd_stmt_t *stmt = hd_stmt_make(b->arena, HD_STMT_STORE, b->loc);
  stmt->u.store.var = tensor;
  stmt->u.store.indices = copy;
  stmt->u.store.num_indices = count;
  stmt->u.store.value = value;
  hd_b_push(b, stmt);
}

void hd_b_set(hd_builder_t *b, const hd_var_t *cell, const hd_expr_t *value) {
  hd_b_store(b, cell, NULL, 0, value);
}

void hd_b_assert(hd_builder_t *b, const hd_expr_t *condition,
                 const char *message) {
  hd_stmt_t *stmt = hd_stmt_make(b->arena, HD_STMT_ASSERT, b->loc);
  stmt->u.assertion.condition = condition;
  stmt->u.assertion.message = message;
  hd_b_push(b, stmt);
}

void hd_b_call(hd_builder_t *b, const hd_expr_t *call) {
  hd_stmt_t *stmt = hd_stmt_make(b->arena, HD_STMT_EVAL, b->loc);
  stmt->u.eval.value = call;
  hd_b_push(b, stmt);
}

void hd_b_command(hd_builder_t *b, int row) {
  hd_b_call(b, hd_b_intrinsic(b, row, hd_type(HD_VOID), NULL, 0));
}

void hd_b_barrier(hd_builder_t *b) { hd_b_command(b, HD_INTRINSIC_BARRIER); }

hd_var_t *hd_b_tensor(hd_builder_t *b, hd_scope_t scope, const char *name,
                      hd_scalar_t type, const int64_t *shape, unsigned rank,
                      const hd_layout_t *layout) {
  const hd_expr_t **sizes = HD_ARENA_ARRAY(b->arena, const hd_expr_t *, rank);
  for (unsigned i = 0; i < rank; i++)
    sizes[i] = hd_b_i32(b, shape[i]);
  hd_tensor_t *tensor = HD_ARENA_NEW(b->arena, hd_tensor_t);
  *tensor = (hd_tensor_t){.scope = scope,
                          .element = hd_type(type),
                          .rank = rank,
                          .shape = sizes,
                          .layout = layout};
  return hd_var_make_tensor(b->arena, name, tensor, b->loc);
}

void hd_b_declare(hd_builder_t *b, const hd_var_t *var, const hd_expr_t *init) {
  hd_stmt_t *stmt = hd_stmt_make(b->arena, HD_STMT_DECLARE, b->loc);
  stmt->u.declare.var = var;
  stmt->u.declare.init = init;
  hd_b_push(b, stmt);
}

const hd_var_t *hd_b_shared(hd_builder_t *b, const char *name, hd_scalar_t type,
                            const int64_t *shape, unsigned rank,
                            const hd_layout_t *layout) {
  const hd_var_t *var =
      hd_b_tensor(b, HD_SCOPE_SHARED, name, type, shape, rank, layout);
  hd_b_declare(b, var, NULL);
  return var;
}

const hd_var_t *hd_b_register(hd_builder_t *b, const char *name,
                              hd_scalar_t type, const int64_t *shape,
                              unsigned rank, const hd_expr_t *init) {
  const hd_var_t *var =
      hd_b_tensor(b, HD_SCOPE_REGISTER, name, type, shape, rank, NULL);
  hd_b_declare(b, var, init);
  return var;
}

void hd_b_open(hd_builder_t *b, hd_open_block_t *block) {
  *block = (hd_open_block_t){.outer = b->block};
  b->block = block;
}

hd_block_t hd_b_close(hd_builder_t *b) {
  hd_open_block_t *block = b->block;
  b->block = block->outer;
  return hd_block_make(b->arena, block->stmts.data, block->stmts.size);
}

void hd_b_if(hd_builder_t *b, const hd_expr_t *condition, hd_block_t then,
             hd_block_t otherwise) {
  if (!condition) {
    for (uint32_t i = 0; i < then.size; i++)
      hd_b_push(b, then.stmts[i]);
    return;
  }
  hd_stmt_t *stmt = hd_stmt_make(b->arena, HD_STMT_IF, b->loc);
  stmt->u.branch.condition = condition;
  stmt->u.branch.then = then;
  stmt->u.branch.otherwise = otherwise;
  hd_b_push(b, stmt);
}

const hd_var_t *hd_b_loop_var(hd_builder_t *b, const char *name,
                              hd_scalar_t type) {
  return hd_var_make(b->arena, name, HD_VAR_LOOP, hd_type(type), b->loc);
}

void hd_b_for(hd_builder_t *b, const hd_var_t *var, const hd_expr_t *first,
              const hd_expr_t *limit, const hd_expr_t *step, int unroll,
              hd_block_t body) {
  hd_stmt_t *stmt = hd_stmt_make(b->arena, HD_STMT_FOR, b->loc);
  stmt->u.loop.var = var;
  stmt->u.loop.first = first;
  stmt->u.loop.limit = limit;
  stmt->u.loop.step = step;
  stmt->u.loop.unroll = unroll;
  stmt->u.loop.body = body;
  hd_b_push(b, stmt);
}

void hd_b_mapfor(hd_builder_t *b, const hd_var_t *const *vars,
                 const hd_mapping_t *mapping, const hd_expr_t *worker,
                 int unroll, hd_block_t body) {
  hd_stmt_t *stmt = hd_stmt_make(b->arena, HD_STMT_MAPFOR, b->loc);
  stmt->u.mapfor.vars = vars;
  stmt->u.mapfor.mapping = mapping;
  stmt->u.mapfor.worker = worker;
  stmt->u.mapfor.unroll = unroll;
  stmt->u.mapfor.body = body;
  hd_b_push(b, stmt);
}

const hd_var_t *hd_b_param(hd_builder_t *b, const char *name,
                           hd_direction_t direction, hd_scalar_t type,
                           const int64_t *shape, unsigned rank) {
  hd_var_t *var =
      hd_b_tensor(b, HD_SCOPE_GLOBAL, name, type, shape, rank, NULL);
  var->direction = direction;
  hd_vec_push(b->arena, &b->params, var);
  return var;
}

hd_func_t *hd_b_kernel(hd_builder_t *b, hd_module_t *module, const char *name,
                       const int64_t grid[3], int64_t threads,
                       hd_block_t body) {
  hd_func_t *func = HD_ARENA_NEW(&module->arena, hd_func_t);
  *func = (hd_func_t){.kind = HD_FUNC_KERNEL,
                      .name = hd_module_fresh_name(b->arena, module, name),
                      .loc = b->loc,
                      .num_params = (uint32_t)b->params.size,
                      .params = b->params.data,
                      .result = hd_type(HD_VOID),
                      .has_body = true,
                      .body = body};
  for (int i = 0; i < 3; i++)
    if (grid[i] != 1)
      func->launch.grid[i] = hd_b_i32(b, grid[i]);
  func->launch.block[0] = hd_b_i32(b, threads);
  hd_item_t item = {.kind = HD_ITEM_FUNC, .u.func = func};
  hd_vec_push(&module->arena, &module->items, item);
  b->params.data = NULL; // Belongs to the kernel.
  b->params.size = b->params.capacity = 0;
  return func;
}

hd_func_t *hd_b_plan(hd_module_t *module, const char *name, hd_loc_t loc,
                     const hd_var_t *const *params, size_t num_params,
                     const hd_stmt_list_t *body) {
  hd_func_t *plan = HD_ARENA_NEW(&module->arena, hd_func_t);
  *plan = (hd_func_t){.kind = HD_FUNC_PLAN,
                      .name = name,
                      .loc = loc,
                      .num_params = (uint32_t)num_params,
                      .params = params,
                      .result = hd_type(HD_VOID),
                      .has_body = true};
  plan->body = hd_block_make(&module->arena, body->data, body->size);
  hd_item_t item = {.kind = HD_ITEM_FUNC, .u.func = plan};
  hd_vec_push(&module->arena, &module->items, item);
  return plan;
}
