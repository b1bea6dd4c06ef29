// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tensor map on the simulator: the launch's own, whose address is an argument
// after the parameters (CodeGen/SimAbi.h).
#ifndef HIDET_RUNTIME_SIMMAP_H
#define HIDET_RUNTIME_SIMMAP_H

#include "Runtime/TensorMap.h"

typedef hd_tensor_map_t hd_sim_map_t;

#endif
