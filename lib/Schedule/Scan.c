// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread for each row along the axis of a scan: it carries what was combined
// so far.
//
//   y[i, j] = scan sum(p: n to j) x[i, p]
//
// becomes, for row i,
//
//   register acc: f32 = 0
//   for p in 0..n {
//     acc = acc + x[i, p]
//     y[i, p] = acc
//   }
//
// From the end on (`from`, `after`) the row is walked backwards and values are
// combined from the left.
#include "Schedule/Rules.h"

enum { THREADS = 128 };

// Which of the domain's indices a scan stands at, where it has a row of its own
// to walk; -1: none.
static int find_axis(const hd_definition_t *d) {
  if (d->term->kind != HD_TERM_SCAN)
    return -1;
  const hd_reduction_t *r = d->term->u.reduction;
  for (uint32_t i = 0; i < d->num_indices; i++) {
    const hd_index_t *index = d->indices[i];
    bool stands = r->at->kind == HD_TERM_INDEX && r->at->u.index == index &&
                  hd_flat_range(index) == hd_flat_range(r->indices[0]);
    for (unsigned k = 0; stands && k < d->term->num_operands; k++)
      stands = !hd_flat_uses(d->term->operands[k], index);
    if (stands)
      return (int)i;
  }
  return -1;
}

static void combine(hd_kernel_draft_t *draft, const hd_term_t *scan,
                    const hd_var_t *const *cells, bool backwards) {
  hd_translator_t *t = &draft->t;
  if (!backwards) {
    hd_translate_step(t, scan, cells);
    return;
  }
  const hd_expr_t *left[HD_MAX_COMPONENTS], *right[HD_MAX_COMPONENTS];
  const hd_expr_t *result[HD_MAX_COMPONENTS];
  for (unsigned i = 0; i < scan->num_operands; i++) {
    left[i] = hd_b_let(&draft->b, "value", hd_translate(t, scan->operands[i]));
    right[i] = hd_b_get(&draft->b, cells[i]);
  }
  hd_translate_combination(t, scan, left, right, result);
  for (unsigned i = 0; i < scan->num_operands; i++)
    result[i] = hd_b_let(&draft->b, "both", result[i]);
  for (unsigned i = 0; i < scan->num_operands; i++)
    hd_b_set(&draft->b, cells[i], result[i]);
}

static void store(hd_kernel_draft_t *draft, const hd_definition_t *d,
                  const hd_var_t *const *cells) {
  for (uint32_t i = 0; i < d->num_targets; i++)
    hd_draft_store(draft, d, i, hd_b_get(&draft->b, cells[i]));
}

static void put_row(hd_kernel_draft_t *draft, const hd_definition_t *d,
                    const hd_index_t *axis) {
  hd_builder_t *b = &draft->b;
  const hd_reduction_t *r = d->term->u.reduction;
  bool backwards = r->part == HD_SCAN_FROM || r->part == HD_SCAN_AFTER;
  bool first = r->part == HD_SCAN_TO || r->part == HD_SCAN_FROM;
  const hd_var_t *cells[HD_MAX_COMPONENTS];
  hd_translate_begin(&draft->t, d->term, cells);
  hd_scalar_t type = hd_translate_index_type(axis);
  const hd_expr_t *size = hd_b_int(b, type, hd_flat_range(axis));
  const hd_var_t *var = hd_b_loop_var(b, r->indices[0]->name, type);
  const hd_expr_t *at = hd_expr_var(b->arena, var);
  hd_open_block_t block;
  hd_b_open(b, &block);
  if (backwards)
    at = hd_b_let(b, "at",
                  hd_b_op(b, HD_EXPR_SUB,
                          hd_b_int(b, type, hd_flat_range(axis) - 1), at));
  hd_translate_bind(&draft->t, axis, at);
  hd_translate_bind(&draft->t, r->indices[0], at);
  if (!first)
    store(draft, d, cells);
  combine(draft, d->term, cells, backwards);
  if (first)
    store(draft, d, cells);
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, var, hd_b_int(b, type, 0), size, NULL, 0, body);
}

bool hd_rule_scan(hd_rules_t *rules, const hd_definition_t *d) {
  int axis = find_axis(d);
  if (axis < 0)
    return false;
  const hd_index_t *rows[HD_MAX_RANK];
  unsigned count = 0;
  for (uint32_t i = 0; i < d->num_indices; i++)
    if ((int)i != axis)
      rows[count++] = d->indices[i];
  hd_kernel_draft_t draft;
  hd_draft_begin(&draft, rules);
  hd_grid_t grid = hd_grid_linear(hd_flat_points(rows, count), THREADS);
  hd_open_block_t inner;
  const hd_expr_t *number = hd_draft_open_workers(&draft, &grid, &inner);
  hd_draft_place(&draft, number, rows, count);
  put_row(&draft, d, d->indices[axis]);
  hd_draft_finish_workers(&draft, &grid, "_scan");
  return true;
}
