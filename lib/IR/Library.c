// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Library.h"

#include "IR/Parser.h"
#include "Support/Embedded.h"

#include <string.h>

typedef struct hd_entry {
  const char *name; // Of the function.
  const char *file;
  const char *text; // From "fn" to before the next.
  size_t size;
  uint32_t first_line;
  bool loaded;
} hd_entry_t;

struct hd_library {
  hd_module_t *module;
  HD_VEC(hd_entry_t) entries;
};

static const char folder[] = "IR/library/";

// Where the next line that begins with "fn " starts, from at on; its end else.
static const char *next_item(const char *at, const char *end, uint32_t *line) {
  while (at < end) {
    if (end - at > 3 && memcmp(at, "fn ", 3) == 0)
      return at;
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    if (!newline)
      return end;
    at = newline + 1;
    (*line)++;
  }
  return end;
}

static void index_file(struct hd_library *library, const hd_embedded_t *file) {
  hd_arena_t *arena = &library->module->arena;
  const char *end = file->text + file->size;
  uint32_t line = 1;
  const char *at = next_item(file->text, end, &line);
  while (at < end) {
    hd_entry_t entry = {.file = file->name, .text = at, .first_line = line};
    const char *name = at + 3;
    entry.name = hd_arena_strndup(arena, name, strcspn(name, "( \n"));
    line++;
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    at = newline ? next_item(newline + 1, end, &line) : end;
    entry.size = (size_t)(at - entry.text);
    hd_vec_push(arena, &library->entries, entry);
  }
}

static struct hd_library *get(hd_context_t *context) {
  if (context->library)
    return context->library;
  hd_module_t *module = hd_module_create(context);
  struct hd_library *library = HD_ARENA_NEW(&module->arena, struct hd_library);
  library->module = module;
  for (size_t i = 0; i < hd_embedded_count; i++)
    if (strncmp(hd_embedded_files[i].name, folder, strlen(folder)) == 0)
      index_file(library, &hd_embedded_files[i]);
  context->library = library;
  return library;
}

hd_module_t *hd_library_load(hd_context_t *context, const char *name) {
  struct hd_library *library = get(context);
  bool found = false, ok = true;
  for (size_t i = 0; i < library->entries.size; i++) {
    hd_entry_t *entry = &library->entries.data[i];
    if (strcmp(entry->name, name) != 0)
      continue;
    found = true;
    if (entry->loaded)
      continue;
    // First, for a function that names itself is found in the module.
    entry->loaded = true;
    ok &= hd_module_parse_into(library->module, entry->file, entry->text,
                               entry->size, entry->first_line);
  }
  return found && ok ? library->module : NULL;
}

const char *hd_library_name(hd_context_t *context, size_t index) {
  struct hd_library *library = get(context);
  return index < library->entries.size ? library->entries.data[index].name
                                       : NULL;
}
