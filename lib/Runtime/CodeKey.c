// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Runtime/CodeKey.h"
#include "CodeGen/CodeGen.h"
#include "IR/Rewrite.h"
#include "IR/Text/Printer.h"
#include "Support/BuildId.h"
#include "Support/Map.h"

typedef struct description {
  hd_arena_t *arena;
  hd_ptr_map_t known; // Functions and tables that are in it.
  bool places;
  hd_buffer_t *text;
} description_t;

static void describe(description_t *d, const hd_func_t *func);

static void put_place(description_t *d, hd_loc_t loc) {
  if (d->places)
    hd_buffer_printf(d->text, " %u:%u", loc.source, loc.offset);
}

static bool describe_stmt(void *argument, const hd_stmt_t *stmt) {
  put_place(argument, stmt->loc);
  return true;
}

static bool describe_expr(void *argument, const hd_expr_t *e) {
  description_t *d = argument;
  put_place(d, e->loc);
  if (e->kind == HD_EXPR_CALL && !hd_ptr_map_get(&d->known, e->u.func))
    describe(d, e->u.func);
  bool is_table =
      (hd_expr_is_access(e) || e->kind == HD_EXPR_TENSOR) && e->u.var->table;
  if (is_table && !hd_ptr_map_get(&d->known, e->u.var)) {
    hd_ptr_map_set(d->arena, &d->known, e->u.var, e->u.var);
    hd_table_print(e->u.var, d->text);
  }
  return true;
}

// What is printed, with the functions and tables that it uses, is all there is
// to a function.
static void describe(description_t *d, const hd_func_t *func) {
  hd_ptr_map_set(d->arena, &d->known, func, func);
  hd_func_print(func, d->text);
  put_place(d, func->loc);
  hd_walk_block(func->body, describe_stmt, describe_expr, d);
}

void hd_code_describe(hd_arena_t *arena, const hd_func_t *kernel,
                      hd_buffer_t *text) {
  describe(&(description_t){.arena = arena, .places = true, .text = text},
           kernel);
}

hd_cache_key_t hd_code_key(hd_module_t *module, const hd_func_t *kernel,
                           const char *salt, bool places) {
  hd_cache_key_t key = {0, 0};
  char build[128];
  if (!hd_build_id(build, sizeof(build)))
    return key;
  hd_buffer_t text = {0}, all = {0};
  hd_cleanup_t clean_text, clean_all;
  hd_budget_t *budget = &module->context->budget;
  hd_budget_defer(budget, &clean_text, hd_buffer_end, &text);
  hd_budget_defer(budget, &clean_all, hd_buffer_end, &all);
  hd_buffer_printf(&all, "kernel %s %s %s", build, hd_codegen_version(), salt);
  describe(&(description_t){.arena = &module->arena,
                            .places = places,
                            .text = &text},
           kernel);
  if (!text.failed && !all.failed)
    key = hd_cache_key(hd_buffer_text(&all), hd_buffer_text(&text), text.size);
  hd_budget_clean(budget, &clean_all);
  hd_budget_clean(budget, &clean_text);
  return key;
}
