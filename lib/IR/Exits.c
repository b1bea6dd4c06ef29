// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Exits.h"

#include "IR/Rewrite.h"

// A break, or a continue where that counts too, of the loop around the block.
static bool holds_own(hd_block_t block, bool continues) {
  for (uint32_t i = 0; i < block.size; ++i) {
    const hd_stmt_t *stmt = block.stmts[i];
    if (stmt->kind == HD_STMT_BREAK ||
        (continues && stmt->kind == HD_STMT_CONTINUE))
      return true;
    if (stmt->kind == HD_STMT_IF &&
        (holds_own(stmt->u.branch.then, continues) ||
         holds_own(stmt->u.branch.otherwise, continues)))
      return true;
  }
  return false;
}

bool hd_body_breaks(hd_block_t body) { return holds_own(body, false); }

bool hd_body_exits(hd_block_t body) { return holds_own(body, true); }

static bool is_no_return(void *argument, const hd_stmt_t *stmt) {
  (void)argument;
  return stmt->kind != HD_STMT_RETURN;
}

bool hd_block_holds_return(hd_block_t block) {
  return !hd_walk_block(block, is_no_return, NULL, NULL);
}

bool hd_stmt_may_leave(const hd_stmt_t *stmt) {
  hd_block_t whole = {1, &stmt};
  return holds_own(whole, true) || hd_block_holds_return(whole);
}

bool hd_stmt_falls_through(const hd_stmt_t *stmt) {
  const hd_expr_t *condition = stmt->u.branch.condition;
  switch ((hd_stmt_kind_t)stmt->kind) {
  case HD_STMT_RETURN:
  case HD_STMT_BREAK:
  case HD_STMT_CONTINUE:
    return false;
  case HD_STMT_IF:
    return hd_block_falls_through(stmt->u.branch.then) ||
           hd_block_falls_through(stmt->u.branch.otherwise);
  case HD_STMT_WHILE:
    return !hd_expr_is_const(condition) || !condition->u.i ||
           hd_body_breaks(stmt->u.branch.then);
  case HD_STMT_LET:
  case HD_STMT_DECLARE:
  case HD_STMT_STORE:
  case HD_STMT_POINT:
  case HD_STMT_FOR:
  case HD_STMT_MAPFOR:
  case HD_STMT_ASSERT:
  case HD_STMT_EVAL:
  case HD_STMT_PRINT:
  case HD_STMT_LAUNCH:
  case HD_STMT_COUNT:
    break;
  }
  return true;
}

bool hd_block_falls_through(hd_block_t block) {
  for (uint32_t i = 0; i < block.size; ++i)
    if (!hd_stmt_falls_through(block.stmts[i]))
      return false;
  return true;
}
