// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names for the variables that a pass makes. The text form wants no name
// declared again while it is visible; the simplest way to keep that is to make
// new names unique in their function.
#ifndef HIDET_IR_NAMES_H
#define HIDET_IR_NAMES_H

#include "IR/Module.h"

typedef struct hd_name {
  const char *text;
  unsigned count; // How often it is declared.
} hd_name_t;

typedef struct hd_names {
  hd_arena_t *arena; // Holds the table and the names made.
  hd_name_t *slots;
  size_t size, capacity;
} hd_names_t;

// Takes the names of the function's variables and of the module's items.
void hd_names_init(hd_names_t *names, hd_arena_t *arena,
                   const hd_module_t *module, const hd_func_t *func);

// base with a number that makes it new: "i_0". The name is then taken.
const char *hd_names_fresh(hd_names_t *names, const char *base);

// True where only one declaration of the function has this name, so that it may
// move to an outer block.
bool hd_names_is_single(const hd_names_t *names, const char *name);

#endif
