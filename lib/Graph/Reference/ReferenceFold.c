// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions, one point after the other in row-major order, and scans: a table
// of all sums along the axis, from the left (to, before) or from the right
// (from, after), and a look at where the scan stands.
#include "Graph/Reference/ReferenceState.h"

#include <string.h>

// --- Levels ---

void hd_ref_move(hd_ref_t *r, unsigned level, int64_t at) {
  r->levels[level].at = at;
  r->levels[level].moved = ++r->clock;
}

// To the next point on one axis; false, and to the first one, after the last.
static bool step(hd_ref_t *r, unsigned level) {
  hd_ref_level_t *l = &r->levels[level];
  if (l->extent == 1)
    return false;
  bool more = l->at + 1 < l->extent;
  hd_ref_move(r, level, more ? l->at + 1 : 0);
  return more;
}

bool hd_ref_start(hd_ref_t *r, unsigned first, unsigned count) {
  bool any = true;
  for (unsigned i = 0; i < count; i++) {
    hd_ref_move(r, first + i, 0);
    any &= r->levels[first + i].extent > 0;
  }
  return any;
}

bool hd_ref_advance(hd_ref_t *r, unsigned first, unsigned count,
                    int innermost) {
  if (innermost >= 0 && step(r, (unsigned)innermost))
    return true;
  for (unsigned i = count; i-- > 0;)
    if ((int)(first + i) != innermost && step(r, first + i))
      return true;
  return false;
}

bool hd_ref_is_current(const hd_ref_t *r, uint64_t deps, uint64_t computed) {
  for (; deps && computed; deps &= deps - 1)
    if (r->levels[__builtin_ctzll(deps)].moved > computed)
      return false;
  return computed != 0;
}

// --- Reductions ---

bool hd_ref_combine(hd_ref_t *r, hd_ref_fold_t *fold, const hd_number_t *left,
                    const hd_number_t *right) {
  if (fold->builtin != HD_MONOID_COUNT)
    return hd_scalar_operate(hd_monoid_operator(fold->builtin), fold->type,
                             left[0], right[0], &fold->sums[0]);
  memcpy(fold->left, left, fold->size * sizeof *left);
  memcpy(fold->right, right, fold->size * sizeof *right);
  hd_ref_move(r, fold->bound_level, 0);
  for (unsigned i = 0; i < fold->size; i++)
    if (!hd_ref_value(r, fold->results[i], &fold->sums[i]))
      return false;
  return true;
}

// What nodes are worth, one for each component.
static bool evaluate(hd_ref_t *r, hd_ref_fold_t *fold,
                     hd_ref_node_t *const *nodes, hd_number_t *values) {
  for (unsigned i = 0; i < fold->size; i++)
    if (!hd_ref_value(r, nodes[i], &values[i]))
      return false;
  return true;
}

// sums = sums combined with what the bodies are worth where the levels stand.
static bool add_bodies(hd_ref_t *r, hd_ref_fold_t *fold, bool from_right) {
  hd_ref_check_budget(r);
  return evaluate(r, fold, fold->bodies, fold->values) &&
         (from_right ? hd_ref_combine(r, fold, fold->values, fold->sums)
                     : hd_ref_combine(r, fold, fold->sums, fold->values));
}

bool hd_ref_reduce(hd_ref_t *r, hd_ref_fold_t *fold) {
  if (hd_ref_is_current(r, fold->deps, fold->computed))
    return true;
  uint64_t now = r->clock;
  if (!evaluate(r, fold, fold->identities, fold->sums))
    return false;
  if (hd_ref_start(r, fold->first_level, fold->num_levels))
    do
      if (!add_bodies(r, fold, false))
        return false;
    while (hd_ref_advance(r, fold->first_level, fold->num_levels,
                          HD_REF_NO_LEVEL));
  fold->computed = now;
  return true;
}

// --- Scans ---

static void put_row(const hd_ref_fold_t *fold, int64_t row) {
  memcpy(fold->table + (size_t)row * fold->size, fold->sums,
         fold->size * sizeof *fold->sums);
}

static bool fill_table(hd_ref_t *r, hd_ref_fold_t *fold) {
  int64_t extent = r->levels[fold->first_level].extent;
  bool from_right = fold->part == HD_SCAN_FROM || fold->part == HD_SCAN_AFTER;
  if (!fold->table) {
    size_t rows = (size_t)extent + 1;
    if (rows > SIZE_MAX / sizeof(hd_number_t) / fold->size)
      hd_budget_exhausted(&r->context->budget, HD_EXHAUSTED_MEMORY);
    fold->table = HD_ARENA_ARRAY(r->arena, hd_number_t, rows * fold->size);
  }
  if (!evaluate(r, fold, fold->identities, fold->sums))
    return false;
  put_row(fold, from_right ? extent : 0);
  for (int64_t i = 0; i < extent; i++) {
    int64_t at = from_right ? extent - 1 - i : i;
    hd_ref_move(r, fold->first_level, at);
    if (!add_bodies(r, fold, from_right))
      return false;
    put_row(fold, from_right ? at : at + 1);
  }
  return true;
}

// The row of a position; those off the axis combine nothing, or all of it.
static int64_t row_at(const hd_ref_fold_t *fold, int64_t at, int64_t extent) {
  bool after = fold->part == HD_SCAN_TO || fold->part == HD_SCAN_AFTER;
  at = at < -1 ? -1 : at > extent ? extent : at;
  at += after;
  return at < 0 ? 0 : at > extent ? extent : at;
}

bool hd_ref_scan(hd_ref_t *r, hd_ref_fold_t *fold) {
  uint64_t now = r->clock;
  hd_number_t at;
  if (!hd_ref_is_current(r, fold->deps, fold->computed)) {
    if (!fill_table(r, fold))
      return false;
    fold->computed = now;
  }
  if (!hd_ref_value(r, fold->at, &at))
    return false;
  int64_t row = row_at(fold, at.i, r->levels[fold->first_level].extent);
  memcpy(fold->sums, fold->table + (size_t)row * fold->size,
         fold->size * sizeof *fold->sums);
  return true;
}
