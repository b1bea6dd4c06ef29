// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrices of constants, turned for products of few rows.
#ifndef HIDET_FUSION_COMPOSE_TURNWEIGHTS_H
#define HIDET_FUSION_COMPOSE_TURNWEIGHTS_H

#include "Fusion/Group/Group.h"

// A graph in which products read matrices that depend on constants alone with
// neighbours along the sum, where that is expected to be faster; the same where
// none is. Of tasks with known shapes. A machine is meant.
const hd_graph_t *hd_graph_turn_weights(hd_fusion_t *fusion,
                                        const hd_graph_t *graph, bool explain);

#endif
