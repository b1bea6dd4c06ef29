// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tools/Templates.h"

#include "IR/Template.h"
#include "Schedule/Template/Templates.h"
#include "Support/Suggest.h"

#include <string.h>

static const hd_loc_t nowhere;

bool hd_tools_list_templates(hd_context_t *context, hd_arena_t *arena,
                             hd_module_t *module, hd_buffer_t *out) {
  hd_templates_t templates = {0};
  if (!hd_templates_find(context, module, arena, &templates))
    return false;
  for (size_t i = 0; i < templates.size; i++) {
    const hd_template_t *t = templates.data[i].template;
    int64_t count = 1;
    for (size_t k = 0; k < t->choices.size; k++)
      count *= t->choices.data[k].count;
    hd_buffer_printf(out, "%-20s %-24s %lld candidates\n", t->name, t->kernel,
                     (long long)count);
  }
  return true;
}

static bool is_template(const hd_templates_t *templates, const char *name) {
  for (size_t i = 0; i < templates->size; i++)
    if (strcmp(templates->data[i].template->name, name) == 0)
      return true;
  return false;
}

static bool report_unknown(hd_context_t *context, hd_arena_t *arena,
                           const hd_templates_t *templates, const char *name) {
  char near[100];
  hd_suggestion_t suggestion = {.wanted = name};
  for (size_t i = 0; i < templates->size; i++)
    hd_suggestion_add(&suggestion, templates->data[i].template->name);
  return hd_error(
      &context->diags, nowhere, HD_E1003,
      hd_arena_printf(arena, "there is no template '%s'%s", name,
                      hd_suggestion_text(&suggestion, "", near, sizeof near)));
}

bool hd_tools_schedule_options(hd_context_t *context, hd_arena_t *arena,
                               const hd_options_t *options, int disable,
                               hd_module_t *module, const hd_target_t *target,
                               bool explain) {
  hd_schedule_options_t *made = HD_ARENA_NEW(arena, hd_schedule_options_t);
  HD_VEC(const char *) names = {0};
  hd_templates_t templates = {0};
  bool ok = true;
  for (size_t i = 0; i < options->uses.size; i++)
    if (options->uses.data[i].option == disable)
      hd_vec_push(arena, &names, options->uses.data[i].value);
  if (names.size && !hd_templates_find(context, module, arena, &templates))
    return false;
  for (size_t i = 0; i < names.size; i++)
    if (!is_template(&templates, names.data[i]))
      ok = report_unknown(context, arena, &templates, names.data[i]);
  if (target)
    hd_machine_find(target->sm, &made->machine);
  made->module = module;
  made->explain = explain;
  made->disabled = names.data;
  made->num_disabled = names.size;
  context->schedules = made;
  return ok;
}
