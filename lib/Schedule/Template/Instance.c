// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a candidate to its kernel, whatever the form.
#include "Schedule/Template/Instance.h"

#include "IR/Generic.h"
#include "IR/Passes/Passes.h"
#include "IR/Passes/Specialize.h"
#include "IR/Text/Parser.h"
#include "Schedule/Template/Falls.h"

#include <string.h>

const char *hd_candidate_instance(hd_arena_t *arena,
                                  const hd_candidate_t *candidate,
                                  const char *first, unsigned leaving) {
  const hd_template_t *t = candidate->template;
  const char *name = hd_arena_printf(arena, "%s[%s", t->kernel, first);
  if (t->takes_leaving && leaving)
    name = hd_arena_printf(arena, "%s, LEAVING = %u", name, leaving);
  for (size_t i = 0; i < t->choices.size; i++)
    name = hd_arena_printf(arena, "%s, %s = %lld", name,
                           t->choices.data[i].var->name,
                           (long long)candidate->values[i]);
  return hd_arena_printf(arena, "%s]", name);
}

const char *hd_candidate_then(hd_arena_t *arena,
                              const hd_candidate_t *candidate,
                              const char *instance) {
  const hd_generic_t *then = candidate->template->then;
  const char *name = hd_arena_printf(arena, "%s[", then->name), *before = "";
  const char *at = strchr(instance, '[') + 1;
  while (*at != ']') {
    size_t length = strcspn(at, ",]"), word = strcspn(at, " ");
    for (uint32_t i = 0; i < then->num_params; i++)
      if (strlen(then->params[i].name) == word &&
          memcmp(then->params[i].name, at, word) == 0) {
        name =
            hd_arena_printf(arena, "%s%s%.*s", name, before, (int)length, at);
        before = ", ";
      }
    at += length + strspn(at + length, ", ");
  }
  return hd_arena_printf(arena, "%s]", name);
}

// Why a kernel's parameters are not those of a form, or NULL.
static const char *why_no_params(const hd_func_t *kernel,
                                 const hd_template_t *template,
                                 const hd_form_info_t *info) {
  uint32_t count = 0, listed = (uint32_t)strcspn(info->tensors, "*");
  uint32_t most = listed + (info->tensors[listed] ? HD_FORM_WORKSPACES : 0);
  if (template->form == HD_FORM_KIND_PRODUCT && !template->takes_kept)
    most = --listed; // What b is computed from comes last.
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    const hd_var_t *param = kernel->params[i];
    if (!param->tensor != (i < info->sizes) ||
        (!param->tensor && !hd_type_equal(param->type, hd_type(HD_I32))))
      return "its parameters are the form's sizes, i32, and tensors behind "
             "them";
    if (!param->tensor)
      continue;
    bool is_read = param->direction == HD_DIR_IN;
    if (count < listed && is_read != (info->tensors[count] == 'i'))
      return is_read ? "it reads a tensor that it is to store to"
                     : "it stores to a tensor that it is to read";
    count++;
  }
  return count < info->fewest ? "it has fewer tensors than the form"
         : count > most       ? "it has more tensors than the form"
                              : NULL;
}

hd_func_t *hd_candidate_kernel(hd_module_t *module,
                               const hd_candidate_t *candidate,
                               const char *instance, const hd_form_t *form) {
  const hd_form_info_t *info = hd_form_info(form->kind);
  const hd_func_t *kernel =
      hd_module_ask(candidate->home, "template", instance);
  if (!kernel)
    return NULL;
  const char *why = why_no_params(kernel, candidate->template, info);
  if (!why &&
      hd_func_block_threads(kernel) != candidate->figures[HD_FIGURE_THREADS])
    why = "its block has other threads than the head says";
  if (why) {
    hd_error(&module->context->diags, kernel->loc, HD_E0321, instance,
             candidate->template->name, why);
    return NULL;
  }
  return hd_instance_kernel(module, candidate->home, instance, form->sizes,
                            info->sizes);
}

hd_func_t *hd_instance_kernel(hd_module_t *module, hd_module_t *home,
                              const char *instance, const int64_t *sizes,
                              size_t num_sizes) {
  hd_arena_t *arena = &module->arena;
  const hd_func_t *func = hd_module_ask(home, "template", instance);
  if (!func)
    return NULL;
  hd_known_t known[HD_FORM_AXES];
  size_t count = 0;
  for (uint32_t i = 0; i < func->num_params && count < num_sizes; i++)
    if (!func->params[i]->tensor) {
      known[count] = (hd_known_t){func->params[i], sizes[count]};
      count++;
    }
  func = hd_func_specialize(arena, func, known, count, 0);
  hd_func_t *copy = HD_ARENA_COPY(arena, hd_func_t, func);
  const hd_var_t **params =
      HD_ARENA_ARRAY(arena, const hd_var_t *, func->num_params + 1);
  copy->params = params;
  copy->num_params = 0;
  copy->generic = NULL;
  for (uint32_t i = 0; i < func->num_params; i++)
    if (func->params[i]->tensor)
      params[copy->num_params++] = func->params[i];
  hd_pass_args_t args = {0};
  const hd_func_t *inlined = hd_pass_inline(module, copy, &args);
  if (inlined != copy)
    *copy = *inlined;
  return copy;
}

void hd_candidate_keep_maps(hd_arena_t *arena, hd_func_t *kernel,
                            const hd_form_tensor_t *result, hd_scalar_t type) {
  const hd_var_t **maps =
      HD_ARENA_ARRAY(arena, const hd_var_t *, kernel->num_maps + 1);
  uint32_t count = 0;
  int64_t bits =
      result->shape[result->rank - 1] * (int64_t)hd_scalar_bits(type);
  for (uint32_t i = 0; i < kernel->num_maps; i++)
    if (kernel->maps[i]->map->tensor->direction == HD_DIR_IN || bits % 128 == 0)
      maps[count++] = kernel->maps[i];
  kernel->maps = maps;
  kernel->num_maps = count;
}

void hd_form_result_store(const hd_form_result_t *result, hd_translator_t *t,
                          const hd_expr_t *value) {
  const hd_task_value_t *target = result->d->targets[0];
  const hd_expr_t *places[HD_MAX_RANK];
  for (uint32_t i = 0; i < result->d->num_indices; i++)
    places[i] = hd_translate_worth(t, result->places[i]).e;
  if (result->value) {
    value = hd_b_let(t->b, "value", value);
    hd_ptr_map_set(t->b->arena, &t->variables, result->reduced.cell, value);
    value =
        hd_b_cast(t->b, target->type.scalar, hd_translate(t, result->value));
  }
  const hd_var_t *param = hd_translate_tensor(t, target, HD_DIR_OUT);
  hd_b_store(t->b, param, places, result->d->num_indices, value);
}

static const hd_task_value_t *value_of(const hd_translator_t *t,
                                       const hd_func_t *from,
                                       const hd_form_tensor_t *const *tensors,
                                       const hd_var_t *param) {
  for (uint32_t i = 0; i < from->num_params; i++)
    if (from->params[i] == param)
      return tensors[i]->same;
  for (size_t i = 0; i < t->args.size; i++)
    if (hd_ptr_map_get(&t->tensors, t->args.data[i]) == param)
      return t->args.data[i];
  return NULL;
}

void hd_candidate_launch(hd_rules_t *rules, const hd_translator_t *t,
                         hd_func_t *kernel, const hd_access_hook_t *hooks,
                         size_t num_hooks,
                         const hd_form_tensor_t *const *tensors) {
  hd_arena_t *arena = &rules->module->arena;
  const char *name = hd_module_fresh_name(arena, rules->module, rules->name);
  hd_func_t *made = kernel;
  if (num_hooks)
    made = hd_access_rewrite(rules->module, kernel, hooks, num_hooks, name);
  made->name = name;
  hd_item_t item = {.kind = HD_ITEM_FUNC, .u.func = made};
  hd_vec_push(arena, &rules->module->items, item);
  const hd_task_value_t **args =
      HD_ARENA_ARRAY(arena, const hd_task_value_t *, made->num_params + 1);
  for (uint32_t i = 0; i < made->num_params; i++)
    args[i] = value_of(t, kernel, tensors, made->params[i]);
  hd_rule_launch_t launch = {made, args};
  hd_vec_push(arena, &rules->launches, launch);
}

const hd_form_tensor_t *hd_candidate_workspace(hd_rules_t *rules,
                                               const hd_var_t *param) {
  hd_arena_t *arena = &rules->module->arena;
  hd_form_tensor_t *tensor = HD_ARENA_NEW(arena, hd_form_tensor_t);
  int64_t shape[HD_MAX_RANK];
  for (unsigned i = 0; i < param->tensor->rank; i++)
    if (!hd_expr_fold_int(param->tensor->shape[i], &shape[i]))
      return NULL;
  hd_task_value_t *value =
      hd_flat_value_make(arena, param->name, HD_VALUE_LOCAL, param->type.scalar,
                         shape, param->tensor->rank);
  hd_vec_push(arena, &rules->flat->locals, value);
  tensor->same = value;
  return tensor;
}

typedef struct hook {
  hd_translator_t *t;
  const hd_form_result_t *result;
  const hd_form_tensor_t *tensor;
} hook_t;

static void bind_places(hook_t *h, hd_builder_t *b,
                        const hd_expr_t *const *at) {
  h->t->b = b;
  for (unsigned i = 0; i < h->tensor->rank; i++)
    hd_translate_bind(h->t, h->tensor->indices[i], at[i]);
}

static const hd_expr_t *on_load(void *argument, hd_builder_t *b,
                                const hd_expr_t *const *at) {
  hook_t *h = argument;
  bind_places(h, b, at);
  return hd_translate(h->t, h->tensor->term);
}

static const hd_expr_t *on_load_kept(void *argument, hd_builder_t *b,
                                     const hd_expr_t *const *at,
                                     const hd_expr_t *kept) {
  hook_t *h = argument;
  bind_places(h, b, at);
  const hd_variable_t *cell = h->tensor->cell;
  hd_type_t type = hd_type(cell->type.scalar);
  kept = kept ? hd_expr_cast(b->arena, type, kept)
              : hd_expr_var(b->arena, hd_var_make(b->arena, cell->name,
                                                  HD_VAR_LET, type, b->loc));
  hd_ptr_map_set(b->arena, &h->t->variables, cell, kept);
  return hd_translate(h->t, h->tensor->through);
}

// The elements of a vector of two are what the pair's variables stand for.
static void bind_pair(const hd_form_result_t *result, hd_translator_t *t,
                      const hd_expr_t *pair) {
  const hd_variable_t *cells[] = {result->reduced.cell, result->second};
  hd_arena_t *arena = t->b->arena;
  for (int i = 0; i < 2; i++) {
    const hd_expr_t like = {.kind = HD_EXPR_LANE, .u.i = i};
    hd_ptr_map_set(arena, &t->variables, cells[i],
                   hd_expr_make(arena, HD_EXPR_LANE,
                                hd_type((hd_scalar_t)pair->type.scalar), &like,
                                &pair, 1));
  }
}

// The target has the tensor's elements in their order: it is given the tensor's
// shape, so that a kernel's map of that is one of this.
static void store_pair(hook_t *h, const hd_expr_t *const *at,
                       const hd_expr_t *pair) {
  const hd_task_value_t *target = h->result->d->targets[0];
  hd_scalar_t type = target->type.scalar;
  bool was_coarse = h->t->is_coarse;
  h->t->is_coarse = type == HD_F16 || type == HD_BF16;
  bind_pair(h->result, h->t, hd_b_let(h->t->b, "pair", pair));
  const hd_expr_t *value =
      hd_b_cast(h->t->b, type, hd_translate(h->t, h->result->value));
  const hd_var_t *param = hd_translate_tensor_as(
      h->t, target, HD_DIR_OUT, h->tensor->shape, h->tensor->rank);
  hd_b_store(h->t->b, param, at, h->tensor->rank, value);
  h->t->is_coarse = was_coarse;
}

static void on_store(void *argument, hd_builder_t *b,
                     const hd_expr_t *const *at, const hd_expr_t *value) {
  hook_t *h = argument;
  bind_places(h, b, at);
  if (h->result->second) {
    store_pair(h, at, value);
    return;
  }
  hd_form_result_store(h->result, h->t, value);
}

void hd_candidate_join(hd_rules_t *rules, hd_func_t *kernel,
                       const hd_form_result_t *result,
                       const hd_form_tensor_t *const *tensors,
                       unsigned num_inputs, unsigned count) {
  hd_translator_t t = {0};
  hd_access_hook_t hooks[HD_MAX_FORM_TENSORS];
  hook_t own[HD_MAX_FORM_TENSORS];
  size_t num_hooks = 0;
  for (uint32_t i = 0; i < kernel->num_params && i < count; i++) {
    bool loads = i < num_inputs;
    own[i] = (hook_t){&t, result, tensors[i]};
    if (!tensors[i]->same)
      hooks[num_hooks++] = (hd_access_hook_t){
          .param = kernel->params[i],
          .argument = &own[i],
          .load = loads ? on_load : NULL,
          .load_kept = loads && tensors[i]->through ? on_load_kept : NULL,
          .store = loads ? NULL : on_store,
          .pairs = !loads && result->second};
  }
  hd_candidate_launch(rules, &t, kernel, hooks, num_hooks, tensors);
}

// Whether no candidate before it is of its template.
static bool is_best_of(const hd_candidates_t *candidates, size_t i) {
  for (size_t k = 0; k < i; k++)
    if (candidates->data[k].template == candidates->data[i].template)
      return false;
  return true;
}

// What the best of each other template would take.
static void explain_others(const hd_rules_t *rules,
                           const hd_candidates_t *candidates) {
  hd_arena_t *arena = &rules->module->arena;
  for (size_t i = 1; i < candidates->size; i++) {
    if (!is_best_of(candidates, i))
      continue;
    const hd_candidate_t *candidate = &candidates->data[i];
    hd_buffer_t name;
    hd_buffer_init_local(&name, arena->budget);
    hd_pin_print(hd_candidate_pin(arena, candidate), &name);
    hd_remark(&rules->module->context->diags, rules->loc,
              "schedule: %s: of %s %.2f us would be expected", rules->name,
              hd_buffer_text(&name), candidate->us);
    hd_buffer_fini(&name);
  }
}

void hd_candidates_explain(const hd_rules_t *rules, const hd_form_t *form,
                           const char *instance,
                           const hd_candidates_t *candidates,
                           const hd_refusals_t *refused) {
  hd_diagnostics_t *diags = &rules->module->context->diags;
  for (size_t i = 0; i < refused->size; i++)
    hd_remark(diags, rules->loc, "schedule: %s: not %s: %s", rules->name,
              refused->data[i].name, refused->data[i].why);
  for (size_t i = 1; i < candidates->size; i++)
    if (candidates->data[i].fall)
      hd_remark(diags, rules->loc, "schedule: %s: not %s: %s", rules->name,
                hd_fall_name(candidates->data[i].fall),
                candidates->data[i].fall->why);
  if (candidates->size && candidates->data[0].fall)
    hd_remark(diags, rules->loc,
              "schedule: %s: %s is the best all the same: %s", rules->name,
              hd_fall_name(candidates->data[0].fall),
              candidates->data[0].fall->why);
  const hd_pin_t *pin = rules->pin; // It may be for other definitions.
  if (pin && candidates->size &&
      strcmp(pin->name, candidates->data[0].template->name) != 0)
    pin = NULL;
  if (!candidates->size)
    hd_remark(diags, rules->loc,
              "schedule: %s: no template answers for %s operands", rules->name,
              hd_scalar_name(form->type));
  else if (pin)
    hd_remark(diags, rules->loc, "schedule: %s: %s, %s; %.2f us were expected",
              rules->name, instance,
              pin->origin ? pin->origin : "as the text says",
              candidates->data[0].us);
  else
    hd_remark(diags, rules->loc,
              "schedule: %s: %s, the best of %zu candidates, for which %.2f us "
              "are expected",
              rules->name, instance, candidates->size, candidates->data[0].us);
  explain_others(rules, candidates);
}
