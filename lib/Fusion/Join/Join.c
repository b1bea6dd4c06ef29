// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The launches of a group: those of its anchor's schedule, of kernels in which
// terms of the group stand where they load and store (JoinHooks.c).
#include "Fusion/Join/JoinState.h"
#include "IR/Passes/Passes.h"

#include <string.h>

enum { MAX_NAME = 40 };

// --- Launches ---

// The tensor that an argument is; NULL: a number.
static const hd_var_t *tensor_of(const hd_expr_t *arg) {
  return arg->kind == HD_EXPR_TENSOR ? arg->u.var : NULL;
}

// The anchor's value that a variable of its schedule is; NULL: a workspace.
static const hd_value_t *anchor_value(const hd_joiner_t *j, const hd_var_t *var,
                                      bool *is_output) {
  const hd_node_t *anchor = j->group->anchor;
  const hd_func_t *schedule = anchor->schedule;
  for (uint32_t i = 0; i < schedule->num_params; i++) {
    if (schedule->params[i] != var)
      continue;
    *is_output = i >= anchor->num_inputs;
    return *is_output ? anchor->outputs[i - anchor->num_inputs]
                      : anchor->inputs[i];
  }
  return NULL;
}

// Of a parameter of the kernel that was made: an argument of the one that it
// was made of, or something that hooks brought in.
static hd_joined_arg_t find_arg(const hd_joiner_t *j, const hd_translator_t *t,
                                const hd_func_t *from,
                                const hd_joined_arg_t *args,
                                const hd_var_t *param) {
  for (uint32_t i = 0; i < from->num_params; i++)
    if (from->params[i] == param)
      return args[i];
  for (size_t i = 0; i < t->args.size; i++)
    if (hd_ptr_map_get(&t->tensors, t->args.data[i]) == param)
      return (hd_joined_arg_t){.value =
                                   hd_group_value(j->group, t->args.data[i])};
  return (hd_joined_arg_t){0};
}

static void add_item(hd_joiner_t *j, hd_func_t *func) {
  hd_item_t item = {.kind = HD_ITEM_FUNC, .u.func = func};
  hd_vec_push(&j->fusion->module->arena, &j->fusion->module->items, item);
}

// The kernel with the functions that it calls put in place, for they may load
// and store.
static const hd_func_t *without_calls(hd_joiner_t *j, const hd_func_t *kernel) {
  hd_pass_args_t args = {0};
  return hd_pass_inline(j->fusion->module, kernel, &args);
}

static void join_launch(hd_joiner_t *j, const hd_stmt_t *stmt) {
  const hd_func_t *kernel = without_calls(j, stmt->u.launch.kernel);
  uint32_t count = stmt->u.launch.num_args;
  hd_translator_t t = {0};
  hd_join_hooks_t hooks = {0};
  hd_joined_arg_t *args = HD_ARENA_ARRAY(j->arena, hd_joined_arg_t, count + 1);
  for (uint32_t i = 0; i < count && !j->why; i++) {
    const hd_expr_t *arg = stmt->u.launch.args[i];
    const hd_var_t *var = tensor_of(arg);
    bool is_output = false;
    args[i].value = var ? anchor_value(j, var, &is_output) : NULL;
    if (args[i].value)
      args[i].value =
          hd_join_add_hooks(j, kernel, i, args[i].value, is_output, &t, &hooks);
    else if (var)
      args[i].workspace = var;
    else
      args[i].expr = arg;
  }
  if (j->why)
    return;
  hd_joined_launch_t launch = {stmt->u.launch.kernel,
                               stmt->u.launch.programmatic, args};
  if (hooks.size) {
    const char *name = hd_module_fresh_name(&j->fusion->module->arena,
                                            j->fusion->module, j->name);
    hd_func_t *func = hd_access_rewrite(j->fusion->module, kernel, hooks.data,
                                        hooks.size, name);
    if (j->why)
      return;
    add_item(j, func);
    launch.kernel = func;
    hd_joined_arg_t *made = HD_ARENA_ARRAY(j->arena, hd_joined_arg_t,
                                           launch.kernel->num_params + 1);
    for (uint32_t i = 0; i < launch.kernel->num_params; i++)
      made[i] = find_arg(j, &t, kernel, args, launch.kernel->params[i]);
    launch.args = made;
  }
  hd_vec_push(j->arena, &j->joined->launches, launch);
}

// A kernel as a launch of itself on its parameters.
static const hd_stmt_t *launch_of(hd_joiner_t *j, const hd_func_t *kernel) {
  hd_stmt_t *stmt = hd_stmt_make(j->arena, HD_STMT_LAUNCH, kernel->loc);
  const hd_expr_t **args =
      HD_ARENA_ARRAY(j->arena, const hd_expr_t *, kernel->num_params + 1);
  for (uint32_t i = 0; i < kernel->num_params; i++)
    args[i] = hd_expr_var(j->arena, kernel->params[i]);
  stmt->u.launch.kernel = kernel;
  stmt->u.launch.num_args = kernel->num_params;
  stmt->u.launch.args = args;
  return stmt;
}

// Whether an output whose stores are to be replaced is touched by one launch
// alone.
static void check_launches(hd_joiner_t *j, const hd_block_t *body) {
  const hd_node_t *anchor = j->group->anchor;
  for (uint32_t k = 0; k < anchor->num_outputs && !j->why; k++) {
    const hd_var_t *var = anchor->schedule->params[anchor->num_inputs + k];
    const hd_store_point_t *store =
        anchor->outputs[k] ? hd_join_store(j, anchor->outputs[k]) : NULL;
    unsigned launches = 0;
    for (size_t i = 0; i < body->size; i++) {
      const hd_stmt_t *stmt = body->stmts[i];
      for (uint32_t n = 0;
           stmt->kind == HD_STMT_LAUNCH && n < stmt->u.launch.num_args; n++)
        launches += tensor_of(stmt->u.launch.args[n]) == var;
    }
    if (store && (store->epilogues.size || store->rows) && launches != 1)
      j->why = "the anchor's result is made by several kernels";
  }
}

static void join_plan(hd_joiner_t *j) {
  const hd_func_t *schedule = j->group->anchor->schedule;
  if (schedule->kind == HD_FUNC_KERNEL) {
    join_launch(j, launch_of(j, schedule));
    return;
  }
  check_launches(j, &schedule->body);
  for (size_t i = 0; i < schedule->body.size && !j->why; i++) {
    const hd_stmt_t *stmt = schedule->body.stmts[i];
    if (stmt->kind == HD_STMT_LAUNCH)
      join_launch(j, stmt);
    else if (stmt->kind != HD_STMT_DECLARE || stmt->u.declare.init)
      j->why = "the anchor's plan is no list of launches";
  }
}

// --- Groups ---

static bool reads_live(const hd_joiner_t *j, const hd_node_t *node) {
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (hd_ptr_map_get(&j->group->live, node->inputs[i]))
      return true;
  return false;
}

// A prologue is computed where it is read, and stored nowhere; what is stored
// has whole bytes.
static const char *stored_wrongly(hd_joiner_t *j, const hd_node_t *node) {
  if (!node->anchor && hd_value_is_packed(node->outputs[0]) &&
      hd_group_is_kept(j->group, node->outputs[0]))
    return hd_arena_printf(j->arena,
                           "'%s' has elements of less than a byte, and is read "
                           "outside of the group",
                           node->outputs[0]->name);
  for (uint32_t i = 0; i < node->num_outputs; i++)
    if (node->outputs[i] &&
        hd_ptr_map_get(&j->group->inlined, node->outputs[i]) &&
        hd_group_is_kept(j->group, node->outputs[i]))
      return hd_arena_printf(j->arena,
                             "'%s' is nothing of the anchor's, and is read "
                             "outside of the group",
                             node->outputs[i]->name);
  return NULL;
}

static void collect(hd_joiner_t *j) {
  for (size_t i = 0; i < j->num_nodes; i++) {
    if (!j->nodes[i]->anchor)
      continue;
    if (j->group)
      j->why = "it has several anchors";
    else
      j->group = hd_group_begin(j->fusion, j->nodes[i]);
  }
  for (size_t i = 0; i < j->num_nodes && !j->why; i++) {
    const hd_node_t *node = j->nodes[i];
    if (node->anchor)
      continue;
    hd_pointwise_t p;
    bool is_rows = hd_fusion_pointwise(j->fusion, node, &p);
    j->why = !reads_live(j, node)
                 ? hd_group_add_prologue(j->group, node, UINT64_MAX)
             : is_rows ? hd_group_add_rows(j->group, node)
                       : hd_group_add_epilogue(j->group, node);
  }
  for (size_t i = 0; i < j->num_nodes && !j->why; i++)
    j->why = stored_wrongly(j, j->nodes[i]);
}

// matmul_add_relu
static const char *name_of(const hd_joiner_t *j) {
  const char *name = j->group->anchor->op;
  for (size_t i = 0; i < j->num_nodes && strlen(name) < MAX_NAME; i++)
    if (!j->nodes[i]->anchor && j->nodes[i]->task)
      name = hd_arena_printf(j->arena, "%s_%s", name, j->nodes[i]->op);
  return name;
}

const char *hd_group_join(hd_fusion_t *fusion, const hd_node_t *const *nodes,
                          size_t num_nodes, hd_joined_t *joined) {
  hd_joiner_t j = {.fusion = fusion,
                   .arena = fusion->arena,
                   .nodes = nodes,
                   .num_nodes = num_nodes,
                   .joined = joined};
  size_t items = fusion->module->items.size;
  *joined = (hd_joined_t){0};
  collect(&j);
  if (!j.why) {
    j.name = name_of(&j);
    join_plan(&j);
  }
  if (j.why && fusion->module->items.size > items) {
    fusion->module->items.size = items; // Made before the obstacle showed.
    hd_module_reindex(fusion->module);
  }
  return j.why;
}
