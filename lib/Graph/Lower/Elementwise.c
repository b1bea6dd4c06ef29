// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that compute each element from one element of each operand.
#include "Graph/Lower/Lower.h"

bool hd_onnx_identity(hd_lowering_t *l) {
  return hd_lower_output(l, 0, hd_lower_input(l, 0));
}

bool hd_onnx_unary(hd_lowering_t *l) {
  const hd_value_t *y =
      hd_lower_unary(l, hd_lower_argument(l), hd_lower_input(l, 0));
  return y && hd_lower_output(l, 0, y);
}

bool hd_onnx_binary(hd_lowering_t *l) {
  const hd_value_t *y = hd_lower_binary(
      l, hd_lower_argument(l), hd_lower_input(l, 0), hd_lower_input(l, 1));
  return y && hd_lower_output(l, 0, y);
}
