// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Fusion/Fuse.h"
#include "Fusion/Passes.h"
#include "Graph/Loops.h"

const hd_pass_t hd_fusion_passes[] = {
#define HD_PASS HD_PASS_ROW
#include "Fusion/Passes.def"
#undef HD_PASS
};
const size_t hd_fusion_num_passes =
    sizeof hd_fusion_passes / sizeof hd_fusion_passes[0];

static bool take_graph(hd_item_t *version, const hd_graph_t *graph) {
  version->u.graph = graph;
  return graph;
}

bool hd_pass_fuse(hd_module_t *module, const hd_graph_t *graph,
                  const hd_pass_args_t *args, hd_item_t *version) {
  return hd_graph_check_tasks(module, graph) &&
         take_graph(version, hd_graph_fuse(module, graph, args->explain));
}

bool hd_pass_pair_products(hd_module_t *module, const hd_graph_t *graph,
                           const hd_pass_args_t *args, hd_item_t *version) {
  return hd_graph_check_tasks(module, graph) &&
         take_graph(version,
                    hd_graph_pair_products(module, graph, args->explain));
}

bool hd_pass_schedule_anchors(hd_module_t *module, const hd_graph_t *graph,
                              const hd_pass_args_t *args, hd_item_t *version) {
  (void)args;
  return take_graph(
      version,
      hd_graph_schedule_anchors(
          module, hd_scheduler_create(module, &module->arena), graph, false));
}

// The plan of the whole, which is the module's last item, takes the graph's
// place; of the items from number added on, what it runs is left.
static void take_plan(hd_module_t *module, size_t added, hd_item_t *version) {
  *version = module->items.data[--module->items.size];
  hd_plan_sweep(module, added, version->u.func);
}

// A plan that stands alone gives every output of the graph; one in a session
// need not give what is there already (hd_planned_outputs()).
static const hd_func_t *make_plan(hd_module_t *module,
                                  hd_scheduler_t *scheduler,
                                  const hd_graph_t *graph,
                                  const hd_pass_args_t *args) {
  const hd_inouts_t none = {0};
  return hd_graph_apply_fusion(module, scheduler,
                               hd_graph_outputs_apart(module, graph), &none,
                               args->explain);
}

bool hd_pass_apply_fusion(hd_module_t *module, const hd_graph_t *graph,
                          const hd_pass_args_t *args, hd_item_t *version) {
  size_t added = module->items.size;
  hd_scheduler_t *scheduler = hd_scheduler_create(module, &module->arena);
  const hd_func_t *plan = make_plan(module, scheduler, graph, args);
  if (!plan)
    return false;
  take_plan(module, added, version);
  return true;
}

typedef struct scheduling {
  hd_module_t *module;
  const hd_graph_t *graph;
  const hd_pass_args_t *args;
} scheduling_t;

static const hd_func_t *schedule(void *argument) {
  const scheduling_t *s = argument;
  hd_scheduler_t *scheduler = hd_scheduler_create(s->module, &s->module->arena);
  const hd_graph_t *scheduled =
      hd_graph_schedule_anchors(s->module, scheduler, s->graph, true);
  return scheduled ? make_plan(s->module, scheduler, scheduled, s->args) : NULL;
}

bool hd_pass_schedule(hd_module_t *module, const hd_graph_t *graph,
                      const hd_pass_args_t *args, hd_item_t *version) {
  size_t added = module->items.size;
  scheduling_t scheduling = {module, graph, args};
  const hd_func_t *plan = hd_plan_in_rounds(module, schedule, &scheduling);
  if (!plan)
    return false;
  take_plan(module, added, version);
  return true;
}
