// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is the same for every form: whether templates are asked, and the best of
// their candidates.
#include "IR/Text/Library.h"
#include "Schedule/Template/Falls.h"
#include "Schedule/Template/Instance.h"
#include "Schedule/Template/Templates.h"

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
  const hd_pin_t *pin;
  const char *given;
  hd_candidates_t candidates;
  hd_refusals_t refused;
} choosing_t;

static const char *instance_of(const choosing_t *c,
                               const hd_candidate_t *candidate) {
  hd_arena_t *arena = &c->rules->module->arena;
  const hd_template_t *template = candidate->template;
  const char *given = c->given;
  for (int i = 0; i < HD_FORM_OPERANDS; i++)
    if (template->maps[i] && c->form->given[i])
      given = hd_arena_printf(arena, "%s, %s", given, c->form->given[i]);
  if (template->takes_turned && c->form->names[HD_TEMPLATE_TURNED])
    given = hd_arena_printf(arena, "%s, TURNED = true", given);
  if (c->form->second)
    given = hd_arena_printf(arena, "%s, B = %s", given,
                            hd_scalar_name(c->form->second));
  if (template->takes_kept)
    given = hd_arena_printf(arena, "%s, Q = %s", given,
                            hd_scalar_name(c->form->kept));
  return hd_candidate_instance(arena, candidate, given, c->rules->leaving);
}

// What was reported speaks of the candidate's values, not of its text alone:
// the first of it, which is forgotten. NULL: some of it does not.
static const char *take_reason(hd_context_t *context, hd_arena_t *arena,
                               hd_diagnostics_mark_t mark) {
  const char *why = NULL;
  for (const hd_diagnostic_t *d = hd_diagnostics_since(&context->diags, mark);
       d; d = d->next) {
    if (d->severity == HD_ERROR && !hd_code_falls(d->code))
      return NULL;
    if (d->severity == HD_ERROR && !why)
      why = hd_arena_printf(arena, "%s", d->message);
  }
  if (why)
    hd_diagnostics_rewind(&context->diags, mark);
  return why;
}

// The kernels of a candidate; false where there are none, and *why says why, or
// it was reported.
static bool make_kernels(const choosing_t *c, const hd_candidate_t *candidate,
                         const char *instance, hd_choice_made_t *made,
                         const char **why) {
  hd_module_t *module = c->rules->module;
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(&module->context->diags);
  bool runs_then = candidate->template->then;
  *made = (hd_choice_made_t){.candidate = *candidate};
  made->kernel = hd_candidate_kernel(module, candidate, instance, c->form);
  if (made->kernel && runs_then)
    made->then = hd_instance_kernel(
        module, candidate->home,
        hd_candidate_then(&module->arena, candidate, instance), c->form->sizes,
        hd_form_info(c->form->kind)->sizes);
  if (!made->kernel || (runs_then && !made->then)) {
    bool is_named = c->pin && !c->pin->origin;
    *why = is_named ? NULL : take_reason(module->context, &module->arena, mark);
    return false;
  }
  const hd_machine_t *machine = &module->context->schedules->machine;
  *why = hd_kernel_obstacle(&module->arena, machine, made->kernel);
  if (!*why && made->then)
    *why = hd_kernel_obstacle(&module->arena, machine, made->then);
  return !*why;
}

// Has the kernels know of the choice.
static void mark_kernels(const choosing_t *c, size_t n,
                         hd_choice_made_t *made) {
  hd_context_t *context = c->rules->module->context;
  hd_arena_t *arena = &c->rules->module->arena;
  const hd_candidate_t *best = &c->candidates.data[n];
  hd_chosen_t *chosen = HD_ARENA_NEW(arena, hd_chosen_t);
  *chosen = (hd_chosen_t){
      .key = hd_candidate_key(context, arena, c->form, best),
      .name = hd_candidate_name(arena, best),
      .us = best->us,
      .next_us =
          n + 1 < c->candidates.size ? c->candidates.data[n + 1].us : INFINITY,
      .byte_us =
          hd_candidate_byte_us(&context->schedules->machine, c->form, best),
      .is_users = best->home != hd_library_templates(context),
      .is_pinned = c->pin && !c->pin->origin,
      .is_measured = c->pin && c->pin->origin};
  made->kernel->chosen = chosen;
  if (made->then)
    made->then->chosen = chosen;
}

// A candidate does not do, and the next has its turn.
static void leave_out(choosing_t *c, const hd_candidate_t *candidate,
                      const char *why) {
  hd_context_t *context = c->rules->module->context;
  hd_arena_t *arena = &c->rules->module->arena;
  const hd_fall_t fall = {
      .key = hd_candidate_key(context, arena, c->form, candidate),
      .name = hd_candidate_name(arena, candidate),
      .why = why,
      .us = INFINITY,
      .is_users = candidate->home != hd_library_templates(context),
      .is_new = true};
  hd_fall_t *kept = hd_falls_add(context->schedules->falls, arena, &fall);
  hd_vec_push(arena, &c->refused, ((hd_refused_t){kept->name, why, kept}));
}

// The first from number n on whose kernels can be made; false where there is
// none, or after an error.
static bool make_first(choosing_t *c, hd_choice_made_t *made,
                       const char **instance, size_t *n) {
  for (; *n < c->candidates.size; ++*n) {
    const hd_candidate_t *candidate = &c->candidates.data[*n];
    const char *why = NULL;
    *instance = instance_of(c, candidate);
    if (make_kernels(c, candidate, *instance, made, &why)) {
      mark_kernels(c, *n, made);
      return true;
    }
    bool is_named = c->pin && !c->pin->origin;
    if (why && is_named)
      hd_error(&c->rules->module->context->diags, c->rules->loc, HD_E0320,
               c->rules->name, candidate->template->name, why);
    c->rules->failed = !why || is_named;
    if (c->rules->failed)
      return false;
    leave_out(c, candidate, why);
  }
  return false;
}

// A user hears of what is left out of his own templates, once.
static void warn(const choosing_t *c) {
  hd_falls_t *falls = c->rules->module->context->schedules->falls;
  for (size_t i = 0; i < c->refused.size; i++) {
    hd_fall_t *fall = c->refused.data[i].fall;
    if (!fall || !fall->is_users || fall->told || isfinite(fall->us))
      continue;
    fall->told = falls ? falls->rounds + 1 : 1;
    hd_warning(&c->rules->module->context->diags, c->rules->loc,
               "schedule: %s: %s is left out: %s", c->rules->name, fall->name,
               fall->why);
  }
}

bool hd_template_choose(hd_rules_t *rules, const hd_form_t *form,
                        const hd_pin_t *pin, const char *given,
                        hd_choice_made_t *made) {
  hd_context_t *context = rules->module->context;
  hd_arena_t *arena = &rules->module->arena;
  choosing_t c = {.rules = rules, .form = form, .pin = pin, .given = given};
  size_t n = 0;
  const char *instance = "";
  if (!hd_candidates_find(context, arena, form, pin, &c.candidates,
                          &c.refused)) {
    rules->failed = true;
    return false;
  }
  bool found = make_first(&c, made, &instance, &n);
  if (rules->failed)
    return false;
  if (pin && !found) {
    // What was measured ran then, and now it does not.
    if (c.refused.size && pin->origin && c.refused.data[0].fall) {
      rules->pinned = true;
      return hd_template_choose(rules, form, NULL, given, made);
    }
    return hd_template_leave(
        rules, pin,
        "what the template requires holds for none of the candidates "
        "with these values");
  }
  c.candidates.data += n;
  c.candidates.size -= n;
  if (found)
    rules->asked_leaving |= made->candidate.template->takes_leaving;
  warn(&c);
  if (context->schedules->explain)
    hd_candidates_explain(rules, form, instance, &c.candidates, &c.refused);
  rules->pinned |= pin || !rules->pin;
  return found;
}
