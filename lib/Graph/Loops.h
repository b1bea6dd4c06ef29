// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bodies of loops, as passes leave them.
#ifndef HIDET_GRAPH_LOOPS_H
#define HIDET_GRAPH_LOOPS_H

#include "IR/Graph/Loop.h"

// A graph like that, in which what does not depend on states, slices and the
// turn is computed before the loop.
const hd_graph_t *hd_graph_hoist(hd_module_t *module, const hd_graph_t *graph);

// A graph like that, or a loop's body, in which each result is a value of its
// own that a node gives: by copies, which join the kernels that give the
// values.
const hd_graph_t *hd_graph_outputs_apart(hd_module_t *module,
                                         const hd_graph_t *graph);

#endif
