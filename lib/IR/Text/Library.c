// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Text/Library.h"

#include "IR/Text/Parser.h"
#include "Support/Embedded.h"
#include "Support/Map.h"

#include <string.h>

typedef struct entry {
  const char *name; // Of the item.
  const char *file;
  const char *text; // From its word to before the next.
  size_t size;
  uint32_t first_line;
  bool loaded;
  struct entry *next; // Of the same name.
} entry_t;

// Items of one kind, in a module of their own: a task and a function may share
// a name.
typedef struct shelf {
  hd_module_t *module;
  HD_VEC(entry_t) entries;
  hd_key_map_t names; // The first entry of each.
} shelf_t;

typedef enum shelf_kind { FUNCTIONS, TASKS, REWRITES, SHELVES } shelf_kind_t;

struct hd_library {
  shelf_t shelves[SHELVES];
  hd_module_t *templates; // With their kernels; NULL: not read yet.
};

static const struct {
  const char *folder, *word;
} places[SHELVES] = {{"IR/library/", "fn "},
                     {"Graph/operators/", "task "},
                     {"Graph/rewrites/", "rewrite "}};

// Where the next line that begins with the word starts, from at on; its end
// else.
static const char *next_item(const char *at, const char *end, const char *word,
                             uint32_t *line) {
  size_t size = strlen(word);
  while (at < end) {
    if ((size_t)(end - at) > size && memcmp(at, word, size) == 0)
      return at;
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    if (!newline)
      return end;
    at = newline + 1;
    (*line)++;
  }
  return end;
}

static void index_file(shelf_t *shelf, const char *word,
                       const hd_embedded_t *file) {
  hd_arena_t *arena = &shelf->module->arena;
  const char *end = file->text + file->size;
  uint32_t line = 1;
  const char *at = next_item(file->text, end, word, &line);
  while (at < end) {
    entry_t entry = {.file = file->name, .text = at, .first_line = line};
    const char *name = at + strlen(word);
    entry.name = hd_arena_strndup(arena, name, strcspn(name, "([ \n"));
    line++;
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    at = newline ? next_item(newline + 1, end, word, &line) : end;
    entry.size = (size_t)(at - entry.text);
    hd_vec_push(arena, &shelf->entries, entry);
  }
}

static void index_names(shelf_t *shelf) {
  for (size_t i = shelf->entries.size; i-- > 0;) {
    entry_t *entry = &shelf->entries.data[i];
    entry->next = hd_key_map_find_name(&shelf->names, entry->name);
    hd_key_map_set_name(&shelf->module->arena, &shelf->names, entry->name,
                        entry);
  }
}

// Who compiles kernels alone asks for no tasks: a shelf is looked through when
// it is first asked for.
static shelf_t *get_shelf(hd_context_t *context, shelf_kind_t kind) {
  if (!context->library) {
    hd_module_t *modules[SHELVES];
    for (int k = 0; k < SHELVES; k++)
      modules[k] = hd_module_create(context);
    struct hd_library *library =
        HD_ARENA_NEW(&modules[0]->arena, struct hd_library);
    for (int k = 0; k < SHELVES; k++)
      library->shelves[k].module = modules[k];
    context->library = library;
  }
  shelf_t *shelf = &context->library->shelves[kind];
  if (shelf->entries.size)
    return shelf;
  shelf_t indexed = {.module = shelf->module};
  const char *folder = places[kind].folder;
  for (size_t i = 0; i < hd_embedded_count; i++)
    if (strncmp(hd_embedded_files[i].name, folder, strlen(folder)) == 0)
      index_file(&indexed, places[kind].word, &hd_embedded_files[i]);
  index_names(&indexed);
  *shelf = indexed;
  return shelf;
}

// Reads what has the name into the shelf's module; NULL where nothing has it,
// or after errors.
static hd_module_t *load(shelf_t *shelf, const char *name) {
  bool found = false, ok = true;
  for (entry_t *entry = hd_key_map_find_name(&shelf->names, name); entry;
       entry = entry->next) {
    found = true;
    if (entry->loaded)
      continue;
    // First, for a function that names itself is found in the module.
    entry->loaded = true;
    ok &= hd_module_parse_into(shelf->module, entry->file, entry->text,
                               entry->size, entry->first_line);
  }
  return found && ok ? shelf->module : NULL;
}

static const char *name_at(const shelf_t *shelf, size_t index) {
  return index < shelf->entries.size ? shelf->entries.data[index].name : NULL;
}

bool hd_library_owns(const hd_context_t *context, const hd_func_t *func) {
  if (!context->library)
    return false;
  const hd_module_t *module = context->library->shelves[FUNCTIONS].module;
  size_t cursor = 0;
  for (const hd_item_t *item;
       (item = hd_module_next(module, func->name, &cursor));)
    if (item->kind == HD_ITEM_FUNC && item->u.func == func)
      return true;
  return false;
}

hd_module_t *hd_library_load(hd_context_t *context, const char *name) {
  return load(get_shelf(context, FUNCTIONS), name);
}

hd_generic_t *hd_library_generic(hd_context_t *context, const char *name) {
  shelf_t *shelf = get_shelf(context, FUNCTIONS);
  const entry_t *entry = hd_key_map_find_name(&shelf->names, name);
  size_t before = strlen(places[FUNCTIONS].word) + strlen(name);
  if (!entry || entry->text[before] != '[' || !load(shelf, name))
    return NULL;
  size_t cursor = 0;
  const hd_item_t *item = hd_module_next(shelf->module, name, &cursor);
  return item && item->kind == HD_ITEM_GENERIC ? item->u.generic : NULL;
}

const char *hd_library_name(hd_context_t *context, size_t index) {
  return name_at(get_shelf(context, FUNCTIONS), index);
}

const hd_task_t *hd_library_task(hd_context_t *context, const char *name) {
  shelf_t *shelf = get_shelf(context, TASKS);
  const hd_module_t *module = load(shelf, name);
  return module ? hd_module_find_task(module, name) : NULL;
}

const char *hd_library_task_name(hd_context_t *context, size_t index) {
  return name_at(get_shelf(context, TASKS), index);
}

hd_module_t *hd_library_templates(hd_context_t *context) {
  static const char folder[] = "Schedule/templates/";
  get_shelf(context, FUNCTIONS);
  struct hd_library *library = context->library;
  if (library->templates)
    return library->templates;
  library->templates = hd_module_create(context);
  for (size_t i = 0; i < hd_embedded_count; i++) {
    const hd_embedded_t *file = &hd_embedded_files[i];
    if (strncmp(file->name, folder, sizeof folder - 1) == 0 &&
        !hd_module_parse_into(library->templates, file->name, file->text,
                              file->size, 1))
      return NULL;
  }
  return library->templates;
}

const hd_module_t *hd_library_rewrites(hd_context_t *context) {
  shelf_t *shelf = get_shelf(context, REWRITES);
  for (size_t i = 0; i < shelf->entries.size; i++)
    if (!load(shelf, shelf->entries.data[i].name))
      return NULL;
  return shelf->module;
}
