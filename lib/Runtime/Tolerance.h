// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How far a result may lie from what is expected.
#ifndef HIDET_RUNTIME_TOLERANCE_H
#define HIDET_RUNTIME_TOLERANCE_H

#include "IR/Graph/HostTensor.h"

// An element is right within absolute + relative * |expected|; NaN is NaN, and
// an infinity is that infinity.
typedef struct hd_tolerance {
  double relative, absolute; // NAN: not given.
} hd_tolerance_t;

// With what was not given: a thousandth of each element, and of the largest
// finite one 1e-4, for sums that cancel leave an error of their terms' size.
// Integers and bools are exact.
hd_tolerance_t hd_tolerance_for(hd_tolerance_t given,
                                const hd_host_tensor_t *expected);
bool hd_tolerance_holds(hd_tolerance_t tolerance, double found,
                        double expected);

#endif
