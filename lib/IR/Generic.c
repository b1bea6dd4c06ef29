// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instances: their names, and what is said of errors in them.
#include "IR/Generic.h"

#include <string.h>

bool hd_generic_has_defaults(const hd_generic_t *generic) {
  for (uint32_t i = 0; i < generic->num_params; i++)
    if (!generic->params[i].otherwise)
      return false;
  return true;
}

void hd_generic_note(hd_diagnostics_t *diags, hd_diagnostics_mark_t mark,
                     const hd_generic_t *generic, const char *name,
                     hd_loc_t asked) {
  bool is_default = asked.source == generic->loc.source &&
                    asked.offset == generic->loc.offset;
  hd_diagnostics_note_each(diags, mark, asked, "in '%s', which %s", name,
                           is_default ? "its defaults make of it"
                                      : "is asked for here");
}

void hd_func_note_instance(hd_diagnostics_t *diags, hd_diagnostics_mark_t mark,
                           const hd_func_t *func) {
  if (func->generic)
    hd_generic_note(diags, mark, func->generic, func->name, func->asked);
}

// A name's words: the function's, then each parameter's and its value. out
// holds the name at least.
static void join_words(const char *name, char joint, bool with_params,
                       char *out) {
  static const char between[] = "[]=, ";
  for (unsigned i = 0; *name; i++) {
    size_t size = strcspn(name, between);
    bool is_kept = i % 2 == 0 || with_params;
    if (is_kept && i)
      *out++ = joint;
    for (size_t at = 0; is_kept && at < size; at++)
      *out++ = name[at] == '-'   ? 'm'
               : name[at] == '+' ? 'p'
               : name[at] == '.' ? 'd'
                                 : name[at];
    name += size + strspn(name + size, between);
  }
  *out = 0;
}

const char *hd_func_identifier(hd_arena_t *arena, const hd_func_t *func) {
  char *text = hd_arena_alloc(arena, strlen(func->name) + 1);
  join_words(func->name, '_', false, text);
  return text;
}

const char *hd_func_symbol(hd_arena_t *arena, const hd_func_t *func) {
  char *text = hd_arena_alloc(arena, strlen(func->name) + 1);
  join_words(func->name, '$', true, text);
  return text;
}
