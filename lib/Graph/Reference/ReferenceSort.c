// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sorts: what comes j-th of the values along an index, by comparing them.
#include "Graph/Reference/ReferenceState.h"

#include <stdlib.h>

typedef struct sorting {
  const hd_number_t *values;
  hd_scalar_t type;
  bool descends;
} sorting_t;

typedef struct sorted {
  const sorting_t *by;
  int64_t at;
} sorted_t;

// NaN is greater than all, and equal to NaN.
static int compare_values(hd_scalar_t type, hd_number_t a, hd_number_t b) {
  if (hd_scalar_class(type) == HD_CLASS_FLOAT)
    return a.f != a.f || b.f != b.f ? (a.f != a.f) - (b.f != b.f)
                                    : (a.f > b.f) - (a.f < b.f);
  if (hd_type_is_unsigned(hd_type(type)))
    return ((uint64_t)a.i > (uint64_t)b.i) - ((uint64_t)a.i < (uint64_t)b.i);
  return (a.i > b.i) - (a.i < b.i);
}

static int compare(const void *x, const void *y) {
  const sorted_t *a = x, *b = y;
  const sorting_t *by = a->by;
  int order = compare_values(by->type, by->values[a->at], by->values[b->at]);
  if (order)
    return by->descends ? -order : order;
  return (a->at > b->at) - (a->at < b->at);
}

// The values along the level, which is the last of the definition's.
static bool evaluate(hd_ref_t *r, const hd_ref_node_t *root, unsigned level,
                     hd_number_t *values) {
  for (int64_t i = 0; i < r->levels[level].extent; i++) {
    hd_ref_check_budget(r);
    hd_ref_move(r, level, i);
    if (!hd_ref_value(r, root, &values[i]))
      return false;
  }
  return true;
}

bool hd_ref_sort(hd_ref_t *r, const hd_definition_t *d,
                 hd_host_tensor_t *target) {
  unsigned sorted = r->num_levels - 1, along = 0;
  int64_t count = r->levels[sorted].extent, stride = 1;
  const hd_ref_node_t *root = hd_ref_build(r, d->term, 0);
  if (!root)
    return false;
  while (r->levels[along].index != d->along)
    along++;
  for (unsigned i = along + 1; i < sorted; i++)
    stride *= r->levels[i].extent;
  hd_number_t *values = HD_ARENA_ARRAY(r->arena, hd_number_t, (size_t)count);
  sorted_t *order = HD_ARENA_ARRAY(r->arena, sorted_t, (size_t)count);
  sorting_t by = {values, root->type, d->descends};
  if (!hd_ref_start(r, 0, sorted))
    return true;
  do {
    if (r->levels[along].at != 0)
      continue;
    if (!evaluate(r, root, sorted, values))
      return false;
    for (int64_t i = 0; i < count; i++)
      order[i] = (sorted_t){&by, i};
    qsort(order, (size_t)count, sizeof *order, compare);
    int64_t point = 0;
    for (unsigned i = 0; i < sorted; i++)
      point = point * r->levels[i].extent + r->levels[i].at;
    for (int64_t j = 0; j < r->levels[along].extent; j++)
      hd_ref_set(target, point + j * stride, (hd_number_t){.i = order[j].at});
  } while (hd_ref_advance(r, 0, sorted, HD_REF_NO_LEVEL));
  return true;
}
