// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass `schedule`: a graph of tasks (expanded) becomes a plan of the same
// name, whose parameters are the graph's inputs, its constants and its outputs,
// and the kernels that it launches.

#include "Schedule/Passes.h"
#include "Schedule/Schedule.h"

const hd_pass_t hd_schedule_passes[] = {
#define HD_PASS HD_PASS_ROW
#include "Schedule/Passes.def"
#undef HD_PASS
};
const size_t hd_schedule_num_passes =
    sizeof hd_schedule_passes / sizeof hd_schedule_passes[0];

static bool is_scheduled(hd_module_t *module, const hd_graph_t *graph) {
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    if (node->domain)
      return hd_error(&module->context->diags, node->loc, HD_E1104, node->op,
                      "an operator is expanded before it is scheduled: "
                      "--expand --schedule");
  }
  return true;
}

bool hd_pass_schedule(hd_module_t *module, const hd_graph_t *graph,
                      const hd_pass_args_t *args, hd_item_t *version) {
  (void)args;
  if (!is_scheduled(module, graph))
    return false;
  const hd_func_t *plan = hd_schedule_graph(module, graph);
  if (!plan)
    return false;
  // The scheduler pushed it; here it takes the graph's place.
  for (size_t i = module->items.size; i-- > 0;)
    if (module->items.data[i].kind == HD_ITEM_FUNC &&
        module->items.data[i].u.func == plan) {
      *version = module->items.data[i];
      for (; i + 1 < module->items.size; i++)
        module->items.data[i] = module->items.data[i + 1];
      module->items.size--;
      return true;
    }
  return false;
}
