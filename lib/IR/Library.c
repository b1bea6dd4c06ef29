// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Library.h"

#include "IR/Parser.h"
#include "Support/Embedded.h"

#include <string.h>

typedef struct hd_entry {
  const char *name; // Of the item.
  const char *file;
  const char *text; // From its word to before the next.
  size_t size;
  uint32_t first_line;
  bool loaded;
} hd_entry_t;

// Items of one kind, in a module of their own: a task and a function may share
// a name.
typedef struct hd_shelf {
  hd_module_t *module;
  HD_VEC(hd_entry_t) entries;
} hd_shelf_t;

typedef enum hd_shelf_kind { FUNCTIONS, TASKS, SHELVES } hd_shelf_kind_t;

struct hd_library {
  hd_shelf_t shelves[SHELVES];
};

static const struct {
  const char *folder, *word;
} places[SHELVES] = {{"IR/library/", "fn "}, {"Graph/operators/", "task "}};

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

static void index_file(hd_shelf_t *shelf, const char *word,
                       const hd_embedded_t *file) {
  hd_arena_t *arena = &shelf->module->arena;
  const char *end = file->text + file->size;
  uint32_t line = 1;
  const char *at = next_item(file->text, end, word, &line);
  while (at < end) {
    hd_entry_t entry = {.file = file->name, .text = at, .first_line = line};
    const char *name = at + strlen(word);
    entry.name = hd_arena_strndup(arena, name, strcspn(name, "( \n"));
    line++;
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    at = newline ? next_item(newline + 1, end, word, &line) : end;
    entry.size = (size_t)(at - entry.text);
    hd_vec_push(arena, &shelf->entries, entry);
  }
}

static hd_shelf_t *get(hd_context_t *context, hd_shelf_kind_t kind) {
  if (context->library)
    return &context->library->shelves[kind];
  hd_shelf_t shelves[SHELVES] = {0};
  for (int k = 0; k < SHELVES; k++) {
    shelves[k].module = hd_module_create(context);
    const char *folder = places[k].folder;
    for (size_t i = 0; i < hd_embedded_count; i++)
      if (strncmp(hd_embedded_files[i].name, folder, strlen(folder)) == 0)
        index_file(&shelves[k], places[k].word, &hd_embedded_files[i]);
  }
  struct hd_library *library =
      HD_ARENA_NEW(&shelves[0].module->arena, struct hd_library);
  memcpy(library->shelves, shelves, sizeof shelves);
  context->library = library;
  return &library->shelves[kind];
}

// Reads what has the name into the shelf's module; NULL where nothing has it,
// or after errors.
static hd_module_t *load(hd_shelf_t *shelf, const char *name) {
  bool found = false, ok = true;
  for (size_t i = 0; i < shelf->entries.size; i++) {
    hd_entry_t *entry = &shelf->entries.data[i];
    if (strcmp(entry->name, name) != 0)
      continue;
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

static const char *name_at(const hd_shelf_t *shelf, size_t index) {
  return index < shelf->entries.size ? shelf->entries.data[index].name : NULL;
}

hd_module_t *hd_library_load(hd_context_t *context, const char *name) {
  return load(get(context, FUNCTIONS), name);
}

const char *hd_library_name(hd_context_t *context, size_t index) {
  return name_at(get(context, FUNCTIONS), index);
}

const hd_task_t *hd_library_task(hd_context_t *context, const char *name) {
  const hd_module_t *module = load(get(context, TASKS), name);
  return module ? hd_module_find_task(module, name) : NULL;
}

const char *hd_library_task_name(hd_context_t *context, size_t index) {
  return name_at(get(context, TASKS), index);
}
