// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows behind an anchor, where its kernel stores. A thread has V neighbours of
// a row, those beside them are in the lanes beside it:
//
//   for e in repeat(V) unroll { stays[e] = x }
//   for p in spatial(n / V) * repeat(V) on lane % (n / V) {
//     rows y[row, p] <- stays[p % V] across lane(n / V)
//   }
//
// of which the second is what a kernel over rows has (Schedule/Rows).
#include "Fusion/Group/GroupRows.h"
#include "Fusion/Join/JoinState.h"
#include "IR/Mapping.h"

// The row-major number of the element that the point's first task stores, and
// whether that is inside.
static const hd_expr_t *first_element(hd_builder_t *b, const hd_stmt_t *loop,
                                      const hd_expr_t **inside) {
  const hd_expr_t *place = loop->u.mapfor.body.stmts[0]->u.point.place;
  const hd_tensor_t *tensor = place->u.var->tensor;
  const hd_expr_t *number = hd_b_i32(b, 0);
  hd_rewriter_t rewriter = {.arena = b->arena};
  hd_rewriter_substitute(&rewriter, loop->u.mapfor.vars[0], hd_b_i32(b, 0));
  *inside = NULL;
  for (unsigned i = 0; i < place->num_operands; i++) {
    int64_t size;
    hd_expr_fold_int(tensor->shape[i], &size);
    const hd_expr_t *at =
        hd_b_cast(b, HD_I32, hd_rewrite_expr(&rewriter, place->operands[i]));
    at = hd_b_let(b, "at", at);
    *inside = hd_b_and(b, *inside, hd_b_op_int(b, HD_EXPR_LT, at, size));
    number =
        hd_b_op(b, HD_EXPR_ADD, hd_b_op_int(b, HD_EXPR_MUL, number, size), at);
  }
  return hd_b_let(b, "number", number);
}

// for p in spatial(lanes) * repeat(each) on worker
static const hd_stmt_t *loop_over(hd_builder_t *b, int64_t lanes, int64_t each,
                                  const hd_expr_t *worker) {
  hd_stmt_t *loop = hd_stmt_make(b->arena, HD_STMT_MAPFOR, b->loc);
  const hd_var_t **vars = HD_ARENA_ARRAY(b->arena, const hd_var_t *, 1);
  vars[0] = hd_b_loop_var(b, "p", HD_I32);
  loop->u.mapfor.vars = vars;
  loop->u.mapfor.mapping = hd_mapping_compose(
      b->arena, hd_mapping_spatial(b->arena, &lanes, NULL, 1),
      hd_mapping_repeat(b->arena, &each, NULL, 1));
  loop->u.mapfor.worker = worker;
  loop->u.mapfor.unroll = HD_UNROLL_FULL;
  return loop;
}

const char *hd_join_rows(hd_joiner_t *j, hd_translator_t *t,
                         const hd_node_t *node, hd_builder_t *b,
                         const hd_stmt_t *point_loop, const hd_var_t *kept) {
  const hd_task_t *flat = hd_fusion_flatten(j->fusion, node)->flat;
  hd_rows_t *rows = HD_ARENA_NEW(j->arena, hd_rows_t);
  if (!kept)
    return "does not say which lanes have an element's neighbours";
  if (!hd_group_rows_find(j->arena, flat, rows) ||
      hd_flat_count(flat->inputs.data[0]) > INT32_MAX)
    return "has too many elements";
  const hd_stmt_t *point = point_loop->u.mapfor.body.stmts[0];
  int64_t each, lanes = point->u.point.across[HD_ACROSS_LANE];
  int64_t length = rows->element.points;
  hd_expr_fold_int(kept->tensor->shape[0], &each);
  lanes &= -lanes; // So many are neighbours from a multiple of theirs on.
  if (lanes * each % length || length % each)
    return "does not have whole rows side by side";
  lanes = length / each;
  rows->is_given = true;
  hd_rows_keep(rows, each);
  hd_row_maker_t m = {.rows = rows, .slots = 1, .slot = hd_b_i32(b, 0)};
  for (int i = 0; i < HD_ACROSS_COUNT; i++)
    m.across[i] = i != HD_ACROSS_THREAD;
  m.across[HD_ACROSS_LANE] = (uint16_t)lanes;
  m.worker = hd_b_let(b, "worker",
                      hd_b_op_int(b, HD_EXPR_MOD,
                                  hd_expr_builtin(b->arena, HD_BUILTIN_LANE_ID),
                                  lanes));
  if (lanes > 1)
    m.first = hd_b_op_int(b, HD_EXPR_EQ, m.worker, 0);
  const hd_expr_t *number = first_element(b, point_loop, &m.exists);
  number =
      hd_b_op_int(b, HD_EXPR_MIN, hd_b_op_int(b, HD_EXPR_DIV, number, length),
                  rows->row.points - 1);
  m.loop = loop_over(b, lanes, each, m.worker);
  const hd_expr_t *at = hd_b_op_int(
      b, HD_EXPR_MOD, hd_expr_var(b->arena, m.loop->u.mapfor.vars[0]), each);
  m.given = hd_b_load(b, kept, &at, 1);
  m.draft.b = *b;
  m.draft.t = *t;
  m.draft.t.b = &m.draft.b;
  hd_draft_place(&m.draft, hd_b_let(&m.draft.b, "row", number),
                 rows->row.indices, rows->row.count);
  hd_rows_put(&m);
  *b = m.draft.b;
  *t = m.draft.t;
  t->b = b;
  return NULL;
}
