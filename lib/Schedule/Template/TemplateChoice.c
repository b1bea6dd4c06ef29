// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is the same for every form: whether templates are asked, and the best of
// their candidates.
#include "IR/Template.h"
#include "IR/Text/Library.h"
#include "Schedule/Template/Falls.h"
#include "Schedule/Template/Instance.h"
#include "Schedule/Template/Templates.h"

#include <assert.h>
#include <math.h>
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

// --- The kernels of a candidate ---

// What a choice for a form is made by.
typedef struct choosing {
  hd_rules_t *rules;
  const hd_form_t *form;
  const char *form_key;
  const hd_pin_t *pin;
  hd_falls_t *falls, own; // own: where no compilation has begun.
  hd_candidates_t candidates;
  hd_refusals_t refused;
} choosing_t;

static const char *instance_of(const choosing_t *c,
                               const hd_candidate_t *candidate) {
  hd_arena_t *arena = &c->rules->module->arena;
  const hd_template_t *template = candidate->template;
  const char *given = c->form->values;
  for (int i = 0; i < HD_FORM_OPERANDS; i++)
    if ((template->maps[i] || template->reads[i]) && c->form->given[i])
      given = hd_arena_printf(arena, "%s, %s", given, c->form->given[i]);
  if (template->takes_turned && c->form->names[HD_TEMPLATE_TURNED])
    given = hd_arena_printf(arena, "%s, TURNED = true", given);
  if (c->form->second)
    given = hd_arena_printf(arena, "%s, B = %s", given,
                            hd_scalar_name(c->form->second));
  if (template->takes_kept)
    given = hd_arena_printf(arena, "%s, Q = %s", given,
                            hd_scalar_name(c->form->kept));
  if (template->takes_aligned && c->form->aligned)
    given = hd_arena_printf(arena, "%s, ALIGNED = %u", given, c->form->aligned);
  assert(hd_template_gives(template, given) && "as Given.def has it");
  return hd_candidate_instance(arena, candidate, given, c->form->leaving);
}

// Why a candidate does not do.
typedef struct reason {
  const char *why; // NULL: it was reported.
  hd_diagnostic_code_t code;
} reason_t;

// What was reported speaks of the candidate's values, not of its text alone:
// the first of it, which is forgotten. Nothing: some of it does not.
static reason_t take_reason(hd_context_t *context, hd_arena_t *arena,
                            hd_diagnostics_mark_t mark) {
  reason_t reason = {NULL, HD_DIAGNOSTIC_COUNT};
  for (const hd_diagnostic_t *d = hd_diagnostics_since(&context->diags, mark);
       d; d = d->next) {
    if (d->severity == HD_ERROR && !hd_code_falls(d->code))
      return (reason_t){NULL, HD_DIAGNOSTIC_COUNT};
    if (d->severity == HD_ERROR && !reason.why)
      reason = (reason_t){hd_arena_printf(arena, "%s", d->message), d->code};
  }
  if (reason.why)
    hd_diagnostics_rewind(&context->diags, mark);
  return reason;
}

static bool is_named(const choosing_t *c) { return c->pin && !c->pin->origin; }

// The kernels of a candidate; false where there are none.
static bool make_kernels(const choosing_t *c, const hd_candidate_t *candidate,
                         const char *instance, hd_choice_made_t *made,
                         reason_t *reason) {
  hd_module_t *module = c->rules->module;
  hd_arena_t *arena = &module->arena;
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(&module->context->diags);
  bool runs_then = candidate->template->then;
  *made = (hd_choice_made_t){.candidate = *candidate};
  made->kernel = hd_candidate_kernel(module, candidate, instance, c->form);
  if (made->kernel && runs_then)
    made->then = hd_instance_kernel(
        module, candidate->home, hd_candidate_then(arena, candidate, instance),
        c->form->sizes, hd_form_info(c->form->kind)->sizes);
  if (!made->kernel || (runs_then && !made->then)) {
    *reason = is_named(c) ? (reason_t){NULL, HD_DIAGNOSTIC_COUNT}
                          : take_reason(module->context, arena, mark);
    return false;
  }
  const hd_machine_t *machine = &module->context->schedules->machine;
  reason->why = hd_kernel_obstacle(arena, machine, made->kernel, &reason->code);
  if (!reason->why && made->then)
    reason->why = hd_kernel_obstacle(arena, machine, made->then, &reason->code);
  return !reason->why;
}

static hd_candidate_key_t key_of(const choosing_t *c,
                                 const hd_candidate_t *candidate) {
  hd_module_t *module = c->rules->module;
  return hd_candidate_key(module->context, &module->arena, c->form_key, c->form,
                          candidate);
}

// Has the kernels know of the choice.
static void mark_kernels(const choosing_t *c, hd_choice_made_t *made) {
  const hd_candidates_t *all = &c->candidates;
  const hd_schedule_options_t *options = c->rules->module->context->schedules;
  hd_chosen_t *chosen = HD_ARENA_NEW(&c->rules->module->arena, hd_chosen_t);
  *chosen = (hd_chosen_t){.of = key_of(c, &all->data[0]),
                          .us = all->data[0].us,
                          .next_us = all->size > 1 ? all->data[1].us : INFINITY,
                          .byte_us = hd_candidate_byte_us(
                              &options->machine, c->form, &all->data[0]),
                          .is_pinned = is_named(c),
                          .is_measured = c->pin && c->pin->origin};
  made->kernel->chosen = chosen;
  if (made->then)
    made->then->chosen = chosen;
}

// The first does not do.
static void leave_out(choosing_t *c, const reason_t *reason) {
  hd_module_t *module = c->rules->module;
  hd_falls_add(c->falls, &(hd_fall_t){.of = key_of(c, &c->candidates.data[0]),
                                      .why = reason->why,
                                      .code = reason->code,
                                      .us = INFINITY});
  hd_falls_apply(c->falls, module->context, &module->arena, c->form,
                 c->pin != NULL, &c->candidates, &c->refused);
}

// Leaves out candidates up to one whose kernels can be made, which is the first
// then; false where there is none, or after an error.
static bool make_first(choosing_t *c, hd_choice_made_t *made,
                       const char **instance) {
  while (c->candidates.size) {
    const hd_candidate_t *candidate = &c->candidates.data[0];
    reason_t reason = {NULL, HD_DIAGNOSTIC_COUNT};
    *instance = instance_of(c, candidate);
    if (make_kernels(c, candidate, *instance, made, &reason)) {
      mark_kernels(c, made);
      return true;
    }
    if (reason.why && is_named(c))
      hd_error(&c->rules->module->context->diags, c->rules->loc, HD_E0320,
               c->rules->name, candidate->template->name, reason.why);
    c->rules->failed = !reason.why || is_named(c);
    if (c->rules->failed)
      return false;
    leave_out(c, &reason);
  }
  return false;
}

// What a rule makes instead knows that candidates were left out.
static void mark_rules(const choosing_t *c) {
  hd_rules_t *rules = c->rules;
  if (rules->left || !hd_falls_first(c->falls, c->form_key))
    return;
  hd_chosen_t *left = HD_ARENA_NEW(&rules->module->arena, hd_chosen_t);
  *left = (hd_chosen_t){.of = {.form = c->form_key}};
  rules->left = left;
}

// How many of the refused behind number i are left out of the same template:
// with it they have been told. *all: the template is, else NULL.
static size_t take_alike(const choosing_t *c, size_t i, const hd_fall_t **all) {
  const hd_fall_t *first = c->refused.data[i].fall;
  size_t count = 0;
  *all = first->of.name ? NULL : first;
  while (++i < c->refused.size) {
    hd_fall_t *fall = c->refused.data[i].fall;
    if (!fall || !fall->of.template || isfinite(fall->us) ||
        strcmp(fall->of.template, first->of.template) != 0)
      continue;
    fall->is_told = true;
    if (!fall->of.name)
      *all = fall;
    count++;
  }
  return count;
}

// A user hears of what is left out of his own templates, once for a form, and
// where all is.
static void warn(const choosing_t *c) {
  hd_diagnostics_t *diags = &c->rules->module->context->diags;
  for (size_t i = 0; i < c->refused.size; i++) {
    hd_fall_t *fall = c->refused.data[i].fall;
    if (!fall || fall->is_told || isfinite(fall->us) ||
        (fall->of.template && !fall->of.is_users))
      continue;
    const hd_fall_t *all = fall;
    fall->is_told = true;
    size_t more = fall->of.template ? take_alike(c, i, &all) : 0;
    if (all || !more)
      hd_warning(diags, c->rules->loc, "schedule: %s: %s is left out: %s",
                 c->rules->name, hd_fall_name(all ? all : fall),
                 all ? all->why : fall->why);
    else
      hd_warning(diags, c->rules->loc,
                 "schedule: %s: %s and %zu more are left out: %s",
                 c->rules->name, hd_fall_name(fall), more, fall->why);
  }
}

bool hd_template_choose(hd_rules_t *rules, const hd_form_t *form,
                        const hd_pin_t *pin, hd_choice_made_t *made) {
  hd_context_t *context = rules->module->context;
  hd_arena_t *arena = &rules->module->arena;
  hd_form_t leaving = *form;
  leaving.leaving = rules->leaving;
  choosing_t c = {.rules = rules,
                  .form = &leaving,
                  .form_key = hd_form_key(arena, form),
                  .pin = pin,
                  .own = {.arena = arena}};
  c.falls = context->schedules->falls ? context->schedules->falls : &c.own;
  const char *instance = "";
  if (!hd_candidates_find(context, arena, &leaving, pin, &c.candidates,
                          &c.refused)) {
    rules->failed = true;
    return false;
  }
  bool found = make_first(&c, made, &instance);
  if (rules->failed)
    return false;
  if (pin && !found) {
    // What was measured ran then, and now it does not.
    if (c.refused.size && pin->origin && c.refused.data[0].fall) {
      rules->pinned = true;
      return hd_template_choose(rules, form, NULL, made);
    }
    return hd_template_leave(rules, pin,
                             c.refused.size
                                 ? c.refused.data[0].why
                                 : "none of its candidates has these values");
  }
  if (found)
    rules->asked_leaving |= made->candidate.template->takes_leaving;
  else
    mark_rules(&c);
  warn(&c);
  if (context->schedules->explain)
    hd_candidates_explain(rules, form, instance, &c.candidates, &c.refused);
  rules->pinned |= pin || !rules->pin;
  return found;
}
