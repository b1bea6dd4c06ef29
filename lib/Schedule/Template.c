// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product by a template: every template answers with its candidates for the
// form and the machine, the one that is expected to be the fastest is read
// under its values, and what it loads and stores becomes what the task says.
//
//   kernel tiles[...](in a: f16[z, m, k], in b: f16[z, n, k], out c: f16[z, m,
//   n])
//
// knows the form alone. Where an operand is a tensor of the task, element for
// element, that takes its place; else its loads become the operand's term, as
// those of a prologue do (Access.h).
#include "IR/Text/Library.h"
#include "Schedule/Access.h"
#include "Schedule/Instance.h"
#include "Schedule/Product.h"
#include "Schedule/Templates.h"

#include <string.h>

// --- The kernel for a candidate ---

typedef struct joint {
  const hd_product_form_t *form;
  hd_arena_t *arena;
  hd_translator_t t;
  const hd_form_tensor_t *loads[2]; // What on_load() is given one of.
} joint_t;

typedef struct hook {
  joint_t *joint;
  const hd_form_tensor_t *tensor;
} hook_t;

static void bind_places(hook_t *h, hd_builder_t *b,
                        const hd_expr_t *const *at) {
  h->joint->t.b = b;
  for (int i = 0; i < 3; i++)
    hd_translate_bind(&h->joint->t, h->tensor->indices[i], at[i]);
}

static const hd_expr_t *on_load(void *argument, hd_builder_t *b,
                                const hd_expr_t *const *at) {
  hook_t *h = argument;
  bind_places(h, b, at);
  return hd_translate(&h->joint->t, h->tensor->term);
}

static void on_store(void *argument, hd_builder_t *b,
                     const hd_expr_t *const *at, const hd_expr_t *value) {
  hook_t *h = argument;
  const hd_product_form_t *form = h->joint->form;
  const hd_task_value_t *target = form->d->targets[0];
  hd_translator_t *t = &h->joint->t;
  const hd_expr_t *places[HD_MAX_RANK];
  bind_places(h, b, at);
  for (uint32_t i = 0; i < form->d->num_indices; i++)
    places[i] = hd_translate_worth(t, form->places[i]).e;
  if (form->value) {
    value = hd_b_let(b, "value", value);
    hd_ptr_map_set(h->joint->arena, &t->variables, form->reduced.cell, value);
    value = hd_b_cast(b, target->type.scalar, hd_translate(t, form->value));
  }
  const hd_var_t *param = hd_translate_tensor(t, target, HD_DIR_OUT);
  hd_b_store(b, param, places, form->d->num_indices, value);
}

// product_mma_tiles[T = f16, O = f16, ROWS = true, BM = 64, ...]
static const char *instance_name(hd_arena_t *arena,
                                 const hd_product_form_t *form,
                                 const hd_candidate_t *candidate) {
  const char *first = hd_arena_printf(
      arena, "T = %s, O = %s, ROWS = %s", hd_scalar_name(form->type),
      hd_scalar_name(form->result), form->rows ? "true" : "false");
  return hd_candidate_instance(arena, candidate, first);
}

// The maps that a launch can make: rows of c may be no multiples of 16 bytes.
static void keep_maps(hd_arena_t *arena, hd_func_t *func,
                      const hd_product_form_t *form) {
  const hd_var_t **maps =
      HD_ARENA_ARRAY(arena, const hd_var_t *, func->num_maps + 1);
  uint32_t count = 0;
  int64_t bits = form->c.shape[2] * (int64_t)hd_scalar_bits(form->result);
  for (uint32_t i = 0; i < func->num_maps; i++)
    if (func->maps[i]->map->tensor->direction == HD_DIR_IN || bits % 128 == 0)
      maps[count++] = func->maps[i];
  func->maps = maps;
  func->num_maps = count;
}

static const hd_task_value_t *value_of(const joint_t *joint,
                                       const hd_func_t *from,
                                       const hd_form_tensor_t *const *tensors,
                                       const hd_var_t *param) {
  for (uint32_t i = 0; i < from->num_params; i++)
    if (from->params[i] == param)
      return tensors[i]->same;
  for (size_t i = 0; i < joint->t.args.size; i++)
    if (hd_ptr_map_get(&joint->t.tensors, joint->t.args.data[i]) == param)
      return joint->t.args.data[i];
  return NULL;
}

static bool make_kernel(hd_rules_t *rules, const hd_product_form_t *form,
                        const hd_candidate_t *candidate, const char *instance) {
  hd_arena_t *arena = &rules->module->arena;
  hd_form_t asked = hd_product_form_ask(form);
  hd_func_t *kernel =
      hd_candidate_kernel(rules->module, candidate, instance, &asked);
  if (!kernel)
    return false;
  keep_maps(arena, kernel, form);
  joint_t joint = {.form = form, .arena = arena};
  const hd_form_tensor_t *tensors[3] = {&form->a, &form->b, &form->c};
  hd_access_hook_t hooks[3];
  hook_t hook[3];
  size_t count = 0;
  for (uint32_t i = 0; i < kernel->num_params && i < 3; i++) {
    hook[i] = (hook_t){&joint, tensors[i]};
    if (!tensors[i]->same)
      hooks[count++] =
          (hd_access_hook_t){kernel->params[i], &hook[i],
                             i < 2 ? on_load : NULL, i < 2 ? NULL : on_store};
  }
  const char *name = hd_module_fresh_name(arena, rules->module, rules->name);
  hd_func_t *made = kernel;
  if (count)
    made = hd_access_rewrite(rules->module, kernel, hooks, count, name);
  made->name = name;
  hd_item_t item = {.kind = HD_ITEM_FUNC, .u.func = made};
  hd_vec_push(arena, &rules->module->items, item);
  const hd_task_value_t **args =
      HD_ARENA_ARRAY(arena, const hd_task_value_t *, made->num_params + 1);
  for (uint32_t i = 0; i < made->num_params; i++)
    args[i] = value_of(&joint, kernel, tensors, made->params[i]);
  hd_rule_launch_t launch = {made, args};
  hd_vec_push(arena, &rules->launches, launch);
  return true;
}

// Another rule takes the definition; a pin needs one that a template takes.
static bool leave(hd_rules_t *rules, const char *why) {
  hd_context_t *context = rules->module->context;
  rules->why = why;
  if (context->schedules && context->schedules->explain)
    hd_remark(&context->diags, rules->loc, "schedule: %s: no template: %s",
              rules->name, why);
  return false;
}

bool hd_rule_template(hd_rules_t *rules, const hd_definition_t *d) {
  hd_context_t *context = rules->module->context;
  const hd_schedule_options_t *options = context->schedules;
  hd_arena_t *arena = &rules->module->arena;
  const hd_pin_t *pin = rules->pin;
  hd_candidates_t candidates = {0};
  hd_refusals_t refused = {0};
  if (pin && strcmp(pin->name, HD_PIN_RULES) == 0) {
    rules->pinned = true;
    if (options && options->explain)
      hd_remark(&context->diags, rules->loc, "schedule: %s: no template, %s",
                rules->name, pin->origin ? pin->origin : "as the text says");
    return false;
  }
  if (!options || !options->machine.count) {
    rules->why = "no GPU is meant; --target names one";
    return false;
  }
  hd_product_form_t *form = HD_ARENA_NEW(arena, hd_product_form_t);
  const char *why = hd_product_form_find(arena, d, form);
  if (why)
    return leave(rules, why);
  hd_product_form_mark(form, rules->flat, rules->computed);
  hd_form_t asked = hd_product_form_ask(form);
  if (!hd_candidates_find(context, arena, &asked, pin, &candidates, &refused)) {
    rules->failed = true;
    return false;
  }
  if (pin && !candidates.size)
    return leave(rules, "what the template requires holds for none of the "
                        "candidates with these values");
  const char *instance =
      candidates.size ? instance_name(arena, form, &candidates.data[0]) : "";
  if (options->explain)
    hd_candidates_explain(rules, &asked, instance, &candidates, &refused);
  rules->pinned = true;
  if (candidates.size &&
      make_kernel(rules, form, &candidates.data[0], instance))
    return true;
  rules->failed |= candidates.size > 0; // It has been reported.
  return false;
}
