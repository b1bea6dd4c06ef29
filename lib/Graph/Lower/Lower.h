// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions that the rows of ONNX/Operators.def name, each declared, and
// what several of them use.
#ifndef HIDET_GRAPH_LOWER_LOWER_H
#define HIDET_GRAPH_LOWER_LOWER_H

#include "Graph/Lowering.h"

#define HD_ONNX(domain, op, since, function, argument, min_inputs, max_inputs) \
  bool hd_onnx_##function(hd_lowering_t *l);
#include "Graph/ONNX/Operators.def"
#undef HD_ONNX

#endif
