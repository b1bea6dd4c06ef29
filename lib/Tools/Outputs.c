// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tools/Outputs.h"
#include "IR/Graph/Graph.h"
#include "Tools/Input.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const hd_loc_t nowhere;

static const hd_option_t *option_of(const hd_options_t *options,
                                    const hd_option_use_t *use) {
  const hd_command_t *command = options->command;
  return use->option >= 0 && use->option < (int)command->num_options
             ? &command->options[use->option]
             : NULL;
}

static bool is_of_type(const hd_options_t *options, const hd_option_use_t *use,
                       hd_option_type_t type) {
  const hd_option_t *option = option_of(options, use);
  return option && option->type == type;
}

// The next path that a use may name, after the one before (first NULL). Where
// the option's argument has an @, a path follows one that stands first or
// behind a name's =, and names may hold both.
static const char *next_path(const hd_option_t *option, const char *value,
                             const char *before) {
  if (!strchr(option->argument, '@'))
    return before ? NULL : value;
  const char *text = before ? before : value;
  for (const char *at = strchr(text, '@'); at; at = strchr(at + 1, '@'))
    if (at == value || at[-1] == '=')
      return at + 1;
  return NULL;
}

static bool status_of(const char *path, struct stat *status) {
  return strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, status) == 0
                                : stat(path, status) == 0;
}

static bool is_same(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

// Of two files that are written, one may not be there yet: then it is where it
// would be made.
static bool is_same_place(const char *a, const char *b) {
  struct stat left, right;
  bool is_there = stat(a, &left) == 0;
  if (is_there != (stat(b, &right) == 0))
    return false;
  if (is_there)
    return S_ISREG(left.st_mode) && is_same(&left, &right);
  char folders[2][PATH_MAX + 2];
  const char *const paths[] = {a, b}, *names[2];
  for (int i = 0; i < 2; i++) {
    const char *slash = strrchr(paths[i], '/');
    names[i] = slash ? slash + 1 : paths[i];
    snprintf(folders[i], sizeof(folders[i]), "%.*s.",
             (int)(names[i] - paths[i]), paths[i]);
  }
  return strcmp(names[0], names[1]) == 0 && stat(folders[0], &left) == 0 &&
         stat(folders[1], &right) == 0 && is_same(&left, &right);
}

static bool refuse(hd_options_t *options, hd_option_use_t *use,
                   hd_diagnostics_t *diags, const char *path, const char *why) {
  const char *name =
      hd_arena_printf(&options->arena, "--%s", option_of(options, use)->name);
  use->option = (int)options->command->num_options; // Nobody finds it.
  return hd_error(
      diags, nowhere, HD_E1002, name,
      hd_arena_printf(&options->arena, "names '%s', which %s", path, why));
}

// Whether what is read at path would be what is written at another one, which
// may come to be there only then.
static bool is_read(const char *path, const char *written) {
  struct stat read, status;
  if (strcmp(written, "-") == 0)
    return false;
  if (!status_of(path, &read))
    return strcmp(path, "-") != 0 && is_same_place(path, written);
  return S_ISREG(read.st_mode) && stat(written, &status) == 0 &&
         is_same(&read, &status);
}

bool hd_outputs_spare(hd_options_t *options, hd_diagnostics_t *diags,
                      const char *path) {
  bool ok = true;
  for (size_t i = 0; i < options->uses.size; i++) {
    hd_option_use_t *use = &options->uses.data[i];
    const hd_option_t *option = option_of(options, use);
    if (!is_of_type(options, use, HD_OPTION_WRITES))
      continue;
    for (const char *p = next_path(option, use->value, NULL); p;
         p = next_path(option, use->value, p))
      if (is_read(path, p)) {
        ok = refuse(options, use, diags, p,
                    hd_arena_printf(&options->arena, "is read as '%s'",
                                    hd_input_name(path)));
        break;
      }
  }
  return ok;
}

// The path that a use writes to, as the tool will take it where no name holds
// an @; NULL: none.
static const char *written_path(const hd_options_t *options,
                                const hd_option_use_t *use) {
  if (!is_of_type(options, use, HD_OPTION_WRITES))
    return NULL;
  const char *path = next_path(option_of(options, use), use->value, NULL);
  return path && strcmp(path, "-") != 0 ? path : NULL;
}

static bool spare_written(hd_options_t *options, size_t later,
                          hd_diagnostics_t *diags) {
  hd_option_use_t *use = &options->uses.data[later];
  const char *path = written_path(options, use);
  for (size_t i = 0; path && i < later; i++) {
    const hd_option_use_t *before = &options->uses.data[i];
    const hd_option_t *option = option_of(options, before);
    const char *other = written_path(options, before);
    bool last_counts =
        before->option == use->option && !strchr(option->argument, '@');
    if (other && !last_counts && is_same_place(path, other))
      return refuse(
          options, use, diags, path,
          hd_arena_printf(&options->arena, "'--%s' names, too", option->name));
  }
  return true;
}

bool hd_outputs_check(hd_options_t *options, hd_diagnostics_t *diags) {
  bool ok = true;
  for (size_t i = 0; i < options->files.size; i++)
    ok &= hd_outputs_spare(options, diags, options->files.data[i]);
  if (!options->files.size)
    ok &= hd_outputs_spare(options, diags, "-");
  for (size_t i = 0; i < options->uses.size; i++) {
    const hd_option_use_t *use = &options->uses.data[i];
    const hd_option_t *option = option_of(options, use);
    if (!is_of_type(options, use, HD_OPTION_READS))
      continue;
    for (const char *p = next_path(option, use->value, NULL); p;
         p = next_path(option, use->value, p))
      ok &= hd_outputs_spare(options, diags, p);
  }
  for (size_t i = 1; i < options->uses.size; i++)
    ok &= spare_written(options, i, diags);
  return ok;
}

typedef struct constants {
  hd_options_t *options;
  const hd_module_t *module;
  const char *file; // The last that was looked at.
  bool ok;
} constants_t;

static bool spare_constant(void *argument, const hd_value_t *constant) {
  constants_t *c = argument;
  const char *file = constant->constant->file;
  char path[2 * PATH_MAX];
  if (!file || (c->file && strcmp(file, c->file) == 0))
    return true;
  c->file = file;
  int length = snprintf(path, sizeof(path), "%s/%s", c->module->folder, file);
  if (length < (int)sizeof(path))
    c->ok &= hd_outputs_spare(c->options, &c->module->context->diags, path);
  return true;
}

bool hd_outputs_spare_constants(hd_options_t *options,
                                const hd_module_t *module) {
  constants_t c = {options, module, NULL, true};
  for (const hd_mapped_file_t *file = module->files; file; file = file->next)
    c.ok &= hd_outputs_spare(options, &module->context->diags, file->path);
  for (size_t i = 0; module->folder && i < module->items.size; i++)
    if (module->items.data[i].kind == HD_ITEM_GRAPH)
      hd_graph_walk_constants(module->items.data[i].u.graph, spare_constant,
                              &c);
  return c.ok;
}
