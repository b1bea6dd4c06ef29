// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a candidate to its kernel, whatever the form.
#include "Schedule/Instance.h"

#include "IR/Passes/Passes.h"
#include "IR/Passes/Specialize.h"
#include "IR/Text/Parser.h"

#include <string.h>

const char *hd_candidate_instance(hd_arena_t *arena,
                                  const hd_candidate_t *candidate,
                                  const char *first) {
  const hd_template_t *t = candidate->template;
  const char *name = hd_arena_printf(arena, "%s[%s", t->kernel, first);
  for (size_t i = 0; i < t->choices.size; i++)
    name = hd_arena_printf(arena, "%s, %s = %lld", name,
                           t->choices.data[i].var->name,
                           (long long)candidate->values[i]);
  return hd_arena_printf(arena, "%s]", name);
}

hd_func_t *hd_candidate_kernel(hd_module_t *module,
                               const hd_candidate_t *candidate,
                               const char *instance, const hd_form_t *form) {
  hd_arena_t *arena = &module->arena;
  const hd_func_t *func = hd_module_ask(candidate->home, "template", instance);
  if (!func)
    return NULL;
  hd_known_t known[HD_FORM_AXES];
  size_t count = 0, axes = hd_form_info(form->kind)->axes;
  for (uint32_t i = 0; i < func->num_params && count < axes; i++)
    if (!func->params[i]->tensor) {
      known[count] = (hd_known_t){func->params[i], form->sizes[count]};
      count++;
    }
  func = hd_func_specialize(arena, func, known, count, 0);
  hd_func_t *copy = HD_ARENA_NEW(arena, hd_func_t);
  const hd_var_t **params =
      HD_ARENA_ARRAY(arena, const hd_var_t *, func->num_params + 1);
  *copy = *func;
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

void hd_candidates_explain(const hd_rules_t *rules, const hd_form_t *form,
                           const char *instance,
                           const hd_candidates_t *candidates,
                           const hd_refusals_t *refused) {
  hd_diagnostics_t *diags = &rules->module->context->diags;
  for (size_t i = 0; i < refused->size; i++)
    hd_remark(diags, rules->loc, "schedule: %s: not %s: %s", rules->name,
              refused->data[i].template->name, refused->data[i].why);
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
}
