// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the matrix instructions share.
#ifndef HIDET_SIM_MATRIX_H
#define HIDET_SIM_MATRIX_H

#include "CodeGen/SimAbi.h"

// Whether all 32 lanes take part, as .aligned instructions on fragments need;
// where not, the launch fails and this does not return.
bool hd_sim_whole_warp(const hd_sim_warp_t *warp);

#endif
