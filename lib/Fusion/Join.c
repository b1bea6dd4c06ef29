// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Fusion/Join.h"
#include "IR/Passes/Passes.h"
#include "Schedule/Access.h"
#include "Schedule/Affine.h"
#include "Schedule/Translate.h"

#include <string.h>

enum { MAX_NAME = 40 };

typedef struct joiner {
  hd_fusion_t *fusion;
  hd_arena_t *arena;
  hd_group_t *group;
  const hd_node_t *const *nodes;
  size_t num_nodes;
  const char *name;      // Of the kernels.
  const char *why;       // It cannot be done.
  hd_ptr_map_t reshaped; // Parameters in the shape of a kernel's own result.
  hd_joined_t *joined;
} joiner_t;

// --- Hooks ---

// What is done to one parameter of a kernel.
typedef struct hook {
  joiner_t *j;
  hd_translator_t *t;
  const hd_var_t *param;
  const hd_index_t *indices[HD_MAX_RANK]; // Of the parameter.
  const hd_term_t *term;                  // What is loaded.
  const hd_store_point_t *store;
  const hd_term_t *places[HD_MAX_RANK]; // Of the value that is stored.
  const hd_term_t **terms;              // Of the store's epilogues.
  const hd_expr_t *const *at;           // The place at hand.
} hook_t;

static void bind(hook_t *h, hd_builder_t *b, const hd_expr_t *const *at) {
  h->t->b = b;
  h->at = at;
  for (uint32_t i = 0; i < h->param->tensor->rank; i++)
    hd_translate_bind(h->t, h->indices[i], at[i]);
}

static const hd_expr_t *on_load(void *argument, hd_builder_t *b,
                                const hd_expr_t *const *at) {
  hook_t *h = argument;
  bind(h, b, at);
  return hd_translate(h->t, h->term);
}

// The shape of a parameter; false where it is not known.
static bool param_shape(const hd_var_t *param, int64_t *shape) {
  for (uint32_t i = 0; i < param->tensor->rank; i++)
    if (!hd_expr_fold_int(param->tensor->shape[i], &shape[i]))
      return false;
  return true;
}

// A parameter for a tensor whose elements are those of the kernel's own result
// in their order, in the result's shape: its places are plain there. NULL: it
// is another one, or has that shape.
static const hd_var_t *in_shape_of_result(hook_t *h,
                                          const hd_task_value_t *tensor,
                                          const hd_term_t *const *places) {
  const hd_store_point_t *store = h->store;
  hd_tensor_type_t type = hd_scheduled_type(store->value);
  int64_t shape[HD_MAX_RANK], own[HD_MAX_RANK];
  uint32_t rank = h->param->tensor->rank;
  for (uint32_t i = 0; i < tensor->rank; i++)
    shape[i] = hd_flat_size(tensor, i);
  if (h->param->tensor->layout || !param_shape(h->param, own) ||
      (tensor->rank == rank && memcmp(own, shape, rank * sizeof(own[0])) == 0))
    return NULL;
  const hd_var_t *known = hd_ptr_map_get(&h->t->tensors, tensor);
  if (known ||
      !hd_index_same_number(
          h->j->arena, &(hd_index_place_t){tensor->rank, shape, places},
          &(hd_index_place_t){type.rank, type.shape, store->places}))
    return known && hd_ptr_map_get(&h->j->reshaped, known) ? known : NULL;
  const hd_var_t *var = hd_b_param(h->t->b, tensor->name, HD_DIR_OUT,
                                   tensor->type.scalar, own, rank);
  hd_ptr_map_set(h->t->b->arena, &h->t->tensors, tensor, var);
  hd_vec_push(h->t->b->arena, &h->t->args, tensor);
  hd_ptr_map_set(h->j->arena, &h->j->reshaped, var, var);
  return var;
}

static void put_store(hook_t *h, const hd_value_t *value,
                      const hd_term_t *const *places, const hd_expr_t *e) {
  const hd_task_value_t *tensor = hd_group_tensor(h->j->group, value);
  const hd_var_t *param = in_shape_of_result(h, tensor, places);
  if (param) {
    hd_b_store(h->t->b, param, h->at, param->tensor->rank, e);
    return;
  }
  param = hd_translate_tensor(h->t, tensor, HD_DIR_OUT);
  const hd_expr_t *at[HD_MAX_RANK];
  for (uint32_t i = 0; i < tensor->rank; i++)
    at[i] = hd_translate_worth(h->t, places[i]).e;
  hd_b_store(h->t->b, param, at, tensor->rank, e);
}

static void emit_scope(hook_t *h, unsigned scope) {
  hd_translator_t *t = h->t;
  const hd_store_point_t *store = h->store;
  for (size_t i = 0; i < store->epilogues.size; i++) {
    const hd_epilogue_t *e = store->epilogues.data[i];
    if (e->scope != scope)
      continue;
    const hd_value_t *value = e->node->outputs[0];
    const hd_expr_t *x = hd_translate(t, h->terms[i]);
    x = hd_b_let(t->b, value->name, x);
    hd_ptr_map_set(h->j->arena, &t->variables, e->variable, x);
    if (hd_group_is_kept(h->j->group, value))
      put_store(h, value, e->map.places, x);
  }
  for (unsigned s = 1; s < store->scopes.size; s++) {
    const hd_index_map_t *map = store->scopes.data[s].map;
    if (store->scopes.data[s].outer != scope)
      continue;
    for (unsigned i = 0; i < map->num_lets; i++) {
      const hd_index_let_t *let = &map->lets[i];
      hd_translate_bind(
          t, let->index,
          hd_b_let(t->b, let->index->name, hd_translate_worth(t, let->term).e));
    }
    const hd_expr_t *condition = hd_translate(t, map->condition);
    size_t facts = t->facts.size;
    hd_open_block_t block;
    hd_b_open(t->b, &block);
    hd_translate_assume(t, map->condition, true);
    emit_scope(h, s);
    t->facts.size = facts;
    hd_block_t then = hd_b_close(t->b);
    hd_b_if(t->b, condition, then, (hd_block_t){0});
  }
}

// Nothing but numbers of 16 bits leaves.
static bool stores_narrow(const hook_t *h) {
  const hd_store_point_t *store = h->store;
  bool narrow = true;
  for (size_t i = 0; i <= store->epilogues.size; i++) {
    const hd_value_t *value = i == store->epilogues.size
                                  ? store->value
                                  : store->epilogues.data[i]->node->outputs[0];
    hd_scalar_t type = hd_scheduled_type(value).type;
    if (hd_group_is_kept(h->j->group, value))
      narrow &= type == HD_F16 || type == HD_BF16;
  }
  return narrow;
}

static void on_store(void *argument, hd_builder_t *b,
                     const hd_expr_t *const *at, const hd_expr_t *value) {
  hook_t *h = argument;
  const hd_store_point_t *store = h->store;
  bind(h, b, at);
  h->t->is_coarse = stores_narrow(h);
  unsigned rank = (unsigned)store->value->rank;
  for (unsigned i = 0; i < rank; i++)
    if (store->indices[i] != h->indices[i])
      hd_translate_bind(h->t, store->indices[i],
                        hd_b_let(b, store->indices[i]->name,
                                 hd_translate_worth(h->t, h->places[i]).e));
  value = hd_b_let(b, "value", value);
  hd_ptr_map_set(h->j->arena, &h->t->variables, store->variable, value);
  if (hd_group_is_kept(h->j->group, store->value))
    hd_b_store(b, h->param, at, h->param->tensor->rank, value);
  emit_scope(h, 0);
}

static bool same_shape(const hd_tensor_type_t *type, const int64_t *shape,
                       unsigned rank) {
  return type->rank == rank &&
         memcmp(type->shape, shape, rank * sizeof(shape[0])) == 0;
}

// Names the parameter's indices; places says where its element is in a value of
// as many elements. like: names to take where the shapes are the same.
static void name_indices(hook_t *h, const hd_value_t *value,
                         const int64_t *shape, const hd_index_t *const *like,
                         const hd_term_t **places) {
  hd_arena_t *arena = h->j->arena;
  hd_tensor_type_t type = hd_scheduled_type(value);
  unsigned rank = h->param->tensor->rank;
  bool same = same_shape(&type, shape, rank);
  const hd_term_t *own[HD_MAX_RANK];
  for (unsigned i = 0; i < rank; i++) {
    h->indices[i] =
        same && like ? like[i]
                     : hd_flat_index_make(
                           arena, hd_arena_printf(arena, "i%u", i), shape[i]);
    own[i] = hd_flat_index(arena, h->indices[i]);
    places[i] = own[i];
  }
  if (!same)
    hd_index_places(arena, hd_index_linear(arena, shape, rank, own), type.shape,
                    type.rank, places);
}

static void refuse(joiner_t *j, const hd_func_t *kernel, const hd_var_t *param,
                   const char *why) {
  j->why = hd_arena_printf(j->arena, "'%s' of kernel '%s' %s", param->name,
                           kernel->name, why);
}

static hook_t *make_hook(joiner_t *j, hd_translator_t *t,
                         const hd_var_t *param) {
  hook_t *h = HD_ARENA_NEW(j->arena, hook_t);
  h->j = j;
  h->t = t;
  h->param = param;
  return h;
}

static hook_t *hook_load(joiner_t *j, hd_translator_t *t, const hd_var_t *param,
                         const int64_t *shape, const hd_value_t *value) {
  hook_t *h = make_hook(j, t, param);
  const hd_term_t *places[HD_MAX_RANK];
  name_indices(h, value, shape, NULL, places);
  h->term = hd_group_element(j->group, value, places);
  return h;
}

static hook_t *hook_store(joiner_t *j, hd_translator_t *t,
                          const hd_var_t *param, const int64_t *shape,
                          const hd_store_point_t *store) {
  hook_t *h = make_hook(j, t, param);
  h->store = store;
  name_indices(h, store->value, shape, store->indices, h->places);
  h->terms =
      HD_ARENA_ARRAY(j->arena, const hd_term_t *, store->epilogues.size + 1);
  for (size_t i = 0; i < store->epilogues.size; i++)
    h->terms[i] = hd_group_epilogue_term(j->group, store->epilogues.data[i]);
  return h;
}

// --- Launches ---

// The tensor that an argument is; NULL: a number.
static const hd_var_t *tensor_of(const hd_expr_t *arg) {
  return arg->kind == HD_EXPR_TENSOR ? arg->u.var : NULL;
}

// The anchor's value that a variable of its schedule is; NULL: a workspace.
static const hd_value_t *anchor_value(const joiner_t *j, const hd_var_t *var,
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

static const hd_store_point_t *store_point(const joiner_t *j,
                                           const hd_value_t *value) {
  for (size_t i = 0; i < j->group->stores.size; i++)
    if (j->group->stores.data[i]->value == value)
      return j->group->stores.data[i];
  return NULL;
}

typedef HD_VEC(hd_access_hook_t) hooks_t;

// The tensor that is loaded, element for element in row-major order, so that it
// may take the parameter's place; NULL: none.
static const hd_value_t *loaded_as_it_is(const hook_t *h,
                                         const int64_t *shape) {
  hd_arena_t *arena = h->j->arena;
  const hd_tensor_t *tensor = h->param->tensor;
  if (h->term->kind != HD_TERM_LOAD || tensor->layout)
    return NULL;
  const hd_task_value_t *value = h->term->u.value;
  const hd_term_t *own[HD_MAX_RANK];
  int64_t given[HD_MAX_RANK], count = 1;
  for (uint32_t i = 0; i < tensor->rank; i++) {
    own[i] = hd_flat_index(arena, h->indices[i]);
    count *= shape[i];
  }
  for (uint32_t i = 0; i < value->rank; i++)
    given[i] = hd_flat_size(value, i);
  return value->type.scalar == h->param->type.scalar &&
                 hd_flat_count(value) == count &&
                 hd_index_same_number(
                     arena,
                     &(hd_index_place_t){value->rank, given, h->term->operands},
                     &(hd_index_place_t){tensor->rank, shape, own})
             ? hd_group_value(h->j->group, value)
             : NULL;
}

// What is to be done to parameter i, which stands for a value of the anchor.
// Returns the value that it is given.
static const hd_value_t *add_hooks(joiner_t *j, const hd_func_t *kernel,
                                   uint32_t i, const hd_value_t *value,
                                   bool is_output, hd_translator_t *t,
                                   hooks_t *hooks) {
  const hd_var_t *param = kernel->params[i];
  const hd_store_point_t *store = is_output ? store_point(j, value) : NULL;
  bool loads = !is_output && hd_ptr_map_get(&j->group->inlined, value);
  bool stores = store && store->epilogues.size > 0;
  int64_t shape[HD_MAX_RANK];
  if (!loads && !stores) {
    hd_tensor_type_t type = hd_scheduled_type(value);
    if (param_shape(param, shape) &&
        same_shape(&type, shape, param->tensor->rank) && !is_output)
      hd_ptr_map_set(j->arena, &t->tensors, hd_group_tensor(j->group, value),
                     param);
    return value;
  }
  if (!param_shape(param, shape)) {
    refuse(j, kernel, param, "has no constant shape");
    return value;
  }
  hook_t *h = loads ? hook_load(j, t, param, shape, value)
                    : hook_store(j, t, param, shape, store);
  const hd_value_t *same = loads ? loaded_as_it_is(h, shape) : NULL;
  if (same)
    return same;
  const char *why = hd_access_obstacle(
      kernel, param, loads ? HD_ACCESS_LOADS : HD_ACCESS_STORES);
  if (why) {
    refuse(j, kernel, param, why);
    return value;
  }
  hd_access_hook_t hook = {.param = param,
                           .argument = h,
                           .load = loads ? on_load : NULL,
                           .store = loads ? NULL : on_store};
  hd_vec_push(j->arena, hooks, hook);
  return value;
}

// Of a parameter of the kernel that was made: an argument of the one that it
// was made of, or something that hooks brought in.
static hd_joined_arg_t find_arg(const joiner_t *j, const hd_translator_t *t,
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

static void add_item(joiner_t *j, hd_func_t *func) {
  hd_item_t item = {.kind = HD_ITEM_FUNC, .u.func = func};
  hd_vec_push(&j->fusion->module->arena, &j->fusion->module->items, item);
}

// The kernel with the functions that it calls put in place, for they may load
// and store.
static const hd_func_t *without_calls(joiner_t *j, const hd_func_t *kernel) {
  hd_pass_args_t args = {0};
  return hd_pass_inline(j->fusion->module, kernel, &args);
}

static void join_launch(joiner_t *j, const hd_stmt_t *stmt) {
  const hd_func_t *kernel = without_calls(j, stmt->u.launch.kernel);
  uint32_t count = stmt->u.launch.num_args;
  hd_translator_t t = {0};
  hooks_t hooks = {0};
  hd_joined_arg_t *args = HD_ARENA_ARRAY(j->arena, hd_joined_arg_t, count + 1);
  for (uint32_t i = 0; i < count && !j->why; i++) {
    const hd_expr_t *arg = stmt->u.launch.args[i];
    const hd_var_t *var = tensor_of(arg);
    bool is_output = false;
    args[i].value = var ? anchor_value(j, var, &is_output) : NULL;
    if (args[i].value)
      args[i].value =
          add_hooks(j, kernel, i, args[i].value, is_output, &t, &hooks);
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
static const hd_stmt_t *launch_of(joiner_t *j, const hd_func_t *kernel) {
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
static void check_launches(joiner_t *j, const hd_block_t *body) {
  const hd_node_t *anchor = j->group->anchor;
  for (uint32_t k = 0; k < anchor->num_outputs && !j->why; k++) {
    const hd_var_t *var = anchor->schedule->params[anchor->num_inputs + k];
    const hd_store_point_t *store =
        anchor->outputs[k] ? store_point(j, anchor->outputs[k]) : NULL;
    unsigned launches = 0;
    for (size_t i = 0; i < body->size; i++) {
      const hd_stmt_t *stmt = body->stmts[i];
      for (uint32_t n = 0;
           stmt->kind == HD_STMT_LAUNCH && n < stmt->u.launch.num_args; n++)
        launches += tensor_of(stmt->u.launch.args[n]) == var;
    }
    if (store && store->epilogues.size && launches != 1)
      j->why = "the anchor's result is made by several kernels";
  }
}

static void join_plan(joiner_t *j) {
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

static bool reads_live(const joiner_t *j, const hd_node_t *node) {
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (hd_ptr_map_get(&j->group->live, node->inputs[i]))
      return true;
  return false;
}

// A prologue is computed where it is read, and stored nowhere; what is stored
// has whole bytes.
static const char *stored_wrongly(joiner_t *j, const hd_node_t *node) {
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

static void collect(joiner_t *j) {
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
    j->why = reads_live(j, node)
                 ? hd_group_add_epilogue(j->group, node)
                 : hd_group_add_prologue(j->group, node, UINT64_MAX);
  }
  for (size_t i = 0; i < j->num_nodes && !j->why; i++)
    j->why = stored_wrongly(j, j->nodes[i]);
}

// matmul_add_relu
static const char *name_of(const joiner_t *j) {
  const char *name = j->group->anchor->op;
  for (size_t i = 0; i < j->num_nodes && strlen(name) < MAX_NAME; i++)
    if (!j->nodes[i]->anchor && j->nodes[i]->task)
      name = hd_arena_printf(j->arena, "%s_%s", name, j->nodes[i]->op);
  return name;
}

const char *hd_group_join(hd_fusion_t *fusion, const hd_node_t *const *nodes,
                          size_t num_nodes, hd_joined_t *joined) {
  joiner_t j = {.fusion = fusion,
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
