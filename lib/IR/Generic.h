// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions with compile-time parameters:
//
//   kernel scale[B: i32 = 128, T: type](n: i32, in x: T[n], out y: T[n])
//     grid(ceildiv(n, B)) block(B) { ... }
//
// Such a function is kept as its tokens and read anew under each set of values,
// so that types, shapes, mappings, and what an `if` chooses may depend on them.
// What comes of it, an instance, is a function like any other, and is named
// after its values: "scale[B = 128, T = f16]". One instance serves all who ask
// for the same values.
#ifndef HIDET_IR_GENERIC_H
#define HIDET_IR_GENERIC_H

#include "IR/Module.h"

typedef struct hd_generic_param {
  const char *name;
  hd_loc_t loc;
  bool is_type;
  hd_type_t type;   // Of its values, where they are none.
  size_t otherwise; // The token that its default begins with; 0: it has none.
} hd_generic_param_t;

struct hd_generic {
  hd_func_kind_t kind;
  const char *name;
  hd_loc_t loc;
  const char *text; // From its first word to its last brace, as it was written.
  uint32_t source;  // Where the tokens come from.
  const struct hd_token *tokens;
  size_t at; // The '(' of the parameters that are given at run time.
  uint32_t num_params;
  const hd_generic_param_t *params;
  uint32_t num_instances; // So far.
  // The one that its defaults make, where it was read; else NULL.
  hd_func_t *by_default;
};

// Whether every parameter has a default.
bool hd_generic_has_defaults(const hd_generic_t *generic);

// Adds to each error since the mark of which instance it is, and who asked.
void hd_generic_note(hd_diagnostics_t *diags, hd_diagnostics_mark_t mark,
                     const hd_generic_t *generic, const char *name,
                     hd_loc_t asked);
// The same where the function is one.
void hd_func_note_instance(hd_diagnostics_t *diags, hd_diagnostics_mark_t mark,
                           const hd_func_t *func);

// A function's name as an identifier, for names that are made from it:
// scale_128_f16. In the arena; the name itself where it is one.
const char *hd_func_identifier(hd_arena_t *arena, const hd_func_t *func);
// Likewise as a symbol of code, which no other function of the module has:
// scale$B$128$T$f16.
const char *hd_func_symbol(hd_arena_t *arena, const hd_func_t *func);

#endif
