// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions with compile-time parameters: their declarations, and uses of them.
#include "IR/Text/GenericParser.h"

#include "IR/Text/Library.h"
#include "IR/Text/Printer.h"
#include "Support/Suggest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hd_bound_t *hd_bound_make(hd_parser_t *p, const char *name, hd_loc_t loc) {
  hd_bound_t *bound = HD_ARENA_NEW(p->arena, hd_bound_t);
  bound->var = (hd_var_t){.name = name, .kind = HD_VAR_LET, .loc = loc};
  bound->constant = (hd_const_t){.name = name, .loc = loc};
  return bound;
}

bool hd_find_type(const hd_parser_t *p, const char *name, hd_type_t *type) {
  if (hd_type_parse(name, type))
    return true;
  const hd_bound_t *bound = hd_find_bound(p, name);
  if (bound && bound->is_type) {
    *type = bound->type;
    return true;
  }
  // Tx4: so many lanes of what T stands for.
  const char *x = strrchr(name, 'x');
  if (!hd_visible_size(&p->bound) || !x || x == name || x[1] < '1' ||
      x[1] > '9')
    return false;
  char *end;
  unsigned long lanes = strtoul(x + 1, &end, 10);
  bound =
      hd_find_bound(p, hd_arena_strndup(p->arena, name, (size_t)(x - name)));
  if (*end || lanes < 2 || lanes > HD_MAX_LANES || !bound || !bound->is_type)
    return false;
  *type = hd_type_vector((hd_scalar_t)bound->type.scalar, (unsigned)lanes);
  return true;
}

static bool is_value_type(hd_type_t type) {
  return type.lanes == 1 && (hd_type_is_float(type) ||
                             hd_type_is_integer(type) || hd_type_is_bool(type));
}

// A default is read with the values that stand before it.
static bool skip_default(hd_parser_t *p) {
  size_t start = p->at;
  int depth = 0;
  while (hd_peek(p)->kind != HD_TOKEN_END &&
         (depth > 0 || (!hd_at(p, ",") && !hd_at(p, "]")))) {
    depth += hd_at(p, "(") || hd_at(p, "[");
    depth -= hd_at(p, ")") || hd_at(p, "]");
    if (hd_at(p, "{") || hd_at(p, "}"))
      break;
    p->at++;
  }
  return p->at > start || hd_expected(p, "a value");
}

// name: i32 | type [= default]
static bool parse_declared(hd_parser_t *p, hd_generic_param_t *param) {
  *param = (hd_generic_param_t){0};
  param->name = hd_expect_name(p, &param->loc);
  if (!param->name || !hd_expect(p, ":"))
    return false;
  hd_loc_t loc = hd_here(p);
  param->is_type = hd_accept(p, "type");
  if (!param->is_type && !hd_parse_type(p, &param->type))
    return false;
  if (!param->is_type && !is_value_type(param->type))
    return hd_error(
        p->diags, loc, HD_E0302,
        hd_arena_printf(p->arena, "'%s'", hd_type_name(param->type)),
        "as the type of a compile-time parameter");
  if (!hd_accept(p, "="))
    return true;
  param->otherwise = p->at;
  return skip_default(p);
}

static bool parse_all_declared(hd_parser_t *p, hd_generic_t *generic) {
  HD_VEC(hd_generic_param_t) params = {0};
  if (!hd_expect(p, "["))
    return false;
  do {
    hd_generic_param_t param;
    if (!parse_declared(p, &param))
      return false;
    for (size_t i = 0; i < params.size; i++)
      if (strcmp(params.data[i].name, param.name) == 0) {
        hd_error(p->diags, param.loc, HD_E0202, param.name);
        hd_note(p->diags, params.data[i].loc, "declared here");
        return false;
      }
    if (params.size == HD_MAX_GENERIC_PARAMS)
      return hd_error(p->diags, param.loc, HD_E0307,
                      "the number of compile-time parameters", 1LL,
                      (long long)HD_MAX_GENERIC_PARAMS,
                      (long long)params.size + 1);
    hd_vec_push(p->arena, &params, param);
  } while (hd_accept(p, ","));
  generic->params = params.data;
  generic->num_params = (uint32_t)params.size;
  return hd_expect(p, "]");
}

bool hd_parse_generic(hd_parser_t *p, hd_func_kind_t kind, size_t first,
                      const char *name, hd_loc_t loc) {
  hd_generic_t *generic = HD_ARENA_NEW(p->arena, hd_generic_t);
  *generic = (hd_generic_t){.kind = kind,
                            .name = name,
                            .loc = loc,
                            .source = p->source,
                            .tokens = p->tokens};
  if (!parse_all_declared(p, generic))
    return false;
  generic->at = p->at;
  if (!hd_at(p, "("))
    return hd_expect(p, "(");
  while (!hd_at(p, "{")) {
    if (hd_peek(p)->kind == HD_TOKEN_END || hd_at_item(p))
      return hd_expect(p, "{");
    p->at++;
  }
  hd_skip_braces(p);
  generic->text = hd_text_of_tokens(p, first, p->at);
  hd_item_t item = {.kind = HD_ITEM_GENERIC, .u.generic = generic};
  hd_vec_push(p->arena, &p->module->items, item);
  return true;
}

static const char *value_text(hd_parser_t *p, const hd_bound_t *bound) {
  const hd_expr_t *e = bound->constant.value;
  if (bound->is_type)
    return hd_type_name(bound->type);
  if (hd_type_is_bool(e->type))
    return e->u.i ? "true" : "false";
  if (hd_type_is_unsigned(e->type))
    return hd_arena_printf(p->arena, "%llu", (unsigned long long)e->u.i);
  if (hd_type_is_integer(e->type))
    return hd_arena_printf(p->arena, "%lld", (long long)e->u.i);
  char text[64];
  hd_buffer_t out;
  hd_buffer_init_local(&out, p->arena->budget);
  hd_float_print((hd_scalar_t)e->type.scalar, e->u.f, &out);
  snprintf(text, sizeof text, "%s", hd_buffer_text(&out));
  hd_buffer_fini(&out);
  return hd_arena_strndup(p->arena, text, strlen(text));
}

// name[a = 1, T = f16]
const char *hd_generic_name(hd_parser_t *p, const char *name,
                            const hd_generic_values_t *values) {
  for (size_t i = 0; i < values->count; i++)
    name = hd_arena_printf(p->arena, "%s%s%s = %s", name, i ? ", " : "[",
                           values->data[i]->constant.name,
                           value_text(p, values->data[i]));
  return hd_arena_printf(p->arena, "%s]", name);
}

// What stands behind '='. param NULL: of what nothing is known.
bool hd_generic_parse_value(hd_parser_t *p, const hd_generic_param_t *param,
                            hd_bound_t *bound) {
  const hd_token_t *next = hd_peek_ahead(p, 1);
  hd_type_t type;
  bound->is_type = param ? param->is_type
                         : hd_peek(p)->kind == HD_TOKEN_NAME &&
                               hd_find_type(p, hd_peek(p)->text, &type) &&
                               strcmp(next->text, "(") != 0;
  if (bound->is_type)
    return hd_parse_type(p, &bound->type);
  const hd_expr_t *e = param ? hd_parse_as(p, param->type) : hd_parse_expr(p);
  if (!e)
    return false;
  bound->constant.value = hd_expr_fold(p->arena, e);
  return bound->constant.value || hd_not_constant(p, e);
}

static bool report_no_param(hd_parser_t *p, const hd_generic_t *generic,
                            const char *name, hd_loc_t loc) {
  char text[128];
  hd_suggestion_t near = {.wanted = name};
  for (uint32_t i = 0; i < generic->num_params; i++)
    hd_suggestion_add(&near, generic->params[i].name);
  hd_error(p->diags, loc, HD_E0201, name,
           hd_suggestion_text(&near, "", text, sizeof text));
  hd_note(p->diags, loc, "a compile-time parameter of '%s' is meant",
          generic->name);
  return false;
}

// name = value, ... ']'; a name alone has the value that it has here. generic
// NULL: any names, in the order in which they come.
static bool parse_list(hd_parser_t *p, const hd_generic_t *generic,
                       hd_generic_values_t *values) {
  do {
    hd_loc_t loc;
    const char *name = hd_expect_name(p, &loc);
    size_t i = 0, known = generic ? generic->num_params : values->count;
    if (!name)
      return false;
    if (!hd_accept(p, "="))
      p->at--; // The name is the value, too.
    while (i < known &&
           strcmp(name, generic ? generic->params[i].name
                                : values->data[i]->constant.name) != 0)
      i++;
    if (generic && i == known)
      return report_no_param(p, generic, name, loc);
    if (i < known && values->data[i])
      return hd_error(p->diags, loc, HD_E0303,
                      hd_arena_printf(p->arena, "'%s'", name));
    if (i == HD_MAX_GENERIC_PARAMS)
      return hd_expected(p, "']'");
    values->data[i] = hd_bound_make(p, name, loc);
    values->count = i == known ? i + 1 : values->count;
    if (!hd_generic_parse_value(p, generic ? &generic->params[i] : NULL,
                                values->data[i]))
      return false;
  } while (hd_accept(p, ","));
  return hd_expect(p, "]");
}

// The module's, or where nothing there has the name, the library's.
static hd_generic_t *find_generic(const hd_module_t *module, const char *name) {
  size_t cursor = 0;
  const hd_item_t *item = hd_module_next(module, name, &cursor);
  if (!item)
    return hd_library_generic(module->context, name);
  return item->kind == HD_ITEM_GENERIC ? item->u.generic : NULL;
}

static bool is_allowed(hd_func_kind_t kind, unsigned kinds) {
  return kinds >> kind & 1;
}

static const char *kinds_text(unsigned kinds) {
  return kinds == HD_KINDS_SCHEDULE ? "a kernel or a plan"
         : kinds == HD_KINDS_KERNEL ? "a kernel"
                                    : "a function";
}

// given: values in brackets.
static void report_no_func(hd_parser_t *p, const char *name, hd_loc_t loc,
                           unsigned kinds, size_t given) {
  static const char *const words[] = {"kernel", "fn", "plan"};
  const hd_generic_t *generic = find_generic(p->module, name);
  const hd_func_t *func = hd_module_find(p->module, name, -1);
  if (hd_has_failed(p, name))
    return;
  if (func && is_allowed(func->kind, kinds)) {
    hd_error(p->diags, loc, HD_E0206, name, 0, "compile-time parameters",
             (int)given);
    return;
  }
  if (generic || func) {
    const char *word = words[generic ? generic->kind : func->kind];
    hd_error(p->diags, loc, HD_E0302,
             hd_arena_printf(p->arena, "%s '%s'", word, name),
             hd_arena_printf(p->arena, "where %s is meant", kinds_text(kinds)));
    return;
  }
  char text[128];
  hd_suggestion_t near = {.wanted = name};
  for (size_t i = 0; i < p->module->items.size; i++) {
    const hd_item_t *item = &p->module->items.data[i];
    if ((item->kind == HD_ITEM_FUNC && is_allowed(item->u.func->kind, kinds)) ||
        (item->kind == HD_ITEM_GENERIC &&
         is_allowed(item->u.generic->kind, kinds)))
      hd_suggestion_add(&near, hd_item_name(item));
  }
  hd_error(p->diags, loc, HD_E0201, name,
           hd_suggestion_text(&near, "", text, sizeof text));
  hd_note(p->diags, loc, "%s of the module is meant", kinds_text(kinds));
}

const hd_func_t *hd_parse_func_name(hd_parser_t *p, const char *name,
                                    hd_loc_t loc, unsigned kinds) {
  hd_bound_t *data[HD_MAX_GENERIC_PARAMS + 1] = {0};
  hd_generic_values_t values = {data, 0};
  hd_generic_t *generic = find_generic(p->module, name);
  const hd_func_t *func = NULL;
  bool has_list = hd_at(p, "[");
  if (generic && !is_allowed(generic->kind, kinds))
    generic = NULL;
  if (hd_accept(p, "[") && !parse_list(p, generic, &values))
    return NULL;
  if (p->probing)
    return NULL;
  if (generic)
    return hd_generic_instance(p, generic, &values, loc);
  const char *whole = has_list ? hd_generic_name(p, name, &values) : name;
  size_t cursor = 0;
  const hd_item_t *item;
  while ((item = hd_module_next(p->module, whole, &cursor)))
    if (item->kind == HD_ITEM_FUNC && is_allowed(item->u.func->kind, kinds))
      func = item->u.func;
  if (!func)
    report_no_func(p, name, loc, kinds, values.count);
  return func;
}

const char *hd_parse_instance_name(hd_parser_t *p, const char *name) {
  hd_bound_t *data[HD_MAX_GENERIC_PARAMS + 1] = {0};
  hd_generic_values_t values = {data, 0};
  hd_generic_t *generic = find_generic(p->module, name);
  hd_loc_t loc = hd_here(p);
  if (!hd_expect(p, "[") || !parse_list(p, generic, &values))
    return NULL;
  if (generic) {
    hd_parser_t reader;
    if (!hd_generic_bind(p, generic, &values, loc, &reader))
      return NULL;
  }
  return hd_generic_name(p, name, &values);
}

bool hd_is_generic_fn(const hd_parser_t *p, const char *name) {
  const hd_generic_t *generic = find_generic(p->module, name);
  return generic && generic->kind == HD_FUNC_FN;
}

bool hd_at_generic_call(const hd_parser_t *p) {
  const hd_token_t *token = hd_peek(p);
  if (token->kind != HD_TOKEN_NAME ||
      strcmp(hd_peek_ahead(p, 1)->text, "[") != 0 ||
      hd_peek_ahead(p, 2)->kind != HD_TOKEN_NAME)
    return false;
  return strcmp(hd_peek_ahead(p, 3)->text, "=") == 0 ||
         (hd_is_generic_fn(p, token->text) && !hd_visible(p, token->text));
}
