// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The variables that are visible at a place of a program, by name and by
// address, each found in constant time. Parser, printer and verifier walk
// programs of any size with it.
#ifndef HIDET_IR_VISIBLE_H
#define HIDET_IR_VISIBLE_H

#include "IR/Tensor.h"
#include "Support/Map.h"
#include "Support/Vec.h"

typedef struct hd_visible_entry hd_visible_entry_t;

// Zero-initialized but for the arena, which holds all of it.
typedef struct hd_visible {
  hd_arena_t *arena;
  hd_key_map_t by_name;
  hd_ptr_map_t by_var;
  hd_visible_entry_t *spare;
  HD_VEC(hd_visible_entry_t *) stack; // Innermost last.
} hd_visible_t;

// Makes var visible under a name, before all that has the same name.
void hd_visible_push(hd_visible_t *visible, const hd_var_t *var,
                     const char *name);
// Forgets all that was pushed since the stack had that size.
void hd_visible_pop(hd_visible_t *visible, size_t size);
static inline size_t hd_visible_size(const hd_visible_t *visible) {
  return visible->stack.size;
}

// The innermost variable of that name, or NULL.
const hd_var_t *hd_visible_find(const hd_visible_t *visible, const char *name);
// The name that a variable was pushed with, or NULL where it is not visible.
const char *hd_visible_name(const hd_visible_t *visible, const hd_var_t *var);
// 1, 2, ... for each call while the innermost variable of that name, which must
// be visible, stays so: for making other names of it.
unsigned hd_visible_count(hd_visible_t *visible, const char *name);
// By age; index is below the size.
const hd_var_t *hd_visible_at(const hd_visible_t *visible, size_t index);

#endif
