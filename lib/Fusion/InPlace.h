// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Outputs of a graph that take the memory of an input: a cache, into which a
// run puts what is new.
#ifndef HIDET_FUSION_INPLACE_H
#define HIDET_FUSION_INPLACE_H

#include "IR/Graph/Graph.h"
#include "IR/Module.h"

// An input and an output of a graph, by their numbers: what comes out of one
// run comes in at the next. No number is there twice.
typedef struct hd_inout {
  uint32_t input, output;
} hd_inout_t;

typedef struct hd_inouts {
  const hd_inout_t *pairs;
  size_t count;
} hd_inouts_t;

// The pair of an input; NULL: it has none.
static inline const hd_inout_t *hd_inouts_find(const hd_inouts_t *inouts,
                                               size_t input) {
  for (size_t i = 0; i < inouts->count; i++)
    if (inouts->pairs[i].input == input)
      return &inouts->pairs[i];
  return NULL;
}

// A graph in which nodes that give such an output by scattering onto the input
// (Fusion/Append.h says what else is such), and whose input nobody else reads,
// have it no longer: their task scatters onto its own result, which keeps what
// is there. They are right where the two are one tensor of a plan; *placed, in
// the module's arena, is the pairs of which that is so. Reshapes may stand
// between. Of tasks with known shapes. explain: says of each pair what came of
// it.
const hd_graph_t *hd_graph_in_place(hd_module_t *module,
                                    const hd_graph_t *graph,
                                    const hd_inouts_t *inouts, bool explain,
                                    hd_inouts_t *placed);

#endif
