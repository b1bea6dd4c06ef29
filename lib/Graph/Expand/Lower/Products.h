// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HIDET_GRAPH_EXPAND_LOWER_PRODUCTS_H
#define HIDET_GRAPH_EXPAND_LOWER_PRODUCTS_H

#include "Graph/Expand/Lower/Lower.h"

// The product of the last two axes; those before broadcast.
const hd_value_t *hd_lower_matmul(hd_lowering_t *l, const hd_value_t *a,
                                  const hd_value_t *b, bool transpose_a,
                                  bool transpose_b);
// numpy.matmul: vectors, too.
const hd_value_t *hd_lower_numpy_matmul(hd_lowering_t *l, const hd_value_t *a,
                                        const hd_value_t *b);
// x * factor.
const hd_value_t *hd_lower_scale(hd_lowering_t *l, const hd_value_t *x,
                                 double factor);

#endif
