// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names for new variables: a hash set of the names in use.

#include "IR/Names.h"
#include "IR/Rewrite.h"

#include <ctype.h>
#include <string.h>

static size_t hash(const char *text) { // FNV-1a
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (; *text; ++text)
    h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
  return (size_t)(h ^ h >> 32);
}

static hd_name_t *find_slot(const hd_names_t *names, const char *text) {
  size_t i = hash(text) & (names->capacity - 1);
  while (names->slots[i].text && strcmp(names->slots[i].text, text) != 0)
    i = (i + 1) & (names->capacity - 1);
  return &names->slots[i];
}

static void grow(hd_names_t *names) {
  hd_names_t old = *names;
  names->capacity = old.capacity ? old.capacity * 2 : 64;
  names->slots = HD_ARENA_ARRAY(names->arena, hd_name_t, names->capacity);
  for (size_t i = 0; i < old.capacity; ++i)
    if (old.slots[i].text)
      *find_slot(names, old.slots[i].text) = old.slots[i];
}

// False where the name was taken already.
static bool take(hd_names_t *names, const char *text) {
  if (2 * (names->size + 1) > names->capacity)
    grow(names);
  hd_name_t *slot = find_slot(names, text);
  if (slot->count++ > 0)
    return false;
  slot->text = text;
  ++names->size;
  return true;
}

bool hd_names_is_single(const hd_names_t *names, const char *name) {
  return names->capacity == 0 || find_slot(names, name)->count <= 1;
}

static void take_var(hd_names_t *names, const hd_var_t *var) {
  if (var)
    take(names, var->name);
}

static void take_mapping(hd_names_t *names, const hd_mapping_t *m) {
  if (!m)
    return;
  take_var(names, m->worker);
  take_var(names, m->repeat);
  take_mapping(names, m->left);
  take_mapping(names, m->right);
}

static void take_tensor(hd_names_t *names, const hd_var_t *var) {
  take_var(names, var);
  const hd_layout_t *layout = var->tensor ? var->tensor->layout : NULL;
  for (unsigned i = 0; layout && i < layout->num_items; ++i)
    take_mapping(names, layout->items[i].mapping);
}

static bool take_stmt(void *argument, const hd_stmt_t *stmt) {
  hd_names_t *names = argument;
  switch ((hd_stmt_kind_t)stmt->kind) {
  case HD_STMT_LET:
    take_var(names, stmt->u.let.var);
    break;
  case HD_STMT_DECLARE:
    take_tensor(names, stmt->u.declare.var);
    break;
  case HD_STMT_FOR:
    take_var(names, stmt->u.loop.var);
    break;
  case HD_STMT_MAPFOR:
    take_mapping(names, stmt->u.mapfor.mapping);
    for (unsigned a = 0; a < stmt->u.mapfor.mapping->rank; ++a)
      take_var(names, stmt->u.mapfor.vars[a]);
    break;
  case HD_STMT_STORE:
  case HD_STMT_WHILE:
  case HD_STMT_IF:
  case HD_STMT_ASSERT:
  case HD_STMT_EVAL:
  case HD_STMT_RETURN:
  case HD_STMT_LAUNCH:
  case HD_STMT_COUNT:
    break;
  }
  return true;
}

void hd_names_init(hd_names_t *names, hd_arena_t *arena,
                   const hd_module_t *module, const hd_func_t *func) {
  *names = (hd_names_t){.arena = arena};
  for (size_t i = 0; i < module->items.size; ++i) {
    const hd_item_t *item = &module->items.data[i];
    if (item->kind == HD_ITEM_CONST)
      take(names, item->u.constant->name);
    else if (item->kind == HD_ITEM_FUNC)
      take(names, item->u.func->name);
  }
  for (unsigned i = 0; i < func->num_params; ++i)
    take_tensor(names, func->params[i]);
  hd_walk_block(func->body, take_stmt, NULL, names);
}

const char *hd_names_fresh(hd_names_t *names, const char *base) {
  // "i_0" asked for a relative becomes "i_1", not "i_0_0".
  size_t length = strlen(base);
  size_t digits = length;
  while (digits > 0 && isdigit((unsigned char)base[digits - 1]))
    --digits;
  if (digits > 1 && digits < length && base[digits - 1] == '_')
    length = digits - 1;
  for (unsigned n = 0;; ++n) {
    const char *name =
        hd_arena_printf(names->arena, "%.*s_%u", (int)length, base, n);
    if (take(names, name))
      return name;
  }
}
