// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the blocks of a kernel are at work: an index as what all threads of a
// block, and all blocks of its cluster, agree on, and what they have beside it.
//
//   block(256) cluster(2)
//   (block / 2 * 8 + thread / 32) * 4 + 1    is   block / 2 * 32 + [1, 29]
#ifndef HIDET_FUSION_TRIM_SPREAD_H
#define HIDET_FUSION_TRIM_SPREAD_H

#include "IR/Module.h"
#include "Support/Map.h"

// base + least .. base + most. base: of the type of the index, over `block`,
// `grid_dim` and names; NULL: 0.
typedef struct hd_spread {
  bool known;
  const hd_expr_t *base;
  int64_t least, most;
} hd_spread_t;

// More than any index: there is no telling.
enum { HD_SPREAD_BITS = 40 };
#define HD_SPREAD_FAR (INT64_C(1) << HD_SPREAD_BITS)

typedef struct hd_spreads {
  hd_arena_t *arena;
  int64_t threads, cluster;        // Of a block, of a cluster.
  bool is_line;                    // The grid has one dimension, clusters, too.
  int64_t least[HD_BUILTIN_COUNT]; // Where the statement at hand is.
  hd_ptr_map_t vars;               // To hd_spread_t.
  hd_ptr_map_t named;              // Names that stand in bases: what they are.
} hd_spreads_t;

void hd_spreads_init(hd_spreads_t *spreads, hd_arena_t *arena,
                     const hd_func_t *kernel);
hd_spread_t hd_spread_of(const hd_spreads_t *spreads, const hd_expr_t *e);
void hd_spread_set(hd_spreads_t *spreads, const hd_var_t *var,
                   hd_spread_t spread);
// From here on a name stands for itself; base: what it is, NULL: not known.
void hd_spread_name(hd_spreads_t *spreads, const hd_var_t *var,
                    const hd_expr_t *base);
// base + number; an index of that type.
const hd_expr_t *hd_spread_end(const hd_spreads_t *spreads, hd_type_t type,
                               const hd_expr_t *base, int64_t number);

#endif
