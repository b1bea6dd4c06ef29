// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HIDET_GRAPH_EXPAND_LOWER_CONTROLFLOW_H
#define HIDET_GRAPH_EXPAND_LOWER_CONTROLFLOW_H

#include "Graph/Expand/Lower/Lower.h"

// What a bool of one element holds; false where it is not known yet.
bool hd_lower_truth(hd_lowering_t *l, const hd_value_t *value, bool *truth);
// An i64 of rank 0.
const hd_value_t *hd_lower_index(hd_lowering_t *l, int64_t index);
// Element i along an axis, which goes away.
const hd_value_t *hd_lower_take(hd_lowering_t *l, const hd_value_t *x,
                                int64_t axis, int64_t i);
// With an axis of size 1 more.
const hd_value_t *hd_lower_insert_axis(hd_lowering_t *l, const hd_value_t *x,
                                       int64_t axis);
// Tensors of one shape along a new axis; at least one.
const hd_value_t *hd_lower_stack(hd_lowering_t *l,
                                 const hd_value_t *const *items, size_t count,
                                 int64_t axis);
// A graph attribute; NULL, reported, where it is missing.
const hd_graph_t *hd_lower_body(hd_lowering_t *l, const char *name);

#endif
