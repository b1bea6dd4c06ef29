// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inputs and outputs of a graph that are one tensor, by their names.
#ifndef HIDET_TOOLS_INOUT_H
#define HIDET_TOOLS_INOUT_H

#include "Fusion/InPlace.h"

// Adds a pair, in the arena. Returns why that cannot be; NULL: it is done.
const char *hd_inouts_add(hd_arena_t *arena, const hd_graph_t *graph,
                          const char *input, const char *output,
                          hd_inouts_t *inouts);

#endif
