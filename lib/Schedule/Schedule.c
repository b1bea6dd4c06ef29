// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tasks to launches: a task is made flat and prepared, a rule makes kernels for
// each of its definitions, and what was made for a binding is used again for
// one that is equal.
#include "Schedule/Schedule.h"

#include "Schedule/Flatten.h"
#include "Schedule/Prepare.h"
#include "Schedule/Rules.h"

// The kernels for a binding.
typedef struct hd_recipe {
  const hd_task_binding_t *binding;
  const hd_task_t *flat;
  hd_rule_launches_t launches;
  struct hd_recipe *next;
} hd_recipe_t;

struct hd_scheduler {
  hd_module_t *module;
  hd_arena_t *arena; // The module's, or what lives as long.
  hd_recipe_t *recipes;
  hd_stmt_list_t body; // Of the plan: workspaces and launches.
};

hd_scheduler_t *hd_scheduler_create(hd_module_t *module, hd_arena_t *arena) {
  hd_scheduler_t *s = HD_ARENA_NEW(arena, hd_scheduler_t);
  s->module = module;
  s->arena = arena;
  return s;
}

// --- Recipes ---

static bool types_equal(const hd_tensor_type_t *a, const hd_tensor_type_t *b) {
  return a->type == b->type && a->rank == b->rank &&
         memcmp(a->shape, b->shape, a->rank * sizeof a->shape[0]) == 0;
}

static bool attributes_equal(const hd_bound_attribute_t *a,
                             const hd_bound_attribute_t *b) {
  if (a->rank != b->rank || !a->ints != !b->ints)
    return false;
  return a->ints
             ? memcmp(a->ints, b->ints, a->rank * sizeof a->ints[0]) == 0
             : memcmp(a->floats, b->floats, a->rank * sizeof a->floats[0]) == 0;
}

// Everything else of a binding follows.
static bool bindings_equal(const hd_task_binding_t *a,
                           const hd_task_binding_t *b) {
  const hd_task_t *task = a->task;
  if (task != b->task)
    return false;
  for (size_t i = 0; i < task->types.size; i++)
    if (a->types[i] != b->types[i])
      return false;
  for (size_t i = 0; i < task->packs.size; i++) // A node may say: { s = 1 }.
    if (a->packs[i].rank != b->packs[i].rank)
      return false;
  for (size_t i = 0; i < task->inputs.size; i++)
    if (task->inputs.data[i]->kind == HD_VALUE_ATTRIBUTE
            ? !attributes_equal(&a->attributes[i], &b->attributes[i])
            : !types_equal(&a->inputs[i], &b->inputs[i]))
      return false;
  return true;
}

void hd_rules_apply(hd_rules_t *rules, const hd_definition_t *d) {
  if (d->kind == HD_SCATTER)
    hd_rule_scatter(rules, d);
  else if (!hd_rule_contract(rules, d) && !hd_rule_reduce(rules, d) &&
           !hd_rule_scan(rules, d))
    hd_rule_pointwise(rules, d);
}

static hd_recipe_t *make_recipe(hd_scheduler_t *s,
                                const hd_task_binding_t *binding,
                                const char *name, hd_loc_t loc) {
  hd_task_t *flat = hd_task_flatten(s->module->context, s->arena, binding, loc);
  if (!flat)
    return NULL;
  hd_task_hoist(s->arena, flat);
  hd_task_inline(s->arena, flat);
  hd_task_widen(s->arena, flat);
  hd_rules_t rules = {
      .module = s->module, .flat = flat, .name = name, .loc = loc};
  for (size_t i = 0; i < flat->definitions.size; i++)
    hd_rules_apply(&rules, flat->definitions.data[i]);
  hd_recipe_t *recipe = HD_ARENA_NEW(s->arena, hd_recipe_t);
  recipe->binding = binding;
  recipe->flat = flat;
  recipe->launches = rules.launches;
  recipe->next = s->recipes;
  s->recipes = recipe;
  return recipe;
}

static hd_recipe_t *find_recipe(const hd_scheduler_t *s,
                                const hd_task_binding_t *binding) {
  hd_recipe_t *recipe = s->recipes;
  while (recipe && !bindings_equal(recipe->binding, binding))
    recipe = recipe->next;
  return recipe;
}

// --- The plan ---

// A tensor of the plan. An empty one has room for an element that nobody reads:
// sizes of 0 may not be written down.
static hd_var_t *plan_tensor(hd_scheduler_t *s, const char *name,
                             const hd_tensor_type_t *type) {
  hd_builder_t b = {.context = s->module->context, .arena = s->arena};
  int64_t shape[HD_MAX_RANK];
  for (unsigned i = 0; i < type->rank; i++)
    shape[i] = type->shape[i] ? type->shape[i] : 1;
  return hd_b_tensor(&b, HD_SCOPE_GLOBAL, name, type->type, shape, type->rank,
                     NULL);
}

const hd_var_t *hd_scheduler_workspace(hd_scheduler_t *s, const char *name,
                                       const hd_tensor_type_t *type) {
  hd_stmt_t *stmt = hd_stmt_make(s->arena, HD_STMT_DECLARE, (hd_loc_t){0, 0});
  stmt->u.declare.var = plan_tensor(s, name, type);
  hd_stmt_list_push(s->arena, &s->body, stmt);
  return stmt->u.declare.var;
}

// The plan's tensor for each of a flat task's.
static void place_values(hd_scheduler_t *s, const hd_task_t *flat,
                         const hd_var_t *const *tensors, hd_ptr_map_t *places) {
  for (size_t i = 0; i < flat->inputs.size; i++)
    hd_ptr_map_set(s->arena, places, flat->inputs.data[i], *tensors++);
  for (size_t i = 0; i < flat->outputs.size; i++)
    hd_ptr_map_set(s->arena, places, flat->outputs.data[i], *tensors++);
  for (size_t i = 0; i < flat->locals.size; i++) {
    const hd_task_value_t *local = flat->locals.data[i];
    hd_tensor_type_t type = {local->type.scalar, local->rank, {0}};
    for (uint32_t k = 0; k < local->rank; k++)
      type.shape[k] = hd_flat_size(local, k);
    if (hd_flat_count(local) > 0)
      hd_ptr_map_set(s->arena, places, local,
                     hd_scheduler_workspace(s, local->name, &type));
  }
}

static void put_launch(hd_scheduler_t *s, const hd_rule_launch_t *launch,
                       const hd_ptr_map_t *places, hd_loc_t loc) {
  uint32_t count = launch->kernel->num_params;
  const hd_expr_t **args = HD_ARENA_ARRAY(s->arena, const hd_expr_t *, count);
  for (uint32_t i = 0; i < count; i++)
    args[i] = hd_expr_var(s->arena, hd_ptr_map_get(places, launch->args[i]));
  hd_stmt_t *stmt = hd_stmt_make(s->arena, HD_STMT_LAUNCH, loc);
  stmt->u.launch.kernel = launch->kernel;
  stmt->u.launch.num_args = count;
  stmt->u.launch.args = args;
  hd_stmt_list_push(s->arena, &s->body, stmt);
}

bool hd_schedule_task(hd_scheduler_t *s, const hd_task_binding_t *binding,
                      const hd_var_t *const *tensors, const char *name,
                      hd_loc_t loc) {
  hd_recipe_t *recipe = find_recipe(s, binding);
  if (!recipe)
    recipe = make_recipe(s, binding, name, loc);
  if (!recipe)
    return false;
  hd_ptr_map_t places = {0};
  place_values(s, recipe->flat, tensors, &places);
  for (size_t i = 0; i < recipe->launches.size; i++)
    put_launch(s, &recipe->launches.data[i], &places, loc);
  return true;
}

hd_func_t *hd_scheduler_finish(hd_scheduler_t *s, const char *name,
                               const hd_var_t *const *params,
                               uint32_t num_params) {
  const hd_var_t **copy =
      HD_ARENA_ARRAY(s->arena, const hd_var_t *, num_params);
  for (uint32_t i = 0; i < num_params; i++)
    copy[i] = params[i];
  hd_func_t *plan = HD_ARENA_NEW(&s->module->arena, hd_func_t);
  *plan = (hd_func_t){.kind = HD_FUNC_PLAN,
                      .name = name,
                      .num_params = num_params,
                      .params = copy,
                      .result = hd_type(HD_VOID),
                      .has_body = true};
  plan->body = hd_block_make(s->arena, s->body.data, s->body.size);
  hd_item_t item = {.kind = HD_ITEM_FUNC, .u.func = plan};
  hd_vec_push(&s->module->arena, &s->module->items, item);
  s->body = (hd_stmt_list_t){0};
  return plan;
}
