// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tensor map on the simulator: the launch's own, whose address is an argument
// after the parameters (CodeGen/SimAbi.h).
#ifndef HIDET_SIM_MAP_H
#define HIDET_SIM_MAP_H

#include "IR/TensorMap.h"

typedef hd_tensor_map_t hd_sim_map_t;

#endif
