// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which elements of a graph's values anybody reads, in a graph that serves all
// sizes up to a bound (Bucket.h): those before an extent, an element of an
// input. It is found from the terms of the nodes, from the graph's outputs
// back; nothing is declared.
//
//   y[i, j] = i < extents[0] ? x[i, j] : 0      of x: i < extents[0]
//   x[i, j] = sum(p: 64) a[i, p] * b[p, j]      of a, too; of b all
#ifndef HIDET_FUSION_TRIM_NEED_H
#define HIDET_FUSION_TRIM_NEED_H

#include "Fusion/Group/Group.h"

// An element of a vector of i64 that comes in; input NULL: no extent.
typedef struct hd_extent_at {
  const hd_value_t *input;
  int64_t at;
} hd_extent_at_t;

// Of each axis of a value: from which extent on nobody needs an element.
typedef struct hd_need {
  hd_extent_at_t axes[HD_MAX_RANK];
} hd_need_t;

typedef struct hd_needs hd_needs_t;

// Of a graph of tasks whose shapes are known; it lives in the fusion's arena.
// NULL where no value has an extent.
hd_needs_t *hd_needs_find(hd_fusion_t *fusion, const hd_graph_t *graph);

// NULL: all of it may be needed.
const hd_need_t *hd_need_of(const hd_needs_t *needs, const hd_value_t *value);

// The same elements, under another shape of as many: an axis keeps its extent
// where one of that size lies as far apart.
hd_need_t hd_need_reshape(const hd_need_t *need, const int64_t *from,
                          unsigned from_rank, const int64_t *to,
                          unsigned to_rank);

#endif
