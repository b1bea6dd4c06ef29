// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A task is made flat, a rule makes kernels for each of its
// definitions, and a plan runs them. What was made for a node is used again for
// one that computes the same.
#include "Schedule/Schedule.h"

#include "Schedule/Rules/Rules.h"
#include "Schedule/Terms/Flatten.h"
#include "Schedule/Terms/Prepare.h"
#include "Support/Map.h"

#include <string.h>

// NULL: it could not be.
typedef struct known {
  hd_flattened_t *flattened;
} known_t;

struct hd_scheduler {
  hd_module_t *module;
  hd_arena_t *arena;
  hd_key_map_t known; // By what a node computes.
  hd_ptr_map_t made;  // Schedules.
};

hd_scheduler_t *hd_scheduler_create(hd_module_t *module, hd_arena_t *arena) {
  hd_scheduler_t *s = HD_ARENA_NEW(arena, hd_scheduler_t);
  s->module = module;
  s->arena = arena;
  return s;
}

hd_arena_t *hd_scheduler_arena(const hd_scheduler_t *s) { return s->arena; }

// --- Keys ---

// Keys are made of every node many times, so without printf().
static void number_key(hd_buffer_t *key, int64_t number) {
  char text[24], *at = text + sizeof text;
  uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
  *--at = ',';
  do
    *--at = (char)('0' + rest % 10);
  while (rest /= 10);
  if (number < 0)
    *--at = '-';
  hd_buffer_write(key, at, (size_t)(text + sizeof text - at));
}

static void type_key(hd_buffer_t *key, const hd_value_t *value) {
  hd_tensor_type_t type = hd_scheduled_type(value);
  hd_buffer_puts(key, hd_scalar_name(type.type));
  hd_buffer_puts(key, "[");
  for (unsigned i = 0; i < type.rank; i++)
    number_key(key, type.shape[i]);
  hd_buffer_puts(key, "]");
}

static void attribute_key(hd_buffer_t *key, const hd_attribute_t *a) {
  hd_buffer_puts(key, " ");
  hd_buffer_puts(key, a->name);
  hd_buffer_puts(key, "=");
  number_key(key, (int64_t)a->kind);
  if (a->kind == HD_ATTRIBUTE_INT)
    number_key(key, a->u.i);
  if (a->kind == HD_ATTRIBUTE_FLOAT)
    hd_buffer_printf(key, "%a", a->u.f);
  if (a->kind == HD_ATTRIBUTE_TYPE)
    hd_buffer_puts(key, hd_scalar_name(a->u.type));
  for (size_t i = 0; a->kind == HD_ATTRIBUTE_INTS && i < a->count; i++)
    number_key(key, a->u.ints[i]);
  for (size_t i = 0; a->kind == HD_ATTRIBUTE_FLOATS && i < a->count; i++)
    hd_buffer_printf(key, "%a,", a->u.floats[i]);
}

void hd_node_key(hd_buffer_t *key, const hd_node_t *node) {
  hd_buffer_puts(key, node->op);
  hd_buffer_puts(key, "@");
  number_key(key, (int64_t)(intptr_t)node->task);
  for (uint32_t i = 0; i < node->num_attributes; i++)
    attribute_key(key, node->attributes[i]);
  hd_buffer_puts(key, "(");
  for (uint32_t i = 0; i < node->num_inputs; i++)
    type_key(key, node->inputs[i]);
  hd_buffer_puts(key, ")");
  if (!node->task) // A reshape is known by its result.
    type_key(key, node->outputs[0]);
  if (node->pin) {
    hd_buffer_puts(key, " with ");
    hd_pin_print(node->pin, key);
  }
}

// --- Preparation ---

hd_tensor_type_t hd_scheduled_type(const hd_value_t *value) {
  hd_tensor_type_t type = {value->type, (unsigned)value->rank, {0}};
  for (unsigned i = 0; i < type.rank; i++)
    hd_expr_fold_int(value->shape[i], &type.shape[i]);
  return type;
}

bool hd_scheduled_has_shape(const hd_value_t *value,
                            const hd_task_value_t *tensor) {
  hd_tensor_type_t type = hd_scheduled_type(value);
  bool same = type.rank == tensor->rank;
  for (uint32_t i = 0; same && i < tensor->rank; i++)
    same = type.shape[i] == hd_flat_size(tensor, i);
  return same;
}

double hd_scheduled_count(const hd_value_t *value) {
  hd_tensor_type_t type = hd_scheduled_type(value);
  double count = 1;
  for (unsigned i = 0; i < type.rank; i++)
    count *= (double)type.shape[i];
  return count;
}

double hd_scheduled_bytes(const hd_value_t *value) {
  return hd_scheduled_count(value) * (double)hd_scalar_bits(value->type) / 8;
}

const hd_task_binding_t *hd_node_bind(hd_context_t *context, hd_arena_t *arena,
                                      const hd_node_t *node) {
  hd_tensor_type_t *inputs =
      HD_ARENA_ARRAY(arena, hd_tensor_type_t, node->num_inputs + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    inputs[i] = hd_scheduled_type(node->inputs[i]);
  return hd_task_bind(context, arena, node->task, inputs, node->num_inputs,
                      node->attributes, node->num_attributes, node->loc,
                      node->label ? node->label : node->op);
}

hd_flattened_t *hd_scheduler_flatten_binding(hd_scheduler_t *s,
                                             const hd_task_binding_t *binding,
                                             hd_loc_t loc) {
  hd_task_t *flat = hd_task_flatten(s->module->context, s->arena, binding, loc);
  if (!flat)
    return NULL;
  hd_task_hoist(s->arena, flat);
  hd_task_inline(s->arena, flat);
  hd_task_widen(s->arena, flat);
  hd_flattened_t *flattened = HD_ARENA_NEW(s->arena, hd_flattened_t);
  *flattened = (hd_flattened_t){.binding = binding, .flat = flat};
  return flattened;
}

hd_flattened_t *hd_scheduler_flatten(hd_scheduler_t *s, const hd_node_t *node) {
  hd_arena_t *arena = s->arena;
  hd_buffer_t key;
  hd_buffer_init_local(&key, arena->budget);
  hd_node_key(&key, node);
  const char *text = hd_buffer_text(&key);
  known_t *known = hd_key_map_find_name(&s->known, text);
  if (!known) {
    known = HD_ARENA_NEW(arena, known_t);
    hd_key_map_set_name(arena, &s->known,
                        hd_arena_strndup(arena, text, key.size), known);
    const hd_task_binding_t *binding =
        hd_node_bind(s->module->context, arena, node);
    if (binding)
      known->flattened = hd_scheduler_flatten_binding(s, binding, node->loc);
    if (known->flattened)
      known->flattened->pin = node->pin;
  }
  hd_buffer_fini(&key);
  return known->flattened;
}

// --- Schedules ---

void hd_rules_apply(hd_rules_t *rules, const hd_definition_t *d) {
  if (d->kind == HD_SCATTER)
    hd_rule_scatter(rules, d);
  else if (!hd_rule_template(rules, d) && !rules->failed &&
           !hd_rule_window(rules, d) && !rules->failed &&
           !hd_rule_contract(rules, d) && !hd_rule_reduce(rules, d) &&
           !hd_rule_slide(rules, d) && !hd_rule_scan(rules, d))
    hd_rule_pointwise(rules, d);
}

hd_var_t *hd_scheduled_tensor(hd_arena_t *arena, const char *name,
                              const hd_tensor_type_t *type) {
  hd_builder_t b = {.arena = arena};
  int64_t shape[HD_MAX_RANK];
  hd_shape_room(type->shape, type->rank, shape);
  return hd_b_tensor(&b, HD_SCOPE_GLOBAL, name, type->type, shape, type->rank,
                     NULL);
}

// A plan in the making, for one task.
typedef struct planner {
  hd_scheduler_t *s;
  hd_ptr_map_t places; // The plan's tensor for each of the flat task's.
  HD_VEC(const hd_var_t *) params;
  hd_stmt_list_t body;
} planner_t;

static const hd_var_t *plan_tensor(planner_t *p, const hd_task_value_t *value) {
  hd_tensor_type_t type = {value->type.scalar, value->rank, {0}};
  for (uint32_t k = 0; k < value->rank; k++)
    type.shape[k] = hd_flat_size(value, k);
  hd_var_t *var = hd_scheduled_tensor(p->s->arena, value->name, &type);
  hd_ptr_map_set(p->s->arena, &p->places, value, var);
  if (value->kind == HD_VALUE_LOCAL) {
    hd_stmt_t *stmt =
        hd_stmt_make(p->s->arena, HD_STMT_DECLARE, (hd_loc_t){0, 0});
    stmt->u.declare.var = var;
    hd_stmt_list_push(p->s->arena, &p->body, stmt);
    return var;
  }
  var->direction = value->kind == HD_VALUE_OUTPUT ? HD_DIR_OUT : HD_DIR_IN;
  hd_vec_push(p->s->arena, &p->params, var);
  return var;
}

static void put_launch(planner_t *p, const hd_rule_launch_t *launch,
                       hd_loc_t loc) {
  hd_arena_t *arena = p->s->arena;
  uint32_t count = launch->kernel->num_params;
  const hd_expr_t **args = HD_ARENA_ARRAY(arena, const hd_expr_t *, count);
  for (uint32_t i = 0; i < count; i++)
    args[i] = hd_expr_var(arena, hd_ptr_map_get(&p->places, launch->args[i]));
  hd_stmt_t *stmt = hd_stmt_make(arena, HD_STMT_LAUNCH, loc);
  stmt->u.launch.kernel = launch->kernel;
  stmt->u.launch.num_args = count;
  stmt->u.launch.args = args;
  hd_stmt_list_push(arena, &p->body, stmt);
}

// Whether a kernel has it, and not registers alone.
static bool is_launched(const hd_rules_t *rules, const hd_task_value_t *value) {
  for (size_t i = 0; i < rules->launches.size; i++) {
    const hd_rule_launch_t *launch = &rules->launches.data[i];
    for (uint32_t k = 0; k < launch->kernel->num_params; k++)
      if (launch->args[k] == value)
        return true;
  }
  return false;
}

static const hd_func_t *make_plan(hd_scheduler_t *s, const hd_rules_t *rules) {
  planner_t p = {.s = s};
  const hd_task_t *flat = rules->flat;
  for (size_t i = 0; i < flat->inputs.size; i++)
    plan_tensor(&p, flat->inputs.data[i]);
  for (size_t i = 0; i < flat->outputs.size; i++)
    plan_tensor(&p, flat->outputs.data[i]);
  for (size_t i = 0; i < flat->locals.size; i++)
    if (is_launched(rules, flat->locals.data[i]))
      plan_tensor(&p, flat->locals.data[i]);
  for (size_t i = 0; i < rules->launches.size; i++)
    put_launch(&p, &rules->launches.data[i], rules->loc);
  const char *name = hd_module_fresh_name(
      s->arena, s->module, hd_arena_printf(s->arena, "%s_plan", rules->name));
  return hd_b_plan(s->module, name, rules->loc, p.params.data, p.params.size,
                   &p.body);
}

struct hd_made_schedule {
  hd_surroundings_t around;
  bool asked_leaving; // Else it is right for whatever leaves.
  const hd_func_t *func;
  struct hd_made_schedule *next;
};

// Whether grids hold the blocks of each kernel.
static bool check_grids(const hd_rules_t *rules) {
  int64_t blocks;
  for (size_t i = 0; i < rules->launches.size; i++) {
    const hd_func_t *kernel = rules->launches.data[i].kernel;
    for (int axis = 0; axis < 3 && kernel->launch.grid[axis]; axis++)
      if (hd_expr_fold_int(kernel->launch.grid[axis], &blocks) &&
          blocks > INT32_MAX)
        return hd_error(&rules->module->context->diags, rules->loc, HD_E1104,
                        rules->name,
                        "a kernel of more than 2147483647 blocks cannot be "
                        "scheduled");
  }
  return true;
}

// The rules have no head with parameters.
static bool check_rules_pin(hd_context_t *context, const hd_pin_t *pin) {
  if (!pin || !pin->num_values || strcmp(pin->name, HD_PIN_RULES) != 0)
    return true;
  hd_error(&context->diags, pin->values[0].loc, HD_E0201, pin->values[0].name,
           "");
  hd_note(&context->diags, pin->loc, "the rules have no parameters");
  return false;
}

const hd_func_t *hd_scheduler_schedule(hd_scheduler_t *s,
                                       hd_flattened_t *flattened,
                                       const hd_surroundings_t *around,
                                       const char *name, hd_loc_t loc) {
  for (struct hd_made_schedule *m = flattened->schedules; m; m = m->next)
    if (m->around.computed == around->computed &&
        m->around.gathered == around->gathered &&
        m->around.neighbours == around->neighbours &&
        (m->around.leaving == around->leaving || !m->asked_leaving))
      return m->func;
  if (!check_rules_pin(s->module->context, flattened->pin))
    return NULL;
  hd_rules_t rules = {.module = s->module,
                      .flat = flattened->flat,
                      .computed = around->computed,
                      .gathered = around->gathered,
                      .leaving = around->leaving,
                      .neighbours = around->neighbours,
                      .name = name,
                      .loc = loc,
                      .pin = flattened->pin};
  size_t count_definitions = flattened->flat->definitions.size;
  size_t first = hd_rule_normed(&rules);
  if (!first && !rules.failed && hd_rule_attention(&rules))
    first = count_definitions;
  if (!first && !rules.failed &&
      (hd_rule_grouped(&rules) || (!rules.failed && hd_rule_few(&rules)) ||
       (!rules.failed && hd_rule_pairs(&rules))))
    first = count_definitions;
  const struct hd_chosen *left = rules.left; // Of all of the task.
  for (size_t i = first; i < count_definitions && !rules.failed;) {
    rules.left = left;
    size_t count = hd_rule_rows(&rules, i);
    if (!count && !rules.failed)
      count = hd_rule_sort(&rules, i);
    if (!count && !rules.failed)
      hd_rules_apply(&rules, flattened->flat->definitions.data[i]);
    i += count ? count : 1;
  }
  if (rules.pin && !rules.pinned && !rules.failed)
    rules.failed = !hd_error(
        &s->module->context->diags, loc, HD_E0320, name, rules.pin->name,
        rules.why ? rules.why
                  : "nothing that it computes has the form that this is for");
  if (rules.failed || !check_grids(&rules))
    return NULL;
  struct hd_made_schedule *made =
      HD_ARENA_NEW(s->arena, struct hd_made_schedule);
  *made = (struct hd_made_schedule){*around, rules.asked_leaving,
                                    make_plan(s, &rules), flattened->schedules};
  flattened->schedules = made;
  hd_ptr_map_set(s->arena, &s->made, made->func, made);
  return made->func;
}

bool hd_scheduler_has_made(const hd_scheduler_t *s, const hd_func_t *schedule) {
  return hd_ptr_map_get(&s->made, schedule);
}
