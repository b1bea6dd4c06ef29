// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is said of a name that means nothing where it stands.
#include "IR/Text/ParserState.h"

#include "IR/Intrinsic.h"
#include "IR/Keywords.h"
#include "IR/Text/Library.h"
#include "Support/Suggest.h"

#include <string.h>

// Takes time for each name, so only so many are looked at.
enum { MAX_SUGGESTED = 2000 };

// Not a local table, whose name in the module is none in the text.
static bool has_name(const hd_item_t *item) {
  return item->kind != HD_ITEM_CONST || !item->u.constant->is_local;
}

const char *hd_similar(hd_parser_t *p, const char *name) {
  hd_suggestion_t near = {.wanted = name};
  if (hd_diagnostics_full(p->diags))
    return "";
  size_t size = hd_visible_size(&p->visible);
  for (size_t i = 0; i < size && i < MAX_SUGGESTED; i++)
    hd_suggestion_add(&near, hd_visible_at(&p->visible, size - 1 - i)->name);
  for (size_t i = 0; i < p->module->items.size && i < MAX_SUGGESTED; i++)
    if (has_name(&p->module->items.data[i]))
      hd_suggestion_add(&near, hd_item_name(&p->module->items.data[i]));
  const char *known;
  for (size_t i = 0; (known = hd_library_name(i)); i++)
    hd_suggestion_add(&near, known);
  for (int i = 0; i < HD_BUILTIN_COUNT; i++)
    hd_suggestion_add(&near, hd_builtin_info((hd_builtin_t)i)->text);
  for (int i = 0; i < HD_INTRINSIC_COUNT; i++)
    hd_suggestion_add(&near, hd_intrinsic_info((hd_intrinsic_t)i)->name);
  char buffer[128];
  const char *text = hd_suggestion_text(&near, "", buffer, sizeof buffer);
  return hd_arena_strndup(p->arena, text, strlen(text));
}

static const char *what_item_is(const hd_item_t *item) {
  if (item->kind == HD_ITEM_CONST)
    return "a mapping";
  if (item->kind == HD_ITEM_TASK)
    return "a task";
  if (item->kind == HD_ITEM_GRAPH)
    return "a graph";
  if (item->kind == HD_ITEM_REWRITE)
    return "a rewrite";
  if (item->kind == HD_ITEM_TEMPLATE)
    return "a template";
  if (item->kind == HD_ITEM_GENERIC)
    return "a function with compile-time parameters";
  switch (item->u.func->kind) {
  case HD_FUNC_KERNEL:
    return "a kernel; a plan launches it";
  case HD_FUNC_FN:
    return "a function; arguments follow in parentheses";
  case HD_FUNC_PLAN:
    return "a plan";
  }
  return NULL;
}

// NULL where the name is none of anything.
static const char *what_is(hd_parser_t *p, const char *name) {
  size_t cursor = 0;
  const hd_item_t *item = hd_module_next(p->module, name, &cursor);
  if (item && has_name(item))
    return what_item_is(item);
  if (hd_is_keyword(name))
    return "a keyword";
  bool is_func = hd_intrinsic_find(name) < HD_INTRINSIC_COUNT;
  const char *known;
  for (size_t i = 0; !is_func && (known = hd_library_name(i)); i++)
    is_func = strcmp(known, name) == 0;
  return is_func ? "a function; arguments follow in parentheses" : NULL;
}

void hd_report_unknown(hd_parser_t *p, const char *name, hd_loc_t loc) {
  if (hd_diagnostics_full(p->diags) || hd_has_failed(p, name))
    return;
  const char *what = what_is(p, name);
  if (!what) {
    hd_error(p->diags, loc, HD_E0201, name, hd_similar(p, name));
    return;
  }
  hd_error(p->diags, loc, HD_E0217, name);
  hd_note(p->diags, loc, "it is %s", what);
}
