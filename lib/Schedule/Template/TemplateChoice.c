// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is the same for every form: whether templates are asked, and the best of
// their candidates.
#include "Schedule/Template/Instance.h"
#include "Schedule/Template/Templates.h"

#include <string.h>

bool hd_template_leave(hd_rules_t *rules, const hd_pin_t *pin,
                       const char *why) {
  hd_context_t *context = rules->module->context;
  if (pin)
    rules->why = why;
  if (context->schedules && context->schedules->explain)
    hd_remark(&context->diags, rules->loc, "schedule: %s: no template: %s",
              rules->name, why);
  return false;
}

// The form of the template that a pin names; HD_FORM_KIND_COUNT: there is no
// such template.
static bool find_pinned(hd_rules_t *rules, hd_form_kind_t *kind) {
  hd_context_t *context = rules->module->context;
  hd_templates_t templates = {0};
  *kind = HD_FORM_KIND_COUNT;
  if (!hd_templates_find(context, context->schedules->module,
                         &rules->module->arena, &templates))
    return false;
  for (size_t i = 0; i < templates.size; i++)
    if (strcmp(templates.data[i].template->name, rules->pin->name) == 0)
      *kind = templates.data[i].template->form;
  return true;
}

bool hd_template_may_serve(hd_rules_t *rules, hd_form_kind_t kind,
                           const hd_pin_t **pin) {
  hd_context_t *context = rules->module->context;
  const hd_schedule_options_t *options = context->schedules;
  *pin = rules->pin;
  if (*pin && strcmp((*pin)->name, HD_PIN_RULES) == 0) {
    rules->pinned = true;
    if (options && options->explain)
      hd_remark(&context->diags, rules->loc, "schedule: %s: no template, %s",
                rules->name,
                (*pin)->origin ? (*pin)->origin : "as the text says");
    return false;
  }
  if (!options || !options->machine.count) {
    rules->why = "no GPU is meant; --target names one";
    return false;
  }
  hd_form_kind_t pinned = kind;
  if (*pin && !find_pinned(rules, &pinned)) {
    rules->failed = true;
    return false;
  }
  if (pinned != kind && pinned != HD_FORM_KIND_COUNT)
    *pin = NULL; // It is for other definitions of the task.
  return true;
}

bool hd_template_choose(hd_rules_t *rules, const hd_form_t *form,
                        const hd_pin_t *pin, const char *given,
                        hd_candidate_t *best, const char **instance) {
  hd_context_t *context = rules->module->context;
  hd_arena_t *arena = &rules->module->arena;
  hd_candidates_t candidates = {0};
  hd_refusals_t refused = {0};
  if (!hd_candidates_find(context, arena, form, pin, &candidates, &refused)) {
    rules->failed = true;
    return false;
  }
  if (pin && !candidates.size)
    return hd_template_leave(
        rules, pin,
        "what the template requires holds for none of the candidates "
        "with these values");
  if (candidates.size) {
    *best = candidates.data[0];
    for (int i = 0; i < HD_FORM_OPERANDS; i++)
      if (best->template->maps[i] && form->given[i])
        given = hd_arena_printf(arena, "%s, %s", given, form->given[i]);
    if (best->template->takes_turned && form->names[HD_TEMPLATE_TURNED])
      given = hd_arena_printf(arena, "%s, TURNED = true", given);
    if (form->second)
      given = hd_arena_printf(arena, "%s, B = %s", given,
                              hd_scalar_name(form->second));
    *instance = hd_candidate_instance(arena, best, given, rules->leaving);
    rules->asked_leaving |= best->template->takes_leaving;
  }
  if (context->schedules->explain)
    hd_candidates_explain(rules, form, *instance, &candidates, &refused);
  rules->pinned |= pin || !rules->pin;
  return candidates.size;
}
