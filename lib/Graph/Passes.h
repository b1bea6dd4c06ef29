// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes of lib/Graph.
#ifndef HIDET_GRAPH_PASSES_H
#define HIDET_GRAPH_PASSES_H

#include "IR/Passes/Pass.h"

#define HD_PASS HD_PASS_DECLARATION
#include "Graph/Passes.def"
#undef HD_PASS

extern const hd_pass_t hd_graph_passes[];
extern const size_t hd_graph_num_passes;

#endif
