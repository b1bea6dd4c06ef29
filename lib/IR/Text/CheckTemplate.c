// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether a template's kernel has the compile-time parameters that its form
// gives, and values for all others: else an instance of it could not be made,
// which whoever asks for one would hear of, and not whoever wrote it.
#include "IR/Template.h"
#include "IR/Text/GenericParser.h"

#include <string.h>

typedef struct check {
  hd_parser_t *p;
  const hd_template_t *template;
  const hd_generic_t *kernel;
  hd_loc_t loc; // Of the kernel's name in the head.
} check_t;

static const struct {
  hd_form_kind_t form;
  char map;
  const char *params;
} given[] = {
#define HD_GIVEN(form, map, params) {HD_FORM_KIND_##form, map, params},
#define HD_OFFERED(params)
#include "IR/Given.def"
#undef HD_GIVEN
#undef HD_OFFERED
};

static const char offered[] =
#define HD_GIVEN(form, map, params)
#define HD_OFFERED(params) params
#include "IR/Given.def"
#undef HD_GIVEN
#undef HD_OFFERED
    ;

static bool report(const check_t *c, const char *why) {
  hd_error(c->p->diags, c->loc, HD_E0321, c->kernel->name, c->template->name,
           why);
  hd_note(c->p->diags, c->kernel->loc, "the kernel");
  return false;
}

// A parameter of a list: "NAME: kind", parts of its text.
typedef struct entry {
  const char *name, *kind;
  int name_size, kind_size;
} entry_t;

// The next one of a list, or false where it ends.
static bool next_entry(const char **list, entry_t *e) {
  if (!**list)
    return false;
  size_t name = strcspn(*list, ":"), end = strcspn(*list, ",");
  *e = (entry_t){.name = *list,
                 .name_size = (int)name,
                 .kind = *list + name + 2,
                 .kind_size = (int)(end - name - 2)};
  *list += end + strspn(*list + end, ", ");
  return true;
}

static bool is_named(const entry_t *e, const char *name) {
  return strncmp(e->name, name, (size_t)e->name_size) == 0 &&
         !name[e->name_size];
}

static const hd_generic_param_t *find_param(const hd_generic_t *kernel,
                                            const entry_t *e) {
  for (uint32_t i = 0; i < kernel->num_params; i++)
    if (is_named(e, kernel->params[i].name))
      return &kernel->params[i];
  return NULL;
}

static bool is_of_kind(const hd_generic_param_t *param, const entry_t *e) {
  bool is_bool = !param->is_type && param->type.scalar == HD_BOOL;
  return *e->kind == 't'   ? param->is_type
         : *e->kind == 'b' ? is_bool
                           : !param->is_type && !is_bool;
}

// Whether the kernel has every parameter of a list as it is given; or, where
// they are not needed, none as something else.
static bool check_list(const check_t *c, const char *list, bool needed) {
  const char *form = hd_form_info(c->template->form)->name;
  hd_arena_t *arena = c->p->arena;
  entry_t e;
  while (next_entry(&list, &e)) {
    const hd_generic_param_t *param = find_param(c->kernel, &e);
    if (!param && needed)
      return report(c, hd_arena_printf(arena,
                                       "it has no compile-time parameter "
                                       "'%.*s', which form '%s' gives",
                                       e.name_size + 2 + e.kind_size, e.name,
                                       form));
    if (param && !is_of_kind(param, &e))
      return report(c, hd_arena_printf(arena,
                                       "its compile-time parameter '%s' is "
                                       "not '%.*s', as form '%s' gives it",
                                       param->name, e.kind_size, e.kind, form));
  }
  return true;
}

static bool has_entry(const char *list, const char *name) {
  entry_t e;
  while (next_entry(&list, &e))
    if (is_named(&e, name))
      return true;
  return false;
}

// Whether a row of the table is for the template.
static bool is_for(const hd_template_t *t, size_t row) {
  const char *operands = hd_form_info(t->form)->operands;
  if (given[row].form != t->form || !given[row].map)
    return given[row].form == t->form;
  size_t operand = (size_t)(strchr(operands, given[row].map) - operands);
  return t->maps[operand] || t->reads[operand];
}

// Whether a list of values, "NAME = value", has one for a parameter.
static bool has_given(const char *values, const entry_t *e) {
  while (*values) {
    size_t name = strcspn(values, " ");
    if (name == (size_t)e->name_size && strncmp(values, e->name, name) == 0)
      return true;
    values += strcspn(values, ",");
    values += strspn(values, ", ");
  }
  return false;
}

bool hd_template_gives(const hd_template_t *template, const char *values) {
  const char *list = offered;
  entry_t e;
  size_t count = 0, known = 0;
  for (const char *at = values; *at; at += strspn(at, ", "), count++)
    at += strcspn(at, ",");
  while (next_entry(&list, &e))
    known += has_given(values, &e);
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
    list = is_for(template, i) ? given[i].params : "";
    while (next_entry(&list, &e)) {
      if (!has_given(values, &e))
        return false;
      known++;
    }
  }
  return known == count;
}

static bool has_value(const check_t *c, const hd_generic_param_t *param) {
  if (param->otherwise)
    return true;
  for (size_t i = 0; i < c->template->choices.size; i++)
    if (strcmp(c->template->choices.data[i].var->name, param->name) == 0)
      return true;
  for (size_t i = 0; i < sizeof given / sizeof *given; i++)
    if (is_for(c->template, i) && has_entry(given[i].params, param->name))
      return true;
  return false;
}

static bool check_values(const check_t *c) {
  for (uint32_t i = 0; i < c->kernel->num_params; i++) {
    const hd_generic_param_t *param = &c->kernel->params[i];
    if (!has_value(c, param))
      return report(c, hd_arena_printf(
                           c->p->arena,
                           "its compile-time parameter '%s' has no default, "
                           "and neither the head nor form '%s' gives it",
                           param->name, hd_form_info(c->template->form)->name));
  }
  return true;
}

bool hd_template_check(hd_parser_t *p, const hd_template_t *template,
                       const hd_generic_t *kernel, hd_loc_t loc) {
  check_t c = {p, template, kernel, loc};
  for (size_t i = 0; i < sizeof given / sizeof *given; i++)
    if (is_for(template, i) && !check_list(&c, given[i].params, true))
      return false;
  if (!check_list(&c, offered, false) || !check_values(&c))
    return false;
  // What runs behind it has of the same what it has parameters for.
  c.kernel = template->then ? template->then : kernel;
  return check_values(&c);
}
