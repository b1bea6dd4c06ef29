// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Heads of templates.
#include "IR/Template.h"
#include "IR/Text/GenericParser.h"

#include <string.h>

static const struct {
  const char *clause;
  unsigned place;
  int64_t least;
  int otherwise[HD_FORM_KIND_COUNT]; // By what the template implements.
} figures[HD_FIGURE_COUNT] = {
#define HD_FIGURE(name, clause, place, least, product, rows, attention,        \
                  window, grouped, text)                                       \
  {clause,                                                                     \
   place,                                                                      \
   least,                                                                      \
   {[HD_FORM_KIND_PRODUCT] = product,                                          \
    [HD_FORM_KIND_ROWS] = rows,                                                \
    [HD_FORM_KIND_NORMED] = product,                                           \
    [HD_FORM_KIND_CENTRED] = product,                                          \
    [HD_FORM_KIND_ATTENTION] = attention,                                      \
    [HD_FORM_KIND_WEIGHED] = attention,                                        \
    [HD_FORM_KIND_WINDOW] = window,                                            \
    [HD_FORM_KIND_GROUPED] = grouped}},
#include "IR/Figures.def"
#undef HD_FIGURE
};

enum { GIVEN = -1, MEANINGLESS = -2 }; // Of what a figure is otherwise.

bool hd_figure_allows(hd_figure_t figure, hd_form_kind_t form, int64_t value) {
  return figures[figure].otherwise[form] == MEANINGLESS ||
         value >= figures[figure].least;
}

const char *hd_figure_clause(hd_figure_t figure) {
  return figures[figure].clause;
}

static const hd_form_info_t forms[HD_FORM_KIND_COUNT] = {
#define HD_FORM(name, text, axes, operands, sizes, tensors, fewest)            \
  {text, axes, operands, sizes, tensors, fewest},
#include "IR/Forms.def"
#undef HD_FORM
};

const hd_form_info_t *hd_form_info(hd_form_kind_t kind) { return &forms[kind]; }

static const char *const names[HD_TEMPLATE_NAMES] = {
#define HD_HEAD_NAME(enumerator, name, text) name,
#include "IR/HeadNames.def"
#undef HD_HEAD_NAME
};

static const hd_var_t *declare(hd_parser_t *p, const char *name, hd_loc_t loc) {
  hd_var_t *var =
      hd_var_make(p->arena, name, HD_VAR_PARAM, hd_type(HD_I32), loc);
  hd_declare(p, var);
  return var;
}

static bool parse_form_name(hd_parser_t *p, hd_template_t *template) {
  const char *list = "";
  for (unsigned i = 0; i < HD_FORM_KIND_COUNT; i++) {
    template->form = (hd_form_kind_t)i;
    if (hd_accept(p, forms[i].name))
      return true;
    list = hd_arena_printf(p->arena, "%s%s'%s'", list, i ? " or " : "",
                           forms[i].name);
  }
  return hd_expected(p, list);
}

// implements product(z, m, n, k)
static bool parse_form(hd_parser_t *p, hd_template_t *template) {
  if (!hd_expect(p, "implements") || !parse_form_name(p, template) ||
      !hd_expect(p, "("))
    return false;
  unsigned axes = forms[template->form].axes;
  for (unsigned i = 0; i < axes; i++) {
    hd_loc_t loc;
    const char *name = hd_expect_name(p, &loc);
    if (!name || !hd_expect(p, i + 1 < axes ? "," : ")"))
      return false;
    template->axes[i] = declare(p, name, loc);
  }
  return true;
}

static const hd_generic_t *find_kernel(hd_parser_t *p, const char *name,
                                       hd_loc_t loc) {
  size_t cursor = 0;
  const hd_item_t *item = hd_module_next(p->module, name, &cursor);
  if (item && item->kind == HD_ITEM_GENERIC &&
      item->u.generic->kind == HD_FUNC_KERNEL)
    return item->u.generic;
  hd_error(p->diags, loc, HD_E0201, name, hd_similar(p, name));
  hd_note(p->diags, loc,
          "a kernel with compile-time parameters, above the template, is "
          "meant");
  return NULL;
}

static bool is_param(const hd_generic_t *kernel, const char *name) {
  for (uint32_t i = 0; i < kernel->num_params; i++)
    if (strcmp(kernel->params[i].name, name) == 0)
      return true;
  return false;
}

// NAME in {1, 2, 4}
static bool parse_choice(hd_parser_t *p, const hd_generic_t *kernel,
                         hd_template_t *template) {
  hd_loc_t loc;
  const char *name = hd_expect_name(p, &loc);
  if (!name)
    return false;
  if (!is_param(kernel, name)) {
    hd_error(p->diags, loc, HD_E0201, name, "");
    hd_note(p->diags, loc, "a compile-time parameter of '%s' is meant",
            kernel->name);
    return false;
  }
  if (template->choices.size == HD_MAX_CHOICES)
    return hd_expected(p, "']'");
  HD_VEC(int64_t) values = {0};
  hd_choice_t choice = {.var = declare(p, name, loc)};
  if (!hd_expect(p, "in") || !hd_expect(p, "{"))
    return false;
  do {
    int64_t value;
    if (!hd_parse_constant(p, &value))
      return false;
    hd_vec_push(p->arena, &values, value);
  } while (hd_accept(p, ","));
  choice.values = values.data;
  choice.count = (uint32_t)values.size;
  hd_vec_push(p->arena, &template->choices, choice);
  return hd_expect(p, "}");
}

// then NAME
static bool parse_then(hd_parser_t *p, hd_template_t *template) {
  hd_loc_t loc = hd_here(p);
  if (!hd_accept(p, "then"))
    return true;
  if (!strchr(forms[template->form].tensors, '*'))
    return hd_error(p->diags, loc, HD_E0102, "a clause",
                    "'then', which is for attention and grouped products");
  const char *name = hd_expect_name(p, &loc);
  template->then = name ? find_kernel(p, name, loc) : NULL;
  return template->then;
}

// *loc: of the kernel's name. NULL after an error.
static const hd_generic_t *parse_kernel(hd_parser_t *p, hd_template_t *template,
                                        hd_loc_t *loc) {
  template->kernel = hd_expect_name(p, loc);
  const hd_generic_t *kernel =
      template->kernel ? find_kernel(p, template->kernel, *loc) : NULL;
  if (!kernel || !hd_expect(p, "["))
    return NULL;
  template->takes_leaving = is_param(kernel, "LEAVING");
  template->takes_turned = is_param(kernel, "TURNED");
  template->takes_second = is_param(kernel, "B");
  template->takes_kept = is_param(kernel, "Q");
  template->takes_aligned = is_param(kernel, "ALIGNED");
  do {
    if (!parse_choice(p, kernel, template))
      return NULL;
  } while (hd_accept(p, ","));
  return hd_expect(p, "]") && parse_then(p, template) ? kernel : NULL;
}

static bool parse_types(hd_parser_t *p, hd_template_t *template) {
  if (!hd_expect(p, "{"))
    return false;
  do {
    hd_type_t type;
    if (!hd_parse_type(p, &type))
      return false;
    hd_vec_push(p->arena, &template->types, (hd_scalar_t)type.scalar);
  } while (hd_accept(p, ","));
  return hd_expect(p, "}");
}

static bool parse_demands(hd_parser_t *p, hd_template_t *template) {
  do {
    size_t first = p->at;
    hd_demand_t demand = {hd_parse_as(p, hd_type(HD_BOOL)), NULL};
    if (!demand.holds)
      return false;
    demand.text = hd_text_of_tokens(p, first, p->at);
    hd_vec_push(p->arena, &template->demands, demand);
  } while (hd_accept(p, ","));
  return true;
}

// An operand of the form, by its letter.
static bool parse_operand(hd_parser_t *p, hd_form_kind_t form, bool *among) {
  const char *operands = forms[form].operands, *list = "";
  for (unsigned i = 0; operands[i]; i++) {
    const char letter[] = {operands[i], 0};
    among[i] |= hd_at(p, letter);
    if (hd_accept(p, letter))
      return true;
    list = hd_arena_printf(p->arena, "%s%s'%s'", list, i ? " or " : "", letter);
  }
  return hd_expected(p, *list ? list : "no operand");
}

// {a, b}
static bool parse_operands(hd_parser_t *p, hd_form_kind_t form, bool *among) {
  if (!hd_expect(p, "{"))
    return false;
  do {
    if (!parse_operand(p, form, among))
      return false;
  } while (hd_accept(p, ","));
  return hd_expect(p, "}");
}

// clause(e, ...)
static bool parse_figures(hd_parser_t *p, hd_template_t *template) {
  const char *clause = hd_peek(p)->text;
  bool found = false;
  for (int i = 0; i < HD_FIGURE_COUNT; i++) {
    if (strcmp(figures[i].clause, clause) != 0 ||
        figures[i].otherwise[template->form] == MEANINGLESS)
      continue;
    if (!found)
      p->at++;
    found = true;
    if (!hd_expect(p, figures[i].place ? "," : "(") ||
        !(template->figures[i] = hd_parse_as(p, hd_type(HD_I32))))
      return false;
  }
  if (!found)
    return hd_expected(
        p, "'kernel', 'types', 'maps', 'reads', 'requires' or a figure");
  return hd_expect(p, ")");
}

static bool parse_clauses(hd_parser_t *p, hd_template_t *template) {
  hd_loc_t loc = hd_here(p), named;
  if (!hd_expect(p, "{") || !hd_expect(p, "kernel"))
    return false;
  const hd_generic_t *kernel = parse_kernel(p, template, &named);
  if (!kernel)
    return false;
  while (!hd_at(p, "}")) {
    bool ok = hd_accept(p, "types") ? parse_types(p, template)
              : hd_accept(p, "maps")
                  ? parse_operands(p, template->form, template->maps)
              : hd_accept(p, "reads")
                  ? parse_operands(p, template->form, template->reads)
              : hd_accept(p, "requires") ? parse_demands(p, template)
                                         : parse_figures(p, template);
    if (!ok)
      return false;
  }
  for (int i = 0; i < HD_FIGURE_COUNT; i++) {
    int otherwise = figures[i].otherwise[template->form];
    if (!template->figures[i] && otherwise == GIVEN)
      return hd_expected(p,
                         hd_arena_printf(p->arena, "'%s'", figures[i].clause));
    if (!template->figures[i])
      template->figures[i] =
          hd_expr_i32(p->arena, otherwise == MEANINGLESS ? 0 : otherwise);
  }
  if (!template->types.size)
    return hd_error(p->diags, loc, HD_E0102, "'types'", "none");
  return hd_expect(p, "}") && hd_template_check(p, template, kernel, named);
}

bool hd_parse_template(hd_parser_t *p, hd_template_t *template) {
  size_t first = p->at - 2;
  hd_visible_pop(&p->visible, 0);
  p->func = NULL;
  for (int i = 0; i < HD_TEMPLATE_NAMES; i++)
    template->names[i] = declare(p, names[i], template->loc);
  if (!parse_form(p, template) || !parse_clauses(p, template))
    return false;
  template->text = hd_text_of_tokens(p, first, p->at);
  hd_item_t item = {.kind = HD_ITEM_TEMPLATE, .u.template = template};
  hd_vec_push(p->arena, &p->module->items, item);
  return true;
}
