// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Visible.h"

struct hd_visible_entry {
  const char *name;
  const hd_var_t *var;
  hd_visible_entry_t *hidden; // Of the same name, further out.
  bool again; // The variable was visible already, and this is not in by_var.
  unsigned count;
};

static hd_visible_entry_t *find_name(const hd_visible_t *visible,
                                     const char *name) {
  return hd_key_map_find_name(&visible->by_name, name);
}

void hd_visible_push(hd_visible_t *visible, const hd_var_t *var,
                     const char *name) {
  hd_visible_entry_t *entry = visible->spare;
  if (entry)
    visible->spare = entry->hidden;
  else
    entry = HD_ARENA_NEW(visible->arena, hd_visible_entry_t);
  *entry = (hd_visible_entry_t){
      .name = name,
      .var = var,
      .hidden = find_name(visible, name),
      .again = hd_ptr_map_get(&visible->by_var, var) != NULL,
  };
  hd_key_map_set_name(visible->arena, &visible->by_name, name, entry);
  if (!entry->again)
    hd_ptr_map_set(visible->arena, &visible->by_var, var, entry);
  hd_vec_push(visible->arena, &visible->stack, entry);
}

void hd_visible_pop(hd_visible_t *visible, size_t size) {
  while (visible->stack.size > size) {
    hd_visible_entry_t *entry = visible->stack.data[--visible->stack.size];
    hd_key_map_set_name(visible->arena, &visible->by_name, entry->name,
                        entry->hidden);
    if (!entry->again)
      hd_ptr_map_set(visible->arena, &visible->by_var, entry->var, NULL);
    entry->hidden = visible->spare;
    visible->spare = entry;
  }
}

const hd_var_t *hd_visible_find(const hd_visible_t *visible, const char *name) {
  const hd_visible_entry_t *entry = find_name(visible, name);
  return entry ? entry->var : NULL;
}

const char *hd_visible_name(const hd_visible_t *visible, const hd_var_t *var) {
  const hd_visible_entry_t *entry = hd_ptr_map_get(&visible->by_var, var);
  return entry ? entry->name : NULL;
}

unsigned hd_visible_count(hd_visible_t *visible, const char *name) {
  return ++find_name(visible, name)->count;
}

const hd_var_t *hd_visible_at(const hd_visible_t *visible, size_t index) {
  return visible->stack.data[index]->var;
}
