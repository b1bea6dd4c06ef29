// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes over a model's graph that may be left out, by name. Thread-safe:
// a constant table.
#ifndef HIDET_RUNTIME_MODELPASSES_H
#define HIDET_RUNTIME_MODELPASSES_H

#include "IR/Graph/Graph.h"
#include "IR/Module.h"

typedef enum hd_model_pass {
#define HD_MODEL_PASS(id, name, alias, function, joins) HD_MODEL_PASS_##id,
#include "Runtime/ModelPasses.def"
#undef HD_MODEL_PASS
  HD_NUM_MODEL_PASSES
} hd_model_pass_t;

// A set of passes: bit n is the pass n.
typedef uint32_t hd_model_passes_t;

static inline bool hd_model_pass_in(hd_model_passes_t set,
                                    hd_model_pass_t pass) {
  return set >> pass & 1;
}

// The name that hidet-opt knows the pass by.
const char *hd_model_pass_name(hd_model_pass_t pass);
// By its name or its other name; HD_NUM_MODEL_PASSES where there is none.
hd_model_pass_t hd_model_pass_find(const char *name);

// Runs those between the rewrites and the choice of groups, in their order,
// but for left_out; without those that join nodes where `unfused`. The graph
// that results lives in the module's arena; NULL after an error.
const hd_graph_t *hd_model_run_passes(hd_module_t *module,
                                      const hd_graph_t *graph,
                                      hd_model_passes_t left_out, bool unfused,
                                      bool explain);

#endif
