// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a task does with the floats that it is given, so far as that decides in
// which type it may take them. Derived from its body, never declared.
#ifndef HIDET_GRAPH_BIND_ARITHMETIC_H
#define HIDET_GRAPH_BIND_ARITHMETIC_H

#include "IR/Graph/Task.h"

typedef enum hd_arithmetic {
  // Brings elements to other places or picks among them: of rounded elements
  // it gives the rounded result. relu, max_pool, concat, where.
  HD_ARITHMETIC_NONE,
  // Sums, kept in the type of accumulation, of products of its inputs, of which
  // each is a factor: matmul, conv.
  HD_ARITHMETIC_PRODUCT,
  // Anything else, whose range and error are another in a narrow type: exp,
  // softmax, layer_norm, add.
  HD_ARITHMETIC_OTHER,
} hd_arithmetic_t;

hd_arithmetic_t hd_task_arithmetic(const hd_task_t *task);

#endif
