// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions that host code calls. Those of intrinsics have the names of the
// sim column of IR/Intrinsics.def and the semantics of the PTX manual; how
// operands travel is told in CodeGen/SimAbi.h.
#ifndef HIDET_SIM_FUNCTIONS_H
#define HIDET_SIM_FUNCTIONS_H

#include "CodeGen/SimAbi.h"

#define HD_SIM_THREAD_FUNCTION(name)                                           \
  void name(hd_sim_thread_t *thread, uint64_t *slots);
#define HD_SIM_WARP_FUNCTION(name) void name(hd_sim_warp_t *warp);
#define HD_SIM_BLOCK_FUNCTION(name)                                            \
  bool name(hd_sim_thread_t *thread, uint64_t *slots);
#define HD_SIM_PURE_FUNCTION(name, result, ...) result name(__VA_ARGS__);
#include "Sim/Functions.def"

#endif
