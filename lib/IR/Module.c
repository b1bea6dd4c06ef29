// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Module.h"

#include "IR/Generic.h"
#include "IR/Graph/Graph.h"
#include "IR/Graph/RewriteRule.h"
#include "IR/Template.h"
#include "Support/Map.h"

#include <stdlib.h>
#include <string.h>

// Items of a name: their places in the module, and the number that another one
// of that name tries first.
typedef struct places {
  HD_VEC(size_t) items;
  unsigned next;
} places_t;

struct hd_item_index {
  hd_arena_t *arena;  // The module's.
  hd_key_map_t names; // places_t.
  size_t count;       // Of the items that it knows.
};

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
  module->index = HD_ARENA_NEW(&module->arena, struct hd_item_index);
  module->index->arena = &module->arena;
  return module;
}

hd_module_t *hd_module_fork(hd_module_t *of) {
  hd_module_t *module = hd_module_create(of->context);
  module->source = of;
  for (size_t i = 0; i < of->items.size; i++)
    hd_vec_push(&module->arena, &module->items, of->items.data[i]);
  return module;
}

void hd_module_destroy(hd_module_t *module) {
  if (!module)
    return;
  *module->link = module->next;
  if (module->next)
    module->next->link = module->link;
  hd_module_unmap(module);
  hd_arena_fini(&module->arena);
  free(module);
}

typedef struct head {
  const char *name;
  hd_loc_t loc;
} head_t;

static head_t head_of(const hd_item_t *item) {
#define HEAD(x) ((head_t){(x)->name, (x)->loc})
  switch (item->kind) {
  case HD_ITEM_CONST:
    return HEAD(item->u.constant);
  case HD_ITEM_FUNC:
    return HEAD(item->u.func);
  case HD_ITEM_GENERIC:
    return HEAD(item->u.generic);
  case HD_ITEM_TASK:
    return HEAD(item->u.task);
  case HD_ITEM_GRAPH:
    return HEAD(item->u.graph);
  case HD_ITEM_REWRITE:
    return HEAD(item->u.rewrite);
  case HD_ITEM_TEMPLATE:
    return HEAD(item->u.template);
  }
#undef HEAD
  return (head_t){.name = ""};
}

const char *hd_item_name(const hd_item_t *item) { return head_of(item).name; }

hd_loc_t hd_item_loc(const hd_item_t *item) { return head_of(item).loc; }

// Takes in what was pushed since it was last asked.
static void update_index(const hd_module_t *module) {
  struct hd_item_index *index = module->index;
  hd_arena_t *arena = index->arena;
  for (; index->count < module->items.size; index->count++) {
    const char *name = hd_item_name(&module->items.data[index->count]);
    places_t *places = hd_key_map_find_name(&index->names, name);
    if (!places) {
      places = HD_ARENA_NEW(arena, places_t);
      hd_key_map_set_name(arena, &index->names, name, places);
    }
    hd_vec_push(arena, &places->items, index->count);
  }
}

void hd_module_reindex(hd_module_t *module) {
  module->index->names = (hd_key_map_t){0};
  module->index->count = 0;
}

const char *hd_module_fresh_name(hd_arena_t *arena, const hd_module_t *module,
                                 const char *name) {
  update_index(module);
  hd_key_map_t *names = &module->index->names;
  places_t *places = hd_key_map_find_name(names, name);
  if (!places)
    return name;
  const char *fresh;
  do
    fresh = hd_arena_printf(arena, "%s_%u", name, ++places->next);
  while (hd_key_map_find_name(names, fresh));
  return fresh;
}

const hd_item_t *hd_module_next(const hd_module_t *module, const char *name,
                                size_t *cursor) {
  update_index(module);
  const places_t *places = hd_key_map_find_name(&module->index->names, name);
  if (!places || *cursor >= places->items.size)
    return NULL;
  return &module->items.data[places->items.data[(*cursor)++]];
}

const hd_func_t *hd_module_find(const hd_module_t *module, const char *name,
                                int kind) {
  size_t cursor = 0;
  for (const hd_item_t *item; (item = hd_module_next(module, name, &cursor));)
    if (item->kind == HD_ITEM_FUNC &&
        (kind < 0 || (int)item->u.func->kind == kind))
      return item->u.func;
  return NULL;
}

const hd_task_t *hd_module_find_task(const hd_module_t *module,
                                     const char *name) {
  size_t cursor = 0;
  for (const hd_item_t *item; (item = hd_module_next(module, name, &cursor));)
    if (item->kind == HD_ITEM_TASK)
      return item->u.task;
  return NULL;
}

const hd_graph_t *hd_module_find_graph(const hd_module_t *module,
                                       const char *name) {
  const hd_graph_t *last = NULL;
  size_t cursor = 0;
  if (name) {
    for (const hd_item_t *item; (item = hd_module_next(module, name, &cursor));)
      if (item->kind == HD_ITEM_GRAPH)
        return item->u.graph;
    return NULL;
  }
  for (size_t i = 0; i < module->items.size; i++)
    if (module->items.data[i].kind == HD_ITEM_GRAPH)
      last = module->items.data[i].u.graph;
  return last;
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

static size_t place_param(size_t end, size_t bytes, size_t align) {
  return (end + align - 1) / align * align + bytes;
}

size_t hd_func_param_bytes(const hd_func_t *func) {
  enum { MAP_BYTES = 128, MAP_ALIGN = 64 };
  size_t end = 0;
  for (uint32_t i = 0; i < func->num_params; i++) {
    const hd_var_t *param = func->params[i];
    size_t bytes = param->kind == HD_VAR_TENSOR
                       ? sizeof(uint64_t)
                       : (hd_type_bits(param->type) + 7) / 8;
    end = place_param(end, bytes, bytes);
  }
  for (uint32_t i = 0; i < func->num_maps; i++)
    end = place_param(end, MAP_BYTES, MAP_ALIGN);
  return end;
}

const hd_func_t *hd_func_with_body(hd_arena_t *arena, const hd_func_t *func,
                                   hd_block_t body) {
  if (body.stmts == func->body.stmts)
    return func;
  hd_func_t *copy = HD_ARENA_COPY(arena, hd_func_t, func);
  copy->body = body;
  return copy;
}
