// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Schedule/Schedule.h"

const hd_func_t *hd_schedule_graph(hd_module_t *module,
                                   const hd_graph_t *graph) {
  hd_error(&module->context->diags, graph->loc, HD_E1104, graph->name,
           "graphs cannot be scheduled yet");
  return NULL;
}

bool hd_scheduled_output(const hd_graph_t *graph, size_t i) {
  const hd_value_t *value = graph->outputs.data[i];
  for (size_t k = 0; k < graph->inputs.size; k++)
    if (graph->inputs.data[k] == value)
      return false;
  for (size_t k = 0; k < i; k++)
    if (graph->outputs.data[k] == value)
      return false;
  return !value->constant;
}
