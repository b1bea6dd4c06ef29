// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pass lower-points: fusion points become copies and stores.
//
//   for i, p in repeat(4, 1) * spatial(32, 8) * repeat(1, 8) on thread {
//     load s[i, p] <- a[row + i, t * 64 + p]
//   }
//
// becomes
//
//   if k % 8 == 0 {
//     for i, p in repeat(4, 1) * spatial(32, 8) on thread {
//       cp_async_zfill(s[i, p * 8], a[row + i, t * 64 + p * 8], 16,
//                      row + i < m && t * 64 + p * 8 < k ? 16 : 0, cg)
//     }
//   } else {
//     for i, p in repeat(4, 1) unroll(1) {          // push_in_batches()
//       16 elements a thread to registers, then to s
//     }
//   }
//
// What a load finds outside the tensors that it reads is 0. It is a copy by
// hardware (cp.async) where its value is an element of a tensor as it is, goes
// to shared memory, and 16 bytes of a row are aligned or it has 4 or 8 itself;
// else values pass through registers. Which thread copies what to shared memory
// is the compiler's choice: all of a tile is there for all after a wait and a
// barrier.
//
// A register point is a store. A row that no task has taken is stored as it is.
// LowerLoad.c has the loads, LowerYield.c the results.
//
// Requires nothing; looks at loops over mappings, so it comes before they are
// lowered, but after the functions that hold points have been inlined.

#include "TaskMapping/Passes.h"
#include "TaskMapping/Points.h"

static void lower_register(const hd_tile_t *tile) {
  const hd_stmt_t *point = tile->point;
  const hd_stmt_t *store =
      hd_make_store(tile, point->u.point.place, point->u.point.value);
  if (!tile->loop) {
    hd_stmt_list_push(tile->l->arena, tile->out, store);
    return;
  }
  hd_stmt_t *loop = hd_stmt_copy(tile->l->arena, tile->loop);
  loop->u.mapfor.body = hd_block_of_one(tile->l->arena, store);
  hd_stmt_list_push(tile->l->arena, tile->out, loop);
}

// What is expected of nobody is nothing.
static void lower_expect(const hd_tile_t *tile) { (void)tile; }

static void (*const lowerings[])(const hd_tile_t *) = {
    [HD_POINT_LOAD] = hd_lower_load,   [HD_POINT_REGISTER] = lower_register,
    [HD_POINT_YIELD] = hd_lower_yield, [HD_POINT_EXPECT] = lower_expect,
    [HD_POINT_ROWS] = hd_lower_yield,
};

// The worker of a loop that several take the place of: evaluated once.
static const hd_expr_t *name_worker(hd_point_lowering_t *l,
                                    const hd_stmt_t *loop,
                                    hd_stmt_list_t *out) {
  const hd_expr_t *worker = loop->u.mapfor.worker;
  if (!worker || hd_expr_is_trivial(worker))
    return worker;
  hd_stmt_t *let = hd_stmt_make(l->arena, HD_STMT_LET, loop->loc);
  let->u.let.var =
      hd_var_make(l->arena, "worker", HD_VAR_LET, worker->type, worker->loc);
  let->u.let.value = worker;
  hd_stmt_list_push(l->arena, out, let);
  return hd_expr_var(l->arena, let->u.let.var);
}

// Whether something more is known inside than around it.
static bool is_scope(const hd_stmt_t *stmt) {
  return stmt->kind == HD_STMT_FOR || stmt->kind == HD_STMT_MAPFOR ||
         (stmt->kind == HD_STMT_IF && stmt->u.branch.otherwise.size == 0);
}

// What is known of a name: of a loop's variable in its body alone, for there
// the loop has a turn; and of what a branch has tested.
static void learn(hd_point_lowering_t *l, const hd_stmt_t *stmt) {
  if (stmt->kind == HD_STMT_LET) {
    hd_ptr_map_set(l->arena, &l->lets, stmt->u.let.var, stmt->u.let.value);
    hd_facts_let(l->facts, stmt->u.let.var, stmt->u.let.value);
  }
  if (!is_scope(stmt))
    return;
  hd_vec_push(l->arena, &l->marks, hd_facts_mark(l->facts));
  if (stmt->kind == HD_STMT_IF) {
    hd_facts_assume(l->facts, stmt->u.branch.condition, true);
    return;
  }
  if (stmt->kind == HD_STMT_FOR) {
    hd_facts_loop(l->facts, stmt->u.loop.var, stmt->u.loop.first,
                  stmt->u.loop.limit, stmt->u.loop.step);
    return;
  }
  const hd_mapping_t *mapping = stmt->u.mapfor.mapping;
  for (unsigned a = 0; a < mapping->rank; ++a)
    hd_facts_loop(l->facts, stmt->u.mapfor.vars[a], hd_expr_i32(l->arena, 0),
                  hd_expr_i32(l->arena, mapping->dims[a]), NULL);
}

static bool forget(hd_rewriter_t *rewriter, const hd_stmt_t *stmt,
                   hd_stmt_list_t *out) {
  hd_point_lowering_t *l = rewriter->argument;
  (void)out;
  if (is_scope(stmt))
    hd_facts_reset(l->facts, l->marks.data[--l->marks.size]);
  return false;
}

static hd_block_t lower_side(hd_rewriter_t *rewriter, const hd_stmt_t *branch,
                             bool holds) {
  hd_point_lowering_t *l = rewriter->argument;
  hd_facts_mark_t mark = hd_facts_mark(l->facts);
  hd_stmt_list_t list = {0};
  hd_facts_assume(l->facts, branch->u.branch.condition, holds);
  hd_rewrite_into(rewriter,
                  holds ? branch->u.branch.then : branch->u.branch.otherwise,
                  &list);
  hd_facts_reset(l->facts, mark);
  return hd_block_of(l->arena, &list);
}

// Of two sides each knows what it is under.
static void lower_sides(hd_rewriter_t *rewriter, const hd_stmt_t *branch,
                        hd_stmt_list_t *out) {
  hd_point_lowering_t *l = rewriter->argument;
  hd_stmt_t *copy = hd_stmt_copy(l->arena, branch);
  copy->u.branch.then = lower_side(rewriter, branch, true);
  copy->u.branch.otherwise = lower_side(rewriter, branch, false);
  hd_stmt_list_push(l->arena, out, copy);
}

static bool lower_point(hd_rewriter_t *rewriter, const hd_stmt_t *stmt,
                        hd_stmt_list_t *out) {
  hd_tile_t tile = {.l = rewriter->argument, .out = out, .point = stmt};
  if (stmt->kind == HD_STMT_MAPFOR && stmt->u.mapfor.body.size == 1 &&
      stmt->u.mapfor.body.stmts[0]->kind == HD_STMT_POINT) {
    tile.point = stmt->u.mapfor.body.stmts[0];
    tile.loop = stmt;
    tile.mapping = stmt->u.mapfor.mapping;
    tile.worker = name_worker(tile.l, stmt, out);
  } else if (stmt->kind == HD_STMT_IF && stmt->u.branch.otherwise.size > 0) {
    lower_sides(rewriter, stmt, out);
    return true;
  } else if (stmt->kind != HD_STMT_POINT) {
    learn(tile.l, stmt);
    return false;
  }
  lowerings[tile.point->u.point.kind](&tile);
  return true;
}

static void push_wait(hd_point_lowering_t *l, hd_loc_t loc,
                      hd_stmt_list_t *out) {
  hd_stmt_t end = {.loc = loc};
  hd_tile_t tile = {.l = l, .point = &end};
  const hd_expr_t *none = hd_expr_i32(l->arena, 0);
  hd_push_call(&tile, HD_INTRINSIC_BULK_WAIT, &none, 1, out);
}

static bool wait_at_return(hd_rewriter_t *rewriter, const hd_stmt_t *stmt,
                           hd_stmt_list_t *out) {
  if (stmt->kind == HD_STMT_RETURN)
    push_wait(rewriter->argument, stmt->loc, out);
  return false;
}

// A block's shared memory is read until its copies have ended.
static hd_block_t wait_at_ends(hd_point_lowering_t *l, hd_block_t body) {
  hd_stmt_list_t list = {0};
  hd_rewriter_t rewriter = {
      .arena = l->arena, .argument = l, .enter = wait_at_return};
  hd_rewrite_into(&rewriter, body, &list);
  push_wait(l, l->func->loc, &list);
  return hd_block_of(l->arena, &list);
}

const hd_func_t *hd_pass_lower_points(hd_module_t *module,
                                      const hd_func_t *func,
                                      const hd_pass_args_t *args) {
  hd_point_lowering_t l = {.module = module,
                           .arena = &module->arena,
                           .func = func,
                           .facts = hd_facts_create(&module->arena, func),
                           .explain = args->explain};
  hd_rewriter_t rewriter = {.arena = &module->arena,
                            .argument = &l,
                            .enter = lower_point,
                            .leave = forget};
  const hd_func_t *result = hd_rewrite_func(&rewriter, func);
  if (!l.has_bulk)
    return result;
  hd_func_t *copy = HD_ARENA_COPY(&module->arena, hd_func_t, result);
  copy->body = wait_at_ends(&l, result->body);
  return copy;
}
