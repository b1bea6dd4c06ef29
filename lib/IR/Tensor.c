// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Tensor.h"

#include "IR/Mapping.h"

hd_var_t *hd_var_make(hd_arena_t *arena, const char *name, hd_var_kind_t kind,
                      hd_type_t type, hd_loc_t loc) {
  hd_var_t *var = HD_ARENA_NEW(arena, hd_var_t);
  *var = (hd_var_t){.name = name, .kind = kind, .type = type, .loc = loc};
  return var;
}

hd_var_t *hd_var_make_tensor(hd_arena_t *arena, const char *name,
                             const hd_tensor_t *tensor, hd_loc_t loc) {
  hd_var_t *var = hd_var_make(arena, name, HD_VAR_TENSOR, tensor->element, loc);
  var->tensor = tensor;
  return var;
}

const char *hd_scope_name(hd_scope_t scope) {
  static const char *const names[] = {"global", "shared", "register"};
  return names[scope];
}

const char *hd_direction_name(hd_direction_t direction) {
  static const char *const names[] = {"", "in", "out", "inout"};
  return names[direction];
}

const char *hd_layout_kind_name(hd_layout_kind_t kind) {
  static const char *const names[] = {"row",  "column",  "strides", "permute",
                                      "tile", "swizzle", "local"};
  return names[kind];
}

const char *hd_rank_text(hd_arena_t *arena, size_t rank, size_t found) {
  const char *text = hd_arena_printf(arena, "%zu %s in brackets", rank,
                                     rank == 1 ? "index" : "indices");
  return found ? hd_arena_printf(arena, "%s, found %zu", text, found) : text;
}

const char *hd_var_read_only(const hd_var_t *var) {
  return var->table                    ? "it is a constant"
         : var->direction == HD_DIR_IN ? "it is an 'in' parameter"
                                       : NULL;
}
