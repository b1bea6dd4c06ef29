// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replacing the accesses to a kernel's parameters, statement by statement.
// AccessExpr.c has the expressions.
//
//   kernel k(in x: f32[64], out y: f32[64]) block(64) {
//     y[thread] = 2 * x[63 - thread]
//   }
//
// becomes, where the hook of x gives v[at] * v[at] and that of y stores to z at
// one place further,
//
//   kernel k(in v: f32[64], out z: f32[65]) block(64) {
//     let at = 63 - thread
//     let value = 2 * (v[at] * v[at])
//     z[thread + 1] = value
//   }

#include "Schedule/Access/AccessState.h"

#include "IR/Effects.h"
#include "IR/Parts.h"
#include "IR/Rewrite.h"

static hd_block_t rewrite_block(hd_accessor_t *a, hd_block_t block);

// --- Mappings: the bounds of `within` ---

typedef struct bounds {
  const hd_expr_t *worker; // Evaluated first.
  HD_VEC(const hd_expr_t *) exprs;
  size_t next;
} bounds_t;

static void collect_bounds(hd_accessor_t *a, const hd_mapping_t *m,
                           bounds_t *bounds) {
  if (!m)
    return;
  collect_bounds(a, m->left, bounds);
  collect_bounds(a, m->right, bounds);
  for (unsigned i = 0; m->bounds && i < m->rank; i++)
    hd_vec_push(a->b.arena, &bounds->exprs, m->bounds[i]);
}

static const hd_mapping_t *put_bounds(hd_accessor_t *a, const hd_mapping_t *m,
                                      bounds_t *bounds) {
  if (!m)
    return NULL;
  hd_mapping_t *copy = HD_ARENA_COPY(a->b.arena, hd_mapping_t, m);
  copy->left = put_bounds(a, m->left, bounds);
  copy->right = put_bounds(a, m->right, bounds);
  bool changed = copy->left != m->left || copy->right != m->right;
  if (m->bounds) {
    copy->bounds = bounds->exprs.data + bounds->next;
    for (unsigned i = 0; i < m->rank; i++)
      changed |= copy->bounds[i] != m->bounds[i];
    bounds->next += m->rank;
  }
  return changed ? copy : m;
}

static void rewrite_mapping(hd_accessor_t *a, hd_stmt_t *stmt) {
  bounds_t bounds = {0};
  hd_vec_push(a->b.arena, &bounds.exprs, stmt->u.mapfor.worker);
  collect_bounds(a, stmt->u.mapfor.mapping, &bounds);
  hd_access_exprs(a, bounds.exprs.data, bounds.exprs.size, bounds.exprs.data);
  stmt->u.mapfor.worker = bounds.exprs.data[0];
  bounds.next = 1;
  stmt->u.mapfor.mapping = put_bounds(a, stmt->u.mapfor.mapping, &bounds);
}

// --- Stores ---

static const hd_access_hook_t *store_hook(hd_accessor_t *a,
                                          const hd_var_t *var) {
  const hd_access_hook_t *hook = hd_accessor_hook(a, var);
  return hook && hook->store ? hook : NULL;
}

// The value, then the place's indices, in this order.
static void replace_store(hd_accessor_t *a, const hd_access_hook_t *hook,
                          const hd_expr_t *value,
                          const hd_expr_t *const *indices) {
  const hd_expr_t *operands[HD_MAX_RANK + 1] = {value}, *at[HD_MAX_RANK];
  unsigned rank = hook->param->tensor->rank;
  for (unsigned i = 0; i < rank; i++)
    operands[i + 1] = indices[i];
  hd_access_exprs(a, operands, rank + 1, operands);
  value = hd_b_let(&a->b, "value", operands[0]);
  hd_access_name_indices(a, operands + 1, rank, at);
  hd_access_store(a, hook, at, value);
}

// False: the statement is gone.
static bool rewrite_store(hd_accessor_t *a, hd_stmt_t *stmt) {
  const hd_access_hook_t *hook = store_hook(a, stmt->u.store.var);
  unsigned count = stmt->u.store.num_indices;
  if (hook) {
    replace_store(a, hook, stmt->u.store.value, stmt->u.store.indices);
    return false;
  }
  const hd_expr_t **operands =
      HD_ARENA_ARRAY(a->b.arena, const hd_expr_t *, count + 1);
  operands[0] = stmt->u.store.value;
  for (unsigned i = 0; i < count; i++)
    operands[i + 1] = stmt->u.store.indices[i];
  hd_access_exprs(a, operands, count + 1, operands);
  stmt->u.store.value = operands[0];
  for (unsigned i = 0; i < count; i++)
    if (operands[i + 1] != stmt->u.store.indices[i]) {
      stmt->u.store.indices = operands + 1;
      break;
    }
  return true;
}

// A call for its effect. False: it is gone.
static bool rewrite_call(hd_accessor_t *a, hd_stmt_t *stmt) {
  const hd_expr_t *call = stmt->u.eval.value;
  if (hd_access_is_cached_store(call)) {
    const hd_expr_t *place = call->operands[0];
    const hd_access_hook_t *hook = store_hook(a, place->u.var);
    if (hook) {
      replace_store(a, hook, call->operands[1], place->operands);
      return false;
    }
  }
  if (hd_access_is_prefetch(call) &&
      hd_accessor_hook(a, call->operands[0]->u.var))
    return false; // Nothing will be read there.
  stmt->u.eval.value = hd_access_expr(a, call);
  return true;
}

// --- Statements ---

static void rewrite_print(hd_accessor_t *a, hd_stmt_t *stmt) {
  uint32_t count = stmt->u.print.num_args;
  const hd_expr_t **args =
      HD_ARENA_ARRAY(a->b.arena, const hd_expr_t *, count + 1);
  hd_access_exprs(a, stmt->u.print.args, count, args);
  for (uint32_t i = 0; i < count; i++)
    if (args[i] != stmt->u.print.args[i]) {
      stmt->u.print.args = args;
      break;
    }
}

// while c { body } where statements come before c:
//
//   while true { S  if !c { break }  body }
static void rewrite_while(hd_accessor_t *a, hd_stmt_t *stmt) {
  hd_open_block_t block;
  hd_b_open(&a->b, &block);
  const hd_expr_t *condition = hd_access_expr(a, stmt->u.branch.condition);
  if (block.stmts.size == 0) {
    a->b.block = block.outer;
    stmt->u.branch.condition = condition;
    stmt->u.branch.then = rewrite_block(a, stmt->u.branch.then);
    return;
  }
  const hd_stmt_t *leave = hd_stmt_make(a->b.arena, HD_STMT_BREAK, stmt->loc);
  hd_b_if(&a->b, hd_expr_unary(a->b.arena, HD_EXPR_NOT, condition),
          hd_block_make(a->b.arena, &leave, 1), (hd_block_t){0});
  for (uint32_t i = 0; i < stmt->u.branch.then.size; i++)
    hd_access_stmt(a, stmt->u.branch.then.stmts[i]);
  stmt->u.branch.condition = hd_expr_bool(a->b.arena, true);
  stmt->u.branch.then = hd_b_close(&a->b);
}

static void rewrite_loop(hd_accessor_t *a, hd_stmt_t *stmt) {
  const hd_expr_t *bounds[] = {stmt->u.loop.first, stmt->u.loop.limit,
                               stmt->u.loop.step};
  hd_access_exprs(a, bounds, 3, bounds);
  stmt->u.loop.first = bounds[0];
  stmt->u.loop.limit = bounds[1];
  stmt->u.loop.step = bounds[2];
  stmt->u.loop.body = rewrite_block(a, stmt->u.loop.body);
}

static bool is_tile(const hd_stmt_t *loop) {
  return loop->u.mapfor.body.size == 1 &&
         loop->u.mapfor.body.stmts[0]->kind == HD_STMT_POINT;
}

// Of a point nothing but its value and the tensor that it yields to is a
// hook's. False: not even that.
static bool rewrite_point(hd_accessor_t *a, const hd_stmt_t *loop,
                          const hd_stmt_t *point) {
  if (!hd_access_has_point(a, point))
    return false;
  hd_access_point(a, loop, point);
  return true;
}

static const hd_expr_t *access_root(void *argument, const hd_expr_t *e) {
  return hd_access_expr(argument, e);
}

static hd_block_t access_block(void *argument, hd_block_t block) {
  return rewrite_block(argument, block);
}

// Rewrites the parts of a copy. False: the statement is gone.
static bool rewrite_parts(hd_accessor_t *a, hd_stmt_t *stmt) {
  switch ((hd_stmt_kind_t)stmt->kind) {
  case HD_STMT_STORE:
    return rewrite_store(a, stmt);
  case HD_STMT_POINT:
    return !rewrite_point(a, NULL, stmt);
  case HD_STMT_FOR:
    rewrite_loop(a, stmt);
    return true;
  case HD_STMT_MAPFOR:
    rewrite_mapping(a, stmt);
    if (is_tile(stmt) && rewrite_point(a, stmt, stmt->u.mapfor.body.stmts[0]))
      return false;
    stmt->u.mapfor.body = rewrite_block(a, stmt->u.mapfor.body);
    return true;
  case HD_STMT_WHILE:
    rewrite_while(a, stmt);
    return true;
  case HD_STMT_EVAL:
    return rewrite_call(a, stmt);
  case HD_STMT_PRINT:
    rewrite_print(a, stmt);
    return true;
  case HD_STMT_LET:
  case HD_STMT_DECLARE:
  case HD_STMT_IF:
  case HD_STMT_ASSERT:
  case HD_STMT_RETURN:
  case HD_STMT_BREAK:
  case HD_STMT_CONTINUE:
  case HD_STMT_LAUNCH:
  case HD_STMT_COUNT:
    break;
  }
  // These have one expression at most: the order is theirs.
  const hd_part_mapper_t mapper = {.arena = a->b.arena,
                                   .argument = a,
                                   .expr = access_root,
                                   .block = access_block};
  *stmt = *hd_map_parts(&mapper, stmt);
  return true;
}

void hd_access_stmt(hd_accessor_t *a, const hd_stmt_t *stmt) {
  hd_stmt_t copy = *stmt;
  hd_budget_check(&a->b.context->budget);
  a->b.loc = stmt->loc;
  if (!rewrite_parts(a, &copy))
    return;
  bool same = memcmp(&copy, stmt, sizeof copy) == 0;
  hd_b_push(&a->b, same ? stmt : hd_stmt_copy(a->b.arena, &copy));
}

static hd_block_t rewrite_block(hd_accessor_t *a, hd_block_t block) {
  hd_open_block_t open;
  hd_b_open(&a->b, &open);
  for (uint32_t i = 0; i < block.size; i++)
    hd_access_stmt(a, block.stmts[i]);
  hd_block_t result = hd_b_close(&a->b);
  bool same = result.size == block.size;
  for (uint32_t i = 0; same && i < block.size; i++)
    same = result.stmts[i] == block.stmts[i];
  return same ? block : result;
}

// --- Parameters ---

typedef struct accessed {
  const hd_var_t *var;
} accessed_t;

static bool is_other_expr(void *argument, const hd_expr_t *e) {
  const accessed_t *accessed = argument;
  return !(hd_expr_is_access(e) || e->kind == HD_EXPR_TENSOR) ||
         e->u.var != accessed->var;
}

static bool is_other_stmt(void *argument, const hd_stmt_t *stmt) {
  const accessed_t *accessed = argument;
  return stmt->kind != HD_STMT_STORE || stmt->u.store.var != accessed->var;
}

static bool is_left(const hd_accessor_t *a, hd_block_t body,
                    const hd_var_t *param) {
  return !hd_accessor_hook(a, param) ||
         !hd_walk_block(body, is_other_stmt, is_other_expr,
                        &(accessed_t){param});
}

typedef struct staged_body {
  const hd_accessor_t *a;
  hd_block_t source, body; // Before and after accesses were replaced.
} staged_body_t;

// Registers for what is read before it is yielded, beside those that they lie
// like.
static void declare_early(const hd_accessor_t *a, const hd_stmt_t *stmt,
                          hd_stmt_list_t *out) {
  for (size_t i = 0; i < a->early.size; i++) {
    if (stmt->u.declare.var != a->early.data[i].like || a->early.data[i].shares)
      continue;
    hd_stmt_t *made = hd_stmt_copy(a->b.arena, stmt);
    made->u.declare.var = a->early.data[i].cells;
    made->u.declare.init = NULL;
    hd_stmt_list_push(a->b.arena, out, made);
  }
}

static bool is_other_early(void *argument, const hd_stmt_t *stmt) {
  return stmt->kind != HD_STMT_POINT || !stmt->u.point.early ||
         stmt->u.point.early->u.var != argument;
}

// r[i] = r[j], of registers that what is read early lies like: what does so is
// moved as they are.
static bool move_early(const staged_body_t *staged, const hd_stmt_t *stmt,
                       hd_stmt_list_t *out) {
  const hd_accessor_t *a = staged->a;
  const hd_var_t *like = stmt->u.store.var;
  const hd_expr_t *value = stmt->u.store.value;
  if (value->kind != HD_EXPR_LOAD || value->u.var != like ||
      hd_walk_block(staged->source, is_other_early, NULL,
                    (void *)(uintptr_t)like))
    return false;
  for (size_t i = 0; i < a->early.size; i++) {
    const hd_access_early_t *early = &a->early.data[i];
    if (early->like != like || early->shares)
      continue;
    hd_stmt_t *made = hd_stmt_copy(a->b.arena, stmt);
    made->u.store.var = early->cells;
    made->u.store.value =
        hd_expr_access(a->b.arena, HD_EXPR_LOAD, early->cells, 1,
                       value->operands, hd_expr_num_indices(value));
    hd_stmt_list_push(a->b.arena, out, made);
  }
  return true;
}

// A staging tensor that nobody uses any more is not declared; what took its
// place is.
static bool declare_staged(hd_rewriter_t *rewriter, const hd_stmt_t *stmt,
                           hd_stmt_list_t *out) {
  const staged_body_t *staged = rewriter->argument;
  if (stmt->kind == HD_STMT_STORE)
    return move_early(staged, stmt, out);
  if (stmt->kind != HD_STMT_DECLARE)
    return false;
  declare_early(staged->a, stmt, out);
  for (size_t i = 0; i < staged->a->staged.size; i++) {
    const hd_access_staged_t *pair = &staged->a->staged.data[i];
    if (stmt->u.declare.var != pair->from)
      continue;
    hd_stmt_t *made = hd_stmt_copy(rewriter->arena, stmt);
    made->u.declare.var = pair->to;
    hd_stmt_list_push(rewriter->arena, out, made);
    return hd_walk_block(staged->body, is_other_stmt, is_other_expr,
                         &(accessed_t){pair->from});
  }
  return false;
}

static hd_block_t declare_all_staged(const hd_accessor_t *a, hd_block_t source,
                                     hd_block_t body) {
  staged_body_t staged = {a, source, body};
  hd_rewriter_t rewriter = {
      .arena = a->b.arena, .argument = &staged, .enter = declare_staged};
  return a->staged.size || a->early.size ? hd_rewrite_block(&rewriter, body)
                                         : body;
}

// The same map of another tensor, in as many bytes.
static const hd_var_t *map_of(hd_accessor_t *a, const hd_var_t *var,
                              const hd_var_t *tensor) {
  hd_map_t *map = HD_ARENA_COPY(a->b.arena, hd_map_t, var->map);
  hd_var_t *copy = HD_ARENA_NEW(a->b.arena, hd_var_t);
  map->tensor = tensor;
  unsigned from = hd_type_bits(var->map->tensor->type);
  unsigned to = hd_type_bits(tensor->type);
  if (from != to && map->num_box) {
    const hd_expr_t **last = &map->box[map->num_box - 1];
    *last = hd_expr_binary(a->b.arena, HD_EXPR_MUL, *last,
                           hd_expr_int(a->b.arena, (*last)->type, from / to));
  }
  *copy = *var;
  copy->map = map;
  return copy;
}

hd_func_t *hd_access_rewrite(hd_module_t *module, const hd_func_t *kernel,
                             const hd_access_hook_t *hooks, size_t num_hooks,
                             const char *name) {
  hd_arena_t *arena = &module->arena;
  hd_accessor_t a = {
      .b = {.context = module->context, .arena = arena, .loc = kernel->loc},
      .hooks = hooks,
      .num_hooks = num_hooks};
  hd_func_t *result = HD_ARENA_COPY(arena, hd_func_t, kernel);
  result->name = name;
  result->body =
      declare_all_staged(&a, kernel->body, rewrite_block(&a, kernel->body));
  HD_VEC(const hd_var_t *) params = {0}, maps = {0};
  for (uint32_t i = 0; i < kernel->num_params; i++)
    if (is_left(&a, result->body, kernel->params[i]))
      hd_vec_push(arena, &params, kernel->params[i]);
  for (size_t i = 0; i < a.b.params.size; i++)
    hd_vec_push(arena, &params, a.b.params.data[i]);
  for (uint32_t i = 0; i < kernel->num_maps; i++)
    if (is_left(&a, result->body, kernel->maps[i]->map->tensor))
      hd_vec_push(arena, &maps, kernel->maps[i]);
    else
      for (size_t m = 0; m < a.moved.size; m++)
        if (a.moved.data[m].from == kernel->maps[i]->map->tensor)
          hd_vec_push(arena, &maps,
                      map_of(&a, kernel->maps[i], a.moved.data[m].to));
  result->params = params.data;
  result->num_params = (uint32_t)params.size;
  result->maps = maps.data;
  result->num_maps = (uint32_t)maps.size;
  return result;
}
