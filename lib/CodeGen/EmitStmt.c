// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Statements.
#include "CodeGen/EmitAccess.h"
#include "CodeGen/SimAbi.h"
#include "IR/Rewrite.h"

#include <llvm-c/DebugInfo.h>

#define B e->builder

static void emit_if(hd_emit_t *e, const hd_stmt_t *stmt) {
  LLVMValueRef condition = hd_emit_expr(e, stmt->u.branch.condition);
  if (LLVMIsAConstantInt(condition)) {
    hd_emit_block(e, LLVMConstIntGetZExtValue(condition)
                         ? stmt->u.branch.then
                         : stmt->u.branch.otherwise);
    return;
  }
  if (!stmt->u.branch.otherwise.size &&
      hd_emit_is_predicable_block(e, stmt->u.branch.then)) {
    hd_emit_predicated_block(e, condition, stmt->u.branch.then);
    return;
  }
  LLVMBasicBlockRef then = hd_emit_new_block(e, "then");
  LLVMBasicBlockRef after = hd_emit_new_block(e, "end");
  LLVMBasicBlockRef otherwise =
      stmt->u.branch.otherwise.size ? hd_emit_new_block(e, "else") : after;
  LLVMBuildCondBr(B, condition, then, otherwise);
  hd_emit_at(e, then);
  hd_emit_block(e, stmt->u.branch.then);
  hd_emit_go(e, after);
  if (otherwise != after) {
    hd_emit_at(e, otherwise);
    hd_emit_block(e, stmt->u.branch.otherwise);
    hd_emit_go(e, after);
  }
  hd_emit_at(e, after);
}

static void emit_assert(hd_emit_t *e, const hd_stmt_t *stmt) {
  LLVMValueRef condition = hd_emit_expr(e, stmt->u.assertion.condition);
  LLVMBasicBlockRef bad = hd_emit_new_block(e, "assertion_failed");
  LLVMBasicBlockRef good = hd_emit_new_block(e, "asserted");
  LLVMBuildCondBr(B, condition, good, bad);
  hd_emit_at(e, bad);
  if (e->host) {
    LLVMValueRef args[] = {e->coroutine ? e->thread : LLVMConstNull(e->ptr),
                           e->block,
                           hd_emit_site(e, stmt->loc, stmt->u.assertion.message,
                                        HD_SIM_LOAD, NULL, 0, 0)};
    hd_emit_c_call(e, "hd_sim_assert_failed", e->void_, args, 3);
  } else {
    hd_emit_llvm(e, "llvm.trap", NULL, NULL, 0);
  }
  LLVMBuildBr(B, good);
  hd_emit_at(e, good);
}

static void emit_return(hd_emit_t *e, const hd_stmt_t *stmt) {
  if (stmt->u.eval.value) {
    LLVMValueRef value = hd_emit_expr(e, stmt->u.eval.value);
    if (e->frame.result_cell)
      hd_cells_write(e, e->frame.result_cell, 0, 1, value);
    else
      LLVMBuildStore(B, value, e->frame.result);
  }
  LLVMBuildBr(B, e->frame.exit);
}

static void emit_let(hd_emit_t *e, const hd_stmt_t *stmt) {
  LLVMValueRef value = hd_emit_expr(e, stmt->u.let.value);
  hd_emit_bind(e, stmt->u.let.var, value);
}

static void emit_stmt(hd_emit_t *e, const hd_stmt_t *stmt) {
  switch ((hd_stmt_kind_t)stmt->kind) {
  case HD_STMT_LET:
    emit_let(e, stmt);
    return;
  case HD_STMT_DECLARE:
    hd_emit_declare(e, stmt);
    return;
  case HD_STMT_STORE:
    hd_emit_store(e, stmt);
    return;
  case HD_STMT_FOR:
    hd_emit_for(e, stmt);
    return;
  case HD_STMT_WHILE:
    hd_emit_while(e, stmt);
    return;
  case HD_STMT_IF:
    emit_if(e, stmt);
    return;
  case HD_STMT_ASSERT:
    emit_assert(e, stmt);
    return;
  case HD_STMT_EVAL:
    hd_emit_expr(e, stmt->u.eval.value);
    return;
  case HD_STMT_RETURN:
    emit_return(e, stmt);
    return;
  case HD_STMT_PRINT:
    hd_emit_print(e, stmt);
    return;
  case HD_STMT_BREAK:
    hd_emit_exit(e, &e->exits->end);
    return;
  case HD_STMT_CONTINUE:
    hd_emit_exit(e, &e->exits->next);
    return;
  case HD_STMT_POINT: // These are lowered before; --lower does it.
  case HD_STMT_MAPFOR:
  case HD_STMT_LAUNCH:
  case HD_STMT_COUNT:
    hd_emit_error(e, stmt->loc, HD_E0503,
                  hd_stmt_kind_text((hd_stmt_kind_t)stmt->kind),
                  e->target->name);
    return;
  }
}

// LLVM selects instructions block by block, and takes longer for those of a
// large one.
static void split_block(hd_emit_t *e) {
  enum { MOST_STMTS = 2000 };
  if (e->host || ++e->stmts_in_block < MOST_STMTS)
    return;
  e->stmts_in_block = 0;
  LLVMBasicBlockRef next = hd_emit_new_block(e, "next");
  LLVMBuildBr(B, next);
  hd_emit_at(e, next);
}

void hd_emit_block(hd_emit_t *e, hd_block_t block) {
  for (uint32_t i = 0; i < block.size; i++) {
    // What follows a return, break or continue is never reached.
    if (!e->calls && block.stmts[i]->loc.source)
      e->place = block.stmts[i]->loc;
    if (!hd_emit_count(e) || hd_emit_terminated(e))
      return;
    split_block(e);
    emit_stmt(e, block.stmts[i]);
  }
}
