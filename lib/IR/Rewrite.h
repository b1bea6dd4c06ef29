// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Walking and rewriting. A rewrite returns the same pointer where nothing
// changed.
#ifndef HIDET_IR_REWRITE_H
#define HIDET_IR_REWRITE_H

#include "IR/Module.h"
#include "Support/Map.h"

typedef struct hd_stmt_list {
  const hd_stmt_t **data;
  size_t size, capacity;
} hd_stmt_list_t;

// A rewrite of a body, bottom-up for expressions. Callbacks may be NULL.
typedef struct hd_rewriter hd_rewriter_t;
struct hd_rewriter {
  hd_arena_t *arena;
  void *argument;
  // Called with operands already rewritten. Returns e itself for no change.
  const hd_expr_t *(*expr)(hd_rewriter_t *, const hd_expr_t *e);
  // Called before a statement's parts are rewritten, with the list that the
  // result goes to: push what takes its place and return true, or return false
  // to have the parts rewritten and the statement kept.
  bool (*enter)(hd_rewriter_t *, const hd_stmt_t *stmt, hd_stmt_list_t *out);
  // Called after a statement's parts were rewritten: push what takes its place
  // and return true, or return false to keep it.
  bool (*leave)(hd_rewriter_t *, const hd_stmt_t *stmt, hd_stmt_list_t *out);
  // Declarations (let, loop variables, tensors): a new variable, or the same.
  // References to a replaced variable are redirected by the rewriter.
  const hd_var_t *(*declare)(hd_rewriter_t *, const hd_var_t *var);
  hd_ptr_map_t vars; // Of its own.
};

// For `declare`: each version of a body has variables of its own.
const hd_var_t *hd_rewriter_copy_var(hd_rewriter_t *rewriter,
                                     const hd_var_t *var);

// Makes later references to old become references to new.
void hd_rewriter_map(hd_rewriter_t *rewriter, const hd_var_t *old,
                     const hd_var_t *new_var);
// Makes later VAR references to old become value.
void hd_rewriter_substitute(hd_rewriter_t *rewriter, const hd_var_t *old,
                            const hd_expr_t *value);
const hd_expr_t *hd_rewrite_expr(hd_rewriter_t *rewriter, const hd_expr_t *e);
// A tensor's shape and layout.
const hd_tensor_t *hd_rewrite_tensor(hd_rewriter_t *rewriter,
                                     const hd_tensor_t *tensor);
hd_block_t hd_rewrite_block(hd_rewriter_t *rewriter, hd_block_t block);
// Pushes the rewritten statements of a block.
void hd_rewrite_into(hd_rewriter_t *rewriter, hd_block_t block,
                     hd_stmt_list_t *out);
// Parameters, launch expressions and body.
const hd_func_t *hd_rewrite_func(hd_rewriter_t *rewriter,
                                 const hd_func_t *func);

void hd_stmt_list_push(hd_arena_t *arena, hd_stmt_list_t *list,
                       const hd_stmt_t *stmt);

// Calls visit on every expression of a body, operands before their users. Stops
// and returns false as soon as visit does.
typedef bool (*hd_visit_expr_t)(void *argument, const hd_expr_t *e);
typedef bool (*hd_visit_stmt_t)(void *argument, const hd_stmt_t *stmt);
bool hd_walk_expr(const hd_expr_t *e, hd_visit_expr_t visit, void *argument);
// Of one statement, without the blocks in it: each expression as a whole, or
// with all that it is made of.
bool hd_walk_roots(const hd_stmt_t *stmt, hd_visit_expr_t visit,
                   void *argument);
bool hd_walk_stmt(const hd_stmt_t *stmt, hd_visit_expr_t visit, void *argument);
// stmt is called before the statement's expressions and blocks.
bool hd_walk_block(hd_block_t block, hd_visit_stmt_t stmt, hd_visit_expr_t expr,
                   void *argument);
// Over the expressions of a block and of all functions that it calls, by what
// it calls too; each function once. Takes a little of the arena.
bool hd_walk_calls(hd_arena_t *arena, hd_block_t block, hd_visit_expr_t visit,
                   void *argument);

#endif
