// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fusion points: what each may store to, and what staging asks for.
#include "IR/Held.h"
#include "IR/Verify/VerifierState.h"

#include "IR/Mapping.h"
#include "IR/Rewrite.h"

static void fault(hd_verifier_t *v, hd_loc_t loc, hd_point_t kind,
                  const char *why) {
  hd_error(v->diags, loc, HD_E0314, hd_point_name(kind), why);
  v->errors++;
}

// Why a point cannot store to a place, or NULL.
static const char *why_not(hd_point_t kind, const hd_expr_t *place) {
  hd_scope_t scope = place->u.var->tensor->scope;
  switch (kind) {
  case HD_POINT_LOAD:
    return scope == HD_SCOPE_GLOBAL
               ? "it goes to shared memory or to a register"
               : NULL;
  case HD_POINT_REGISTER:
    return scope == HD_SCOPE_REGISTER ? NULL : "it goes to a register";
  case HD_POINT_EXPECT:
    return scope != HD_SCOPE_GLOBAL ? "it is of global memory" : NULL;
  case HD_POINT_YIELD:
  case HD_POINT_ROWS:
    return scope != HD_SCOPE_GLOBAL               ? "it goes to global memory"
           : place->u.var->direction == HD_DIR_IN ? "it goes to an 'in' tensor"
                                                  : NULL;
  case HD_POINT_COUNT:
    break;
  }
  return NULL;
}

typedef struct search {
  const hd_stmt_t *tile;
} search_t;

static bool is_other(void *argument, const hd_expr_t *e) {
  const search_t *search = argument;
  const hd_stmt_t *tile = search->tile;
  for (uint32_t i = 0; i < tile->u.mapfor.mapping->rank; i++)
    if (e->kind == HD_EXPR_VAR && e->u.var == tile->u.mapfor.vars[i])
      return false;
  return true;
}

static bool depends(const hd_expr_t *e, const hd_stmt_t *tile) {
  return !hd_walk_expr(e, is_other, &(search_t){tile});
}

// Whether a kernel's block or cluster has so many threads or blocks.
static bool has_as_many(const hd_func_t *func, const hd_expr_t *const *dims,
                        int64_t wanted) {
  int64_t count = 1, size;
  for (int i = 0; i < 3; i++) {
    if (!dims[i])
      continue;
    if (!hd_expr_fold_int(dims[i], &size))
      return false;
    count *= size;
  }
  return func->kind == HD_FUNC_KERNEL && count == wanted;
}

// What an operand is computed from, where that has come to.
static void verify_source(hd_verifier_t *v, const hd_stmt_t *stmt) {
  const hd_expr_t *staging = stmt->u.point.staging;
  hd_verify_expr(v, staging);
  if (staging->u.var->tensor->scope == HD_SCOPE_GLOBAL || staging->linear ||
      staging->type.lanes != 1)
    fault(v, staging->loc, HD_POINT_LOAD,
          "what it goes through is an element of shared memory or of a "
          "register");
  else if (stmt->u.point.barrier)
    fault(v, staging->loc, HD_POINT_LOAD, "nobody meets at it");
}

static void verify_staging(hd_verifier_t *v, const hd_stmt_t *stmt) {
  const hd_expr_t *staging = stmt->u.point.staging;
  const hd_expr_t *barrier = stmt->u.point.barrier;
  hd_point_t kind = (hd_point_t)stmt->u.point.kind;
  const char *why = NULL;
  hd_verify_expr(v, staging);
  if (kind != HD_POINT_YIELD)
    why = "only a yield or a load goes through a tensor";
  else if (!v->tile)
    why = "going through shared memory, it must be all that a loop over a "
          "mapping does";
  else if (staging->u.var->tensor->scope != HD_SCOPE_SHARED)
    why = "the tensor that it goes through is not in shared memory";
  else if (staging->linear ||
           !hd_type_holds(staging->type, stmt->u.point.place->type))
    why = "the tensor that it goes through has other elements";
  else if (!barrier && !has_as_many(v->func, v->func->launch.block,
                                    v->tile->u.mapfor.mapping->workers))
    why = "its workers are not the block's threads: say who meets, by "
          "sync(barrier, threads)";
  else if (barrier && (depends(barrier, v->tile) ||
                       depends(stmt->u.point.threads, v->tile)))
    why = "the barrier changes with the tasks";
  if (why)
    fault(v, staging->loc, kind, why);
  if (barrier) {
    hd_verify_expr(v, barrier);
    hd_verify_expr(v, stmt->u.point.threads);
    hd_verify_type(v, barrier, hd_type(HD_I32));
    hd_verify_type(v, stmt->u.point.threads, hd_type(HD_I32));
  }
}

static int64_t count_across(const hd_stmt_t *stmt, hd_across_t which) {
  int64_t count = stmt->u.point.across[which];
  return count ? count : 1;
}

// A loop over the elements of a row, by those who have it.
static void verify_rows(hd_verifier_t *v, const hd_stmt_t *stmt) {
  int64_t lanes = count_across(stmt, HD_ACROSS_LANE);
  int64_t warps = count_across(stmt, HD_ACROSS_WARP);
  int64_t threads = count_across(stmt, HD_ACROSS_THREAD);
  int64_t cluster = count_across(stmt, HD_ACROSS_CLUSTER);
  int64_t blocks = cluster * count_across(stmt, HD_ACROSS_GRID);
  const hd_expr_t *place = stmt->u.point.place;
  const hd_stmt_t *tile = v->tile;
  const char *why = NULL;
  if (!tile || tile->u.mapfor.mapping->rank != 1)
    why = "it must be all that a loop over a mapping of one axis does";
  else if (place->num_operands != 2 || place->linear ||
           depends(place->operands[0], tile) ||
           !depends(place->operands[1], tile))
    why = "it stores to y[row, element], of which the element alone changes "
          "with the tasks";
  else if (lanes * warps * threads *
               (place->operands[1]->kind == HD_EXPR_VAR ? blocks : 1) !=
           tile->u.mapfor.mapping->workers)
    why = "those that it is across are not as many as the mapping's workers";
  else if (lanes > 32 || (lanes & (lanes - 1)))
    why = "a row has 1, 2, 4, 8, 16 or 32 lanes of a warp";
  else if (warps > 1 && lanes < 32)
    why = "a row of several warps has all of their lanes";
  else if (threads > 1 && lanes * warps > 1)
    why = "threads are neighbours in it, by lane and warp, or apart, by thread";
  else if (cluster > 1 && cluster != blocks)
    why = "a row has blocks of a cluster, or of the grid";
  else if (cluster > 1 &&
           !has_as_many(v->func, v->func->launch.cluster, cluster))
    why = "the kernel's clusters do not have that many blocks";
  else if (warps * threads * blocks > 1 && v->loops > 1)
    why = "a row's threads meet in it, which they do in no loop but its own";
  if (why)
    fault(v, stmt->loc, HD_POINT_ROWS, why);
}

// Which lanes have an element's neighbours.
static void verify_neighbours(hd_verifier_t *v, const hd_stmt_t *stmt) {
  const char *why = NULL;
  for (int i = 0; i < HD_ACROSS_COUNT; i++)
    if (stmt->u.point.across[i] &&
        (i != HD_ACROSS_LANE || stmt->u.point.across[i] > 32))
      why = "neighbours of what it stores are in lanes of a warp";
  if (why)
    fault(v, stmt->loc, HD_POINT_YIELD, why);
}

// What a yield reads and an expect announces.
static void verify_early(hd_verifier_t *v, const hd_stmt_t *stmt) {
  const hd_expr_t *early = stmt->u.point.early;
  hd_point_t kind = (hd_point_t)stmt->u.point.kind;
  hd_verify_expr(v, early);
  if (kind != HD_POINT_YIELD && kind != HD_POINT_EXPECT &&
      kind != HD_POINT_LOAD)
    fault(v, early->loc, kind, "only a yield or a load reads what is expected");
  else if (early->u.var->tensor->scope != HD_SCOPE_REGISTER || early->linear ||
           early->type.lanes != 1)
    fault(v, early->loc, kind, "what is expected is an element of a register");
}

void hd_verify_point(hd_verifier_t *v, const hd_stmt_t *stmt) {
  const hd_expr_t *place = stmt->u.point.place;
  const hd_expr_t *value = stmt->u.point.value;
  hd_point_t kind = (hd_point_t)stmt->u.point.kind;
  hd_verify_expr(v, place);
  hd_verify_expr(v, value);
  const char *why = why_not(kind, place);
  if (hd_type_bits(place->type) < 8 && kind != HD_POINT_LOAD &&
      place->u.var->tensor->scope != HD_SCOPE_REGISTER)
    why = "an element is smaller than a byte";
  else if (place->type.lanes != 1)
    why = "it stores an element, and leaves vectors to the compiler";
  else if (place->linear)
    why = "it stores to an element, not to a place in the storage";
  if (why)
    fault(v, place->loc, kind, why);
  hd_verify_type(v, value, place->u.var->type);
  if (stmt->u.point.early)
    verify_early(v, stmt);
  if (stmt->u.point.staging && kind == HD_POINT_LOAD)
    verify_source(v, stmt);
  else if (stmt->u.point.staging)
    verify_staging(v, stmt);
  if (kind == HD_POINT_ROWS)
    verify_rows(v, stmt);
  if (kind == HD_POINT_YIELD)
    verify_neighbours(v, stmt);
}
