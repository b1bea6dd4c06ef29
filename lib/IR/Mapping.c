// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Making task mappings: the task shape and the number of workers of every kind
// are computed once, here, with overflow checked.

#include "IR/Mapping.h"

#include <string.h>

static const int64_t max_product = INT32_MAX;

// The product of dims; false where a dimension is below 1 or the product
// passes 2^31 - 1.
static bool product_of(const int64_t *dims, unsigned rank, int64_t *product) {
  int64_t result = 1;
  for (unsigned a = 0; a < rank; ++a) {
    if (dims[a] < 1 || dims[a] > max_product / result)
      return false;
    result *= dims[a];
  }
  *product = result;
  return rank > 0 && rank <= HD_MAPPING_MAX_RANK;
}

static bool is_permutation(const uint32_t *order, unsigned rank) {
  for (unsigned a = 0; a < rank; ++a) {
    bool found = false;
    for (unsigned i = 0; i < rank; ++i)
      found |= order[i] == a;
    if (!found)
      return false;
  }
  return true;
}

static hd_mapping_t *make_mapping(hd_arena_t *arena, hd_mapping_kind_t kind,
                                  const int64_t *dims, unsigned rank,
                                  int64_t workers) {
  hd_mapping_t *m = HD_ARENA_NEW(arena, hd_mapping_t);
  int64_t *copy = HD_ARENA_ARRAY(arena, int64_t, rank);
  memcpy(copy, dims, rank * sizeof(*copy));
  m->kind = kind;
  m->rank = rank;
  m->dims = copy;
  m->workers = workers;
  m->size = 1;
  return m;
}

static const hd_expr_t *const *
copy_exprs(hd_arena_t *arena, const hd_expr_t *const *exprs, unsigned count) {
  const hd_expr_t **copy = HD_ARENA_ARRAY(arena, const hd_expr_t *, count);
  for (unsigned i = 0; i < count; ++i)
    copy[i] = exprs[i];
  return copy;
}

// spatial and repeat. The order 0, 1, ... is kept as NULL, so that equal
// mappings are structurally equal.
static const hd_mapping_t *make_leaf(hd_arena_t *arena, hd_mapping_kind_t kind,
                                     const int64_t *dims, const uint32_t *order,
                                     unsigned rank) {
  int64_t product;
  if (!product_of(dims, rank, &product) ||
      (order && !is_permutation(order, rank)))
    return NULL;
  hd_mapping_t *m = make_mapping(arena, kind, dims, rank,
                                 kind == HD_MAPPING_SPATIAL ? product : 1);
  bool sorted = true;
  for (unsigned i = 0; order && i < rank; ++i)
    sorted &= order[i] == i;
  if (!sorted) {
    uint32_t *copy = HD_ARENA_ARRAY(arena, uint32_t, rank);
    memcpy(copy, order, rank * sizeof(*copy));
    m->order = copy;
  }
  return m;
}

const hd_mapping_t *hd_mapping_spatial(hd_arena_t *arena, const int64_t *dims,
                                       const uint32_t *order, unsigned rank) {
  return make_leaf(arena, HD_MAPPING_SPATIAL, dims, order, rank);
}

const hd_mapping_t *hd_mapping_repeat(hd_arena_t *arena, const int64_t *dims,
                                      const uint32_t *order, unsigned rank) {
  return make_leaf(arena, HD_MAPPING_REPEAT, dims, order, rank);
}

const hd_mapping_t *hd_mapping_compose(hd_arena_t *arena,
                                       const hd_mapping_t *left,
                                       const hd_mapping_t *right) {
  int64_t product;
  if (left->rank != right->rank ||
      left->workers > max_product / right->workers ||
      left->size + right->size >= HD_MAPPING_MAX_SIZE)
    return NULL;
  int64_t *dims = HD_ARENA_ARRAY(arena, int64_t, left->rank);
  for (unsigned a = 0; a < left->rank; ++a) {
    if (left->dims[a] > max_product / right->dims[a])
      return NULL;
    dims[a] = left->dims[a] * right->dims[a];
  }
  if (!product_of(dims, left->rank, &product))
    return NULL;
  hd_mapping_t *m = make_mapping(arena, HD_MAPPING_COMPOSE, dims, left->rank,
                                 left->workers * right->workers);
  m->left = left;
  m->right = right;
  m->size += left->size + right->size;
  m->loc = left->loc;
  return m;
}

const hd_mapping_t *hd_mapping_auto(hd_arena_t *arena, const int64_t *dims,
                                    unsigned rank, int64_t workers) {
  int64_t product;
  if (!product_of(dims, rank, &product) || workers < 1 || workers > max_product)
    return NULL;
  return make_mapping(arena, HD_MAPPING_AUTO, dims, rank, workers);
}

const hd_mapping_t *hd_mapping_custom(hd_arena_t *arena, int64_t workers,
                                      const int64_t *dims, unsigned rank,
                                      const hd_var_t *worker,
                                      const hd_var_t *repeat, int64_t count,
                                      const hd_expr_t *const *exprs) {
  int64_t product;
  if (!product_of(dims, rank, &product) || workers < 1 || count < 1 ||
      count > max_product || workers > max_product / count)
    return NULL;
  hd_mapping_t *m = make_mapping(arena, HD_MAPPING_CUSTOM, dims, rank, workers);
  m->worker = worker;
  m->repeat = repeat;
  m->count = count;
  m->exprs = copy_exprs(arena, exprs, rank);
  return m;
}

const hd_mapping_t *hd_mapping_within(hd_arena_t *arena,
                                      const hd_mapping_t *inner,
                                      const hd_expr_t *const *bounds) {
  if (inner->size >= HD_MAPPING_MAX_SIZE)
    return NULL;
  hd_mapping_t *m = make_mapping(arena, HD_MAPPING_WITHIN, inner->dims,
                                 inner->rank, inner->workers);
  m->left = inner;
  m->size += inner->size;
  m->bounds = copy_exprs(arena, bounds, inner->rank);
  return m;
}

const hd_mapping_t *
hd_mapping_idle(hd_arena_t *arena, const hd_mapping_t *inner, int64_t workers) {
  if (workers < inner->workers || workers > max_product ||
      inner->size >= HD_MAPPING_MAX_SIZE)
    return NULL;
  hd_mapping_t *m =
      make_mapping(arena, HD_MAPPING_IDLE, inner->dims, inner->rank, workers);
  m->left = inner;
  m->size += inner->size;
  return m;
}

const char *hd_mapping_kind_name(hd_mapping_kind_t kind) {
  static const char *const names[] = {
      [HD_MAPPING_SPATIAL] = "spatial", [HD_MAPPING_REPEAT] = "repeat",
      [HD_MAPPING_COMPOSE] = "*",       [HD_MAPPING_AUTO] = "auto_map",
      [HD_MAPPING_CUSTOM] = "custom",   [HD_MAPPING_WITHIN] = "within",
      [HD_MAPPING_IDLE] = "idle",
  };
  return names[kind];
}

static bool orders_equal(const hd_mapping_t *a, const hd_mapping_t *b) {
  if (!a->order || !b->order)
    return a->order == b->order;
  return memcmp(a->order, b->order, a->rank * sizeof(*a->order)) == 0;
}

static bool exprs_equal(const hd_expr_t *const *a, const hd_expr_t *const *b,
                        unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    if (!hd_expr_equal(a[i], b[i]))
      return false;
  return true;
}

bool hd_mapping_equal(const hd_mapping_t *a, const hd_mapping_t *b) {
  if (a == b)
    return true;
  if (a->kind != b->kind || a->rank != b->rank || a->workers != b->workers ||
      memcmp(a->dims, b->dims, a->rank * sizeof(*a->dims)) != 0)
    return false;
  switch (a->kind) {
  case HD_MAPPING_SPATIAL:
  case HD_MAPPING_REPEAT:
    return orders_equal(a, b);
  case HD_MAPPING_AUTO:
    return true;
  case HD_MAPPING_COMPOSE:
    return hd_mapping_equal(a->left, b->left) &&
           hd_mapping_equal(a->right, b->right);
  case HD_MAPPING_CUSTOM: // Bound variables are known by address.
    return a->worker == b->worker && a->repeat == b->repeat &&
           a->count == b->count && exprs_equal(a->exprs, b->exprs, a->rank);
  case HD_MAPPING_WITHIN:
    return hd_mapping_equal(a->left, b->left) &&
           exprs_equal(a->bounds, b->bounds, a->rank);
  case HD_MAPPING_IDLE:
    return hd_mapping_equal(a->left, b->left);
  }
  return false;
}
