// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What operators of bytes share: a number is (x - zero) * scale.
#ifndef HIDET_GRAPH_EXPAND_LOWER_QUANTIZE_H
#define HIDET_GRAPH_EXPAND_LOWER_QUANTIZE_H

#include "Graph/Expand/Lower/Lower.h"

// Numbers of that type; scale and zero broadcast. zero NULL: 0.
const hd_value_t *hd_lower_dequantize(hd_lowering_t *l, const hd_value_t *x,
                                      const hd_value_t *scale,
                                      const hd_value_t *zero, hd_scalar_t type);
// u8, and the scale and the zero point that the range of x says.
bool hd_lower_dynamic_quantize(hd_lowering_t *l, const hd_value_t *x,
                               const hd_value_t **outputs);
// x - zero in i32.
const hd_value_t *hd_lower_subtract_zero(hd_lowering_t *l, const hd_value_t *x,
                                         const hd_value_t *zero);
// The product in i32; za is of all of a or of its rows, zb of all of b or of
// its columns.
const hd_value_t *hd_lower_integer_matmul(hd_lowering_t *l, const hd_value_t *a,
                                          const hd_value_t *za,
                                          const hd_value_t *b,
                                          const hd_value_t *zb);
// Sums of products as integers like zero, by the scales a, b and y.
const hd_value_t *hd_lower_requantize(hd_lowering_t *l, const hd_value_t *x,
                                      const hd_value_t *a, const hd_value_t *b,
                                      const hd_value_t *y,
                                      const hd_value_t *zero);

#endif
