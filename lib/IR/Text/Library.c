// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Text/Library.h"

#include "IR/Text/LibraryIndex.h"
#include "IR/Text/Parser.h"
#include "Support/Embedded.h"

#include <string.h>

// Items of one kind, in a module of their own: a task and a function may share
// a name.
typedef struct shelf {
  hd_module_t *module;
  bool *loaded; // Of each item.
} shelf_t;

struct hd_library {
  shelf_t shelves[HD_NUM_SHELVES];
  hd_module_t *templates; // With their kernels; NULL: not read yet.
};

// A context's bounds, put aside: what is half read would stay, for the next
// calls on the context to find. All of the library takes milliseconds.
typedef struct bounds {
  hd_budget_t *budget, kept;
  hd_cleanup_t cleanup;
} bounds_t;

static void restore(void *argument) {
  bounds_t *b = argument;
  b->budget->bytes_limit = b->kept.bytes_limit;
  b->budget->deadline_ns = b->kept.deadline_ns;
  b->budget->interrupted = b->kept.interrupted;
}

static void put_aside(hd_context_t *context, bounds_t *b) {
  b->budget = &context->budget;
  b->kept = context->budget;
  context->budget.bytes_limit = 0;
  context->budget.deadline_ns = 0;
  context->budget.interrupted = NULL;
  hd_budget_defer(b->budget, &b->cleanup, restore, b);
}

static bool parse(hd_module_t *module, const char *name, const char *text,
                  size_t size, uint32_t first_line) {
  bounds_t bounds;
  put_aside(module->context, &bounds);
  bool ok = hd_module_parse_library(module, name, text, size, first_line);
  hd_budget_clean(bounds.budget, &bounds.cleanup);
  return ok;
}

static struct hd_library *get_library(hd_context_t *context) {
  if (context->library)
    return context->library;
  hd_module_t *modules[HD_NUM_SHELVES];
  for (int k = 0; k < HD_NUM_SHELVES; k++)
    modules[k] = hd_module_create(context);
  struct hd_library *library =
      HD_ARENA_NEW(&modules[0]->arena, struct hd_library);
  for (int k = 0; k < HD_NUM_SHELVES; k++) {
    const hd_library_item_t *items;
    size_t count = hd_library_items(k, &items);
    library->shelves[k] =
        (shelf_t){modules[k], HD_ARENA_ARRAY(&modules[0]->arena, bool, count)};
  }
  return context->library = library;
}

static hd_module_t *shelf_module(hd_context_t *context, hd_shelf_t kind) {
  return get_library(context)->shelves[kind].module;
}

// Reads an item into its shelf's module. False after errors.
static bool load_item(shelf_t *shelf, const hd_library_item_t *items,
                      size_t number) {
  if (shelf->loaded[number])
    return true;
  // First, for a function that names itself is found in the module.
  shelf->loaded[number] = true;
  const hd_library_item_t *item = &items[number];
  return parse(shelf->module, item->file, item->text, item->size,
               item->first_line);
}

// Reads what has the name into the shelf's module; NULL where nothing has it,
// or after errors.
static hd_module_t *load(hd_context_t *context, hd_shelf_t kind,
                         const char *name) {
  const uint16_t *numbers;
  size_t count = hd_library_find(kind, name, &numbers);
  if (!count)
    return NULL;
  const hd_library_item_t *items;
  hd_library_items(kind, &items);
  shelf_t *shelf = &get_library(context)->shelves[kind];
  bool ok = true;
  for (size_t i = 0; i < count; i++)
    ok &= load_item(shelf, items, numbers[i]);
  return ok ? shelf->module : NULL;
}

static const char *name_at(hd_shelf_t kind, size_t index) {
  const hd_library_item_t *items;
  return index < hd_library_items(kind, &items) ? items[index].name : NULL;
}

bool hd_library_owns(const hd_context_t *context, const hd_func_t *func) {
  if (!context->library)
    return false;
  const hd_module_t *module =
      context->library->shelves[HD_SHELF_FUNCTIONS].module;
  size_t cursor = 0;
  for (const hd_item_t *item;
       (item = hd_module_next(module, func->name, &cursor));)
    if (item->kind == HD_ITEM_FUNC && item->u.func == func)
      return true;
  return false;
}

hd_module_t *hd_library_load(hd_context_t *context, const char *name) {
  return load(context, HD_SHELF_FUNCTIONS, name);
}

hd_generic_t *hd_library_generic(hd_context_t *context, const char *name) {
  const uint16_t *numbers;
  const hd_library_item_t *items;
  hd_library_items(HD_SHELF_FUNCTIONS, &items);
  if (!hd_library_find(HD_SHELF_FUNCTIONS, name, &numbers) ||
      !items[numbers[0]].is_generic || !load(context, HD_SHELF_FUNCTIONS, name))
    return NULL;
  size_t cursor = 0;
  const hd_item_t *item =
      hd_module_next(shelf_module(context, HD_SHELF_FUNCTIONS), name, &cursor);
  return item && item->kind == HD_ITEM_GENERIC ? item->u.generic : NULL;
}

const char *hd_library_name(size_t index) {
  return name_at(HD_SHELF_FUNCTIONS, index);
}

const hd_task_t *hd_library_task(hd_context_t *context, const char *name) {
  const hd_module_t *module = load(context, HD_SHELF_TASKS, name);
  return module ? hd_module_find_task(module, name) : NULL;
}

const char *hd_library_task_name(size_t index) {
  return name_at(HD_SHELF_TASKS, index);
}

hd_module_t *hd_library_templates(hd_context_t *context) {
  static const char folder[] = "Schedule/templates/";
  struct hd_library *library = get_library(context);
  if (library->templates)
    return library->templates;
  bounds_t bounds;
  put_aside(context, &bounds);
  library->templates = hd_module_create(context);
  bool ok = true;
  for (size_t i = 0; ok && i < hd_embedded_count; i++) {
    const hd_embedded_t *file = &hd_embedded_files[i];
    if (strncmp(file->name, folder, sizeof folder - 1) == 0)
      ok = hd_module_parse_library(library->templates, file->name, file->text,
                                   file->size, 1);
  }
  hd_budget_clean(bounds.budget, &bounds.cleanup);
  return ok ? library->templates : NULL;
}

const hd_module_t *hd_library_rewrites(hd_context_t *context) {
  const hd_library_item_t *items;
  size_t count = hd_library_items(HD_SHELF_REWRITES, &items);
  shelf_t *shelf = &get_library(context)->shelves[HD_SHELF_REWRITES];
  for (size_t i = 0; i < count; i++)
    if (!load_item(shelf, items, i))
      return NULL;
  return shelf->module;
}
