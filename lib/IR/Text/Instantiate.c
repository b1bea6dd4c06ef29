// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instances of functions with compile-time parameters, read for those who ask
// for them.
#include "IR/Text/GenericParser.h"

#include "IR/Verify/Verifier.h"

#include <string.h>

// Instances may use others (a plan its kernels), and no chain of them is long;
// of one function so many are made.
enum { MAX_NESTED = 16, MAX_INSTANCES = 4096 };

// A parser of a generic's tokens, from one of them on.
static hd_parser_t reader_of(const hd_parser_t *p, const hd_generic_t *generic,
                             size_t at) {
  hd_parser_t reader =
      hd_parser_again(p, p->module, generic->source, generic->tokens);
  reader.at = at;
  reader.nested = p->nested + 1;
  return reader;
}

static void bind(hd_parser_t *reader, hd_bound_t *bound,
                 const hd_generic_param_t *param) {
  const hd_const_t *old = hd_find_const(reader, param->name);
  if (old) {
    hd_error(reader->diags, param->loc, HD_E0202, param->name);
    hd_note(reader->diags, old->loc, "declared here");
  }
  bound->var.loc = bound->constant.loc = param->loc;
  hd_visible_push(&reader->bound, &bound->var, param->name);
}

// Binds each parameter to its value or default.
bool hd_generic_bind(hd_parser_t *p, const hd_generic_t *generic,
                     hd_generic_values_t *values, hd_loc_t asked,
                     hd_parser_t *reader) {
  *reader = reader_of(p, generic, generic->at);
  for (uint32_t i = 0; i < generic->num_params; i++) {
    const hd_generic_param_t *param = &generic->params[i];
    if (!values->data[i]) {
      if (!param->otherwise)
        return hd_error(p->diags, asked, HD_E0218, param->name, generic->name);
      values->data[i] = hd_bound_make(p, param->name, param->loc);
      reader->at = param->otherwise;
      if (!hd_generic_parse_value(reader, param, values->data[i]))
        return false;
      if (!hd_at(reader, ",") && !hd_at(reader, "]"))
        return hd_expected(reader, "',' or ']'");
    }
    bind(reader, values->data[i], param);
  }
  values->count = generic->num_params;
  return true;
}

// A module's items from one on: what work that unwinds has half read is none of
// it, for whoever asks next.
typedef struct fresh {
  hd_module_t *module;
  size_t first;
  hd_cleanup_t cleanup;
} fresh_t;

static void forget(void *argument) {
  const fresh_t *fresh = argument;
  fresh->module->items.size = fresh->first;
  hd_module_reindex(fresh->module);
}

static void begin_fresh(fresh_t *fresh, hd_module_t *module) {
  fresh->module = module;
  fresh->first = module->items.size;
  hd_budget_defer(&module->context->budget, &fresh->cleanup, forget, fresh);
}

static void keep_fresh(fresh_t *fresh) {
  hd_budget_keep(&fresh->module->context->budget, &fresh->cleanup);
}

static void drop_fresh(fresh_t *fresh) {
  hd_budget_clean(&fresh->module->context->budget, &fresh->cleanup);
}

// Reads signature and body. The function is an item of the module before its
// body is read, so that it may call itself, which the verifier reports.
static hd_func_t *read_instance(hd_parser_t *reader,
                                const hd_generic_t *generic, const char *name,
                                hd_loc_t asked) {
  fresh_t fresh;
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(reader->diags);
  reader->at = generic->at;
  begin_fresh(&fresh, reader->module);
  hd_func_t *func =
      hd_parse_signature(reader, generic->kind, name, generic->loc);
  if (func) {
    func->generic = generic;
    func->asked = asked;
    hd_item_t item = {.kind = HD_ITEM_FUNC, .u.func = func};
    hd_vec_push(reader->arena, &reader->module->items, item);
    hd_parse_body(reader, func);
  }
  keep_fresh(&fresh);
  hd_generic_note(reader->diags, mark, generic, name, asked);
  return func;
}

static hd_func_t *find_instance(const hd_module_t *module, const char *name) {
  size_t cursor = 0;
  const hd_item_t *item = hd_module_next(module, name, &cursor);
  return item && item->kind == HD_ITEM_FUNC ? item->u.func : NULL;
}

hd_func_t *hd_generic_instance(hd_parser_t *p, hd_generic_t *generic,
                               hd_generic_values_t *values, hd_loc_t asked) {
  hd_parser_t reader;
  if (!hd_generic_bind(p, generic, values, asked, &reader))
    return NULL;
  const char *name = hd_generic_name(p, generic->name, values);
  hd_func_t *func = find_instance(p->module, name);
  if (func)
    return func;
  if (reader.nested > MAX_NESTED) {
    hd_error(p->diags, asked, HD_E0105, (int)MAX_NESTED);
    return NULL;
  }
  if (++generic->num_instances > MAX_INSTANCES) {
    hd_error(p->diags, asked, HD_E0307, "the number of instances", 1LL,
             (long long)MAX_INSTANCES, (long long)generic->num_instances);
    return NULL;
  }
  return read_instance(&reader, generic, name, asked);
}

static bool is_syntax(hd_diagnostic_code_t code) {
  return code < HD_E0201 && code != HD_E0106;
}

// Reads the function with values of no meaning, for what does not depend on
// them.
static void probe(hd_parser_t *p, const hd_generic_t *generic) {
  hd_parser_t reader = reader_of(p, generic, generic->at);
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(p->diags);
  reader.probing = true;
  for (uint32_t i = 0; i < generic->num_params; i++) {
    const hd_generic_param_t *param = &generic->params[i];
    hd_bound_t *bound = hd_bound_make(p, param->name, param->loc);
    bound->is_type = param->is_type;
    bound->type = hd_type(HD_F32);
    if (!param->is_type)
      bound->constant.value = hd_type_is_float(param->type)
                                  ? hd_expr_float(p->arena, param->type, 1)
                                  : hd_expr_int(p->arena, param->type, 1);
    hd_visible_push(&reader.bound, &bound->var, param->name);
  }
  hd_func_t *func =
      hd_parse_signature(&reader, generic->kind, generic->name, generic->loc);
  if (func)
    hd_parse_body(&reader, func);
  hd_diagnostics_sift(p->diags, mark, is_syntax);
}

// Each function that comes of defaults stands behind what it is one of: the
// last kernel of a file is the one to run.
static void put_in_order(hd_module_t *module, size_t first) {
  size_t count = module->items.size - first, at = 0;
  hd_item_t *items = module->items.data + first;
  hd_item_t *ordered = HD_ARENA_ARRAY(&module->arena, hd_item_t, count + 1);
  for (size_t i = 0; i < count; i++) {
    hd_func_t *func = items[i].kind == HD_ITEM_FUNC ? items[i].u.func : NULL;
    if (!func || !func->generic || func->generic->by_default != func)
      ordered[at++] = items[i];
    if (items[i].kind == HD_ITEM_GENERIC && items[i].u.generic->by_default)
      ordered[at++] = (hd_item_t){.kind = HD_ITEM_FUNC,
                                  .u.func = items[i].u.generic->by_default};
  }
  memcpy(items, ordered, count * sizeof(*items));
  hd_module_reindex(module);
}

void hd_parse_unasked(hd_parser_t *p, size_t first) {
  hd_module_t *module = p->module;
  size_t count = module->items.size;
  bool changed = false;
  for (size_t i = first; i < count && !hd_diagnostics_full(p->diags); i++) {
    if (module->items.data[i].kind != HD_ITEM_GENERIC)
      continue;
    hd_generic_t *generic = module->items.data[i].u.generic;
    hd_bound_t *data[HD_MAX_GENERIC_PARAMS + 1] = {0};
    hd_generic_values_t values = {data, 0};
    if (!hd_generic_has_defaults(generic)) {
      probe(p, generic);
      continue;
    }
    hd_func_t *func = hd_generic_instance(p, generic, &values, generic->loc);
    if (func && func->generic)
      generic->by_default = func;
    changed |= generic->by_default != NULL;
  }
  if (changed)
    put_in_order(module, first);
}

const hd_func_t *hd_module_ask(hd_module_t *module, const char *source,
                               const char *text) {
  hd_diagnostics_t *diags = &module->context->diags;
  size_t count, first = module->items.size, size = strlen(text);
  unsigned errors = diags->num_errors;
  const hd_func_t *func = hd_module_find(module, text, -1);
  if (func && func->kind != HD_FUNC_FN)
    return func;
  uint32_t own = hd_diagnostics_add_source(diags, source, text, size, 1);
  if (!own)
    hd_budget_exhausted(&module->context->budget, HD_EXHAUSTED_MEMORY);
  hd_parser_t p = {.module = module,
                   .arena = &module->arena,
                   .diags = diags,
                   .source = own,
                   .visible = {.arena = &module->arena},
                   .bound = {.arena = &module->arena}};
  p.tokens = hd_lex(p.arena, diags, p.source, text, size, &count);
  hd_loc_t loc;
  fresh_t fresh;
  const char *name = hd_expect_name(&p, &loc);
  if (!name)
    return NULL;
  begin_fresh(&fresh, module);
  func = hd_parse_func_name(&p, name, loc, HD_KINDS_SCHEDULE);
  if (func && hd_peek(&p)->kind != HD_TOKEN_END)
    hd_expected(&p, "the end of the name");
  if (diags->num_errors == errors && hd_module_verify_text(module, first)) {
    keep_fresh(&fresh);
    return func;
  }
  drop_fresh(&fresh); // Who asks for it again is told again.
  return NULL;
}
