// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Norms folded into the products that read them.
#ifndef HIDET_FUSION_COMPOSE_FOLDNORMS_H
#define HIDET_FUSION_COMPOSE_FOLDNORMS_H

#include "IR/Graph/Graph.h"

// The graph in which products find the statistics of the rows that they read,
// where that is expected to be faster than norms of their own; the same where
// none is. Of tasks with known shapes, in their final types, before what
// depends on constants alone is taken out. rounds: also norms of rows that a
// product then reads in a narrower type, rounded before they are normalized.
const hd_graph_t *hd_graph_fold_norms(hd_module_t *module,
                                      const hd_graph_t *graph, bool rounds,
                                      bool explain);

#endif
