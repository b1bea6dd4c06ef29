// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pass unroll: marks loops to be unrolled. The copies are made when code is.
//
//   register acc: f32[4]
//   for i in 0..4 {
//     acc[i] = 0
//   }
//
// becomes `for i in 0..4 unroll { ... }`, because the place of a register must
// be known. So are loops whose variable settles the bounds of such a loop, or
// goes to a function that uses it so. Loops of few iterations over little work
// are unrolled too: unroll=max=N sets how much work all copies may be together
// (default 64; 0: none but those that must be). What the program says itself
// (unroll(1), unroll(8)) is kept, where a register's place does not need more.
//
// Requires loops over mappings to be lowered, or it leaves them alone.

#include "IR/Parts.h"
#include "IR/Passes/Facts.h"
#include "IR/Passes/Passes.h"
#include "IR/Passes/Simplifier.h"
#include "IR/Rewrite.h"
#include "Support/Map.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_MAX = 64, MAX_TRIPS = 16 };

typedef struct unroller {
  hd_arena_t *arena;
  hd_ptr_map_t needed;   // Variables that must be constants in the code.
  hd_ptr_map_t *callees; // What functions need: each is walked once.
  int64_t max;
} unroller_t;

static bool is_needed(const unroller_t *u, const hd_var_t *var) {
  return hd_ptr_map_get(&u->needed, var) != NULL;
}

static bool need_var(void *argument, const hd_expr_t *e) {
  unroller_t *u = argument;
  if (e->kind == HD_EXPR_VAR)
    hd_ptr_map_set(u->arena, &u->needed, e->u.var, e->u.var);
  return true;
}

static void need_all(unroller_t *u, const hd_expr_t *e) {
  if (e)
    hd_walk_expr(e, need_var, u);
}

static void find_needed(unroller_t *u, hd_block_t block);

static bool is_register(const hd_var_t *var) {
  return var->tensor->scope == HD_SCOPE_REGISTER;
}

static const unroller_t *needs_of(unroller_t *u, const hd_func_t *callee) {
  const unroller_t *known = hd_ptr_map_get(u->callees, callee);
  if (known)
    return known;
  unroller_t *inner = HD_ARENA_NEW(u->arena, unroller_t);
  *inner = (unroller_t){.arena = u->arena, .callees = u->callees};
  hd_ptr_map_set(u->arena, u->callees, callee, inner);
  find_needed(inner, callee->body);
  return inner;
}

// Arguments for parameters that the callee needs.
static void need_arguments(unroller_t *u, const hd_expr_t *call) {
  const hd_func_t *callee = call->u.func;
  const unroller_t *inner = needs_of(u, callee);
  for (unsigned i = 0; i < call->num_operands && i < callee->num_params; ++i)
    if (is_needed(inner, callee->params[i]))
      need_all(u, call->operands[i]);
}

static bool visit(void *argument, const hd_expr_t *e) {
  unroller_t *u = argument;
  if (hd_expr_is_access(e) && is_register(e->u.var))
    for (unsigned i = 0; i < hd_expr_num_indices(e); ++i)
      need_all(u, e->operands[i]);
  if (e->kind == HD_EXPR_CALL)
    need_arguments(u, e);
  return true;
}

static void look_at_stmt(unroller_t *u, const hd_stmt_t *stmt) {
  hd_block_t blocks[HD_MAX_BLOCKS];
  unsigned count = hd_stmt_blocks(stmt, blocks);
  for (unsigned i = 0; i < count; i++)
    find_needed(u, blocks[i]);
  hd_walk_stmt(stmt, visit, u);
  if (stmt->kind == HD_STMT_LET && is_needed(u, stmt->u.let.var)) {
    need_all(u, stmt->u.let.value);
  } else if (stmt->kind == HD_STMT_STORE && is_register(stmt->u.store.var)) {
    for (unsigned i = 0; i < stmt->u.store.num_indices; ++i)
      need_all(u, stmt->u.store.indices[i]);
  } else if (stmt->kind == HD_STMT_FOR &&
             (is_needed(u, stmt->u.loop.var) ||
              stmt->u.loop.unroll == HD_UNROLL_FULL)) {
    need_all(u, stmt->u.loop.first);
    need_all(u, stmt->u.loop.limit);
    need_all(u, stmt->u.loop.step);
  }
}

// From the last statement to the first: what needs a variable comes after what
// declares it.
static void find_needed(unroller_t *u, hd_block_t block) {
  for (size_t i = block.size; i-- > 0;)
    look_at_stmt(u, block.stmts[i]);
}

typedef struct work {
  int64_t amount;
  bool barred; // Holds what is not to be copied for speed alone.
} work_t;

// How often a loop runs, up to 2^31 - 1; -1 where that is not known.
static int64_t count_trips(const hd_stmt_t *loop) {
  int64_t first, limit, step = 1;
  if (!hd_expr_fold_int(loop->u.loop.first, &first) ||
      !hd_expr_fold_int(loop->u.loop.limit, &limit) ||
      (loop->u.loop.step && !hd_expr_fold_int(loop->u.loop.step, &step)) ||
      step < 1)
    return -1;
  hd_wide_t trips = ((hd_wide_t)limit - first + step - 1) / step;
  return trips < 0 ? 0 : trips > INT32_MAX ? INT32_MAX : (int64_t)trips;
}

static bool count_stmt(void *argument, const hd_stmt_t *stmt) {
  work_t *work = argument;
  ++work->amount;
  if (stmt->kind == HD_STMT_FOR) {
    int64_t trips = count_trips(stmt);
    // Inner loops come first: one that is unrolled is as long as its copies.
    if (stmt->u.loop.unroll != HD_UNROLL_FULL || trips < 0)
      work->barred = true;
    else
      work->amount += trips * 4;
  }
  work->barred |= stmt->kind == HD_STMT_WHILE || stmt->kind == HD_STMT_MAPFOR;
  return true;
}

static bool count_expr(void *argument, const hd_expr_t *e) {
  work_t *work = argument;
  work->amount += e->num_operands > 0;
  if (e->kind == HD_EXPR_CALL)
    work->amount += 16;
  return true;
}

// Whether the loop is short enough to be unrolled for speed.
static bool is_short(const unroller_t *u, const hd_stmt_t *loop) {
  int64_t trips = count_trips(loop);
  if (trips < 1 || trips > MAX_TRIPS)
    return false;
  work_t work = {0};
  hd_walk_block(loop->u.loop.body, count_stmt, count_expr, &work);
  return !work.barred && work.amount * trips <= u->max;
}

static bool mark(hd_rewriter_t *rewriter, const hd_stmt_t *stmt,
                 hd_stmt_list_t *out) {
  const unroller_t *u = rewriter->argument;
  if (stmt->kind != HD_STMT_FOR || stmt->u.loop.unroll == HD_UNROLL_FULL)
    return false;
  bool must = is_needed(u, stmt->u.loop.var);
  if (!must && (stmt->u.loop.unroll != 0 || !is_short(u, stmt)))
    return false;
  hd_stmt_t *copy = hd_stmt_copy(rewriter->arena, stmt);
  copy->u.loop.unroll = HD_UNROLL_FULL;
  hd_stmt_list_push(rewriter->arena, out, copy);
  return true;
}

const hd_func_t *hd_pass_unroll(hd_module_t *module, const hd_func_t *func,
                                const hd_pass_args_t *args) {
  hd_ptr_map_t callees = {0};
  unroller_t u = {.arena = &module->arena,
                  .callees = &callees,
                  .max = hd_pass_option_int(args->options, "max", DEFAULT_MAX)};
  find_needed(&u, func->body);
  hd_rewriter_t rewriter = {
      .arena = &module->arena, .argument = &u, .leave = mark};
  const hd_func_t *result = hd_rewrite_func(&rewriter, func);
  return result;
}
