// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Runtime/ModelPasses.h"

#include "Fusion/Compose/FoldNorms.h"
#include "Fusion/Fuse.h"
#include "Fusion/Layout/Layouts.h"

#include <string.h>

static const hd_graph_t *fold_norms(hd_module_t *module,
                                    const hd_graph_t *graph, bool explain) {
  return hd_graph_fold_norms(module, graph, false, explain);
}

static const struct {
  const char *name, *alias;
  const hd_graph_t *(*run)(hd_module_t *module, const hd_graph_t *graph,
                           bool explain);
  bool joins;
} passes[] = {
#define HD_MODEL_PASS(id, name, alias, function, joins)                        \
  {name, alias, function, joins},
#include "Runtime/ModelPasses.def"
#undef HD_MODEL_PASS
};

const char *hd_model_pass_name(hd_model_pass_t pass) {
  return passes[pass].name;
}

hd_model_pass_t hd_model_pass_find(const char *name) {
  unsigned i = 0;
  while (i < HD_NUM_MODEL_PASSES && strcmp(passes[i].name, name) != 0 &&
         !(passes[i].alias && strcmp(passes[i].alias, name) == 0))
    i++;
  return (hd_model_pass_t)i;
}

const hd_graph_t *hd_model_run_passes(hd_module_t *module,
                                      const hd_graph_t *graph,
                                      hd_model_passes_t left_out, bool unfused,
                                      bool explain) {
  for (unsigned i = 0; graph && i < HD_NUM_MODEL_PASSES; i++)
    if (passes[i].run && !hd_model_pass_in(left_out, (hd_model_pass_t)i) &&
        !(unfused && passes[i].joins))
      graph = passes[i].run(module, graph, explain);
  return graph;
}
