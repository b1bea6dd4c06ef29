// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Module.h"

#include <stdlib.h>
#include <string.h>

void hd_context_init(hd_context_t *context) {
  *context = (hd_context_t){0};
  hd_diagnostics_init(&context->diags);
}

void hd_context_fini(hd_context_t *context) {
  while (context->modules)
    hd_module_destroy(context->modules);
  hd_diagnostics_fini(&context->diags);
}

hd_module_t *hd_module_create(hd_context_t *context) {
  hd_module_t *module = calloc(1, sizeof *module);
  if (!module)
    hd_budget_exhausted(&context->budget, HD_EXHAUSTED_MEMORY);
  module->context = context;
  hd_arena_init(&module->arena, &context->budget);
  module->next = context->modules;
  module->link = &context->modules;
  if (module->next)
    module->next->link = &module->next;
  context->modules = module;
  return module;
}

void hd_module_destroy(hd_module_t *module) {
  if (!module)
    return;
  *module->link = module->next;
  if (module->next)
    module->next->link = module->link;
  hd_arena_fini(&module->arena);
  free(module);
}

const hd_func_t *hd_module_find(const hd_module_t *module, const char *name,
                                int kind) {
  for (size_t i = 0; i < module->items.size; i++) {
    const hd_item_t *item = &module->items.data[i];
    if (item->kind == HD_ITEM_FUNC &&
        (kind < 0 || (int)item->u.func->kind == kind) &&
        strcmp(item->u.func->name, name) == 0)
      return item->u.func;
  }
  return NULL;
}

const hd_func_t *hd_module_entry(const hd_module_t *module) {
  const hd_func_t *entry = NULL;
  for (size_t i = 0; i < module->items.size; i++) {
    if (module->items.data[i].kind != HD_ITEM_FUNC)
      continue;
    const hd_func_t *func = module->items.data[i].u.func;
    if (func->kind == HD_FUNC_PLAN || (func->kind == HD_FUNC_KERNEL &&
                                       !(entry && entry->kind == HD_FUNC_PLAN)))
      entry = func;
  }
  return entry;
}

int64_t hd_func_block_threads(const hd_func_t *func) {
  int64_t threads = 1;
  for (int i = 0; i < 3; i++) {
    int64_t size = 1;
    if (func->launch.block[i] &&
        !hd_expr_fold_int(func->launch.block[i], &size))
      return 0;
    if (size < 1 || size > 1024)
      return 0;
    threads *= size;
  }
  return threads;
}

void hd_func_replace(hd_func_t *func, const hd_func_t *version) {
  if (func != version)
    *func = *version;
}
