// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the values of a graph lie in memory.
#ifndef HIDET_FUSION_LAYOUT_LAYOUTS_H
#define HIDET_FUSION_LAYOUT_LAYOUTS_H

#include "IR/Graph/Graph.h"

// A graph that computes the same, in which values between nodes lie with
// another axis last where tensor cores would have to gather them otherwise: of
// an image the channels, as the convolutions that read it sum over them. Such a
// value has its axes in another order, and nodes that touch it get tasks that
// say so, made from theirs and added to the module; weights are transposed by
// nodes of constants alone. Inputs and outputs stay as they are. Operands of
// products whose rows are no multiples of 16 bytes are copied to rows that are,
// where that is expected to be faster. The graph itself where nothing changes.
// Of graphs of tasks whose shapes are known, before groups are formed. Asks for
// each of its changes to a value as a step of fusion (Support/Steps.h). NULL
// after an error.
const hd_graph_t *hd_graph_choose_layouts(hd_module_t *module,
                                          const hd_graph_t *graph,
                                          bool explain);

#endif
