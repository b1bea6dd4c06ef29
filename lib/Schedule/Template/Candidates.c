// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The candidates of templates for a form: every choice of values that their
// heads allow, with its price. Nothing of a kernel has been read then.
#include "IR/Eval.h"
#include "IR/Text/Library.h"
#include "Schedule/Attention/Attention.h"
#include "Schedule/Grouped/Grouped.h"
#include "Schedule/Product/Pairs.h"
#include "Schedule/Rows/Rows.h"
#include "Schedule/Template/Falls.h"
#include "Schedule/Template/Templates.h"
#include "Schedule/Window/Window.h"
#include "Support/Suggest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct search {
  const hd_machine_t *machine;
  const hd_form_t *form;
  hd_arena_t *arena;
  const hd_pin_t *pin; // NULL: all values.
  hd_env_t env; // Of the template at hand: axes, names, then the choices.
  hd_candidate_t at;
  hd_candidates_t *found;
  size_t met;      // Demands that a candidate of the template at hand met
  const char *why; // before one that none meets; NULL: there is none.
  const char
      *odd; // The figure of one that it cannot have; NULL: none has such.
} search_t;

static void bind_int(search_t *s, const hd_var_t *var, int64_t value) {
  hd_env_add(s->arena, &s->env, var, (hd_number_t){.i = value});
}

// Of the candidates that are refused, the one that got the furthest says why.
static bool refuse(search_t *s, size_t i) {
  if (!s->why || i > s->met)
    s->why = s->at.template->demands.data[i].text;
  s->met = i > s->met ? i : s->met;
  return false;
}

// Whether demands hold, as far as they are known by the choices made: all,
// where all are. *met: as many of the first ones do, before and now. What one
// choice settles is not asked again of each that follows.
static bool meets_demands(search_t *s, size_t *met, bool all) {
  const hd_template_t *t = s->at.template;
  for (; *met < t->demands.size; ++*met) {
    int64_t holds;
    bool is_known = hd_eval_int(&s->env, t->demands.data[*met].holds, &holds);
    if (!is_known && !all)
      return true;
    if (!is_known || !holds)
      return refuse(s, *met);
  }
  return true;
}

static bool has_figures(search_t *s) {
  const hd_template_t *t = s->at.template;
  for (int i = 0; i < HD_FIGURE_COUNT; i++) {
    int64_t *value = &s->at.figures[i];
    bool is_known = hd_eval_int(&s->env, t->figures[i], value);
    if (is_known && hd_figure_allows((hd_figure_t)i, t->form, *value))
      continue;
    s->odd = hd_figure_clause((hd_figure_t)i);
    s->odd = is_known ? hd_arena_printf(s->arena, "'%s' of its head is %lld",
                                        s->odd, (long long)*value)
                      : hd_arena_printf(
                            s->arena, "'%s' of its head is no number", s->odd);
    return false;
  }
  return true;
}

bool hd_candidate_has_rows(const hd_candidate_t *c, int64_t neighbours) {
  int64_t side = c->figures[HD_FIGURE_NEIGHBOURS];
  return side > 0 && side % neighbours == 0;
}

static void try_candidate(search_t *s, size_t met) {
  if (!meets_demands(s, &met, true) || !has_figures(s))
    return;
  if (s->form->neighbours &&
      !hd_candidate_has_rows(&s->at, s->form->neighbours))
    return;
  s->at.us = s->form->price(s->machine, s->form, &s->at);
  s->at.number = s->found->size;
  if (isfinite(s->at.us))
    hd_vec_push(s->arena, s->found, s->at);
}

static const hd_pin_value_t *find_value(const hd_pin_t *pin, const char *name) {
  for (uint32_t i = 0; pin && i < pin->num_values; i++)
    if (strcmp(pin->values[i].name, name) == 0)
      return &pin->values[i];
  return NULL;
}

// met: of the demands, as many of the first ones hold for the choices before n.
static void try_choices(search_t *s, size_t n, size_t met) {
  const hd_template_t *t = s->at.template;
  if (n == t->choices.size) {
    try_candidate(s, met);
    return;
  }
  // Of what is pinned there may be no candidate that could be refused.
  if (!s->pin && !meets_demands(s, &met, false))
    return;
  const hd_choice_t *choice = &t->choices.data[n];
  const hd_pin_value_t *pinned = find_value(s->pin, choice->var->name);
  size_t first = s->env.values.size;
  for (uint32_t i = 0; i < choice->count; i++) {
    if (pinned && pinned->value != choice->values[i])
      continue;
    s->at.values[n] = choice->values[i];
    bind_int(s, choice->var, choice->values[i]);
    try_choices(s, n + 1, met);
    s->env.values.size = first;
  }
}

static void bind_names(search_t *s, const hd_template_t *template) {
  const hd_form_t *form = s->form;
  int64_t values[HD_TEMPLATE_NAMES];
  for (int i = 0; i < HD_TEMPLATE_NAMES; i++)
    values[i] = form->names[i];
  values[HD_TEMPLATE_SM] = s->machine->sm;
  values[HD_TEMPLATE_NATIVE] = s->machine->native;
  values[HD_TEMPLATE_SMS] = s->machine->count;
  values[HD_TEMPLATE_FMA] = s->machine->fma;
  values[HD_TEMPLATE_MMA] = hd_machine_mma(s->machine, form->type);
  values[HD_TEMPLATE_WGMMA] = hd_machine_wgmma(s->machine, form->type);
  values[HD_TEMPLATE_BITS] = (int64_t)hd_scalar_bits(form->type);
  s->env.values.size = 0;
  for (unsigned i = 0; i < hd_form_info(form->kind)->axes; i++)
    bind_int(s, template->axes[i], form->sizes[i]);
  for (int i = 0; i < HD_TEMPLATE_NAMES; i++)
    bind_int(s, template->names[i], values[i]);
}

static bool serves(const hd_template_t *template, hd_scalar_t type) {
  for (size_t i = 0; i < template->types.size; i++)
    if (template->types.data[i] == type)
      return true;
  return false;
}

// Why a template answers with no candidate; NULL: it has some.
static const char *try_template(search_t *s, const hd_found_template_t *found) {
  const hd_template_t *template = found->template;
  const hd_form_info_t *info = hd_form_info(s->form->kind);
  if (!serves(template, s->form->type))
    return "it is not for operands of this type";
  if (s->form->second &&
      (!template->takes_second || !serves(template, s->form->second)))
    return "it is not for operands of these two types";
  if (template->takes_kept && !s->form->kept)
    return "its operand 'b' is not computed from a narrower tensor, element "
           "for element";
  bool turned = template->takes_turned && s->form->names[HD_TEMPLATE_TURNED];
  for (int i = 0; i < HD_FORM_OPERANDS; i++) {
    const char *why =
        turned && i == 0 ? s->form->no_turned_map : s->form->no_map[i];
    if (template->reads[i])
      why = s->form->no_read[i];
    if ((template->maps[i] || template->reads[i]) && why)
      return hd_arena_printf(s->arena, "its operand '%c' %s", info->operands[i],
                             why);
  }
  s->at.template = template;
  s->at.home = found->home;
  s->met = 0;
  s->why = s->odd = NULL;
  bind_names(s, template);
  size_t before = s->found->size;
  try_choices(s, 0, 0);
  if (s->found->size > before)
    return NULL;
  if (s->why)
    return hd_arena_printf(s->arena, "it requires %s", s->why);
  return s->odd ? s->odd
                : "no multiprocessor has room for any of its candidates";
}

static bool is_disabled(const hd_schedule_options_t *options,
                        const char *name) {
  for (size_t i = 0; i < options->num_disabled; i++)
    if (strcmp(options->disabled[i], name) == 0)
      return true;
  return false;
}

// --- The templates that there are ---

static bool has_template(const hd_module_t *module, const char *name) {
  size_t cursor = 0;
  const hd_item_t *item;
  while (module && (item = hd_module_next(module, name, &cursor)))
    if (item->kind == HD_ITEM_TEMPLATE)
      return true;
  return false;
}

static void add_templates(hd_arena_t *arena, hd_module_t *module,
                          const hd_module_t *over, hd_templates_t *templates) {
  for (size_t i = 0; i < module->items.size; i++) {
    const hd_item_t *item = &module->items.data[i];
    hd_found_template_t found = {NULL, module};
    if (item->kind != HD_ITEM_TEMPLATE ||
        has_template(over, item->u.template->name))
      continue;
    found.template = item->u.template;
    hd_vec_push(arena, templates, found);
  }
}

bool hd_templates_find(hd_context_t *context, hd_module_t *module,
                       hd_arena_t *arena, hd_templates_t *templates) {
  hd_module_t *library = hd_library_templates(context);
  if (!library)
    return false;
  add_templates(arena, library, module, templates);
  if (module)
    add_templates(arena, module, NULL, templates);
  return true;
}

// --- Pins ---

static bool report_template(hd_context_t *context, const hd_pin_t *pin,
                            const hd_templates_t *templates) {
  char near[100];
  hd_suggestion_t suggestion = {.wanted = pin->name};
  for (size_t i = 0; i < templates->size; i++)
    hd_suggestion_add(&suggestion, templates->data[i].template->name);
  hd_error(&context->diags, pin->loc, HD_E0201, pin->name,
           hd_suggestion_text(&suggestion, "", near, sizeof near));
  hd_note(&context->diags, pin->loc, "a template is meant");
  return false;
}

// Whether the head lists the value.
static bool check_value(hd_context_t *context, hd_arena_t *arena,
                        const hd_template_t *t, const hd_pin_value_t *value) {
  const hd_choice_t *choice = NULL;
  for (size_t i = 0; i < t->choices.size; i++)
    if (strcmp(t->choices.data[i].var->name, value->name) == 0)
      choice = &t->choices.data[i];
  if (!choice) {
    hd_error(&context->diags, value->loc, HD_E0201, value->name, "");
    hd_note(&context->diags, value->loc,
            "a parameter in the head of template '%s' is meant", t->name);
    return false;
  }
  const char *list = "";
  for (uint32_t i = 0; i < choice->count; i++) {
    if (choice->values[i] == value->value)
      return true;
    list = hd_arena_printf(arena, "%s%s%lld", list, i ? ", " : "",
                           (long long)choice->values[i]);
  }
  return hd_error(
      &context->diags, value->loc, HD_E0320, t->name,
      hd_arena_printf(arena, "%s = %lld", value->name, (long long)value->value),
      hd_arena_printf(arena, "its head has %s for that", list));
}

static bool check_pin(hd_context_t *context, hd_arena_t *arena,
                      const hd_pin_t *pin, const hd_templates_t *templates) {
  for (size_t i = 0; i < templates->size; i++) {
    const hd_template_t *t = templates->data[i].template;
    if (strcmp(t->name, pin->name) != 0)
      continue;
    for (uint32_t n = 0; n < pin->num_values; n++)
      if (!check_value(context, arena, t, &pin->values[n]))
        return false;
    return true;
  }
  return report_template(context, pin, templates);
}

const hd_candidate_t *hd_candidates_with_rows(const hd_candidates_t *candidates,
                                              int64_t neighbours) {
  for (size_t i = 0; i < candidates->size; i++)
    if (hd_candidate_has_rows(&candidates->data[i], neighbours))
      return &candidates->data[i];
  return NULL;
}

const hd_pin_t *hd_candidate_pin(hd_arena_t *arena,
                                 const hd_candidate_t *candidate) {
  const hd_template_t *t = candidate->template;
  hd_pin_t *pin = HD_ARENA_NEW(arena, hd_pin_t);
  hd_pin_value_t *values =
      HD_ARENA_ARRAY(arena, hd_pin_value_t, t->choices.size + 1);
  for (size_t i = 0; i < t->choices.size; i++)
    values[i] = (hd_pin_value_t){.name = t->choices.data[i].var->name,
                                 .value = candidate->values[i]};
  *pin = (hd_pin_t){.name = t->name,
                    .num_values = (uint32_t)t->choices.size,
                    .values = values};
  return pin;
}

// --- The search ---

static int by_price(const void *a, const void *b) {
  const hd_candidate_t *x = a, *y = b;
  if (x->us != y->us)
    return x->us < y->us ? -1 : 1;
  return (x->number > y->number) - (x->number < y->number);
}

bool hd_candidates_find(hd_context_t *context, hd_arena_t *arena,
                        const hd_form_t *form, const hd_pin_t *pin,
                        hd_candidates_t *candidates, hd_refusals_t *refused) {
  const hd_schedule_options_t *options = context->schedules;
  hd_templates_t templates = {0};
  search_t search = {.machine = &options->machine,
                     .form = form,
                     .arena = arena,
                     .pin = pin,
                     .found = candidates};
  if (!hd_templates_find(context, options->module, arena, &templates) ||
      (pin && !check_pin(context, arena, pin, &templates)))
    return false;
  for (size_t i = 0; i < templates.size; i++) {
    const hd_template_t *template = templates.data[i].template;
    hd_refused_t no = {.name = template->name};
    if (template->form != form->kind || is_disabled(options, template->name) ||
        (pin && strcmp(pin->name, template->name) != 0))
      continue;
    no.why = try_template(&search, &templates.data[i]);
    if (no.why)
      hd_vec_push(arena, refused, no);
  }
  if (!pin || pin->origin)
    hd_falls_apply(options->falls, context, arena, form, pin != NULL,
                   candidates, refused);
  if (candidates->size)
    qsort(candidates->data, candidates->size, sizeof(*candidates->data),
          by_price);
  return true;
}

bool hd_task_candidates(hd_context_t *context, hd_arena_t *arena,
                        const hd_task_t *flat, uint64_t computed,
                        uint64_t gathered, hd_candidates_t *candidates) {
  hd_refusals_t refused = {0};
  hd_attention_form_t attention;
  if (!hd_attention_form_find(arena, flat, &attention)) {
    hd_attention_form_mark(&attention, flat, computed, gathered);
    hd_form_t asked = hd_attention_form_ask(arena, &attention);
    return hd_candidates_find(context, arena, &asked, NULL, candidates,
                              &refused);
  }
  hd_product_form_t form;
  if (!hd_normed_form_find(arena, flat, &form)) {
    hd_product_form_mark(&form, flat, computed);
    hd_form_t asked = hd_product_form_ask(arena, &form);
    if (!hd_candidates_find(context, arena, &asked, NULL, candidates, &refused))
      return false;
    if (candidates->size)
      return true;
  }
  if (!hd_pairs_form_find(arena, flat, &form)) {
    hd_product_form_mark(&form, flat, computed);
    hd_form_t asked = hd_product_form_ask(arena, &form);
    return hd_candidates_find(context, arena, &asked, NULL, candidates,
                              &refused);
  }
  hd_grouped_form_t grouped;
  if (!hd_grouped_form_find(arena, flat, &grouped)) {
    hd_grouped_form_mark(&grouped, flat, computed);
    hd_form_t asked = hd_grouped_form_ask(arena, &grouped);
    if (!hd_candidates_find(context, arena, &asked, NULL, candidates, &refused))
      return false;
    if (candidates->size && flat->definitions.size > 1)
      return true; // A product is no more than the first of them.
  }
  for (size_t i = 0; i < flat->definitions.size; i++) {
    const hd_definition_t *d = flat->definitions.data[i];
    if (d->kind != HD_DEFINE || hd_product_form_find(arena, d, &form))
      continue;
    hd_product_form_mark(&form, flat, computed);
    hd_form_t asked = hd_product_form_ask(arena, &form);
    return hd_candidates_find(context, arena, &asked, NULL, candidates,
                              &refused);
  }
  // A host's price of rows says nothing beside that of a product.
  bool simulated = context->schedules->simulated;
  if (flat->definitions.size == 1 &&
      flat->definitions.data[0]->kind == HD_DEFINE &&
      !hd_product_form_find_few(arena, flat->definitions.data[0], &form)) {
    hd_product_form_mark(&form, flat, computed);
    hd_form_t few = hd_product_form_ask(arena, &form);
    if (!hd_candidates_find(context, arena, &few, NULL, candidates, &refused))
      return false;
    simulated &= !candidates->size;
  }
  hd_window_form_t window;
  for (size_t i = 0; i < flat->definitions.size; i++) {
    if (hd_window_form_find(arena, flat->definitions.data[i], &window))
      continue;
    hd_form_t asked = hd_window_form_ask(arena, &window);
    return hd_candidates_find(context, arena, &asked, NULL, candidates,
                              &refused);
  }
  hd_rows_t *rows = HD_ARENA_NEW(arena, hd_rows_t);
  hd_form_t asked;
  return !hd_rows_first(arena, flat, rows) ||
         hd_rows_ask(arena, rows, simulated, &asked) ||
         hd_candidates_find(context, arena, &asked, NULL, candidates, &refused);
}

double hd_task_price(hd_context_t *context, hd_arena_t *scratch,
                     const hd_task_t *flat, hd_arena_t *arena,
                     hd_key_map_t *prices) {
  hd_buffer_t text;
  hd_buffer_init_local(&text, scratch->budget);
  hd_task_print(flat, &text);
  double *us = hd_key_map_find_name(prices, hd_buffer_text(&text));
  if (!us) {
    hd_candidates_t found = {0};
    us = HD_ARENA_NEW(arena, double);
    hd_key_map_set_name(
        arena, prices,
        hd_arena_strndup(arena, hd_buffer_text(&text), text.size), us);
    if (hd_task_candidates(context, scratch, flat, 0, 0, &found) && found.size)
      *us = found.data[0].us;
  }
  hd_buffer_fini(&text);
  return *us;
}
