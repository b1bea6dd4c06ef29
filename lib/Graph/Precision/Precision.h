// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arithmetic that a graph of tasks is compiled for.
#ifndef HIDET_GRAPH_PRECISION_PRECISION_H
#define HIDET_GRAPH_PRECISION_PRECISION_H

#include "IR/Graph/Graph.h"
#include "Support/Map.h"

typedef enum hd_precision {
  HD_PRECISION_MODEL, // As the model says.
  // f16, bf16 and f32 are all f32:
  HD_PRECISION_F32,
  // and the operands of products and convolutions are rounded to
  HD_PRECISION_TF32,
  HD_PRECISION_F16,
  HD_PRECISION_BF16,
  HD_PRECISIONS
} hd_precision_t;

const char *hd_precision_name(hd_precision_t precision); // "model", "f16"
// The type of a product's operands that the model has in a type.
hd_scalar_t hd_precision_operand(hd_precision_t precision, hd_scalar_t type);

// The graph for a precision; itself where nothing changes. Its inputs,
// constants and outputs are the graph's own values, their types unchanged. The
// graph is one of tasks with concrete shapes. held, where it is not NULL, is
// given for each value of the graph the one that stands for it there. Each
// product or convolution that computes in another type is a step
// (HD_STEP_PRECISION). NULL after an error: E1104.
const hd_graph_t *hd_graph_lower_precision(hd_module_t *module,
                                           const hd_graph_t *graph,
                                           hd_precision_t precision,
                                           hd_ptr_map_t *held);

#endif
