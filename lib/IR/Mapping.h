// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Task mappings as they stand in a program. The algebra is in lib/TaskMapping.
//
// A mapping is (workers, task shape, f: worker -> ordered list of tasks).
#ifndef HIDET_IR_MAPPING_H
#define HIDET_IR_MAPPING_H

#include "IR/Tensor.h"

typedef enum hd_mapping_kind {
  HD_MAPPING_SPATIAL, // spatial(d...): prod d workers, worker w does task w
  HD_MAPPING_REPEAT,  // repeat(d...): one worker does every task, in order
  HD_MAPPING_COMPOSE, // left * right
  HD_MAPPING_AUTO, // auto_map(d..., workers = n): repeat * spatial, by gcd from
                   // the last axis back
  HD_MAPPING_CUSTOM, // custom(n, [d...], (w, r: count) -> [e...])
  HD_MAPPING_WITHIN, // within(left, e...): tasks with an index >= e are left
                     // out
  HD_MAPPING_IDLE,   // idle(left, n): n workers, those past left's do nothing
} hd_mapping_kind_t;

enum {
  HD_MAPPING_MAX_RANK = HD_MAX_RANK,
  HD_MAPPING_MAX_SIZE = 1000, // What walks a mapping recurses.
};

struct hd_mapping {
  hd_mapping_kind_t kind;
  uint32_t rank;
  uint32_t size; // Of the mappings that it is made of, itself among them.
  hd_loc_t loc;
  const int64_t *dims;   // The task shape, for every kind.
  const uint32_t *order; // SPATIAL, REPEAT: axes from the slowest to the
                         // fastest; NULL: 0, 1, ...
  int64_t workers;       // For every kind.
  const hd_mapping_t *left, *right; // COMPOSE; WITHIN and IDLE have left alone
  const hd_expr_t *const
      *bounds; // WITHIN: one for each axis, i32; may be run-time values
  const hd_var_t *worker,
      *repeat;   // CUSTOM; repeat is NULL where count is 1 and unnamed
  int64_t count; // CUSTOM: tasks a worker
  const hd_expr_t *const *exprs; // CUSTOM: a task index for each axis
};

// Constructors compute dims and workers; they return NULL where the operands
// do not fit (ranks differ, products pass 2^31 - 1, a dimension below 1, no
// axis or more than HD_MAPPING_MAX_RANK, more mappings than
// HD_MAPPING_MAX_SIZE).
const hd_mapping_t *hd_mapping_spatial(hd_arena_t *arena, const int64_t *dims,
                                       const uint32_t *order, unsigned rank);
const hd_mapping_t *hd_mapping_repeat(hd_arena_t *arena, const int64_t *dims,
                                      const uint32_t *order, unsigned rank);
const hd_mapping_t *hd_mapping_compose(hd_arena_t *arena,
                                       const hd_mapping_t *left,
                                       const hd_mapping_t *right);
const hd_mapping_t *hd_mapping_auto(hd_arena_t *arena, const int64_t *dims,
                                    unsigned rank, int64_t workers);
const hd_mapping_t *hd_mapping_custom(hd_arena_t *arena, int64_t workers,
                                      const int64_t *dims, unsigned rank,
                                      const hd_var_t *worker,
                                      const hd_var_t *repeat, int64_t count,
                                      const hd_expr_t *const *exprs);
const hd_mapping_t *hd_mapping_within(hd_arena_t *arena,
                                      const hd_mapping_t *inner,
                                      const hd_expr_t *const *bounds);
const hd_mapping_t *hd_mapping_idle(hd_arena_t *arena,
                                    const hd_mapping_t *inner, int64_t workers);
const char *hd_mapping_kind_name(hd_mapping_kind_t kind);
// Structural equality.
bool hd_mapping_equal(const hd_mapping_t *a, const hd_mapping_t *b);

#endif
