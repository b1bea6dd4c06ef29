// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random modules: constants, functions with what they begin and end with, and
// a plan; the statements between are GenerateStmt.c's.
#include "IR/Generator.h"
#include "IR/EarlyLaunch.h"
#include "IR/Intrinsic.h"

// A call of a row, what it needs being declared before it.
static const hd_expr_t *showcase_call(hd_generator_t *g, hd_intrinsic_t row,
                                      const hd_stmt_t **stmts, size_t *size) {
  const hd_intrinsic_info_t *info = hd_intrinsic_info(row);
  if (hd_is_prepared(info))
    return hd_generate_prepared(g, row, stmts, size);
  for (unsigned i = 0; i < info->num_params; i++) {
    const hd_intrinsic_param_t *param = &info->params[i];
    hd_scope_t scope = HD_SCOPE_REGISTER;
    if (param->form == HD_PARAM_SHARED || param->form == HD_PARAM_MEMORY)
      scope = HD_SCOPE_SHARED;
    else if (param->form != HD_PARAM_REGISTER)
      continue;
    hd_type_t type = param->generic && info->num_types
                         ? info->types[hd_random_below(g, info->num_types)]
                         : param->type;
    if (param->any)
      type = hd_type(HD_F32);
    stmts[(*size)++] = hd_generate_declared(g, scope, hd_type_lane(type));
  }
  const hd_expr_t *e = NULL;
  for (int tries = 0; !e && tries < 40; tries++)
    e = hd_generate_intrinsic(g, row, 1);
  return e;
}

static const hd_stmt_t *showcase(hd_generator_t *g, hd_intrinsic_t row,
                                 const hd_stmt_t **stmts, size_t *size) {
  const hd_expr_t *e = showcase_call(g, row, stmts, size);
  if (!e)
    return NULL;
  hd_stmt_t *stmt = hd_generate_stmt(g, HD_STMT_EVAL);
  stmt->u.eval.value = e;
  return stmt;
}

static const hd_var_t *param(hd_generator_t *g, hd_func_kind_t kind) {
  if (kind == HD_FUNC_FN && hd_random_below(g, 12) == 0) {
    g->counts->scalars[HD_MAP]++;
    return hd_generate_var(g, HD_VAR_PARAM, hd_type(HD_MAP));
  }
  hd_type_t type = kind == HD_FUNC_FN      ? hd_random_type(g)
                   : hd_random_below(g, 2) ? hd_type(HD_I32)
                                           : hd_type_lane(hd_random_type(g));
  g->counts->scalars[type.scalar]++;
  if (hd_random_below(g, 2))
    return hd_generate_var(g, HD_VAR_PARAM, type);
  hd_scope_t scope =
      kind == HD_FUNC_FN ? (hd_scope_t)hd_random_below(g, 3) : HD_SCOPE_GLOBAL;
  const hd_tensor_t *tensor = hd_generate_tensor(g, scope, hd_type_lane(type));
  hd_var_t *var =
      hd_var_make_tensor(g->arena, hd_random_name(g), tensor, (hd_loc_t){0});
  if (scope == HD_SCOPE_GLOBAL)
    var->direction = (hd_direction_t)(HD_DIR_IN + hd_random_below(g, 3));
  hd_vec_push(g->arena, &g->vars, var);
  return var;
}

static void launch_clauses(hd_generator_t *g, hd_launch_t *launch) {
  g->in_launch = true;
  for (unsigned i = 0; i < 1 + hd_random_below(g, 3); i++)
    launch->grid[i] = hd_generate_expr(g, hd_type(HD_I32), 2);
  g->in_launch = false;
  for (unsigned i = 0; i < 1 + hd_random_below(g, 3); i++)
    launch->block[i] = hd_expr_i32(g->arena, 1 + hd_random_below(g, 8));
  if (hd_random_below(g, 3) == 0)
    launch->cluster[0] = hd_expr_i32(g->arena, 2);
  if (hd_random_below(g, 3) == 0)
    launch->min_blocks = 2;
  if (hd_random_below(g, 3) == 0)
    launch->max_blocks = 3;
}

static hd_func_t *header(hd_generator_t *g, hd_func_kind_t kind,
                         const char *name) {
  hd_func_t *func = HD_ARENA_NEW(g->arena, hd_func_t);
  *func = (hd_func_t){.kind = kind, .name = name, .has_body = true};
  func->result = hd_type(HD_VOID);
  g->counts->funcs[kind]++;
  g->func = func;
  g->vars.size = 0;
  uint32_t count = hd_random_below(g, 6);
  const hd_var_t **params = HD_ARENA_ARRAY(g->arena, const hd_var_t *, count);
  memset(&g->sizes, 0, sizeof g->sizes);
  g->in_signature = kind == HD_FUNC_FN;
  for (uint32_t i = 0; i < count; i++) {
    params[i] = param(g, kind);
    for (size_t n = 0; n < g->sizes.size; n++)
      if (g->sizes.data[n].param == UINT32_MAX) {
        g->sizes.data[n].param = i;
        hd_vec_push(g->arena, &g->vars, g->sizes.data[n].var);
      }
  }
  g->in_signature = false;
  func->sizes = g->sizes.data;
  func->num_sizes = (uint32_t)g->sizes.size;
  func->params = params;
  func->num_params = count;
  if (kind != HD_FUNC_PLAN)
    hd_vec_push(g->arena, &g->vars, g->table);
  if (kind == HD_FUNC_KERNEL && hd_random_below(g, 2))
    hd_generate_maps(g);
  if (kind == HD_FUNC_KERNEL)
    launch_clauses(g, &func->launch);
  return func;
}

static const hd_stmt_t *wait_for_launch(hd_generator_t *g) {
  hd_stmt_t *stmt = hd_generate_stmt(g, HD_STMT_EVAL);
  stmt->u.eval.value =
      hd_generate_intrinsic(g, HD_INTRINSIC_GRIDDEPCONTROL_WAIT, 0);
  return stmt;
}

static hd_block_t body(hd_generator_t *g) {
  const hd_stmt_t *stmts[64];
  size_t size = 0, inner = hd_random_below(g, 6);
  bool is_kernel = g->func->kind == HD_FUNC_KERNEL;
  if (is_kernel && hd_random_below(g, 3) == 0)
    stmts[size++] = wait_for_launch(g); // Or it cannot be programmatic.
  for (size_t i = 0; i < inner; i++) {
    const hd_stmt_t *stmt = hd_generate_statement(g, 3);
    if (stmt)
      stmts[size++] = stmt;
  }
  for (int i = 0; is_kernel && i < 3; i++) {
    const hd_stmt_t *stmt =
        showcase(g, (hd_intrinsic_t)hd_random_below(g, HD_INTRINSIC_COUNT),
                 stmts, &size);
    if (stmt)
      stmts[size++] = stmt;
  }
  if (g->func->kind == HD_FUNC_FN) {
    hd_stmt_t *stmt = hd_generate_stmt(g, HD_STMT_RETURN);
    if (!hd_type_equal(g->func->result, hd_type(HD_VOID)))
      stmt->u.eval.value = hd_generate_expr(g, g->func->result, 4);
    stmts[size++] = stmt;
  }
  return hd_block_make(g->arena, stmts, size);
}

static const hd_stmt_t *launch(hd_generator_t *g, const hd_func_t *kernel) {
  const hd_expr_t **args =
      HD_ARENA_ARRAY(g->arena, const hd_expr_t *, kernel->num_params);
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    const hd_var_t *p = kernel->params[i];
    if (!p->tensor) {
      args[i] = hd_generate_expr(g, p->type, 2);
      continue;
    }
    for (size_t v = 0; v < g->vars.size && !args[i]; v++) {
      const hd_var_t *var = g->vars.data[v];
      if (var->tensor && hd_type_equal(var->type, p->type) &&
          var->tensor->rank == p->tensor->rank && !hd_is_given(args, i, var) &&
          (var->direction != HD_DIR_IN || p->direction == HD_DIR_IN))
        args[i] = hd_expr_var(g->arena, var);
    }
    if (!args[i])
      return NULL;
  }
  hd_stmt_t *stmt = hd_generate_stmt(g, HD_STMT_LAUNCH);
  stmt->u.launch.kernel = kernel;
  stmt->u.launch.args = args;
  stmt->u.launch.num_args = kernel->num_params;
  stmt->u.launch.programmatic = hd_random_below(g, 2);
  return stmt;
}

static const hd_stmt_t *declare_global(hd_generator_t *g, hd_type_t type,
                                       int64_t size, const hd_expr_t *init) {
  hd_tensor_t *tensor = HD_ARENA_NEW(g->arena, hd_tensor_t);
  const hd_expr_t **shape = HD_ARENA_ARRAY(g->arena, const hd_expr_t *, 1);
  shape[0] = hd_expr_int(g->arena, hd_type(HD_I32), size);
  *tensor = (hd_tensor_t){
      .scope = HD_SCOPE_GLOBAL, .element = type, .rank = 1, .shape = shape};
  hd_stmt_t *stmt = hd_stmt_make(g->arena, HD_STMT_DECLARE, (hd_loc_t){0});
  stmt->u.declare.var =
      hd_var_make_tensor(g->arena, hd_random_name(g), tensor, (hd_loc_t){0});
  stmt->u.declare.init = init;
  g->counts->stmts[HD_STMT_DECLARE]++;
  return stmt;
}

// A workspace and a view of its second half, which begins at a multiple of 16
// bytes whatever the type.
static size_t add_view(hd_generator_t *g, const hd_stmt_t **stmts) {
  hd_type_t type = hd_type_lane(hd_random_type(g));
  stmts[0] = declare_global(g, type, 256, NULL);
  const hd_expr_t *of =
      hd_expr_access_linear(g->arena, HD_EXPR_REF, stmts[0]->u.declare.var, 1,
                            hd_expr_int(g->arena, hd_type(HD_I32), 128));
  stmts[1] = declare_global(g, type, 1 + hd_random_below(g, 128), of);
  g->counts->views++;
  return 2;
}

// Only launches whose kernels wait may be programmatic.
static void settle_programmatic(hd_generator_t *g, const hd_stmt_t **stmts,
                                hd_block_t plan) {
  hd_early_launches_t *launches = hd_early_launches_make(g->arena, plan);
  for (uint32_t i = 0; i < plan.size; i++) {
    if (stmts[i]->kind != HD_STMT_LAUNCH || !stmts[i]->u.launch.programmatic)
      continue;
    hd_stmt_t *copy = hd_stmt_copy(g->arena, stmts[i]);
    copy->u.launch.programmatic =
        hd_early_launch_prove(launches, copy).answer == HD_EARLY_YES;
    g->counts->programmatic += copy->u.launch.programmatic;
    stmts[i] = copy;
  }
}

// Workspaces for what the launches want, then the launches.
static hd_block_t plan_body(hd_generator_t *g) {
  const hd_stmt_t *stmts[64];
  size_t size = add_view(g, stmts);
  for (size_t i = 0; i < g->module->items.size && size < 40; i++) {
    const hd_item_t *item = &g->module->items.data[i];
    if (item->kind != HD_ITEM_FUNC || item->u.func->kind != HD_FUNC_KERNEL)
      continue;
    const hd_func_t *kernel = item->u.func;
    for (uint32_t p = 0; p < kernel->num_params; p++)
      if (kernel->params[p]->tensor)
        stmts[size++] =
            hd_generate_declared(g, HD_SCOPE_GLOBAL, kernel->params[p]->type);
    const hd_stmt_t *stmt = launch(g, kernel);
    if (stmt)
      stmts[size++] = stmt;
  }
  hd_block_t body = hd_block_make(g->arena, stmts, size);
  settle_programmatic(g, stmts, body);
  return hd_block_make(g->arena, stmts, size);
}

static const hd_const_t *table(hd_generator_t *g, const char *name) {
  int64_t sizes[] = {1 + hd_random_below(g, 3), 8};
  const hd_expr_t **shape = HD_ARENA_ARRAY(g->arena, const hd_expr_t *, 2);
  hd_tensor_t *tensor = HD_ARENA_NEW(g->arena, hd_tensor_t);
  hd_const_t *c = HD_ARENA_NEW(g->arena, hd_const_t);
  hd_type_t type = hd_type_lane(hd_random_type(g));
  shape[0] = hd_expr_i32(g->arena, sizes[0]);
  shape[1] = hd_expr_i32(g->arena, sizes[1]);
  *tensor = (hd_tensor_t){
      .scope = HD_SCOPE_GLOBAL, .element = type, .rank = 2, .shape = shape};
  hd_host_tensor_t *elements =
      hd_host_tensor_make(g->arena, (hd_scalar_t)type.scalar, sizes, 2);
  if (hd_random_below(g, 2))
    hd_host_tensor_fill_random(elements, hd_random(g), 0);
  hd_var_t *var = hd_var_make_tensor(g->arena, name, tensor, (hd_loc_t){0});
  var->direction = HD_DIR_IN;
  var->table = elements;
  g->table = var;
  g->counts->tables++;
  *c = (hd_const_t){.name = name, .table = var};
  return c;
}

static void push(hd_generator_t *g, hd_func_t *func) {
  hd_item_t item = {.kind = HD_ITEM_FUNC, .u.func = func};
  hd_vec_push(g->arena, &g->module->items, item);
}

static void constants(hd_generator_t *g) {
  static const char *const names[] = {"c0", "c1", "c2"};
  for (int i = 0; i < 3; i++) {
    hd_const_t *c = HD_ARENA_NEW(g->arena, hd_const_t);
    *c = (hd_const_t){.name = names[i]};
    if (i == 0) {
      c->mapping = hd_generate_mapping(g, 1 + hd_random_below(g, 3), 3, true);
    } else {
      static const hd_scalar_t untyped[] = {HD_I64, HD_F64, HD_U64};
      unsigned which = hd_random_below(g, 3);
      c->untyped = i == 1;
      hd_type_t type = c->untyped ? hd_type(untyped[which])
                                  : hd_type_lane(hd_random_type(g));
      c->value = hd_generate_expr(g, type, 0);
      if (c->untyped && which == 2) // Large, or it would be an i64.
        c->value = hd_expr_int(g->arena, type, c->value->u.i | INT64_MIN);
    }
    g->counts->consts++;
    hd_item_t item = {.kind = HD_ITEM_CONST, .u.constant = c};
    hd_vec_push(g->arena, &g->module->items, item);
  }
  hd_item_t item = {.kind = HD_ITEM_CONST, .u.constant = table(g, "c3")};
  hd_vec_push(g->arena, &g->module->items, item);
}

hd_module_t *hd_generate_module(hd_context_t *context, uint64_t seed,
                                hd_generated_t *counts) {
  static const char *const fns[] = {"f0", "f1", "f0"};
  static const char *const kernels[] = {"k0", "k1"};
  hd_module_t *module = hd_module_create(context);
  hd_generator_t g = {.state = seed,
                      .arena = &module->arena,
                      .module = module,
                      .counts = counts};
  constants(&g);
  for (int i = 0; i < 3; i++) {
    hd_func_t *func = header(&g, HD_FUNC_FN, fns[i]);
    bool clashes = i == 2 && hd_module_find(module, fns[i], HD_FUNC_FN);
    if (hd_random_below(&g, 4))
      func->result = hd_random_type(&g);
    func->body = body(&g);
    if (!clashes)
      push(&g, func);
  }
  for (int i = 0; i < 2; i++) {
    hd_func_t *func = header(&g, HD_FUNC_KERNEL, kernels[i]);
    func->body = body(&g);
    push(&g, func);
  }
  hd_func_t *plan = header(&g, HD_FUNC_PLAN, "p0");
  plan->body = plan_body(&g);
  push(&g, plan);
  hd_generate_graph(&g, "g0");
  hd_generate_graph(&g, "copy0");
  hd_generate_rewrite(&g, "w0");
  return module;
}
