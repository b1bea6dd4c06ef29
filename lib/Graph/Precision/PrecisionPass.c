// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass `lower-precision`: Graph/Precision.h.

#include "Graph/Passes.h"
#include "Graph/Precision/Precision.h"

bool hd_pass_lower_precision(hd_module_t *module, const hd_graph_t *graph,
                             const hd_pass_args_t *args, hd_item_t *version) {
  for (int i = 0; i < HD_PRECISIONS; i++)
    if (hd_pass_option_is(args->options, "to",
                          hd_precision_name((hd_precision_t)i))) {
      version->u.graph =
          hd_graph_lower_precision(module, graph, (hd_precision_t)i, NULL);
      return version->u.graph != NULL;
    }
  return hd_error(&module->context->diags, graph->loc, HD_E1002,
                  "--lower-precision",
                  "needs to=f32, to=tf32, to=f16 or to=bf16");
}
