// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Visible.h"
#include "Support/Hash.h"

#include <stdlib.h>
// An arena serves uthash as well as the heap.
#define uthash_malloc(size) hd_arena_alloc(visible->arena, size)
#define uthash_free(pointer, size) ((void)(pointer), (void)(size))
#include <uthash.h>

struct hd_visible_entry {
  const char *name;
  const hd_var_t *var;
  hd_visible_entry_t *hidden; // Of the same name, further out.
  bool again; // The variable was visible already, and this is not in by_var.
  unsigned count;
  UT_hash_handle name_handle, var_handle;
};

static hd_visible_entry_t *find_name(const hd_visible_t *visible,
                                     const char *name) {
  hd_visible_entry_t *entry = NULL;
  if (visible->by_name)
    HASH_FIND(name_handle, visible->by_name, name, strlen(name), entry);
  return entry;
}

static hd_visible_entry_t *find_var(const hd_visible_t *visible,
                                    const hd_var_t *var) {
  hd_visible_entry_t *entry = NULL;
  if (visible->by_var)
    HASH_FIND(var_handle, visible->by_var, &var, sizeof var, entry);
  return entry;
}

void hd_visible_push(hd_visible_t *visible, const hd_var_t *var,
                     const char *name) {
  hd_visible_entry_t *entry = visible->spare;
  if (entry)
    visible->spare = entry->hidden;
  else
    entry = HD_ARENA_NEW(visible->arena, hd_visible_entry_t);
  *entry = (hd_visible_entry_t){.name = name, .var = var};
  entry->hidden = find_name(visible, name);
  if (entry->hidden)
    HASH_DELETE(name_handle, visible->by_name, entry->hidden);
  HASH_ADD_KEYPTR(name_handle, visible->by_name, entry->name, strlen(name),
                  entry);
  entry->again = find_var(visible, var) != NULL;
  if (!entry->again)
    HASH_ADD(var_handle, visible->by_var, var, sizeof entry->var, entry);
  hd_vec_push(visible->arena, &visible->stack, entry);
}

void hd_visible_pop(hd_visible_t *visible, size_t size) {
  while (visible->stack.size > size) {
    hd_visible_entry_t *entry = visible->stack.data[--visible->stack.size];
    hd_visible_entry_t *hidden = entry->hidden;
    HASH_DELETE(name_handle, visible->by_name, entry);
    if (hidden)
      HASH_ADD_KEYPTR(name_handle, visible->by_name, hidden->name,
                      strlen(hidden->name), hidden);
    if (!entry->again)
      HASH_DELETE(var_handle, visible->by_var, entry);
    entry->hidden = visible->spare;
    visible->spare = entry;
  }
}

const hd_var_t *hd_visible_find(const hd_visible_t *visible, const char *name) {
  const hd_visible_entry_t *entry = find_name(visible, name);
  return entry ? entry->var : NULL;
}

const char *hd_visible_name(const hd_visible_t *visible, const hd_var_t *var) {
  const hd_visible_entry_t *entry = find_var(visible, var);
  return entry ? entry->name : NULL;
}

unsigned hd_visible_count(hd_visible_t *visible, const char *name) {
  return ++find_name(visible, name)->count;
}

const hd_var_t *hd_visible_at(const hd_visible_t *visible, size_t index) {
  return visible->stack.data[index]->var;
}
