// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions and scans.
//
// A reduction that varies with the lanes around it goes through its points one
// after the other, and combines all lanes at each. One that does not has lanes
// of its own, along its last axis: their bodies are computed at once and
// combined in order. Either way each sum is made in row-major order.
//
// A scan computes a table of all sums along its axis, from the left (to,
// before) or from the right (from, after), and looks up where it stands.
#include "Graph/Reference/ReferenceState.h"

#include <string.h>

static hd_ref_form_t form_of(const hd_ref_node_t *node) {
  return (hd_ref_form_t)node->form;
}

// sums = identities, for count lanes.
static bool reset(hd_ref_t *r, hd_ref_fold_t *fold, int count) {
  for (unsigned i = 0; i < fold->size; i++) {
    hd_ref_node_t *identity = fold->identities[i];
    if (!hd_ref_run(r, identity, NULL))
      return false;
    hd_ref_fill(form_of(identity), count, fold->sums[i], identity->out);
  }
  return true;
}

// sums = sums combined with values, lane by lane; from the left, or from the
// right. A value that does not vary is one for all lanes.
static bool combine(hd_ref_t *r, hd_ref_fold_t *fold, int count,
                    const hd_ref_lanes_t *values, const bool *varies,
                    bool from_right) {
  hd_ref_lanes_t *sums = fold->sums;
  hd_ref_node_t *first = fold->identities[0];
  bool many = count > 1;
  if (fold->builtin != HD_MONOID_COUNT) {
    hd_expr_kind_t op = hd_monoid_operator(fold->builtin);
    bool value_varies = varies ? varies[0] : many;
    if (from_right)
      hd_ref_operate(op, first->type, first->type, count, sums[0], values[0],
                     value_varies, sums[0], many);
    else
      hd_ref_operate(op, first->type, first->type, count, sums[0], sums[0],
                     many, values[0], value_varies);
    return true;
  }
  for (unsigned i = 0; i < fold->size; i++) {
    hd_ref_node_t *sum = from_right ? fold->right[i] : fold->left[i];
    hd_ref_node_t *value = from_right ? fold->left[i] : fold->right[i];
    sum->out = sums[i];
    sum->varies = many;
    value->out = values[i];
    value->varies = varies ? varies[i] : many;
  }
  hd_ref_move(r, fold->bound_level, 0);
  for (unsigned i = 0; i < fold->size; i++)
    if (!hd_ref_run(r, fold->results[i], NULL))
      return false;
  for (unsigned i = 0; i < fold->size; i++) {
    hd_ref_node_t *result = fold->results[i];
    if (result->varies)
      memcpy(sums[i].any, result->out.any,
             (size_t)count * hd_ref_element(form_of(result)));
    else
      hd_ref_fill(form_of(result), count, sums[i], result->out);
  }
  return true;
}

bool hd_ref_combine(hd_ref_t *r, hd_ref_fold_t *fold, hd_ref_lanes_t value) {
  return combine(r, fold, 1, &value, NULL, false);
}

bool hd_ref_advance(hd_ref_t *r, unsigned first, unsigned count, int skip) {
  for (unsigned i = count; i-- > 0;) {
    unsigned level = first + i;
    if ((int)level == skip || r->levels[level].extent == 1)
      continue;
    int64_t next = r->levels[level].at + 1;
    if (next < r->levels[level].extent) {
      hd_ref_move(r, level, next);
      return true;
    }
    hd_ref_move(r, level, 0);
  }
  return false;
}

bool hd_ref_start(hd_ref_t *r, unsigned first, unsigned count) {
  bool any = true;
  for (unsigned i = 0; i < count; i++) {
    hd_ref_move(r, first + i, 0);
    any &= r->levels[first + i].extent > 0;
  }
  return any;
}

static bool run_bodies(hd_ref_t *r, hd_ref_fold_t *fold, const uint8_t *mask,
                       hd_ref_lanes_t *values, bool *varies) {
  for (unsigned i = 0; i < fold->size; i++) {
    hd_ref_node_t *body = fold->bodies[i];
    if (!hd_ref_run(r, body, mask))
      return false;
    values[i] = body->out;
    varies[i] = body->varies;
  }
  return true;
}

enum { MAX_COMPONENTS = 8 };

// With the lanes around it.
static bool reduce_lanes(hd_ref_t *r, hd_ref_node_t *node,
                         const uint8_t *mask) {
  hd_ref_fold_t *fold = node->u.fold;
  hd_ref_lanes_t values[MAX_COMPONENTS];
  bool varies[MAX_COMPONENTS];
  int count = r->num_lanes;
  if (!reset(r, fold, count))
    return false;
  if (!hd_ref_start(r, fold->first_level, fold->num_levels))
    return true;
  do {
    hd_ref_check_budget(r);
    if (!run_bodies(r, fold, mask, values, varies) ||
        !combine(r, fold, count, values, varies, false))
      return false;
  } while (
      hd_ref_advance(r, fold->first_level, fold->num_levels, HD_REF_NO_LEVEL));
  return true;
}

#define CHAIN(member, expression)                                              \
  do {                                                                         \
    __auto_type x = sum.member[0];                                             \
    for (int i = 0; i < count; i++) {                                          \
      __auto_type y = values.member[i];                                        \
      x = expression;                                                          \
    }                                                                          \
    sum.member[0] = x;                                                         \
  } while (0)

// The usual monoids of types that need no rounding, in one loop.
static bool chain(hd_scalar_t type, hd_builtin_monoid_t monoid, int count,
                  hd_ref_lanes_t sum, hd_ref_lanes_t values) {
  // clang-format off
  if (type == HD_F32)
    switch (monoid) {
    case HD_MONOID_SUM: CHAIN(f, x + y); return true;
    case HD_MONOID_MAX: CHAIN(f, x > y || y != y ? x : y); return true;
    case HD_MONOID_MIN: CHAIN(f, x < y || y != y ? x : y); return true;
    default: return false;
    }
  if (type == HD_F64 && monoid == HD_MONOID_SUM) {
    CHAIN(d, x + y);
    return true;
  }
  // clang-format on
  return false;
}

// Combines the bodies of a strip of own lanes, in order.
static bool combine_strip(hd_ref_t *r, hd_ref_fold_t *fold) {
  hd_ref_lanes_t values[MAX_COMPONENTS], one[MAX_COMPONENTS];
  bool varies[MAX_COMPONENTS];
  int count = r->num_lanes;
  if (!run_bodies(r, fold, NULL, values, varies))
    return false;
  if (fold->builtin != HD_MONOID_COUNT && varies[0] &&
      chain(fold->identities[0]->type, fold->builtin, count, fold->sums[0],
            values[0]))
    return true;
  for (int lane = 0; lane < count; lane++) {
    for (unsigned i = 0; i < fold->size; i++)
      one[i] = hd_ref_lane(values[i], form_of(fold->bodies[i]),
                           varies[i] ? (size_t)lane : 0);
    if (!combine(r, fold, 1, one, NULL, false))
      return false;
  }
  return true;
}

// With lanes of its own, along lane_level.
static bool reduce_alone(hd_ref_t *r, hd_ref_node_t *node) {
  hd_ref_fold_t *fold = node->u.fold;
  int lane_level = r->lane_level, num_lanes = r->num_lanes;
  bool ok = reset(r, fold, 1);
  if (!ok || !hd_ref_start(r, fold->first_level, fold->num_levels))
    return ok;
  r->lane_level = fold->lane_level;
  r->num_lanes = 1;
  int64_t extent =
      fold->lane_level < 0 ? 1 : r->levels[fold->lane_level].extent;
  do {
    for (int64_t at = 0; ok && at < extent; at += HD_REF_LANES) {
      hd_ref_check_budget(r);
      if (fold->lane_level >= 0) {
        r->num_lanes =
            extent - at < HD_REF_LANES ? (int)(extent - at) : HD_REF_LANES;
        if (r->levels[fold->lane_level].at != at || extent > HD_REF_LANES)
          hd_ref_move(r, (unsigned)fold->lane_level, at);
      }
      ok = combine_strip(r, fold);
    }
  } while (ok && hd_ref_advance(r, fold->first_level, fold->num_levels,
                                fold->lane_level));
  r->lane_level = lane_level;
  r->num_lanes = num_lanes;
  return ok;
}

bool hd_ref_reduce(hd_ref_t *r, hd_ref_node_t *node, const uint8_t *mask) {
  if (node->varies ? !reduce_lanes(r, node, mask) : !reduce_alone(r, node))
    return false;
  node->out = node->u.fold->sums[0];
  return true;
}

// --- Scans ---

// A table has lanes where its bodies have those around the scan.
static size_t table_lanes(const hd_ref_t *r, const hd_ref_fold_t *fold) {
  if (fold->lane_level >= 0)
    return 1;
  int64_t extent = r->levels[r->lane_level].extent;
  return extent < HD_REF_LANES ? (size_t)extent : HD_REF_LANES;
}

static bool is_from_right(const hd_ref_fold_t *fold) {
  return fold->part == HD_SCAN_FROM || fold->part == HD_SCAN_AFTER;
}

// Row number row of a table of lanes.
static hd_ref_lanes_t row_of(const hd_ref_fold_t *fold, unsigned i, int64_t row,
                             size_t lanes) {
  return hd_ref_lane(fold->tables[i], form_of(fold->identities[i]),
                     (size_t)row * lanes);
}

static void put_row(const hd_ref_fold_t *fold, int64_t row, size_t lanes,
                    int count) {
  for (unsigned i = 0; i < fold->size; i++)
    memcpy(row_of(fold, i, row, lanes).any, fold->sums[i].any,
           (size_t)count * hd_ref_element(form_of(fold->identities[i])));
}

static void make_tables(hd_ref_t *r, hd_ref_fold_t *fold, size_t lanes) {
  size_t rows = (size_t)r->levels[fold->first_level].extent + 1;
  if (fold->tables[0].any)
    return;
  if (rows > SIZE_MAX / 8 / lanes)
    hd_budget_exhausted(&r->context->budget, HD_EXHAUSTED_MEMORY);
  for (unsigned i = 0; i < fold->size; i++)
    fold->tables[i].any = hd_arena_alloc(
        r->arena, rows * lanes * hd_ref_element(form_of(fold->identities[i])));
}

// A table whose rows have the lanes around the scan.
static bool fill_lanes(hd_ref_t *r, hd_ref_fold_t *fold) {
  hd_ref_lanes_t values[MAX_COMPONENTS];
  bool varies[MAX_COMPONENTS], from_right = is_from_right(fold);
  int64_t extent = r->levels[fold->first_level].extent;
  int count = r->num_lanes;
  size_t lanes = table_lanes(r, fold);
  make_tables(r, fold, lanes);
  if (!reset(r, fold, count))
    return false;
  put_row(fold, from_right ? extent : 0, lanes, count);
  for (int64_t i = 0; i < extent; i++) {
    int64_t at = from_right ? extent - 1 - i : i;
    hd_ref_check_budget(r);
    hd_ref_move(r, fold->first_level, at);
    if (!run_bodies(r, fold, NULL, values, varies) ||
        !combine(r, fold, count, values, varies, from_right))
      return false;
    put_row(fold, from_right ? at : at + 1, lanes, count);
  }
  return true;
}

// A strip of a table of single sums; the lanes are the bodies'.
static bool fill_strip(hd_ref_t *r, hd_ref_fold_t *fold, int64_t first) {
  hd_ref_lanes_t values[MAX_COMPONENTS], one[MAX_COMPONENTS];
  bool varies[MAX_COMPONENTS], from_right = is_from_right(fold);
  int count = r->num_lanes;
  if (!run_bodies(r, fold, NULL, values, varies))
    return false;
  for (int n = 0; n < count; n++) {
    int lane = from_right ? count - 1 - n : n;
    for (unsigned i = 0; i < fold->size; i++)
      one[i] = hd_ref_lane(values[i], form_of(fold->bodies[i]),
                           varies[i] ? (size_t)lane : 0);
    if (!combine(r, fold, 1, one, NULL, from_right))
      return false;
    put_row(fold, first + lane + !from_right, 1, 1);
  }
  return true;
}

static bool fill_alone(hd_ref_t *r, hd_ref_fold_t *fold) {
  int lane_level = r->lane_level, num_lanes = r->num_lanes;
  bool from_right = is_from_right(fold), ok = true;
  int64_t extent = r->levels[fold->first_level].extent;
  int64_t strips = extent / HD_REF_LANES + (extent % HD_REF_LANES > 0);
  make_tables(r, fold, 1);
  if (!reset(r, fold, 1))
    return false;
  put_row(fold, from_right ? extent : 0, 1, 1);
  r->lane_level = fold->lane_level;
  for (int64_t i = 0; ok && i < strips; i++) {
    int64_t at = (from_right ? strips - 1 - i : i) * HD_REF_LANES;
    hd_ref_check_budget(r);
    r->num_lanes =
        extent - at < HD_REF_LANES ? (int)(extent - at) : HD_REF_LANES;
    hd_ref_move(r, fold->first_level, at);
    ok = fill_strip(r, fold, at);
  }
  r->lane_level = lane_level;
  r->num_lanes = num_lanes;
  return ok;
}

static bool is_filled(const hd_ref_t *r, const hd_ref_fold_t *fold) {
  if (fold->filled == 0)
    return false;
  for (uint64_t deps = fold->deps; deps; deps &= deps - 1)
    if (r->levels[__builtin_ctzll(deps)].moved > fold->filled)
      return false;
  return true;
}

// The row of a position; those off the axis combine nothing, or all of it.
static int64_t row_at(const hd_ref_fold_t *fold, int64_t at, int64_t extent) {
  bool after = fold->part == HD_SCAN_TO || fold->part == HD_SCAN_AFTER;
  at = at < -1 ? -1 : at > extent ? extent : at;
  at += after;
  return at < 0 ? 0 : at > extent ? extent : at;
}

bool hd_ref_scan(hd_ref_t *r, hd_ref_node_t *node, const uint8_t *mask) {
  hd_ref_fold_t *fold = node->u.fold;
  int64_t extent = r->levels[fold->first_level].extent;
  bool has_lanes = fold->lane_level < 0;
  if (!is_filled(r, fold)) {
    uint64_t now = r->clock;
    if (!(has_lanes ? fill_lanes(r, fold) : fill_alone(r, fold)))
      return false;
    fold->filled = now;
  }
  if (!hd_ref_run(r, fold->at, mask))
    return false;
  size_t lanes = table_lanes(r, fold);
  int count = hd_ref_count(r, node);
  for (unsigned n = 0; n < fold->size; n++) {
    hd_ref_form_t form = form_of(fold->identities[n]);
    size_t size = hd_ref_element(form);
    for (int i = 0; i < count; i++) {
      if (mask && !mask[i])
        continue;
      int64_t row =
          row_at(fold, fold->at->out.i[fold->at->varies ? i : 0], extent);
      hd_ref_lanes_t from =
          hd_ref_lane(fold->tables[n], form,
                      (size_t)row * lanes + (has_lanes ? (size_t)i : 0));
      memcpy(hd_ref_lane(fold->sums[n], form, (size_t)i).any, from.any, size);
    }
  }
  node->out = fold->sums[0];
  return true;
}
