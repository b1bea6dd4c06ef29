// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Stmt.h"

hd_stmt_t *hd_stmt_make(hd_arena_t *arena, hd_stmt_kind_t kind, hd_loc_t loc) {
  hd_stmt_t *stmt = HD_ARENA_NEW(arena, hd_stmt_t);
  stmt->kind = (uint8_t)kind;
  stmt->loc = loc;
  return stmt;
}

hd_stmt_t *hd_stmt_copy(hd_arena_t *arena, const hd_stmt_t *like) {
  hd_stmt_t *stmt = HD_ARENA_COPY(arena, hd_stmt_t, like);
  return stmt;
}

const char *hd_stmt_kind_text(hd_stmt_kind_t kind) {
  static const char *const texts[] = {
#define HD_STMT(name, text, parts) text,
#include "IR/Stmts.def"
#undef HD_STMT
  };
  return texts[kind];
}

const char *hd_point_name(hd_point_t point) {
  static const char *const names[] = {"load", "register", "yield", "expect",
                                      "rows"};
  return names[point];
}

const hd_expr_t *hd_expect_value(hd_arena_t *arena, hd_type_t type) {
  return hd_type_is_float(type)   ? hd_expr_float(arena, type, 1.0)
         : type.scalar == HD_BOOL ? hd_expr_bool(arena, true)
                                  : hd_expr_int(arena, type, 1);
}

const char *hd_across_name(hd_across_t across) {
  static const char *const names[] = {"lane", "warp", "thread", "cluster",
                                      "grid"};
  return names[across];
}

hd_block_t hd_block_make(hd_arena_t *arena, const hd_stmt_t *const *stmts,
                         size_t size) {
  const hd_stmt_t **copy = HD_ARENA_ARRAY(arena, const hd_stmt_t *, size);
  for (size_t i = 0; i < size; i++)
    copy[i] = stmts[i];
  return (hd_block_t){(uint32_t)size, copy};
}
